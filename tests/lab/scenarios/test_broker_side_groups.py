"""Who is in a group, what the group subscribes to, and what goes wrong when members disagree.

Mirrors: ConsumerManager, ConsumerGroupInfo.
"""

from __future__ import annotations

from typing import Any

import pytest

from mqlab import CONSUME_SUCCESS, RECONSUME_LATER, Lab
from tests.lab.scenarios.stories import (
    Seen,
    Tool,
    changes,
    config,
    delivered,
    frames,
    member,
    owned,
    quiet_lab,
    row,
    send,
    total_lag,
)

HEARTBEAT, UNREGISTER, NOTIFY, PULL = 34, 35, 40, 11


def orders(lab: Lab, queues: int = 4) -> Lab:
    lab.create_topic("orders", read_queue_nums=queues, write_queue_nums=queues)
    return lab


def test_heartbeats_come_every_thirty_seconds_and_with_each_change_of_queues() -> None:
    lab = orders(quiet_lab())
    member(lab, "billing")
    lab.run_for("3m")
    times = [one.now_ms for one in frames(lab, HEARTBEAT)]
    assert {later - earlier for earlier, later in zip(times[-4:], times[-3:], strict=False)} == {30_000}
    begin = [time for time in times if time - lab.began_ms < 3_000]
    assert len(begin) >= 2  # at the start, and after the first rebalance


def test_the_first_heartbeat_makes_the_group_and_its_retry_topic() -> None:
    lab = orders(quiet_lab())
    assert "billing" not in lab.broker().groups
    member(lab, "billing")
    member(lab, "audit", message_model="BROADCASTING")
    lab.run_for("1s")
    for group in ("billing", "audit"):  # broadcasting groups too, though they never use it
        retry = lab.broker().topics[f"%RETRY%{group}"]
        assert (retry.read_queue_nums, retry.write_queue_nums, retry.perm) == (1, 1, 6)
    assert set(config(lab, "subscriptionGroup.json")["subscriptionGroupTable"]) >= {"billing", "audit"}
    assert "%RETRY%billing" in config(lab, "topics.json")["topicConfigTable"]


def test_without_automatic_groups_a_heartbeat_is_skipped_without_a_word() -> None:
    lab = orders(quiet_lab(broker={"auto_create_subscription_group": False}))
    consumer = member(lab, "billing")
    lab.run_for("10s")
    assert "billing" not in lab.broker().consumers and owned(consumer) == []
    answers = [one.about.code for one in lab.journal if one.node == "billing-1" and one.about and one.about.is_response]
    assert 0 in answers
    Tool(lab).ask(200, b'{"groupName":"billing"}')
    lab.run_for("90s")
    assert owned(consumer) == [0, 1, 2, 3]


def test_joining_and_leaving_is_told_to_all_members_and_changed_tags_to_nobody() -> None:
    lab = orders(quiet_lab())
    first = member(lab, "billing", tags="paid")
    lab.run_for("35s")
    told = len(frames(lab, NOTIFY, "billing-1"))
    first.subscribe("orders", "paid || shipped")
    lab.run_for("5s")
    assert len(frames(lab, NOTIFY)) == told
    second = member(lab, "billing", name="billing-2", tags="paid || shipped")
    lab.run_for("5s")
    assert len(frames(lab, NOTIFY, "billing-1")) == told + 1
    second.shutdown()
    lab.run_for("5s")
    assert len(frames(lab, UNREGISTER)) == 2  # the group, and the producer inside each consumer
    assert len(frames(lab, NOTIFY, "billing-1")) == told + 2


def test_a_new_topic_in_a_subscription_is_told() -> None:
    lab = orders(quiet_lab())
    lab.create_topic("refunds")
    consumer = member(lab, "billing")
    lab.run_for("35s")
    told = len(frames(lab, NOTIFY))
    consumer.subscribe("refunds")
    lab.run_for("1s")
    assert len(frames(lab, NOTIFY)) == told + 1
    lab.run_for("60s")
    assert owned(consumer, "refunds") == [0, 1, 2, 3]


def test_the_last_member_takes_the_group_with_it() -> None:
    lab = orders(quiet_lab())
    consumer = member(lab, "billing")
    lab.run_for("5s")
    assert list(lab.broker().consumers) == ["billing"]
    consumer.shutdown()
    assert list(lab.broker().consumers) == []
    assert Tool(lab).ask(38, consumerGroup="billing").code == 1
    assert "billing" in lab.broker().groups  # its configuration stays


