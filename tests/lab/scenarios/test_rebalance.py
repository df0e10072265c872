"""When queues are divided anew, what that does to messages, and where a queue begins.

Mirrors: RebalanceService, RebalanceImpl, RebalancePushImpl.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import pytest

from mqlab import SUCCESS, Lab, Message
from tests.lab.scenarios.stories import (
    Seen,
    Tool,
    changes,
    delivered,
    frames,
    member,
    moments,
    owned,
    quiet_lab,
    row,
    send,
    send_many,
)

CONSUMER_LIST, NOTIFY = 38, 40


def two_members(lab: Lab, *listeners: Any, queues: int = 4, **settings: Any) -> list[Any]:
    lab.create_topic("orders", read_queue_nums=queues, write_queue_nums=queues)
    listeners = listeners or (Seen(lab), Seen(lab))
    return [member(lab, "billing", one, name=f"billing-{n}", **settings) for n, one in enumerate(listeners, 1)]


def test_a_settled_group_looks_every_twenty_seconds() -> None:
    lab = quiet_lab()
    two_members(lab)
    lab.run_for("90s")
    rounds = moments(lab, "rebalance.done", client="billing-1")[-3:]
    waits_ms = [later - earlier for earlier, later in itertools.pairwise(rounds)]
    assert waits_ms == [20_004, 20_004]  # after the last round, which asks two questions of 2 ms


def how_long_until(lab: Lab, holds: Callable[[], bool]) -> int:
    began_ms = lab.now_ms
    lab.run_until(holds, limit="5m")
    return lab.now_ms - began_ms


def a_kill(lab: Lab, second: Any) -> None:
    lab.kill(second)


def a_shutdown(lab: Lab, second: Any) -> None:
    second.shutdown()


def a_power_cut(lab: Lab, second: Any) -> None:
    lab.power_off(second)


@pytest.mark.parametrize(
    ("leaves", "least_ms", "most_ms"),
    [
        (a_shutdown, 0, 1_100),  # says goodbye, and the broker tells the others
        (a_kill, 0, 1_100),  # its connection closes, and the broker tells the others
        (a_power_cut, 90_000, 150_100),  # 120 s of silence, a scan every 10 s that tells nobody, a timer of 20 s
    ],
)
def test_how_fast_the_others_take_over(leaves: Callable[[Lab, Any], None], least_ms: int, most_ms: int) -> None:
    lab = quiet_lab()
    first, second = two_members(lab)
    lab.run_for("45s")
    assert owned(first) == [0, 1]
    leaves(lab, second)
    assert least_ms <= how_long_until(lab, lambda: owned(first) == [0, 1, 2, 3]) <= most_ms


def test_the_scan_for_silent_members_tells_nobody() -> None:
    lab = quiet_lab()
    _, second = two_members(lab)
    lab.run_for("30s")
    notices = len(frames(lab, NOTIFY))
    lab.power_off(second)
    lab.run_for("200s")
    assert [one["why"] for one in changes(lab, "member.left")] == ["expired"]
    assert len(frames(lab, NOTIFY)) == notices


def test_a_new_member_owns_its_share_within_two_seconds() -> None:
    lab = quiet_lab()
    lab.create_topic("orders")
    first = member(lab, "billing")
    lab.run_for("45s")
    second = member(lab, "billing", name="billing-2")
    assert how_long_until(lab, lambda: (owned(first), owned(second)) == ([0, 1], [2, 3])) <= 2_100


def test_more_queues_are_noticed_by_polling_only() -> None:
    lab = quiet_lab()
    (first,) = two_members(lab, Seen(lab), queues=2)
    lab.run_for("45s")
    lab.create_topic("orders", read_queue_nums=4, write_queue_nums=4)
    waited_ms = how_long_until(lab, lambda: owned(first) == [0, 1, 2, 3])
    assert 2_000 < waited_ms <= 50_100  # route poll within 30 s, rebalance within 20 s


def test_a_suspended_member_keeps_its_queues_while_others_take_them() -> None:
    """It does nothing and says "not balanced"; the others go by the member list, in which it still stands."""
    lab = quiet_lab()
    first, second = two_members(lab)
    lab.run_for("5s")
    second.suspend()
    third = member(lab, "billing", name="billing-3")
    lab.run_for("30s")
    assert (owned(first), owned(second), owned(third)) == ([0, 1], [2, 3], [3])
    second.resume()
    lab.run_for("2s")
    assert (owned(first), owned(second), owned(third)) == ([0, 1], [2], [3])


def test_a_moved_queue_rests_for_half_a_second_and_more() -> None:
    lab = quiet_lab()
    first_seen, second_seen = Seen(lab), Seen(lab)
    lab.create_topic("orders", read_queue_nums=2, write_queue_nums=2)
    member(lab, "billing", first_seen)
    producer = lab.producer("shop")
    lab.traffic(producer, rates=[("0s", 25)], message=lambda n: Message("orders", f"заказ {n}".encode()))
    lab.run_for("10s")
    member(lab, "billing", second_seen, name="billing-2")
    lab.run_for("10s")
    of_queue_1 = sorted(
        time
        for seen in (first_seen, second_seen)
        for time, one in zip(seen.times_ms, seen.messages, strict=True)
        if one.queue_id == 1
    )
    pauses = [later - earlier for earlier, later in itertools.pairwise(of_queue_1)]
    assert sorted(pauses)[-2] <= 100 and 500 <= max(pauses) <= 2_500


def test_messages_under_way_while_a_queue_moves_are_delivered_twice() -> None:
    lab = quiet_lab()
    slow, other = Seen(lab, takes="5s"), Seen(lab)
    lab.create_topic("orders", read_queue_nums=2, write_queue_nums=2)
    first = member(lab, "billing", slow)
    lab.run_for("3s")
    send(lab.producer("shop"), "в очереди 1", queue=1)
    lab.run_for("1s")
    member(lab, "billing", other, name="billing-2")
    lab.run_for("20s")
    assert slow.bodies == other.bodies == ["в очереди 1"]
    statuses = {one.client: (one.status, one.reconsume_times) for one in delivered(lab, "billing")}
    assert statuses == {first.name: ("RESULT_DISCARDED", 0), "billing-2": ("CONSUME_SUCCESS", 0)}
    assert row(lab, "billing", 1).lag == 0


def test_an_orderly_queue_never_has_two_owners() -> None:
    """The new owner asks the broker for the lock until the old one has let go."""
    lab = quiet_lab()
    slow, other = Seen(lab, SUCCESS, takes="15s"), Seen(lab, SUCCESS)
    lab.create_topic("orders", read_queue_nums=2, write_queue_nums=2)
    member(lab, "billing", slow, orderly=True)
    lab.run_for("3s")
    send(lab.producer("shop"), "one", "two", queue=1)
    lab.run_for("1s")
    second = member(lab, "billing", other, name="billing-2", orderly=True)
    lab.run_for("5s")
    assert owned(second) == []
    lab.run_for("60s")
    assert owned(second) == [1]
    rows = [one for one in delivered(lab, "billing") if one.message_queue.queue_id == 1]
    for earlier, later in itertools.pairwise(rows):
        assert earlier.ended_ms <= later.started_ms


def test_brokers_with_different_member_lists_make_two_owners_for_a_moment() -> None:
    lab = quiet_lab(brokers=2)
    lab.create_topic("orders", read_queue_nums=2, write_queue_nums=2)
    chosen = {"allocate_message_queue_strategy": "AVG_BY_CIRCLE"}
    first = member(lab, "billing", **chosen)
    lab.run_for("5s")
    second = member(lab, "billing", name="billing-2", start=False, **chosen)
    lab.partition(second, "broker-b")  # broker-b never hears of the second member, and may be the one that is asked
    second.start()
    lab.run_for("90s")
    tool = Tool(lab)
    assert (len(tool.members("billing", "broker-a")), len(tool.members("billing", "broker-b"))) == (2, 1)
    assert queues_with_two_owners(lab) == ["broker-a 1"]
    lab.heal()
    lab.run_for("60s")
    assert not set(first.message_queues) & set(second.message_queues)
    assert len(first.message_queues) + len(second.message_queues) == 6  # two retry queues among them


def queues_with_two_owners(lab: Lab) -> list[str]:
    """Queues of orders that two members owned at the same moment, ever."""
    owners: dict[Any, list[str]] = {}
    found = []
    for record in lab.journal:
        for change in record.changes:
            if change.kind == "queue.added":
                owners.setdefault(change.values["queue"], []).append(change.values["client"])
            elif change.kind == "queue.dropped":
                owners[change.values["queue"]].remove(change.values["client"])
        found += [queue for queue, names in owners.items() if len(names) > 1 and queue not in found]
    return [f"{queue.broker_name} {queue.queue_id}" for queue in found if queue.topic == "orders"]


def test_a_dropped_subscription_is_let_go_without_a_commit() -> None:
    lab = quiet_lab()
    lab.create_topic("orders", read_queue_nums=1, write_queue_nums=1)
    send(lab.producer("shop"), "a", "b", "c")
    consumer = member(lab, "billing")
    lab.run_until(lambda: len(delivered(lab, "billing")) == 3)
    consumer.unsubscribe("orders")
    consumer.resume()  # a round of rebalance now, before the timer of the offsets
    assert owned(consumer) == []
    consumer.subscribe("orders")
    lab.run_for("60s")
    assert [one.status for one in delivered(lab, "billing")] == ["CONSUME_SUCCESS"] * 6  # again
    assert [one["reason"] for one in changes(lab, "queue.dropped")] == ["not subscribed"]


def test_a_member_asks_for_the_member_list_of_each_topic_and_not_when_broadcasting() -> None:
    lab = quiet_lab()
    two_members(lab, Seen(lab))
    lab.run_for("2s")
    assert {one.about.ext_fields["consumerGroup"] for one in frames(lab, CONSUMER_LIST)} == {"billing"}
    assert len(frames(lab, CONSUMER_LIST)) == 2  # orders and %RETRY%billing
    both = [member(lab, "audit", name=f"audit-{n}", message_model="BROADCASTING") for n in (1, 2)]
    lab.run_for("30s")
    assert [owned(each) for each in both] == [[0, 1, 2, 3]] * 2
    assert {one.about.ext_fields["consumerGroup"] for one in frames(lab, CONSUMER_LIST)} == {"billing"}


OLD = {"memory": "16KB"}  # message 0 is long out of memory: the broker really says "not found"


@pytest.mark.parametrize(
    ("world", "where", "first"),
    [
        ({}, "CONSUME_FROM_LAST_OFFSET", 0),  # message 0 is in memory: the broker answers 0 as a stored offset
        ({}, "CONSUME_FROM_FIRST_OFFSET", 0),
        (OLD, "CONSUME_FROM_LAST_OFFSET", 300),
        (OLD, "CONSUME_FROM_MAX_OFFSET", 300),
        (OLD, "CONSUME_FROM_FIRST_OFFSET", 0),
        (OLD, "CONSUME_FROM_TIMESTAMP", 200),
    ],
)
def test_where_a_new_group_begins(world: Any, where: str, first: int) -> None:
    lab = quiet_lab(**world)
    lab.create_topic("orders", read_queue_nums=1, write_queue_nums=1)
    producer = lab.producer("shop")
    for _ in range(3):  # at 12:00, 12:20, 12:40; the default timestamp is half an hour before the consumer is made
        send_many(producer, 100, queue=0)
        lab.run_for("20m")
    member(lab, "billing", consume_from_where=where)
    lab.run_for("5s")
    assert next(one["next_offset"] for one in changes(lab, "queue.added") if one["queue"].topic == "orders") == first
    send_many(producer, 1, queue=0)
    lab.run_for("10s")
    assert len(delivered(lab, "billing")) == 301 - first


def test_a_stored_offset_outranks_every_wish() -> None:
    lab = quiet_lab(**OLD)
    lab.create_topic("orders", read_queue_nums=1, write_queue_nums=1)
    send_many(lab.producer("shop"), 200, queue=0)
    tool = Tool(lab)
    for group, where in (("one", "CONSUME_FROM_LAST_OFFSET"), ("two", "CONSUME_FROM_FIRST_OFFSET")):
        assert tool.commit(group, 0, 150) == 26  # there is no such group yet
        lab.broker().groups.find(group)
        assert tool.commit(group, 0, 150) == 0
        member(lab, group, consume_from_where=where)
        lab.run_for("5s")
        assert len(delivered(lab, group)) == 50


def test_a_queue_whose_offset_cannot_be_read_is_not_added_and_asked_for_again() -> None:
    lab = quiet_lab()
    lab.create_topic("orders", read_queue_nums=1, write_queue_nums=1)
    consumer = member(lab, "billing")
    lab.run_until(lambda: bool(frames(lab, 14)))
    lab.drop("broker-a", consumer, count=2)
    lab.run_for("8s")
    refused = changes(lab, "queue.no_offset")
    lab.run_for("10s")
    assert refused and owned(consumer) == [0]
