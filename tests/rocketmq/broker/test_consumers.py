"""Members and subscriptions of a group: who is told, whose version wins, who is forgotten.

Mirrors: ConsumerManager, ConsumerGroupInfo.
"""

from __future__ import annotations

from typing import Any

from mqlab.rocketmq.broker.tables.consumers import ConsumerTable, Member
from mqlab.rocketmq.broker.tables.producers import ProducerTable
from mqlab.rocketmq.wire.bodies import SubscriptionData


class FakeChannel:
    def __init__(self, is_open: bool = True) -> None:
        self.is_open = is_open


class Group:
    """A consumer table with a clock of its own; ``told`` lists the notices, ``gone`` the removed groups."""

    def __init__(self) -> None:
        self.now_ms = 0
        self.told: list[list[str]] = []
        self.gone: list[str] = []
        self.table = ConsumerTable(lambda: self.now_ms)
        self.table.members_changed.subscribe(lambda group: self.told.append(group.client_ids))
        self.table.removed.subscribe(self.gone.append)

    def heartbeat(self, channel: Any, client_id: str, *subscriptions: SubscriptionData, **more: Any) -> bool:
        values = {"consume_type": "CONSUME_PASSIVELY", "message_model": "CLUSTERING", "consume_from_where": "X", **more}
        member = Member(channel, client_id, "JAVA", 479, self.now_ms)
        return self.table.register("billing", member, subscriptions=list(subscriptions), **values)


def sub(topic: str, text: str = "*", version: int = 1) -> SubscriptionData:
    return SubscriptionData(topic, text, sub_version=version)


def test_joining_and_new_topics_are_told_but_not_a_new_expression() -> None:
    group, one, two = Group(), FakeChannel(), FakeChannel()
    assert group.heartbeat(one, "one", sub("orders"))
    assert group.heartbeat(two, "two", sub("orders"))
    assert not group.heartbeat(one, "one", sub("orders", "paid", 2))
    assert not group.heartbeat(one, "one", sub("orders", "paid", 2))
    assert group.heartbeat(one, "one", sub("orders", "paid", 2), sub("订单"))
    assert group.told == [["one"], ["one", "two"], ["one", "two"]]
    assert group.table["billing"].subscriptions["orders"].sub_string == "paid"


def test_the_highest_version_wins_whoever_sent_it() -> None:
    group, one, two = Group(), FakeChannel(), FakeChannel()
    group.heartbeat(one, "one", sub("orders", "TagB", 200))
    group.heartbeat(two, "two", sub("orders", "TagA", 100))
    group.heartbeat(two, "two", sub("orders", "TagC", 200))
    assert group.table["billing"].subscriptions["orders"].sub_string == "TagB"


def test_different_topics_in_one_group_flip_the_table_at_every_heartbeat() -> None:
    group, one, two = Group(), FakeChannel(), FakeChannel()
    for _ in range(3):
        group.heartbeat(one, "one", sub("t1"))
        group.heartbeat(two, "two", sub("t2"))
    assert len(group.told) == 6 and list(group.table["billing"].subscriptions) == ["t2"]
    assert group.table.groups_subscribing("t2") == ["billing"] and group.table.groups_subscribing("t1") == []


def test_type_model_and_start_are_those_of_the_last_heartbeat() -> None:
    group, one, two = Group(), FakeChannel(), FakeChannel()
    group.heartbeat(one, "one", sub("orders"))
    group.heartbeat(two, "two", sub("orders"), message_model="BROADCASTING")
    assert group.table["billing"].is_broadcasting and len(group.told) == 1
    group.table.unregister("billing", two)  # type: ignore[arg-type]
    assert len(group.told) == 1


def test_leaving_and_closing_tell_the_others_and_remove_an_empty_group() -> None:
    group, one, two = Group(), FakeChannel(), FakeChannel()
    group.heartbeat(one, "one", sub("orders"))
    group.heartbeat(two, "two", sub("orders"))
    group.told.clear()
    group.table.unregister("billing", one)  # type: ignore[arg-type]
    group.table.channel_closed(one)  # type: ignore[arg-type]
    assert group.told == [["two"]] and group.gone == []
    group.table.channel_closed(two)  # type: ignore[arg-type]
    assert group.gone == ["billing"] and "billing" not in group.table


def test_the_leaving_of_somebody_who_was_not_there_is_told_too() -> None:
    group, one, stranger = Group(), FakeChannel(), FakeChannel()
    group.heartbeat(one, "one", sub("orders"))
    group.told.clear()
    group.table.unregister("billing", stranger)  # type: ignore[arg-type]
    assert group.told == [["one"]]
    group.table.unregister("billing", stranger, notify=False)  # type: ignore[arg-type]
    group.table.unregister("unknown", stranger)  # type: ignore[arg-type]
    assert group.told == [["one"]] and list(group.table) == ["billing"]


def test_two_connections_with_one_client_id_are_two_members() -> None:
    group = Group()
    group.heartbeat(FakeChannel(), "same", sub("orders"))
    group.heartbeat(FakeChannel(), "same", sub("orders"))
    assert group.table["billing"].client_ids == ["same", "same"]


def test_the_scan_removes_the_silent_and_tells_nobody() -> None:
    group, one, two = Group(), FakeChannel(), FakeChannel()
    group.heartbeat(one, "one", sub("orders"))
    group.now_ms = 60_000
    group.heartbeat(two, "two", sub("orders"))
    group.told.clear()
    assert group.table.oldest_update_ms() == 0
    group.now_ms = 120_000
    assert group.table.expire(120_000) == []
    group.now_ms = 120_001
    assert group.table.expire(120_000) == [one] and group.told == []
    assert group.table["billing"].client_ids == ["two"]
    group.now_ms = 200_000
    assert group.table.expire(120_000) == [two] and group.table.oldest_update_ms() is None


def test_members_of_a_producer_group_are_asked_in_turn() -> None:
    producers = ProducerTable(lambda: 5)
    channels = [FakeChannel() for _ in range(3)]
    for number, channel in enumerate(channels):
        producers.register("pay", Member(channel, f"p{number}", "JAVA", 479, 5))  # type: ignore[arg-type]
    asked = [producers.available_channel("pay") for _ in range(4)]
    assert asked == [channels[1], channels[2], channels[0], channels[1]]
    channels[2].is_open = False
    assert producers.available_channel("pay") is channels[0]
    for channel in channels:
        channel.is_open = False
    assert producers.available_channel("pay") is None and producers.available_channel("nobody") is None


def test_producers_leave_and_expire() -> None:
    now = [0]
    producers = ProducerTable(lambda: now[0])
    one, two = FakeChannel(), FakeChannel()
    producers.register("pay", Member(one, "p1", "JAVA", 479, 0))  # type: ignore[arg-type]
    producers.register("pay", Member(two, "p2", "JAVA", 479, 0))  # type: ignore[arg-type]
    now[0] = 100_000
    producers.register("pay", Member(two, "p2", "JAVA", 479, 100_000))  # type: ignore[arg-type]
    now[0] = 130_000
    assert producers.oldest_update_ms() == 0 and producers.expire(120_000) == [one]
    assert producers.oldest_update_ms() == 100_000
    producers.channel_closed(two)  # type: ignore[arg-type]
    assert list(producers) == [] and producers.oldest_update_ms() is None
