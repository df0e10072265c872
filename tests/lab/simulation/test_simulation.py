"""Seeds keep their promises; plans are data that can be kept, cut and played again. ``long`` runs a thousand seeds."""

from __future__ import annotations

import hashlib
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from mqlab import Lab, Message, cli
from mqlab.errors import UsageError
from mqlab.lab.simulation import RunPlan, draw, run, shrink
from mqlab.lab.simulation.leases import FIRST_NUMBER
from mqlab.lab.simulation.model import Found, tried
from mqlab.lab.simulation.notes import Notes, ReturnedCall
from mqlab.lab.simulation.scene import LEASING

SHORT = range(12)


@pytest.mark.parametrize("part", range(3))
def test_a_few_seeds_keep_every_promise(part: int) -> None:
    for seed in SHORT[part::3]:
        outcome = run(draw(seed))
        assert outcome.wrong == [], f"mqlab sim --seed {seed}"


@pytest.mark.parametrize("seed", [52, 580], ids=["a queue given back during a call", "a slave that began empty"])
def test_what_rocketmq_does_not_promise_is_not_blamed(seed: int) -> None:
    outcome = run(draw(seed))
    assert outcome.wrong == []
    assert outcome.lab is not None
    changes = [change for record in outcome.lab.journal for change in record.changes]
    if seed == 52:
        assert any(c.kind == "queue.dropped" and c.values["reason"] == "pull expired" for c in changes)
    else:
        assert any(c.kind == "ha.requested" and c.values["physical_offset"] < c.values["sends_from"] for c in changes)


FOUND = {
    2021: "an index whose number of slots could be two",
    2866: "a member that leaves during a round and takes a queue after it",
    5142: "frames that were lost on their way to an empty slave",
    5628: "a retry that finishes another copy of its message",
}


@pytest.mark.parametrize("seed", FOUND, ids=FOUND.get)
def test_what_ten_thousand_seeds_have_found_holds(seed: int) -> None:
    assert run(draw(seed)).wrong == []


@pytest.mark.long
def test_a_thousand_seeds_keep_every_promise() -> None:
    failed = {seed: outcome.wrong[0] for seed in range(1_000) if (outcome := run(draw(seed))).wrong}
    assert failed == {}


def test_a_run_with_leases_is_the_run_of_its_seed_and_more() -> None:
    """The plans of 200 seeds as they were before timed messages and popping groups came."""
    before = hashlib.sha256()
    with_leases = 0
    for seed in range(200):
        plan = draw(seed)
        members = [member for member in plan.members if member["group"] != LEASING]
        with_leases += len(members) < len(plan.members)
        events = [
            event
            for event in plan.events
            if event.get("number", 0) < FIRST_NUMBER and not event.get("node", "").startswith(LEASING)
        ]
        before.update(replace(plan, members=members, events=events).as_json().encode())
    assert (before.hexdigest()[:16], with_leases) == ("d4a9fb9bdfbf9be1", 60)


def test_the_short_seeds_have_work_and_faults_of_every_kind() -> None:
    done = {event["do"] for seed in range(100) for event in draw(seed).events}
    assert done == {
        "send",
        "transact",
        "renew_topic",
        "join",
        "leave",
        "kill",
        "power_off",
        "partition",
        "slow",
        "drop",
        "skew_clock",
        "slow_disk",
        "disk_full",
        "disk_fails",
        "restart",
        "blackout",
    }


def test_a_run_is_the_same_again_also_from_a_file(tmp_path: Path) -> None:
    plan = draw(10)
    plan.save(tmp_path / "plan.json")
    again = RunPlan.load(tmp_path / "plan.json")
    assert again == plan
    one, other = run(plan), run(again)
    assert one.lab is not None and other.lab is not None
    assert one.lab.journal.digest() == other.lab.journal.digest()
    assert one.notes == other.notes


