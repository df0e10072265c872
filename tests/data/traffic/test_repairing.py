"""A repair plan: what its preview says is what the groups then get in a Lab on a copy of the stores."""

from __future__ import annotations

from pathlib import Path

import pytest

from mqlab.data.traffic import write
from mqlab.data.traffic.day_facts import DayFacts, facts_of
from mqlab.data.traffic.playing.repairing import Pair, Plan, carry_out, check_plan, preview
from mqlab.errors import UsageError

KINDS = ("inconsistent_tags", "failing_consumer")


@pytest.fixture(scope="module")
def stores(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write(
        tmp_path_factory.mktemp("repair") / "day",
        messages=9_000,
        brokers=2,
        seed=11,
        incidents=KINDS,
        commit_log_bytes=1 << 20,
        consume_queue_bytes=20_000,
    ).directory


@pytest.fixture(scope="module")
def facts(stores: Path) -> DayFacts:
    return facts_of(stores)


@pytest.fixture(scope="module")
def lost(facts: DayFacts) -> set[Pair]:
    life = facts.life[facts.life["reads"] & (facts.life["calls"] == 0)]
    assert len(life) > 30
    return set(zip(life["group"], life["msg_id"], strict=True))


def back(facts: DayFacts, lost: set[Pair], *, skip: bool) -> Plan:
    """Each queue back to its first lost message, with or without passing over what was consumed since."""
    life = facts.life[facts.life["reads"]]
    pairs = list(zip(life["group"], life["msg_id"], strict=True))
    first = life[[pair in lost for pair in pairs]].groupby(["group", "broker", "queue_id"])["queue_offset"].min()
    done = [pair for pair, times in zip(pairs, life["successes"], strict=True) if times]
    return Plan({place: int(offset) for place, offset in first.items()}, (), frozenset(done if skip else ()))


def totals(facts: DayFacts, plan: Plan) -> dict[str, int]:
    return {name: int(count) for name, count in preview(facts, plan)[["first", "again", "skipped"]].sum().items()}


def test_offsets_and_a_list_of_ids_bring_the_lost_ones_and_nothing_else(
    stores: Path, facts: DayFacts, lost: set[Pair]
) -> None:
    plan = back(facts, lost, skip=True)
    told = carry_out(stores, plan)
    assert set(told.done) >= lost and set(told.times().values()) == {1} and not told.failed
    assert totals(facts, plan)["first"] == len(told.done) and totals(facts, plan)["again"] == 0


def test_the_preview_counts_what_comes_twice_as_the_lab_delivers_it(
    stores: Path, facts: DayFacts, lost: set[Pair]
) -> None:
    plan = back(facts, lost, skip=False)
    told = carry_out(stores, plan)
    seen = totals(facts, plan)
    assert seen["first"] + seen["again"] == len(told.done) and seen["again"] > len(lost) and seen["skipped"] == 0


def test_dead_letters_come_back_in_the_order_of_the_plan_unless_their_cause_lives(
    stores: Path, facts: DayFacts
) -> None:
    dead = facts.life[facts.life["dead"]].sort_values("stored_ms")
    again = tuple(zip(dead["group"], dead["msg_id"], strict=True))[:6]
    assert len(again) == 6
    plan = Plan(again=again[::-1])
    told = carry_out(stores, plan, living=again[:1])
    assert [pair for pair in told.done if pair in again] == list(again[:0:-1])
    assert set(told.failed) == {again[0]}


def test_nothing_is_changed_in_the_stores_themselves(stores: Path) -> None:
    before = {path: path.read_bytes() for path in sorted(stores.rglob("*Offset.json"))}
    assert before
    carry_out(stores, Plan({("billing", "broker-a", 0): 0}))
    assert {path: path.read_bytes() for path in sorted(stores.rglob("*Offset.json"))} == before


def test_a_plan_that_cannot_be_carried_out_says_why(stores: Path, facts: DayFacts) -> None:
    end = int(
        facts.offsets.query(
            "group == 'billing' and topic == 'orders' and broker == 'broker-a' and queue_id == 0"
        ).end.iloc[0]
    )
    too_far = Plan({("billing", "broker-a", 0): end + 1})
    assert check_plan(too_far, facts) == f"queue 0 of broker-a goes from 0 to {end}, and not to {end + 1}"
    with pytest.raises(UsageError, match="goes from 0 to"):
        carry_out(stores, too_far)
    assert check_plan(Plan({("billing", "broker-z", 0): 1}), facts) == "billing has no queue 0 of orders at broker-z"
    assert check_plan(Plan(again=(("billing", "X"),)), facts) == "X is not a dead letter of billing"
    assert check_plan(Plan(), facts) == ""


def test_a_plan_is_read_from_plain_lists() -> None:
    told = {"offsets": [["billing", "broker-a", 0, 5]], "again": [["billing", "A"]], "skip": [("billing", "B")]}
    assert Plan.of(told) == Plan({("billing", "broker-a", 0): 5}, (("billing", "A"),), frozenset({("billing", "B")}))
