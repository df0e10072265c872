"""Remoting and gRPC at once under load, and the server killed again and again: nothing acknowledged is lost.

MQLAB_LOAD_SECONDS says for how long; half an hour unless it is set. One server works through the first third and is
measured all the while; then a kill comes every thirtieth of the whole time.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

import mqlab
from mqlab import Message
from mqlab.lab.inspector import StoreInspector
from tests.cluster.grpc.official import Listener, message, producer, push, until
from tests.cluster.serving.footprint import assert_is_flat, footprint
from tests.cluster.serving.served import SMALL

SECONDS = float(os.environ.get("MQLAB_LOAD_SECONDS", "1800"))
SAMPLES = 60  # of the server that lives for a third of the time
KILLS = 20
PAUSE_SECONDS = 0.02  # of a sender: some 30 messages a second of each kind
TOPIC = "orders"


class Served:
    """A `mqlab serve --grpc` of its own process, at the same ports each time."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.addresses: dict[str, Any] = {"namesrv": "127.0.0.1:0", "grpc": "127.0.0.1:0"}
        self.broker = "127.0.0.1:0"
        self.start()

    def start(self) -> None:
        ports = self.directory / "ports.json"
        where = ["--namesrv", self.addresses["namesrv"], "--broker", self.broker, "--grpc", self.addresses["grpc"]]
        settings = [word for line in (*SMALL, "flushDiskType=SYNC_FLUSH") for word in ("--set", line)]
        command = [
            sys.executable,
            "-m",
            "mqlab.cli",
            "serve",
            "--store",
            str(self.directory / "store"),
            *where,
            *settings,
        ]
        with (self.directory / "log").open("ab") as log:
            self.process = subprocess.Popen([*command, "--port-file", str(ports)], stdout=log, stderr=log)
        until(ports.exists, 30)
        self.addresses = json.loads(ports.read_text("utf-8"))
        self.broker = self.addresses["brokers"][0]["address"]

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()


def can_send(shop: Any, first: Message) -> bool:
    """Whether the topic is known by now."""
    with suppress(Exception):
        return bool(shop.send(first))
    return False


def sends(send: Callable[[bytes], None], name: str, stop: threading.Event, stored: set[bytes]) -> None:
    """Send until told to stop; what was acknowledged is in ``stored``."""
    number = 0
    while not stop.is_set():
        body = f"{name}-{number}".encode()
        with suppress(Exception):  # a killed server acknowledges nothing
            send(body)
            stored.add(body)
        number += 1
        time.sleep(PAUSE_SECONDS)


@pytest.mark.long
def test_nothing_acknowledged_is_lost(tmp_path: Path) -> None:
    server = Served(tmp_path)
    with mqlab.connect(server.addresses["namesrv"]) as cluster:
        cluster.admin.create_topic(TOPIC, read_queue_nums=4, write_queue_nums=4, confirm=True)
        until(lambda: can_send(cluster.producer("first"), Message(TOPIC, b"first")))
    stop, by_grpc, by_remoting, listener = threading.Event(), set[bytes](), set[bytes](), Listener()
    measured: list[tuple[float, int]] = []
    one_life: list[tuple[float, int]] = []
    with (
        mqlab.connect(server.addresses["namesrv"]) as cluster,
        producer(server.addresses["grpc"], TOPIC) as shop,
        push(server.addresses["grpc"], "billing", listener, **{TOPIC: "*"}),
    ):
        other = cluster.producer("other-shop")
        jobs = [
            threading.Thread(target=sends, args=(lambda body: shop.send(message(TOPIC, body)), "g", stop, by_grpc)),
            threading.Thread(
                target=sends, args=(lambda body: other.send(Message(TOPIC, body)), "r", stop, by_remoting)
            ),
        ]
        for job in jobs:
            job.start()
        try:
            for _ in range(SAMPLES):
                time.sleep(SECONDS / 3 / SAMPLES)
                one_life.append(footprint(server.process.pid))
            for _ in range(KILLS):
                time.sleep(SECONDS * 2 / 3 / KILLS)
                measured.append(footprint(server.process.pid))
                server.kill()
                server.start()
        finally:
            stop.set()
            for job in jobs:
                job.join()
        with suppress(AssertionError):  # what is on lease when a server is killed comes late; the store is the witness
            until(lambda: by_grpc | by_remoting <= set(listener.bodies), 30)
    server.process.send_signal(signal.SIGTERM)
    assert server.process.wait(30) == 0
    stored = {message.body for message in StoreInspector(tmp_path / "store").messages() if message.topic == TOPIC}
    lost = (by_grpc | by_remoting) - stored
    assert not lost, len(lost)
    assert len(by_grpc) > SECONDS and len(by_remoting) > SECONDS
    print(len(by_grpc), len(by_remoting), len(set(listener.bodies)), one_life, measured)
    assert_is_flat(one_life[SAMPLES // 3 :], 1.05)
    assert_is_flat(measured, 1.15)
