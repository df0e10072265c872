"""The two clusters that a Java client is let loose on: `mqlab serve`, and a real name server and broker."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from tests.interop.java_store import OPENED

T = TypeVar("T")

START_SECONDS = 120
SETTINGS = (
    "enablePropertyFilter=true",
    "traceTopicEnable=true",
    "timerWheelEnable=false",
    "brokerFastFailureEnable=false",
)
PROFILED = """
import cProfile, sys, time
from mqlab.cli import main
profile = cProfile.Profile(time.process_time)
file = sys.argv.pop(1)
try:
    profile.runcall(main)
finally:
    profile.dump_stats(file)
"""
REPOSITORY = Path(__file__).parents[2]


def free_port() -> int:
    """A free port whose neighbours are most likely free, too."""
    with socket.create_server(("127.0.0.1", 0)) as found:
        port: int = found.getsockname()[1]
        return port


@dataclass(frozen=True)
class Where:
    """The addresses of a cluster with one broker, and the process of the broker."""

    name_server: str
    broker: str
    pid: int


@contextmanager
def mqlab_cluster(directory: Path, *settings: str, profile: Path | None = None) -> Iterator[Where]:
    """A `mqlab serve`; ``profile``: a file for its profile, in processor time."""
    ports, config = directory / "ports.json", directory / "broker.conf"
    directory.mkdir(parents=True)
    config.write_text("\n".join((*SETTINGS, *settings)), "utf-8")
    program = ("-c", PROFILED, str(profile)) if profile else ("-m", "mqlab.cli")
    serve = ("serve", "--store", str(directory / "store"), "--config", str(config))
    free = ("--namesrv", "127.0.0.1:0", "--broker", "127.0.0.1:0", "--port-file", str(ports))
    process = subprocess.Popen([sys.executable, *program, *serve, *free], cwd=REPOSITORY)
    try:
        until(ports.exists, process)
        addresses = json.loads(ports.read_text("utf-8"))
        yield Where(addresses["namesrv"], addresses["brokers"][0]["address"], process.pid)
    finally:
        end(process)


@contextmanager
def real_cluster(directory: Path, classpath: str, *settings: str) -> Iterator[Where]:
    """A real RocketMQ; ``directory`` may hold a store for it already."""
    directory.mkdir(parents=True, exist_ok=True)
    name_server, broker = free_port(), free_port()
    home = {**os.environ, "ROCKETMQ_HOME": str(directory)}
    (directory / "conf").mkdir()
    (directory / "namesrv.conf").write_text(f"listenPort={name_server}\n", "utf-8")
    lines = (
        *SETTINGS,
        "brokerName=broker-a",
        "brokerIP1=127.0.0.1",
        f"listenPort={broker}",
        f"namesrvAddr=127.0.0.1:{name_server}",
        f"storePathRootDir={directory}/store",
        f"storePathCommitLog={directory}/store/commitlog",
        "mappedFileSizeCommitLog=67108864",
        *settings,
    )
    (directory / "broker.conf").write_text("\n".join(lines), "utf-8")
    opened = [word for module in OPENED for word in ("--add-opens", f"{module}=ALL-UNNAMED")]
    exported = [
        "--add-exports",
        "java.base/jdk.internal.ref=ALL-UNNAMED",
        "--add-exports",
        "java.base/sun.nio.ch=ALL-UNNAMED",
    ]
    java = [
        "java",
        *opened,
        *exported,
        "-XX:+UseSerialGC",
        "-Xmx1g",
        "-XX:MaxDirectMemorySize=1g",
        f"-Duser.home={directory}",
    ]
    started = []
    try:
        for program, file in (("namesrv.NamesrvStartup", "namesrv.conf"), ("broker.BrokerStartup", "broker.conf")):
            log = (directory / f"{file}.log").open("wb")
            command = [*java, "-cp", classpath, f"org.apache.rocketmq.{program}", "-c", str(directory / file)]
            started.append(subprocess.Popen(command, stdout=log, stderr=log, env=home))
            log.close()
            said = directory / f"{file}.log"
            until(lambda said=said: b"boot success" in said.read_bytes(), started[-1], said)
        time.sleep(12)  # the broker registers some ten seconds after its start
        yield Where(f"127.0.0.1:{name_server}", f"127.0.0.1:{broker}", started[-1].pid)
    finally:
        for process in reversed(started):
            end(process)


def side_by_side(directory: Path, classpath: str, look: Callable[[str, Where], T], *settings: str) -> tuple[T, T]:
    """What ``look(name, where)`` returns of mqlab's cluster and of a real one, both looked at at the same time."""

    def looked(name: str, cluster: AbstractContextManager[Where]) -> T:
        with cluster as where:
            return look(name, where)

    with ThreadPoolExecutor(2) as pool:
        ours = pool.submit(looked, "mqlab", mqlab_cluster(directory / "mqlab", *settings))
        real = pool.submit(looked, "real", real_cluster(directory / "real", classpath, *settings))
        return ours.result(), real.result()


def until(condition: Callable[[], bool], process: subprocess.Popen[bytes], log: Path | None = None) -> None:
    """Wait until a program is ready. RuntimeError with the last words of its log if it ends, or takes too long."""
    end = time.monotonic() + START_SECONDS
    while not condition():
        ended = process.poll() is not None
        if ended or time.monotonic() > end:
            words = log.read_text("utf-8", "replace")[-3000:] if log else str(process.args)
            raise RuntimeError(f"{f'ended with {process.returncode}' if ended else 'not ready in time'}: {words}")
        time.sleep(0.1)


def end(process: subprocess.Popen[bytes]) -> None:
    process.send_signal(signal.SIGTERM)
    try:
        process.wait(30)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait(30)
