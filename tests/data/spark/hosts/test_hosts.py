"""Spark on four hosts: a driver, a master and two workers, with addresses, disks and failures of their own."""

from __future__ import annotations

import contextlib
import json
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pyspark
import pytest

import mqlab
from mqlab.data.spark.java import find_java
from tests.data.spark.hosts.job import BEGUN
from tests.data.spark.hosts.network import PATIENCE_S, Host, Network, Program, why_not
from tests.tidy.sources import ROOT

pytestmark = [pytest.mark.long, pytest.mark.spark]

HOME = Path(pyspark.__file__).parent
STORES, OUT = Path("/stores"), Path("/out")  # where hosts see what is shared
DEPLOY = "org.apache.spark.deploy"
OTHER_VERSION = "0.0.9"


class Spark:
    """A master and workers on hosts of their own, and drivers on as many more."""

    def __init__(self, network: Network, shared: Mapping[Path, Path], has_mqlab: bool | Path = True) -> None:
        self.network, self.shared, self.has_mqlab = network, shared, has_mqlab
        self._drivers = 0
        master = network.host("master")
        place = ["--host", master.address, "--port", "7077", "--webui-port", "0"]
        self._daemon(master, "master.Master", *place).says("Starting Spark master")
        self.url = f"spark://{master.address}:7077"
        self.workers = [self._host(f"worker-{number}", has_mqlab) for number in (1, 2)]
        started = [self.start_worker(worker) for worker in self.workers]
        for worker in started:
            worker.says("Successfully registered with master")

    def start_worker(self, host: Host) -> Program:
        size = ["--cores", "2", "--memory", "1g", "--work-dir", "/host/work"]
        return self._daemon(host, "worker.Worker", "--host", host.address, *size, self.url)

    def driver(self, case: str, *where: object, shared: Mapping[Path, Path] | None = None) -> tuple[Host, Program]:
        """A case of the job, begun on a new host."""
        self._drivers += 1
        host = self.network.host(f"driver-{self._drivers}", shared=self.shared if shared is None else shared)
        return host, job(host, case, self.url, *where)

    def finds(self, case: str, *where: object) -> Any:
        """What a case of the job finds."""
        return found_by(self.driver(case, *where)[1])

    def _host(self, name: str, has_mqlab: bool | Path) -> Host:
        return self.network.host(name, shared=self.shared, has_mqlab=has_mqlab)

    def _daemon(self, host: Host, name: str, *arguments: str) -> Program:
        options = {"SPARK_HOME": str(HOME), "SPARK_DAEMON_MEMORY": "256m", **java()}
        return host.run(str(HOME / "bin" / "spark-class"), f"{DEPLOY}.{name}", *arguments, **options)


def java() -> dict[str, str]:
    home = find_java().home
    return {} if home is None else {"JAVA_HOME": str(home)}


def job(host: Host, case: str, master: str, *where: object) -> Program:
    arguments = [sys.executable, "-m", "tests.data.spark.hosts.job", case, master, *map(str, where)]
    return host.run(*arguments, PYTHONPATH=str(ROOT), **java())


def found_by(program: Program) -> Any:
    return json.loads(program.ends().splitlines()[-1])


@pytest.fixture(scope="module", autouse=True)
def hosts_can_be_made() -> None:
    if reason := why_not():
        pytest.skip(reason)


@pytest.fixture(scope="module")
def stores(unpacked_stores: Path) -> Path:
    return unpacked_stores


