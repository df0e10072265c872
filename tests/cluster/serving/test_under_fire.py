"""What only many runs show: a server killed again and again, under load for long, and under frames of nonsense."""

from __future__ import annotations

import itertools
import random
import socket
import statistics
import threading
import time
from pathlib import Path
from typing import Any

import pytest

import mqlab
from mqlab import CONSUME_SUCCESS, Message
from mqlab.cluster.serving import Server
from mqlab.errors import MqlabError, NodeDown
from mqlab.lab.inspector import StoreInspector
from mqlab.rocketmq.wire.codes import RequestCode, ResponseCode
from mqlab.rocketmq.wire.command import encode, request
from tests.cluster.serving.footprint import anonymous_kb
from tests.cluster.serving.served import server_in
from tests.cluster.serving.test_hostile_peers import GOOD, Peer, must_be_served, port_of
from tests.cluster.serving.test_serve_command import ANYWHERE, serving

SAMPLES = 60
# Seconds: a server that waits for one of the slow peers answers no other. On an idle machine it takes some 30 ms.
SOON = 30.0


def send_until_it_fails(addresses: dict[str, Any], life: int, acknowledged: set[bytes], began: threading.Event) -> None:
    """Send one message after another; what was answered with SEND_OK is acknowledged."""
    try:
        with mqlab.connect(addresses["namesrv"]) as cluster:
            producer = cluster.producer("shop", retry_times_when_send_failed=0, send_msg_timeout="1s")
            for number in range(1_000_000):
                content = b"%d/%d" % (life, number)
                if producer.send(Message("orders", content)).send_status == "SEND_OK":
                    acknowledged.add(content)
                    began.set()
    except (MqlabError, NodeDown):
        began.set()


def killed_under_load(directory: Path, times: int, seed: int) -> tuple[int, int]:
    """Kill the server so many times under load. Returns the number of acknowledged messages, and of those lost."""
    rng = random.Random(seed)
    acknowledged: set[bytes] = set()
    for life in range(times):
        with serving(directory, *ANYWHERE, "--set", "flushDiskType=SYNC_FLUSH") as (process, addresses):
            began = threading.Event()
            sender = threading.Thread(target=send_until_it_fails, args=(addresses, life, acknowledged, began))
            sender.start()
            began.wait(30)
            time.sleep(rng.random() * 0.3)
            process.kill()
            process.wait(30)
            sender.join(60)
    with serving(directory, *ANYWHERE) as (process, _):  # recovers
        process.terminate()
        process.wait(30)
    found = {message.body for message in StoreInspector(directory / "store").messages() if message.topic == "orders"}
    return len(acknowledged), len(acknowledged - found)


def test_killed_under_load_it_loses_nothing_that_was_acknowledged(tmp_path: Path) -> None:
    sent, lost = killed_under_load(tmp_path, times=2, seed=1)
    assert (sent > 0, lost) == (True, 0)


@pytest.mark.long
def test_killed_a_hundred_times_under_load_it_loses_nothing(tmp_path: Path) -> None:
    sent, lost = killed_under_load(tmp_path, times=100, seed=2)
    assert (sent > 1_000, lost) == (True, 0)


def memory_under_load(directory: Path, seconds: float, rate: int) -> tuple[int, list[int]]:
    """Send and consume at a rate for so long. Returns how many were not consumed, and its memory in kB."""
    samples: list[int] = []
    consumed: set[str] = set()

    def listener(messages: Any, context: Any) -> str:
        consumed.update(message.keys for message in messages)
        return CONSUME_SUCCESS

    with (
        serving(directory, *ANYWHERE, "--set", "mappedFileSizeCommitLog=16777216") as (process, addresses),
        mqlab.connect(addresses["namesrv"]) as cluster,
    ):
        producer = cluster.producer("shop")
        consumer = cluster.push_consumer("billing", consume_from_where="CONSUME_FROM_FIRST_OFFSET")
        consumer.subscribe("orders", "*")
        consumer.on_messages(listener)
        consumer.start()
        begin = time.monotonic()
        for number in itertools.count():
            now = time.monotonic() - begin
            if now > seconds:
                break
            time.sleep(max(0.0, number / rate - now))
            producer.send(Message("orders", bytes(256), keys=f"key-{number}"))
            if now > len(samples) * seconds / SAMPLES:
                samples.append(anonymous_kb(process.pid))
        end = time.monotonic() + 30
        while len(consumed) < number and time.monotonic() < end:
            time.sleep(0.1)
    return number - len(consumed), samples