def test_a_group_can_forbid_notices_and_consumption() -> None:
    lab = orders(quiet_lab())
    tool = Tool(lab)
    tool.ask(200, b'{"groupName":"billing","notifyConsumerIdsChangedEnable":false,"consumeEnable":false}')
    first = member(lab, "billing")
    lab.run_for("30s")
    second = member(lab, "billing", name="billing-2")
    lab.run_for("2s")
    assert frames(lab, NOTIFY) == [] and owned(first) == [0, 1, 2, 3]
    lab.run_for("20s")
    assert (owned(first), owned(second)) == ([0, 1], [2, 3])  # the timers find out
    send(lab.producer("shop"), *"abcd")
    lab.run_for("20s")
    assert len(delivered(lab, "billing")) == 0
    tool.ask(200, b'{"groupName":"billing","consumeEnable":true}')
    lab.run_for("20s")
    assert len(delivered(lab, "billing")) == 4


def test_notices_can_be_collected_instead_of_told_at_once() -> None:
    lab = orders(quiet_lab(broker={"real_time_notify_consumer_change": False}))
    first = member(lab, "billing")
    lab.run_for("22s")
    second = member(lab, "billing", name="billing-2")
    lab.run_for("5s")
    assert frames(lab, NOTIFY) == []
    lab.run_for("30s")
    assert frames(lab, NOTIFY) and (owned(first), owned(second)) == ([0, 1], [2, 3])


def test_offsets_survive_the_group() -> None:
    lab = orders(quiet_lab(), queues=1)
    send(lab.producer("shop"), *"abc")
    consumer = member(lab, "billing")
    lab.run_for("10s")
    consumer.shutdown()
    lab.run_for("1h")
    member(lab, "billing", seen := Seen(lab), name="billing-2")
    lab.run_for("10s")
    assert seen.bodies == []


def a_and_b(lab: Lab, **settings: Any) -> tuple[Any, Any]:
    """Two members of one group that want different tags; the second subscribes and joins later."""
    a, b = Seen(lab), Seen(lab)
    first = member(lab, "billing", a, tags="TagA", start=False, **settings)
    lab.run_for("100ms")
    second = member(lab, "billing", b, name="billing-2", tags="TagB", start=False, **settings)
    first.start()
    lab.run_for("5s")
    second.start()
    lab.run_for("5s")
    assert (owned(first), owned(second)) == ([0, 1], [2, 3])
    return a, b


@pytest.mark.parametrize("newest", ["TagA", "TagB"])
def test_by_default_the_member_with_the_older_subscription_gets_nothing(newest: str) -> None:
    lab = orders(quiet_lab())
    a, b = a_and_b(lab)
    producer = lab.producer("shop")
    # both were rebalanced when b joined: which text survives is a race of their clocks; here it is decided by hand
    loser, winner = ("billing-1", "billing-2") if newest == "TagB" else ("billing-2", "billing-1")
    lab.handles[winner].subscribe("orders", newest)
    lab.run_for("1s")
    assert lab.broker().consumers["billing"].subscriptions["orders"].sub_string == newest
    for queue in range(4):
        send(producer, f"TagA in {queue}", queue=queue, tags="TagA")
        send(producer, f"TagB in {queue}", queue=queue, tags="TagB")
    lab.run_for("60s")
    seen = {"billing-1": a, "billing-2": b}
    mine = (2, 3) if newest == "TagB" else (0, 1)
    assert seen[loser].bodies == []
    assert sorted(seen[winner].bodies) == [f"{newest} in {queue}" for queue in mine]
    assert total_lag(lab, "billing") == 0  # no alarm: six of eight messages are gone for this group
    statuses = {one.status for one in delivered(lab, "billing")}
    assert statuses == {CONSUME_SUCCESS, "FILTERED_BY_CLIENT"}


def test_with_the_text_in_each_pull_each_gets_its_own_tag_of_its_own_queues() -> None:
    lab = orders(quiet_lab())
    a, b = a_and_b(lab, post_subscription_when_pull=True)
    producer = lab.producer("shop")
    for queue in range(4):
        send(producer, f"TagA in {queue}", queue=queue, tags="TagA")
        send(producer, f"TagB in {queue}", queue=queue, tags="TagB")
    lab.run_for("60s")
    assert sorted(a.bodies) == ["TagA in 0", "TagA in 1"]
    assert sorted(b.bodies) == ["TagB in 2", "TagB in 3"]
    assert total_lag(lab, "billing") == 0


