"""Popping groups of one side at the other: Java consumers at `mqlab serve`, and mqlab's at a real broker."""

from __future__ import annotations

import json
import random
import subprocess
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

import mqlab
from mqlab import CONSUME_SUCCESS, RECONSUME_LATER, Message
from tests.interop.clusters import mqlab_cluster, real_cluster
from tests.interop.java_store import JavaStore

pytestmark = pytest.mark.interop
KILLING_SECONDS = 600
REST_SECONDS = 300
START_SECONDS = 60


def test_java_consumers_pop_from_mqlab(tmp_path: Path, java_store: JavaStore) -> None:
    answer = tmp_path / "answer.json"
    settings = ("timerWheelEnable=true", "recallMessageEnable=true")
    with mqlab_cluster(tmp_path / "mqlab", *settings) as where:
        java_store.program("PopDoor", where.name_server, where.broker, answer, home=tmp_path)
    seen = json.loads(answer.read_text("utf-8"))
    assert {key: seen[key] for key in seen if key.startswith("m")} == {f"m{number:02d}": [0] for number in range(30)}
    assert seen["fails"] == [0, 1]
    assert seen["timed"] == [0] and len(seen["late"]) == 1 and 0 <= seen["late"][0] <= 3_000
    assert seen["handle"] is True and seen["recall"] == "true" and "recalled" not in seen


@pytest.mark.long
def test_a_java_member_killed_at_any_moment_loses_nothing(tmp_path: Path, java_store: JavaStore) -> None:
    """For ten minutes one popping Java process after another is killed in its work; the last one may finish."""
    done, rng = tmp_path / "done.txt", random.Random(41)
    done.touch()
    with mqlab_cluster(tmp_path / "mqlab", "timerWheelEnable=true") as where:
        lab = mqlab.connect(where.name_server)
        lab.admin.create_topic("popped", read_queue_nums=4, write_queue_nums=4, confirm=True)
        time.sleep(2)
        lab.admin.set_message_request_mode("popped", "killed", confirm=True)
        producer = lab.producer("shop")
        command = java_store.command("PopWorker", where.name_server, done, home=tmp_path)
        sent = kills = at_work = 0
        until = time.monotonic() + KILLING_SECONDS
        while time.monotonic() < until:
            with a_process(command) as worker:
                size, killed_at = done.stat().st_size, time.monotonic() + START_SECONDS
                while time.monotonic() < killed_at and worker.poll() is None:
                    producer.send(Message("popped", b"x", keys=f"m{sent}"))
                    sent += 1
                    time.sleep(0.05)
                    if size >= 0 and done.stat().st_size > size:  # it works: a JVM of a busy machine starts late
                        size, killed_at, at_work = -1, time.monotonic() + rng.uniform(0, 10), at_work + 1
                worker.kill()
            kills += 1
        keys = {f"m{number}" for number in range(sent)}
        until = time.monotonic() + REST_SECONDS
        while time.monotonic() < until and not keys <= keys_in(done):
            with a_process(command) as worker:
                while time.monotonic() < until and worker.poll() is None and not keys <= keys_in(done):
                    time.sleep(1)
        lab.close()
    again = sum(
        count > 1 for count in Counter(line.split()[0] for line in done.read_text("utf-8").splitlines()).values()
    )
    print(f"{sent} messages, {kills} kills, {at_work} of them at work, {again} messages done more than once")
    assert keys - keys_in(done) == set() and at_work > KILLING_SECONDS / 120


@contextmanager
def a_process(command: list[str]) -> Iterator[subprocess.Popen[bytes]]:
    """A process that is killed in the end, whatever happens."""
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        yield process
    finally:
        process.kill()
        process.wait()


def keys_in(done: Path) -> set[str]:
    """The keys of the messages that some worker has done. The last line may be cut."""
    return {line.split()[0] for line in done.read_text("utf-8").splitlines() if line.count(" ") == 1}


def test_mqlabs_consumers_pop_from_a_real_broker(tmp_path: Path, java_store: JavaStore) -> None:
    with real_cluster(tmp_path / "real", java_store.classpath, "timerWheelEnable=true") as where:
        lab = mqlab.connect(where.name_server)
        lab.admin.create_topic("popped", read_queue_nums=4, write_queue_nums=4, confirm=True)
        time.sleep(2)
        lab.admin.set_message_request_mode("popped", "popping", confirm=True)
        seen: Counter[tuple[str, int]] = Counter()

        def listener(messages: list, context: object) -> str:
            for message in messages:
                seen[message.body.decode(), message.reconsume_times] += 1
            is_first = messages[0].body == b"fails" and messages[0].reconsume_times == 0
            return RECONSUME_LATER if is_first else CONSUME_SUCCESS

        consumer = lab.push_consumer("popping", client_rebalance=False, consume_from_where="CONSUME_FROM_FIRST_OFFSET")
        consumer.subscribe("popped")
        consumer.on_messages(listener)
        consumer.start()
        producer = lab.producer("shop")
        for number in range(20):
            producer.send(Message("popped", b"m%02d" % number))
        producer.send(Message("popped", b"fails"))
        producer.send(Message("popped", b"timed", delay="4s"))
        time.sleep(40)
        consumer.shutdown()
        simple = lab.simple_consumer("simple", await_duration="3s", consume_from_where="CONSUME_FROM_FIRST_OFFSET")
        simple.subscribe("popped")
        simple.start()
        received = simple.receive(32, "10s")
        for message in received[1:]:
            simple.ack(message)
        simple.change_invisible_duration(received[0], "1s")
        time.sleep(6)
        again = simple.receive(32, "10s")
        simple.shutdown()
        lab.close()
    assert seen == {
        **{(f"m{number:02d}", 0): 1 for number in range(20)},
        ("fails", 0): 1,
        ("fails", 1): 1,
        ("timed", 0): 1,
    }
    assert len(received) == 22 and [(message.body, message.reconsume_times) for message in again] == [
        (received[0].body, 1)
    ]
