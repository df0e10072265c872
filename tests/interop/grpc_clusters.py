"""Two clusters for 5.x clients: `mqlab serve --grpc`, and a real broker with its proxy in one process."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

import mqlab
from tests.interop.clusters import REPOSITORY, end, free_port, until
from tests.interop.java_store import BUILD_SECONDS, HERE, OPENED

T = TypeVar("T")

DOORS = HERE / "grpc"
TOPICS = {kind: f"door-{kind.lower()}" for kind in ("NORMAL", "FIFO", "DELAY", "TRANSACTION")}
IN_ORDER = "door-fifo"  # a group


@dataclass(frozen=True)
class GrpcWhere:
    """Where 5.x clients, and others, find a cluster, and the process that answers them."""

    grpc: str
    name_server: str
    pid: int


def built(folder: Path) -> str:
    """The class path of a folder's Maven project, built when it is older than its sources."""
    target = folder / "target"
    classpath, sources = target / "classpath.txt", (folder / "pom.xml", *folder.glob("java/*"))
    if not classpath.exists() or max(file.stat().st_mtime for file in sources) > classpath.stat().st_mtime:
        command = ["mvn", "-q", "-B", "-f", str(folder / "pom.xml"), "compile"]
        maven = subprocess.run(command, capture_output=True, text=True, timeout=BUILD_SECONDS)
        if maven.returncode:
            raise RuntimeError(f"Maven cannot build {folder}:\n{maven.stdout}{maven.stderr}")
        os.utime(classpath)
    return f"{target / 'classes'}{os.pathsep}{classpath.read_text().strip()}"


@contextmanager
def mqlab_grpc(directory: Path) -> Iterator[GrpcWhere]:
    """A `mqlab serve --grpc`."""
    directory.mkdir(parents=True)
    ports = directory / "ports.json"
    free = [word for name in ("namesrv", "broker", "grpc") for word in (f"--{name}", "127.0.0.1:0")]
    command = [sys.executable, "-m", "mqlab.cli", "serve", "--store", str(directory / "store"), *free]
    process = subprocess.Popen([*command, "--port-file", str(ports)], cwd=REPOSITORY)
    try:
        until(ports.exists, process)
        addresses = json.loads(ports.read_text("utf-8"))
        yield GrpcWhere(addresses["grpc"], addresses["namesrv"], process.pid)
    finally:
        end(process)


@contextmanager
def real_grpc(directory: Path) -> Iterator[GrpcWhere]:
    """A real name server, and a real broker with its proxy."""
    (directory / "conf").mkdir(parents=True)
    name_server, broker, grpc, remoting = (free_port() for _ in range(4))
    (directory / "namesrv.conf").write_text(f"listenPort={name_server}\n", "utf-8")
    lines = (
        "brokerClusterName=LabCluster",
        "brokerName=broker-a",
        "brokerIP1=127.0.0.1",
        f"listenPort={broker}",
        f"namesrvAddr=127.0.0.1:{name_server}",
        f"storePathRootDir={directory}/store",
        f"storePathCommitLog={directory}/store/commitlog",
        "mappedFileSizeCommitLog=67108864",
        "brokerFastFailureEnable=false",
    )
    (directory / "broker.conf").write_text("\n".join(lines), "utf-8")
    proxy = {"rocketMQClusterName": "LabCluster", "grpcServerPort": grpc, "remotingListenPort": remoting}
    (directory / "conf" / "rmq-proxy.json").write_text(json.dumps({**proxy, "proxyMode": "LOCAL"}), "utf-8")
    opened = [word for module in OPENED for word in ("--add-opens", f"{module}=ALL-UNNAMED")]
    exported = [f"--add-exports=java.base/{module}=ALL-UNNAMED" for module in ("jdk.internal.ref", "sun.nio.ch")]
    memory = ["-XX:+UseSerialGC", "-Xmx1g", "-XX:MaxDirectMemorySize=1g", f"-Duser.home={directory}"]
    java = ["java", *opened, *exported, *memory, "-cp", built(DOORS / "proxy")]
    configuration = ("-bc", str(directory / "broker.conf"), "-pc", str(directory / "conf" / "rmq-proxy.json"))
    address = f"127.0.0.1:{name_server}"
    commands = (
        ("namesrv.NamesrvStartup", ("-c", str(directory / "namesrv.conf")), b"boot success"),
        ("proxy.ProxyStartup", ("-n", address, "-pm", "local", *configuration), b"startup successfully"),
    )
    started: list[subprocess.Popen[bytes]] = []
    try:
        for program, words, ready in commands:
            log = directory / f"{program}.log"
            with log.open("wb") as file:
                command = [*java, f"org.apache.rocketmq.{program}", *words]
                home = {**os.environ, "ROCKETMQ_HOME": str(directory)}
                started.append(subprocess.Popen(command, stdout=file, stderr=file, env=home))
            until(lambda log=log, ready=ready: ready in log.read_bytes(), started[-1], log)
        time.sleep(12)  # the broker registers some ten seconds after its start
        yield GrpcWhere(f"127.0.0.1:{grpc}", address, started[-1].pid)
    finally:
        for process in reversed(started):
            end(process)


def make_topics(where: GrpcWhere) -> None:
    """The topics and the group in order that the doors use."""
    with mqlab.connect(where.name_server) as cluster:
        for kind, topic in TOPICS.items():
            cluster.admin.create_topic(topic, read_queue_nums=2, write_queue_nums=2, confirm=True)
            cluster.admin.update_topic(topic, attributes=f"+message.type={kind}", confirm=True)
        cluster.admin.create_and_update_subscription_group_config(IN_ORDER, consume_message_orderly=True, confirm=True)
    time.sleep(2)


def both(directory: Path, look: Callable[[str, GrpcWhere], T]) -> tuple[T, T]:
    """What ``look(name, where)`` returns of mqlab's cluster and of the real one, looked at at the same time."""

    def looked(name: str, cluster: AbstractContextManager[GrpcWhere]) -> T:
        with cluster as where:
            make_topics(where)
            return look(name, where)

    with ThreadPoolExecutor(2) as pool:
        ours = pool.submit(looked, "mqlab", mqlab_grpc(directory / "mqlab"))
        real = pool.submit(looked, "real", real_grpc(directory / "real"))
        return ours.result(), real.result()


def missing(*programs: str) -> str | None:
    """The first of some programs that is not on the PATH; None when all are."""
    return next((program for program in programs if shutil.which(program) is None), None)