def test_which_of_two_texts_survives_is_a_race_of_clocks() -> None:
    survivors = []
    for skew in ("0ms", "60s"):
        lab = orders(quiet_lab())
        first = member(lab, "billing", tags="TagA", start=False)
        lab.skew_clock(first, skew)
        first.start()
        lab.run_for("5s")
        member(lab, "billing", name="billing-2", tags="TagB")
        lab.run_for("10s")
        survivors.append(lab.broker().consumers["billing"].subscriptions["orders"].sub_string)
    assert survivors[1] == "TagA"  # its clock is a minute ahead: nothing TagB's member says is newer
    assert set(survivors) <= {"TagA", "TagB"}


def test_retries_ignore_tags_and_reach_members_that_never_subscribed_to_them() -> None:
    lab = orders(quiet_lab())
    a = Seen(lab, RECONSUME_LATER)
    b = Seen(lab)
    settings = {"post_subscription_when_pull": True, "allocate_message_queue_strategy": RetriesToTheLast()}
    member(lab, "billing", a, tags="TagA", **settings)
    member(lab, "billing", b, name="billing-2", tags="TagB", **settings)
    lab.run_for("40s")
    send(lab.producer("shop"), "only for A", queue=0, tags="TagA")
    lab.run_for("30s")
    assert (a.bodies, b.bodies) == (["only for A"], ["only for A"])
    assert b.messages[0].tags == "TagA"


class RetriesToTheLast:
    """Averagely, but for the retry queue, which the last member has."""

    name = "RETRIES_TO_THE_LAST"

    def allocate(self, group: str, client_id: str, queues: list[Any], client_ids: list[str]) -> list[Any]:
        if queues[0].topic.startswith("%RETRY%"):
            return queues if client_id == client_ids[-1] else []
        half = len(queues) // 2
        return queues[:half] if client_id == client_ids[0] else queues[half:]


def test_different_topics_in_one_group_remove_each_other_and_share_what_only_one_reads() -> None:
    lab = orders(quiet_lab())
    lab.create_topic("refunds")
    first = member(lab, "billing", topic="orders")
    lab.run_for("15s")
    second = member(lab, "billing", name="billing-2", topic="refunds")
    lab.run_for("5m")
    flips = changes(lab, "subscription.changed", group="billing")
    assert len(flips) >= 15  # with every heartbeat, and each time all are told to divide anew
    assert len(frames(lab, NOTIFY, "billing-1")) >= 15
    assert owned(first) == [0, 1] and owned(second, "refunds") == [2, 3]
    assert owned(second) == [] and owned(first, "refunds") == []
    producer = lab.producer("shop")
    for queue in range(4):
        send(producer, f"{queue}", queue=queue)
    lab.run_for("3m")
    assert sorted(one.message_queue.queue_id for one in delivered(lab, "billing")) == [0, 1]
    assert any("subscription not exist" in one["error"] for one in changes(lab, "pull.failed"))


def test_different_models_in_one_group_flip_with_each_heartbeat() -> None:
    lab = orders(quiet_lab())
    member(lab, "billing")
    lab.run_for("10s")
    member(lab, "billing", name="billing-2", message_model="BROADCASTING")
    models = []
    for _ in range(40):
        lab.run_for("5s")
        models.append(lab.broker().consumers["billing"].message_model)
    assert set(models) == {"CLUSTERING", "BROADCASTING"}


def test_a_member_whose_heartbeat_is_on_its_way_asks_again_in_a_second() -> None:
    """Its version is newer than what the broker knows: code 25, and again after a second."""
    lab = orders(quiet_lab(), queues=1)
    consumer = member(lab, "billing")
    lab.run_for("35s")  # the retry queue came with the second rebalance; the next heartbeat is due at 61 s
    before = len(frames(lab, PULL))
    lab.drop(consumer, "broker-a")  # the heartbeat that tells the new subscription is lost
    consumer.subscribe("orders", "paid")
    lab.run_for("29s")
    refused = [one for one in changes(lab, "pull.failed") if "not latest" in one["error"]]
    assert len(refused) >= 5 and len(frames(lab, PULL)) > before
    lab.run_for("20s")
    send(lab.producer("shop"), "x", tags="paid")
    lab.run_for("20s")
    assert row(lab, "billing").lag == 0
