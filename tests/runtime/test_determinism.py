"""Equal seed, equal story, equal journal: ten runs, other processes, other hash seeds."""

from __future__ import annotations

import os
import subprocess
import sys

from mqlab import CONSUME_SUCCESS, RECONSUME_LATER, Lab, Message, play


def small_day(lab: Lab) -> None:
    lab.create_topic("orders")
    failed: list[str] = []

    def listener(messages, context):  # type: ignore[no-untyped-def]
        context.sleep("20ms")
        if messages[0].keys == "order-3" and messages[0].reconsume_times < 2:
            failed.append(messages[0].msg_id)
            return RECONSUME_LATER
        return CONSUME_SUCCESS

    for group in ("billing", "shipping"):
        consumer = lab.push_consumer(group)
        consumer.subscribe("orders", "paid || created")
        consumer.on_messages(listener)
        consumer.start()
    producer = lab.producer("shop")
    for number in range(12):
        body = f"заказ 订单 😀 {number}".encode()
        producer.send(Message("orders", body, tags=("paid", "created", "lost")[number % 3], keys=f"order-{number}"))
    lab.run_for("90s")


def digest(seed: int = 5) -> str:
    return play(small_day, seed=seed).journal.digest()


def test_ten_runs_of_one_story_have_one_digest() -> None:
    assert len({digest() for _ in range(10)}) == 1


def test_other_seeds_have_other_histories() -> None:
    assert len({digest(seed) for seed in range(6)}) > 1  # few choices are left to chance, so some may agree


def test_separate_processes_and_hash_seeds_have_the_same_digest() -> None:
    digests = set()
    for hash_seed in ("0", "1", "424242"):
        environment = {**os.environ, "PYTHONHASHSEED": hash_seed, "PYTHONPATH": os.pathsep.join(sys.path)}
        code = "from tests.runtime.test_determinism import digest; print(digest())"
        done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True)
        digests.add(done.stdout.strip())
    assert digests == {digest()}


def test_a_run_stopped_and_stepped_has_the_same_digest() -> None:
    whole = play(small_day, seed=5)
    paused = play(small_day, seed=5, until_step=len(whole.journal) // 2)
    assert len(paused.journal) == len(whole.journal) // 2
    while len(paused.journal) < len(whole.journal):
        assert paused.step() is not None
    assert paused.journal.digest() == whole.journal.digest()
