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
from contextlib import contextmanager
from pathlib import Path

from tests.interop.java_store import OPENED

START_SECONDS = 120
SETTINGS = (
    "enablePropertyFilter=true",
    "traceTopicEnable=true",
    "timerWheelEnable=false",
    "brokerFastFailureEnable=false",
)
REPOSITORY = Path(__file__).parents[2]


def free_port() -> int:
    """A free port whose neighbours are most likely free, too."""
    with socket.create_server(("127.0.0.1", 0)) as found:
        port: int = found.getsockname()[1]
        return port


@contextmanager
def mqlab_cluster(directory: Path) -> Iterator[str]:
    """The name server's address of a `mqlab serve`."""
    ports, config = directory / "ports.json", directory / "broker.conf"
    directory.mkdir(parents=True)
    config.write_text("\n".join(SETTINGS), "utf-8")
    process = subprocess.Popen(
        [
            *(sys.executable, "-m", "mqlab.cli", "serve", "--store", str(directory / "store"), "--config", str(config)),
            *("--namesrv", "127.0.0.1:0", "--broker", "127.0.0.1:0", "--port-file", str(ports)),
        ],
        cwd=REPOSITORY,
    )
    try:
        _until(ports.exists, process)
        yield json.loads(ports.read_text("utf-8"))["namesrv"]
    finally:
        _end(process)


@contextmanager
def real_cluster(directory: Path, classpath: str) -> Iterator[str]:
    """The name server's address of a real RocketMQ of one broker."""
    directory.mkdir(parents=True)
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
            _until(lambda path=directory / f"{file}.log": b"boot success" in path.read_bytes(), started[-1])
        time.sleep(12)  # the broker registers some ten seconds after its start
        yield f"127.0.0.1:{name_server}"
    finally:
        for process in reversed(started):
            _end(process)


def _until(condition: Callable[[], bool], process: subprocess.Popen[bytes]) -> None:
    end = time.monotonic() + START_SECONDS
    while not condition():
        if process.poll() is not None:
            raise RuntimeError(f"{process.args} ended with {process.returncode}")
        if time.monotonic() > end:
            raise RuntimeError(f"{process.args} is not ready in time")
        time.sleep(0.1)


def _end(process: subprocess.Popen[bytes]) -> None:
    process.send_signal(signal.SIGTERM)
    try:
        process.wait(30)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait(30)