@pytest.fixture(scope="module")
def out(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("out")


@pytest.fixture(scope="module")
def network(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Network]:
    with Network(tmp_path_factory.mktemp("disks")) as network:
        yield network


@pytest.fixture(scope="module")
def spark(network: Network, stores: Path, out: Path) -> Spark:
    return Spark(network, {stores: STORES, out: OUT})


@pytest.fixture(scope="module")
def alone(network: Network, stores: Path, out: Path) -> Callable[..., Any]:
    """What a case finds when one machine does everything."""
    host = network.host("alone", shared={stores: STORES, out: OUT})
    return lambda case, *where: found_by(job(host, case, "local[2]", *where))


def kill_and_start_again(spark: Spark, program: Program, until: Callable[[Host], bool]) -> None:
    """One worker loses its host as soon as work has begun there, and comes back with an empty disk."""
    wait_for(lambda: any(map(until, spark.workers)) or program.process.poll() is not None)
    assert program.process.poll() is None, program.log.read_text("utf-8")
    worker = next(filter(until, spark.workers))  # a small batch has one task, which either may have got
    worker.kill()
    shutil.rmtree(worker.disk / "host" / "work", ignore_errors=True)
    spark.start_worker(worker).says("Successfully registered with master")


def wait_for(is_there: Callable[[], bool]) -> None:
    end = time.monotonic() + PATIENCE_S
    while not is_there():
        assert time.monotonic() < end
        time.sleep(0.05)


def has_begun(folder: Path) -> Callable[[Host], bool]:
    return lambda host: any(folder.glob(f"{host.address}-*"))


def test_stores_on_a_shared_mount_are_read_by_all(spark: Spark, alone: Callable[..., Any]) -> None:
    found = spark.finds("batch", STORES / "clean")
    assert found == alone("batch", STORES / "clean") and found["rows"] > 100


def test_a_worker_dies_in_a_batch(spark: Spark, alone: Callable[..., Any], out: Path) -> None:
    _, program = spark.driver("slow_batch", STORES / "edges", OUT / "begun")
    kill_and_start_again(spark, program, has_begun(out / "begun"))
    assert found_by(program) == alone("batch", STORES / "edges")


def test_a_worker_dies_in_a_stream(spark: Spark, alone: Callable[..., Any], out: Path) -> None:
    (out / "stream").mkdir()
    _, program = spark.driver("stream", STORES / "clean", OUT / "stream", "slowly")
    kill_and_start_again(spark, program, has_begun(out / "stream" / "begun"))
    assert found_by(program) == alone("batch", STORES / "clean")


def test_another_host_goes_on_where_the_driver_died(spark: Spark, alone: Callable[..., Any], out: Path) -> None:
    (out / "moved").mkdir()
    host, program = spark.driver("stream", STORES / "clean", OUT / "moved", "slowly")
    wait_for(lambda: any((out / "moved" / "checkpoint" / "commits").glob("[0-9]*")))
    host.kill()
    assert program.process.returncode != 0
    assert spark.finds("stream", STORES / "clean", OUT / "moved") == alone("batch", STORES / "clean")


def test_a_worker_dies_while_the_pipeline_writes(
    spark: Spark, alone: Callable[..., Any], stores: Path, out: Path
) -> None:
    generate = [sys.executable, "-m", "mqlab.cli", "traffic", "--messages", "6000", "--brokers", "2", "--out"]
    subprocess.run([*generate, str(out / "day")], cwd=ROOT, check=True, capture_output=True)
    _, program = spark.driver("pipeline", OUT / "day", OUT / "tables")
    kill_and_start_again(spark, program, lambda _: any((out / "tables").rglob("*.parquet*")))
    assert found_by(program) == alone("pipeline", OUT / "day", OUT / "tables-alone")


def test_a_store_that_only_the_driver_sees_is_refused_before_any_task(spark: Spark, stores: Path) -> None:
    _, program = spark.driver("batch", "/mine/clean", shared={stores: Path("/mine")})
    output = said_by(program)
    workers = ", ".join(host.address for host in spark.workers)
    assert f"/mine/clean is on the driver, and not on the executors of {workers}" in output
    assert "Task 0" not in output  # no task of the read failed


def said_by(program: Program) -> str:
    """What a program said that failed."""
    assert program.process.wait() != 0
    return program.log.read_text("utf-8")


@contextlib.contextmanager
def served(network: Network) -> Iterator[str]:
    """Two brokers and their name server, each on a host of its own; the name server's address."""
    names, *brokers = [network.host(name) for name in ("names", "broker-1", "broker-2")]
    serve = [sys.executable, "-m", "mqlab.cli", "serve", "--allow-remote"]
    address = f"{names.address}:9876"
    names.run(*serve, "--only", "namesrv", "--namesrv", address, "--port-file", "/host/ports", PYTHONPATH=str(ROOT))
    wait_for((names.disk / "host" / "ports").exists)
    for number, host in enumerate(brokers, 1):
        only = ["--only", "broker", "--namesrv", address, "--broker", f"{host.address}:10911", "--store", "/host/run"]
        name = ["--set", f"brokerName=broker-{number}", "--port-file", "/host/ports"]
        host.run(*serve, *only, *name, PYTHONPATH=str(ROOT))
        wait_for((host.disk / "host" / "ports").exists)
    admin = [sys.executable, "-m", "mqlab.cli", "admin", "updateTopic", "-n", address]
    for number, _ in enumerate(brokers, 1):
        topic = ["-b", f"broker-{number}", "-t", "orders", "-r", "2", "-w", "2", "--yes"]
        names.run(*admin, *topic, PYTHONPATH=str(ROOT)).ends()
    try:
        yield address
    finally:
        for host in (names, *brokers):
            host.kill()


def test_brokers_on_their_own_hosts_are_asked_over_a_slow_link(spark: Spark, network: Network, out: Path) -> None:
    with served(network) as address:
        assert spark.finds("sent", address) == {"rows": 200, "distinct": 200}
        for worker in spark.workers:
            worker.slow_down("2mbit")
        found = spark.finds("asked", address)
        (out / "asked").mkdir()
        assert spark.finds("asked_in_a_stream", address, OUT / "asked") == found and found["rows"] == 200


@pytest.fixture
def others(tmp_path: Path, stores: Path, out: Path) -> Iterator[Callable[[bool | Path], Spark]]:
    """Other clusters, by what their workers have installed."""
    with contextlib.ExitStack() as running:
        made = Network(tmp_path)
        running.enter_context(made)
        yield lambda has_mqlab: Spark(made, {stores: STORES, out: OUT}, has_mqlab)


def test_workers_without_mqlab_are_sent_it_or_named(
    others: Callable[[bool | Path], Spark], alone: Callable[..., Any]
) -> None:
    spark = others(False)
    assert spark.finds("batch", STORES / "clean") == alone("batch", STORES / "clean")
    output = said_by(spark.driver("not_shipped", STORES / "clean")[1])
    assert "mqlab is not installed on the executors of" in output and BEGUN in output


def test_workers_with_another_version_are_sent_this_one_or_named(
    others: Callable[[bool | Path], Spark], alone: Callable[..., Any], tmp_path: Path
) -> None:
    shutil.copytree(ROOT / "mqlab", tmp_path / "older", ignore=shutil.ignore_patterns("__pycache__"))
    package = tmp_path / "older" / "__init__.py"
    text = package.read_text("utf-8")
    package.write_text(text.replace(f'"{mqlab.__version__}"', f'"{OTHER_VERSION}"'), "utf-8")
    spark = others(tmp_path / "older")
    assert spark.finds("batch", STORES / "clean") == alone("batch", STORES / "clean")
    output = said_by(spark.driver("not_shipped", STORES / "clean")[1])
    assert f"have mqlab {OTHER_VERSION}, and this driver has {mqlab.__version__}" in output
