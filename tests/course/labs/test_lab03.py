"""Lab 03: what its cases call right is what RocketMQ's classes answered; the numbers of sticky; what tasks accept."""

from __future__ import annotations

import gzip
import json
import random
import runpy
from collections.abc import Callable
from typing import Any

import pytest

from mqlab import CONSUME_SUCCESS, Message, MessageQueue, play
from mqlab.course import CheckFailed, check
from mqlab.course.cases.lab03 import allocation, sticky, tasks, two_owners
from mqlab.course.cases.lab03.histories import had_to_move, moved, owners_of, spread, walk
from mqlab.course.cases.lab03.vectors import BROKERS, vectors
from mqlab.course.cases.lab03.vectors import owners_of as owners_by_class
from mqlab.course.teach.exercises import Finding, exercise
from mqlab.course.widgets import allocation_board
from mqlab.lab.world.lab import Lab
from mqlab.rocketmq.client.allocate import strategy
from tests.course.labs.notebooks import ROOT
from tests.course.teach.notebook_answers import reference

FIXTURE = ROOT / "tests" / "rocketmq" / "conformance" / "fixtures" / "allocation.json.gz"


def test_the_vectors_of_the_exercises_are_those_of_the_real_classes() -> None:
    lines = json.loads(gzip.decompress(FIXTURE.read_bytes()))
    assert len(lines) == len(vectors())
    for line, vector in zip(lines, vectors(), strict=True):
        assert vector.members == tuple(line["clientIds"]) and vector.virtual_nodes == line["virtualNodes"]
        assert {queue.broker_name for queue in vector.queues} == set(BROKERS[: line["brokers"]])
        for name in vector.owners:
            for member in vector.members:
                mine = [f"{queue.broker_name}/{queue.queue_id}" for queue in vector.mine(name, member)]
                assert mine == line["answers"][name][member]


def test_what_is_computed_is_what_the_real_classes_answered() -> None:
    for vector in vectors():
        assert owners_by_class(vector.queues, vector.members, vector.virtual_nodes) == vector.owners


@pytest.mark.parametrize("name", ["average", "circle", "ring"])
def test_no_hidden_case_is_in_a_table_of_the_release(name: str) -> None:
    asked = exercise(f"lab03.{name}")
    strategy = {"average": "AVG", "circle": "AVG_BY_CIRCLE", "ring": "CONSISTENT_HASH"}[name]
    released = {(vector.queues, vector.members) for vector in vectors()}
    path = ROOT / "solutions" / "grading" / "lab03.py"
    hidden = runpy.run_path(str(path))
    made = [call for seed in (7, 4711) for call in allocation.from_vectors(strategy)(seed)]
    made += hidden["_of"](strategy, allocation.crowded)(7)
    assert len(made) > 30 and asked.public_seeds == allocation.PUBLIC_SEEDS
    assert not [call for call in made if (tuple(call["queues"]), tuple(call["members"])) in released]


@pytest.mark.parametrize("name", ["AVG", "AVG_BY_CIRCLE", "CONSISTENT_HASH"])
@pytest.mark.parametrize("seed", range(5))
def test_calls_leave_a_remainder_are_crowded_and_come_from_a_stranger(name: str, seed: int) -> None:
    calls = allocation.from_vectors(name)(seed)
    sizes = [divmod(len(call["queues"]), len(call["members"])) for call in calls]
    assert any(each and extra for each, extra in sizes) and any(not each for each, _ in sizes)
    assert any(call["me"] not in call["members"] and call.right == [] for call in calls)


def of_rocketmq(name: str) -> Callable[..., dict[MessageQueue, str]]:
    return lambda queues, members: owners_of(strategy(name), queues, members)


def mine(queues: Any, members: Any) -> dict[MessageQueue, str]:
    shares = reference("lab03.sticky")["sticky"](list(queues), list(members))
    return {queue: member for member, each in shares.items() for queue in each}


def measured(divide: Callable[..., dict[MessageQueue, str]], seed: int) -> tuple[float, int]:
    """Queues moved over all histories divided by those that had to, and the largest difference of counts."""
    rng = random.Random(f"lab03.sticky {seed}")
    changed = needed = worst = 0
    for _ in range(sticky.HISTORIES):
        queues = [MessageQueue("orders", "broker-a", number) for number in range(rng.choice((32, 64)))]
        before: dict[MessageQueue, str] = {}
        for members in walk(rng, sticky.CHANGES):
            owners = divide(queues, members)
            worst = max(worst, spread(members, owners))
            if before:
                changed += moved(before, owners)
                needed += had_to_move(before, members)
            before = owners
    return changed / needed, worst


