"""Promises over members, stores and effects: each is broken by one day, and kept by a day that is almost the same."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

from mqlab.course.kit.days import Day, Reads, Restarts, Sends, Stops, Topics, Waits
from mqlab.course.kit.promises import fair_within, harmless_when_repeated, moved_at_most, one_owner, stored_once
from mqlab.rocketmq.client.statuses import CONSUME_SUCCESS
from tests.course.teach.test_promises import ORDERS, quick

MEMBERS = ("billing-1", "billing-2")


def slow(messages: Sequence[Any], context: Any) -> str:
    context.sleep("5s")
    return CONSUME_SUCCESS


def two_members(listener: Any, *then: Any, queues: int = 1, **settings: Any) -> Any:
    reads = [Reads("billing", "orders", listener, name=name, settings=settings) for name in MEMBERS]
    return Day((Topics(("orders",), queues), *reads, Waits("40s"), Sends(ORDERS), Waits("1m"), *then)).play({}, 1)


def test_two_members_that_both_read_a_queue_are_met() -> None:
    promise = one_owner("billing", "one owner")
    finding = promise(two_members(slow, message_model="BROADCASTING"))
    assert finding is not None and finding.step is not None
    assert "orders" in finding.first_wrong and "order-" in finding.first_wrong
    assert finding.expected in [f"{member} alone" for member in MEMBERS]
    assert promise(two_members(slow)) is None


def test_members_that_are_given_less_are_met_also_with_nothing() -> None:
    promise = fair_within("billing", MEMBERS, 2, "fair")
    finding = promise(two_members(quick))
    assert finding is not None and sorted(finding.found) == [0, len(ORDERS)]
    assert promise(two_members(quick, queues=2)) is None


def test_a_queue_that_changes_hands_is_counted() -> None:
    moved = two_members(quick, Stops("billing-1"), Stops("billing-2"), *later("billing-3"))
    finding = moved_at_most("billing", 0, "stays")(moved)
    assert finding is not None and finding.found == "move 1" and "to billing-3" in finding.first_wrong
    assert moved_at_most("billing", 1, "stays")(moved) is None
    assert moved_at_most("billing", 0, "stays")(two_members(quick)) is None


def later(name: str) -> tuple[Any, ...]:
    return Reads("billing", "orders", quick, name=name), Sends(ORDERS), Waits("1m")


def test_an_order_that_is_stored_twice_is_met() -> None:
    promise = stored_once("orders", "once")
    finding = promise(two_members(quick, Sends(ORDERS)))
    assert finding is not None and finding.first_wrong.startswith("order-0 in orders")
    assert finding.found == f"queue offsets 0 and {len(ORDERS)}"
    assert promise(two_members(quick)) is None


def test_an_effect_that_comes_twice_is_met() -> None:
    def effect(booked: Counter[str], once: bool) -> Any:
        def listener(messages: Sequence[Any], context: Any) -> str:
            booked[messages[0].keys] = 1 if once else booked[messages[0].keys] + 1
            return CONSUME_SUCCESS

        return listener

    def finding_of(once: bool) -> Any:
        booked: Counter[str] = Counter()
        reads = Reads("billing", "orders", effect(booked, once))
        played = Day((Topics(("orders",)), reads, Sends(ORDERS), Restarts("billing-1"), Waits("3m"))).play({}, 1)
        assert len(played.deliveries("billing")) > len(ORDERS)
        return harmless_when_repeated("billing", lambda day, order: booked[order.key], "harmless")(played)

    twice = finding_of(once=False)
    assert twice is not None and twice.found == "its effect 2 times" and twice.step is not None
    assert finding_of(once=True) is None
