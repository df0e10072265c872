"""`mqlab serve --grpc` beside RocketMQ's proxy, as the official Python client sees them: messages a second, and µs.

    send, receive     one send after another; what was sent, received 32 at a time and acknowledged one by one
    µs of server      processor time per message of the process with broker and front, whatever else the machine does

Needs a JDK (17 or newer), Maven and rocketmq-python-client.
"""

from __future__ import annotations

import argparse
import importlib.util
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path
from typing import TYPE_CHECKING

from benchmarks.served import print_beside, processor_seconds

if TYPE_CHECKING:
    from tests.interop.grpc_clusters import GrpcWhere

KINDS = ("send", "receive")
BODY = bytes(256)
GROUP = "bench-door"
AT_A_TIME, INVISIBLE_SECONDS = 32, 60


def main(arguments: list[str]) -> None:
    """Measure and print a table."""
    from tests.interop.grpc_clusters import make_topics, mqlab_grpc, real_grpc
    from tests.interop.java_store import what_is_missing

    parser = argparse.ArgumentParser(prog="benchmarks grpc", description=__doc__.partition("\n")[0])
    parser.add_argument("--seconds", type=float, default=10.0, help="how long it sends, and receives at most")
    wanted = parser.parse_args(arguments)
    missing = what_is_missing() or (None if importlib.util.find_spec("rocketmq") else "needs rocketmq-python-client")
    if missing:
        print(f"  left out: the proxy {missing}", file=sys.stderr)
        return

    def run(name: str, cluster: AbstractContextManager[GrpcWhere]) -> dict[str, list[float]]:
        print(f"  {name}", file=sys.stderr, flush=True)
        with cluster as where:
            make_topics(where)
            return _measured(where, wanted.seconds)

    with tempfile.TemporaryDirectory() as folder:
        work = Path(folder)
        ours = run("mqlab", mqlab_grpc(work / "mqlab"))
        real = run("RocketMQ", real_grpc(work / "real"))
    print_beside(ours, real, {})


def _measured(where: GrpcWhere, seconds: float) -> dict[str, list[float]]:
    """Per kind: messages a second, and the server's microseconds of processor time per message."""
    from tests.cluster.grpc.official import message, producer, simple
    from tests.interop.grpc_clusters import TOPICS

    topic = TOPICS["NORMAL"]

    def measured(step: Callable[[], int], most: float, end: float) -> list[float]:
        begin, before, done = time.perf_counter(), processor_seconds(where.pid), 0
        while done < most and time.perf_counter() - begin < end:
            done += step()
        took, spent = time.perf_counter() - begin, processor_seconds(where.pid) - before
        return [done / took, 1e6 * spent / max(1, done)]

    def send() -> int:
        shop.send(message(topic, BODY))
        return 1

    def receive() -> int:
        received = audit.receive(AT_A_TIME, INVISIBLE_SECONDS) or []
        for one in received:
            audit.ack(one)
        return len(received)

    with producer(where.grpc, topic) as shop, simple(where.grpc, GROUP, **{topic: "*"}) as audit:
        measured(send, float("inf"), seconds / 2)  # a JVM gets warm; this run does not count
        measured(receive, 1, seconds)
        sent = measured(send, float("inf"), seconds)
        got = measured(receive, sent[0] * seconds, seconds)
    return dict(zip(KINDS, (sent, got), strict=True))