@pytest.mark.long
@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="memory is read from /proc, which Linux has")
def test_half_an_hour_of_load_leaves_the_memory_flat(tmp_path: Path) -> None:
    missing, samples = memory_under_load(tmp_path, seconds=1_800, rate=200)
    warm, late = (statistics.median(part) for part in (samples[SAMPLES // 3 : SAMPLES // 2], samples[-SAMPLES // 6 :]))
    assert missing == 0
    assert late < warm * 1.03, samples


def nonsense(rng: random.Random) -> bytes:
    """A frame that is malformed, truncated, oversized or random."""
    kind = rng.randrange(5)
    if kind == 0:
        return rng.randbytes(rng.randrange(1, 300))
    if kind == 1:
        return GOOD[: rng.randrange(len(GOOD))]
    if kind == 2:
        return rng.randrange(-(1 << 31), 1 << 31).to_bytes(4, "big", signed=True) + rng.randbytes(20)
    changed = bytearray(
        encode(request(rng.choice(list(RequestCode)), rng.randbytes(rng.randrange(60)), topic="orders"))
    )
    for _ in range(rng.randrange(1, 6)):
        changed[rng.randrange(4 if kind == 3 else 0, len(changed))] ^= 1 << rng.randrange(8)
    return bytes(changed)


class GoodClient(threading.Thread):
    """Asks without a pause until it is stopped; ``waits`` are the seconds that each answer took."""

    def __init__(self, server: Server) -> None:
        super().__init__()
        self.waits: list[float] = []
        self._peer = Peer(server)
        self._is_wanted = True

    def run(self) -> None:
        while self._is_wanted:
            began = time.monotonic()
            answer = self._peer.ask(request(RequestCode.GET_MAX_OFFSET, topic="TBW102", queueId=0))
            assert answer.code == ResponseCode.SUCCESS
            self.waits.append(time.monotonic() - began)
            time.sleep(0.005)

    def stop(self) -> list[float]:
        """Stop, and return the waits; an answer that did not come leaves the last one out of the list."""
        self._is_wanted = False
        self.join(30)
        assert not self.is_alive(), "the good client waits for ever"
        return self.waits


def trickle(slow: list[socket.socket], at: int) -> None:
    """One more byte of a good request from each slow peer."""
    for each in slow:
        each.sendall(GOOD[at % len(GOOD)].to_bytes(1, "big"))


def shower(directory: Path, frames: int, seed: int) -> tuple[int, list[float]]:
    """Send so many frames of nonsense, a few a connection, beside slow peers and a good client.

    Each connection is read to its end: the server has seen all of it. Returns the server's failures, and how long the
    good client waited for its answers.
    """
    rng = random.Random(seed)
    with server_in(directory) as server:
        server.wait_until_registered()
        address = ("127.0.0.1", port_of(server))
        slow = [socket.create_connection(address, timeout=10) for _ in range(10)]
        good = GoodClient(server)
        good.start()
        sent = rounds = 0
        while sent < frames:
            with socket.create_connection(address, timeout=30) as bad:
                data = [nonsense(rng) for _ in range(min(rng.randrange(1, 4), frames - sent))]
                sent += len(data)
                try:
                    bad.sendall(b"".join(data))
                    bad.shutdown(socket.SHUT_WR)
                    while bad.recv(1 << 16):
                        pass
                except OSError:  # the server has closed it
                    pass
            trickle(slow, rounds)
            rounds += 1
        waits = good.stop()
        for each in slow:
            each.close()
        must_be_served(server)
        return server.loop.failures, waits


def test_a_thousand_frames_of_nonsense_break_nothing(tmp_path: Path) -> None:
    failures, waits = shower(tmp_path, 1_000, seed=3)
    assert (failures, len(waits) > 10) == (0, True)
    assert max(waits) < SOON


@pytest.mark.long
def test_a_hundred_thousand_frames_of_nonsense_break_nothing(tmp_path: Path) -> None:
    failures, waits = shower(tmp_path, 100_000, seed=4)
    assert (failures, len(waits) > 1_000) == (0, True)
    assert max(waits) < SOON
