"""Equal seed, equal story, equal journal: ten runs, other processes, other hash seeds, other versions of Python."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

from mqlab import CONSUME_SUCCESS, RECONSUME_LATER, Lab, Message, play
from mqlab.lab.runtime.journal import StepRecord


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


def day_without_listeners(lab: Lab) -> None:
    """What needs no coroutine, so that it runs where greenlet is not installed."""
    lab.create_topic("orders", read_queue_nums=2, write_queue_nums=2)
    producer = lab.producer("shop")
    for number in range(12):
        producer.send(Message("orders", f"заказ 订单 😀 {number}".encode(), keys=f"order-{number}"))
    lite = lab.lite_pull_consumer("audit")
    lite.subscribe("orders", "*")
    lite.start()
    while lite.poll("3s"):
        pass
    lab.kill("broker-a")
    lab.start("broker-a")
    lab.run_for("90s")
    lab.admin.reset_offset_by_timestamp("orders", "audit", 0)
    while lite.poll("30s"):
        pass


def digest_without_listeners() -> str:
    copies = {"broker_role": "SYNC_MASTER", "in_sync_replicas": 2, "slave_read_enable": True}
    lab = Lab(seed=5, name_servers=2, replicas=1, broker=copies)
    day_without_listeners(lab)
    return lab.journal.digest()


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
        code = "from tests.lab.runtime.test_determinism import digest; print(digest())"
        done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True)
        digests.add(done.stdout.strip())
    assert digests == {digest()}


def pythons() -> list[str]:
    """This interpreter and the others of this machine that mqlab supports."""
    found = {sys.version_info[:2]: sys.executable}
    for minor in (11, 12, 13):
        kept = sorted((Path.home() / ".pyenv" / "versions").glob(f"3.{minor}.*/bin/python"))
        other = shutil.which(f"python3.{minor}") or (str(kept[-1]) if kept else None)
        works = other and subprocess.run([other, "-c", "import sqlite3"], capture_output=True).returncode == 0
        if other and works:
            found.setdefault((3, minor), other)
    return list(found.values())


def told_by(python: str, function: str, *paths: Path) -> str:
    """What a function of this module returns in another process, with nothing installed but what ``paths`` hold."""
    root = Path(__file__).resolve().parents[3]
    environment = {"PYTHONHASHSEED": "7", "PYTHONPATH": os.pathsep.join(map(str, (root, *paths))), "HOME": str(root)}
    code = f"from tests.lab.runtime.test_determinism import {function}; print({function}())"
    done = subprocess.run([python, "-c", code], env=environment, capture_output=True, text=True, check=True)
    return done.stdout.strip()


def test_every_python_of_this_machine_has_the_same_digest(tmp_path: Path) -> None:
    """At least this one in a process of its own; the story with listeners wherever greenlet is installed."""
    (tmp_path / "greenlet.py").write_text("class greenlet:\n    pass\n\ndef getcurrent():\n    return None\n")
    assert {told_by(python, "digest_without_listeners", tmp_path) for python in pythons()} == {
        digest_without_listeners()
    }
    able = [
        python
        for python in pythons()
        if subprocess.run([python, "-c", "import greenlet"], capture_output=True).returncode == 0
    ]
    assert able and {told_by(python, "digest") for python in able} == {digest()}


def test_a_run_stopped_and_stepped_has_the_same_digest() -> None:
    whole = play(small_day, seed=5)
    paused = play(small_day, seed=5, until_step=len(whole.journal) // 2)
    assert len(paused.journal) == len(whole.journal) // 2
    while len(paused.journal) < len(whole.journal):
        assert paused.step() is not None
    assert paused.journal.digest() == whole.journal.digest()


def test_a_run_up_to_a_step_costs_the_steps_up_to_it() -> None:
    """Counted in steps: nothing behind ``until_step`` is played, and nothing is played twice."""
    whole = play(small_day, seed=5)
    own = Lab(seed=5).journal.next_step  # the Lab's own beginning, before the story
    for until in (own + 1, 40, len(whole.journal) // 2):
        taken: list[int] = []

        def counted(lab: Lab, taken: list[int] = taken) -> None:
            world = lab.simulation("step")
            step = world.step

            def one() -> StepRecord | None:
                taken.append(1)
                return step()

            world.step = one  # type: ignore[method-assign]
            small_day(lab)

        lab = play(counted, seed=5, until_step=until)
        assert len(taken) <= until - own + 1
        assert all(record.kind == "call" for record in lab.journal[until:])  # the story's own call before the step
        told = [record.digest_text() for record in lab.journal[:until]]
        assert told == [record.digest_text() for record in whole.journal[:until]]