@pytest.mark.parametrize(("waited_ms", "told"), [(2_999, 1), (3_000, 0)])
def test_a_member_that_counts_tries_of_its_own_is_judged_by_the_highest_level(waited_ms: int, told: int) -> None:
    """Seeds with long partitions come to numbers of tries for which the table has no level."""
    lab, notes = Lab(), Notes()
    for again, began_ms in ((8, 0), (9, 10 + waited_ms)):
        place = ("orders", "broker-a", 0, 0)
        notes.calls.append(ReturnedCall(0, "billing", 1, place, False, again, 0, "billing-1", began_ms, began_ms + 10))
    partition = {"at": 0, "do": "partition", "for": 1_000}
    assert len(list(tried(Found(lab), notes, RunPlan(0, {}, [], [partition])))) == told


def loose() -> RunPlan:
    """A world that promises less than the model demands: power is cut under asynchronous flushing."""
    plan = draw(3)
    events = [{"at": 100 * number, "do": "send", "number": number, "topic": "orders"} for number in range(8)]
    cuts = [{"at": at, "do": "power_off", "node": "broker-a", "for": 300, "keep": 0.0} for at in (350, 1_200, 1_900)]
    world = {**plan.world, "sync_flush": False, "replicas": 0, "two_copies": False, "brokers": 1, "queues": 1}
    return RunPlan(3, world, plan.members, sorted([*events, *cuts], key=lambda event: event["at"]))


def test_a_broken_promise_is_found_and_made_small(tmp_path: Path) -> None:
    plan = loose()
    assert "LOST" in {wrong.kind for wrong in run(plan).wrong}
    small = shrink(plan, lambda each: "LOST" in {wrong.kind for wrong in run(each).wrong}, tries=40)
    assert len(small.events) <= 3 and "power_off" in {event["do"] for event in small.events}
    small.save(tmp_path / "small.json")
    answer = CliRunner().invoke(cli.main, ["sim", "--replay", str(tmp_path / "small.json")])
    assert answer.exit_code == 1 and "LOST: message" in answer.output


def test_the_command_line_counts_and_refuses(tmp_path: Path) -> None:
    answer = CliRunner().invoke(cli.main, ["sim", "--seeds", "2", "--out", str(tmp_path)])
    assert answer.exit_code == 0 and answer.output.startswith("2 seeds in ")
    assert CliRunner().invoke(cli.main, ["sim", "--seeds", "2", "--seed", "3"]).exit_code == 2
    (tmp_path / "bad.json").write_text('{"seed": 1}')
    with pytest.raises(UsageError, match="it needs exactly"):
        RunPlan.load(tmp_path / "bad.json")


def test_a_failing_run_opens_in_the_time_machine() -> None:
    from mqlab.course.widgets.boards.time_machine.explorer import explore

    plan = loose()
    board = explore(plan.story, **plan.settings)
    lab = board.stepper.last().lab
    assert lab.journal.changes("fault.powered_off") and not lab.verify("billing").is_clean


class Committing:
    """Every transaction succeeds."""

    def execute_local_transaction(self, message: Message, arg: Any) -> str:
        return "COMMIT_MESSAGE"

    def check_local_transaction(self, message: Message) -> str:
        return "COMMIT_MESSAGE"


def test_the_answer_to_a_half_message_acknowledges_no_other_message() -> None:
    """Seed 149: the half's offset was that of a message that a power cut took from a disk that hung."""
    quiet = {"client": {"enable_trace": False}, "broker": {"flush_disk_type": "SYNC_FLUSH"}}
    lab = Lab(**quiet)
    lab.create_topic("orders", read_queue_nums=1, write_queue_nums=1)
    consumer = lab.push_consumer("billing", consume_from_where="CONSUME_FROM_FIRST_OFFSET")
    consumer.subscribe("orders")
    consumer.on_messages(lambda messages, context: "CONSUME_SUCCESS")
    consumer.start()
    producer, bank = lab.producer("shop"), lab.transaction_producer("pay", Committing())
    lab.slow_disk("broker-a", "10s")
    producer.send_async(Message("orders", "потеряно".encode())).then(lambda _: None, lambda _: None)
    lab.run_for("100ms")
    lab.power_off("broker-a")
    lab.run_for("5s")
    lab.start("broker-a")
    lab.run_for("60s")
    bank.send_message_in_transaction(Message("orders", "половина".encode()))
    producer.send(Message("orders", "安全".encode()))
    lab.run_for("60s")
    lost = lab.verify("billing").of("LOST")
    assert [each.why for each in lost] == ["it was stored, the log ended before it after a power cut"]