@pytest.mark.parametrize(
    ("divide", "lowest", "highest", "difference"),
    [
        (of_rocketmq("AVG"), 1.5, 1.7, 1),
        (of_rocketmq("AVG_BY_CIRCLE"), 2.5, 2.9, 1),
        (of_rocketmq("CONSISTENT_HASH"), 0.8, 1.0, 64),
        (mine, 1.1, 1.18, 1),
    ],
    ids=["AVG", "AVG_BY_CIRCLE", "CONSISTENT_HASH", "rendezvous hashing with a limit"],
)
def test_what_strategies_move_beside_what_had_to(
    divide: Callable[..., dict[MessageQueue, str]], lowest: float, highest: float, difference: int
) -> None:
    for seed in (1, 2):
        churn, worst = measured(divide, seed)
        assert lowest <= churn <= highest
        assert worst <= difference
        # Only the ring is uneven, and very much so.
        assert (worst > 10) == (difference > 1)


def test_histories_have_two_to_eight_members_and_forty_changes() -> None:
    sizes = [len(members) for seed in range(20) for members in walk(random.Random(seed), 40)]
    assert len(sizes) == 20 * 41 and min(sizes) == 2 and max(sizes) == 8


def test_a_strategy_that_is_never_the_same_is_found_in_real_consumers() -> None:
    """Members that divide differently: histories would find it too, so only the consumers are played here."""
    turn = iter(range(1_000_000))

    def shifting(queues: list[MessageQueue], members: list[str]) -> dict[str, list[MessageQueue]]:
        shift = next(turn)
        return {member: queues[(n + shift) % len(members) :: len(members)] for n, member in enumerate(members)}

    only_consumers = sticky.day(1).acts[1:]
    played = sticky.Day(only_consumers, kind=sticky.StickyDay).play({"sticky": shifting}, 1)
    finding = sticky._each_queue_has_one_owner(played)
    assert isinstance(finding, Finding) and finding.rule == sticky.LAB_RULE


def test_a_lock_keeps_two_members_apart() -> None:
    def story(lab: Lab) -> None:
        lab.create_topic("orders", read_queue_nums=1, write_queue_nums=1)

        def slow(messages: Any, context: Any) -> str:
            context.sleep("20s")
            return "SUCCESS"

        def begin(name: str, address: str) -> None:
            consumer = lab.push_consumer("billing", name=name, client_ip=address)
            consumer.subscribe("orders", "*")
            consumer.on_messages_orderly(slow)
            consumer.start()

        begin("billing-2", "10.0.0.2")
        lab.run_for("5s")
        lab.producer("shop").send(Message("orders", b"a book"))
        lab.run_for("1s")
        begin("billing-1", "10.0.0.1")  # it comes first in the list
        lab.run_for("90s")

    lab = play(story, seed=1)
    assert {row.client for row in lab.deliveries("billing", absences=False)} == {"billing-1", "billing-2"}
    assert two_owners.seen(lab) == 0
    with pytest.raises(CheckFailed, match="the first call had ended before the second one began"):
        check("lab03.two_owners", {"two_owners": story})


def test_two_processes_with_one_id_are_two_owners() -> None:
    def story(lab: Lab) -> None:
        lab.create_topic("orders", read_queue_nums=2, write_queue_nums=2)
        for name in ("one", "two"):
            consumer = lab.push_consumer("billing", name=name, client_ip="10.0.0.9", instance_name="same")
            consumer.subscribe("orders", "*")
            consumer.on_messages(lambda messages, context: context.sleep("1s") or CONSUME_SUCCESS)
            consumer.start()
        lab.run_for("30s")
        shop = lab.producer("shop")
        for _ in range(2):
            shop.send(Message("orders", b"a book"))
        lab.run_for("10s")

    assert two_owners.seen(play(story, seed=1)) == 1
    assert exercise("lab03.two_owners").case(1).run({"two_owners": story}) is None


def test_eight_queues_are_the_fewest() -> None:
    assert tasks._fewest(None) == 8 and tasks._is_enough(5, 3)
    assert not tasks._is_enough(4, 4)  # nobody has more than a quarter, and the fifth has nothing


def test_unlucky_numbers_of_virtual_nodes_exist_and_are_not_all() -> None:
    unlucky = tasks._unlucky()
    assert 20 in unlucky and 11 not in unlucky and len(unlucky) < len(tasks.NODES)


def test_the_boards_questions_wait_until_they_are_about_the_learners_own_setting() -> None:
    board = allocation_board("AVG", queues=8, members=3, history=[("join", "billing-4")], recorded={})
    assert "another strategy" in tasks._is_bad(board)
    board.change(strategy="AVG_BY_CIRCLE")
    assert "has 1 change so far" in tasks._is_bad(board)
    board.join("billing-5").leave("billing-1").leave("billing-2")
    assert tasks._is_bad(board) == "" and tasks._fewest_of(board) * tasks.LEAST_CHURN <= board.moved
    assert "not been played" in tasks._is_deaf(board)
    board.play(change="join", call="100ms", told=True)
    assert "members were told" in tasks._is_deaf(board)
    board.play(change="join", call="1s", told=False)
    assert "took 1000 ms" in tasks._is_deaf(board)
    board.play(change="join", call="100ms", told=False)
    assert tasks._is_deaf(board) == "" and tasks._twice(board) > 0
