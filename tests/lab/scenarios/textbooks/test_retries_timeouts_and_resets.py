"""What articles say of retries, time-outs, progress and resets.

Mirrors: SendMessageProcessor, ConsumeMessageConcurrentlyService, AdminBrokerProcessor.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from mqlab import CONSUME_SUCCESS, RECONSUME_LATER, SUCCESS, Lab, Message
from mqlab.errors import RemotingError
from mqlab.rocketmq.store import MessageStore, StoreConfig
from mqlab.rocketmq.store.config import parse_delay_levels
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
    total_lag,
)

SECOND_EACH = {"broker": {"message_delay_level": " ".join(["1s"] * 18)}}
MINUTE_MS = 60_000


def one_queue(lab: Lab, *bodies: str) -> Lab:
    lab.create_topic("orders", read_queue_nums=1, write_queue_nums=1)
    if bodies:
        send(lab.producer("shop"), *bodies)
    return lab


def waits(seen: Seen) -> list[int]:
    return [later - earlier for earlier, later in zip(seen.times_ms, seen.times_ms[1:], strict=False)]


def after_retry_queue_is_read(lab: Lab, listener: Any, **settings: Any) -> Any:
    consumer = member(lab, "billing", listener, **settings)
    lab.run_for("25s")
    return consumer


def test_ten_seconds_is_the_first_step_only_and_each_call_may_say_another() -> None:
    def in_a_second(messages: Any, context: Any) -> str:
        context.delay_level_when_next_consume = 1
        return RECONSUME_LATER

    lab = one_queue(quiet_lab())
    seen = Seen(lab, RECONSUME_LATER, RECONSUME_LATER, in_a_second, CONSUME_SUCCESS)
    after_retry_queue_is_read(lab, seen)
    send(lab.producer("shop"), "a")
    lab.run_for("60s")
    assert waits(seen) == pytest.approx([10_000, 30_000, 1_000], abs=120)


def test_sixteen_retries_take_4_45_40_and_make_seventeen_deliveries() -> None:
    """The whole timeline is played in test_retry_timeline.py; here its sum, and its count on short levels."""
    delays_ms = parse_delay_levels(StoreConfig().message_delay_level)
    assert sum(delays_ms[level - 1] for level in range(3, 19)) == ((4 * 60 + 45) * 60 + 40) * 1_000
    lab = one_queue(quiet_lab(**SECOND_EACH))
    after_retry_queue_is_read(lab, seen := Seen(lab, RECONSUME_LATER))
    send(lab.producer("shop"), "a")
    lab.run_for("60s")
    assert [message.reconsume_times for message in seen.messages] == list(range(17))


def test_the_steps_begin_at_level_three() -> None:
    lab = one_queue(quiet_lab())
    after_retry_queue_is_read(lab, Seen(lab, RECONSUME_LATER, RECONSUME_LATER, CONSUME_SUCCESS))
    send(lab.producer("shop"), "a")
    lab.run_for("60s")
    assert [one["level"] for one in changes(lab, "message.delivered_late")] == [3, 4]


def test_async_sends_have_two_retries_of_their_own_for_transport_errors() -> None:
    lab = one_queue(quiet_lab(), "first")
    producer = lab.handles["shop-1"]
    lab.kill("broker-a")
    with pytest.raises(RemotingError):
        producer.send_async(Message("orders", b"x")).result()
    assert [one["mode"] for one in changes(lab, "message.sent") if one["error"]] == ["ASYNC"] * 3
    assert producer.config.retry_times_when_send_async_failed == 2


def test_after_the_last_failure_it_lies_in_the_dead_letters() -> None:
    lab = one_queue(quiet_lab(**SECOND_EACH))
    after_retry_queue_is_read(lab, Seen(lab, RECONSUME_LATER))
    send(lab.producer("shop"), "платёж 支付 💳")
    lab.run_for("60s")
    (dead,) = lab.broker().store.get("%DLQ%billing", 0, 0).records()
    assert (dead.body.decode(), dead.reconsume_times) == ("платёж 支付 💳", 17)


def test_one_id_stays_and_the_other_changes() -> None:
    lab = one_queue(quiet_lab(**SECOND_EACH))
    after_retry_queue_is_read(lab, seen := Seen(lab, RECONSUME_LATER), max_reconsume_times=3)
    send(lab.producer("shop"), "a")
    lab.run_for("20s")
    assert len({message.msg_id for message in seen.messages}) == 1
    assert len({message.offset_msg_id for message in seen.messages}) == len(seen.messages) == 4


def test_silence_ends_with_a_send_back_and_a_death_counts_nothing() -> None:
    lab = one_queue(quiet_lab(), "slow")
    after_retry_queue_is_read(lab, Seen(lab, takes="100h"))
    lab.run_for("14m")
    assert frames(lab, 36) == []
    lab.run_for("16m")
    assert [one.about.ext_fields["delayLevel"] for one in frames(lab, 36)][:1] == ["3"]

    lab = one_queue(quiet_lab(), "kills its reader")
    consumer = member(lab, "billing", Seen(lab, takes="100h"))
    for _ in range(20):
        lab.run_for("5s")
        lab.kill(consumer)
        lab.start(consumer)
    assert len(delivered(lab, "billing")) == 20
    assert {one.reconsume_times for one in delivered(lab, "billing")} == {0}
    assert "%DLQ%billing" not in lab.broker().topics


def test_a_sweep_comes_every_time_out_and_takes_sixteen_from_the_head() -> None:
    lab = one_queue(quiet_lab())
    send_many(lab.producer("shop"), 20, queue=0)
    member(lab, "billing", Seen(lab, takes="100h"))
    lab.run_for("29m")
    assert moments(lab, "message.expired") == []  # at 15 minutes they were stuck for a second less than that
    lab.run_for("2m")
    times = moments(lab, "message.expired")
    assert len(times) == 16 and 29 * MINUTE_MS <= times[0] <= 30 * MINUTE_MS + 1_000
    lab.run_for("15m")
    assert len([one for one in changes(lab, "message.expired") if one["queue"].topic == "orders"]) == 20


@pytest.mark.parametrize(("then", "expired_after_min"), [("2m", 10), ("15m", 20)])
def test_the_threshold_is_read_live_and_the_period_is_not(then: str, expired_after_min: int) -> None:
    lab = one_queue(quiet_lab(), "slow")
    consumer = member(lab, "billing", Seen(lab, takes="100h"), consume_timeout="10m")
    lab.run_for("1m")
    consumer.configure(consume_timeout=then)
    lab.run_for("25m")
    assert moments(lab, "message.expired")[0] == pytest.approx(expired_after_min * MINUTE_MS, abs=1_500)


def test_the_sweep_skips_what_no_thread_has_taken_and_keeps_the_counters_right() -> None:
    lab = one_queue(quiet_lab(), *"abcde")
    stuck = Seen(lab, takes="100h")
    one_thread = {"consume_thread_min": 1, "consume_thread_max": 1}
    consumer = member(lab, "billing", stuck, consume_timeout="1m", **one_thread)
    lab.run_for("10m")
    assert stuck.bodies == ["a"]  # the others wait for the thread and have no start time
    assert [one["queue_offset"] for one in changes(lab, "message.expired")] == [0]
    (process_queue,) = [held for queue, held in consumer.process_queues.items() if queue.topic == "orders"]
    assert (process_queue.msg_count, process_queue.msg_size) == (4, 4)


def test_the_span_limit_is_strict_and_for_concurrent_consumption_only() -> None:
    for orderly, stopped in ((False, True), (True, False)):
        lab = one_queue(quiet_lab())
        send_many(lab.producer("shop"), 200, queue=0)
        listener = Seen(lab, SUCCESS if orderly else CONSUME_SUCCESS, takes="1h")
        limit = {"consume_concurrently_max_span": 63}
        consumer = member(lab, "billing", listener, orderly=orderly, **limit)
        lab.run_for("5s")
        reasons = {one["reason"] for one in changes(lab, "pull.flow_control")}
        assert reasons == ({"span"} if stopped else set())
        (process_queue,) = [held for queue, held in consumer.process_queues.items() if queue.topic == "orders"]
        assert process_queue.msg_count == (96 if stopped else 200)  # a span of 63 after two pulls is not above 63


def test_the_clients_limit_outranks_the_groups() -> None:
    lab = one_queue(quiet_lab(**SECOND_EACH))
    Tool(lab).ask(200, b'{"groupName":"billing","retryMaxTimes":1}')
    after_retry_queue_is_read(lab, seen := Seen(lab, RECONSUME_LATER))
    send(lab.producer("shop"), "a")
    lab.run_for("60s")
    assert len(seen.messages) == 17
    assert {one.about.ext_fields["maxReconsumeTimes"] for one in frames(lab, 36)} == {"16"}


def test_delays_are_the_brokers_business_the_store_alone_knows_nothing_of_them(tmp_path: Path) -> None:
    delayed = Message("orders", b"x", delay_time_level=3)
    with MessageStore.open(str(tmp_path / "store"), mapped_file_size_commit_log=1 << 20) as store:
        store.put(delayed)
        store.dispatch()
        assert list(store.topics()) == ["orders"]
    lab = one_queue(quiet_lab())
    lab.producer("shop").send(delayed)
    lab.run_for("100ms")
    assert list(lab.broker().store.topics()) == ["SCHEDULE_TOPIC_XXXX"]


def test_only_clustering_consumers_subscribe_to_the_retry_topic() -> None:
    lab = one_queue(quiet_lab())
    member(lab, "billing")
    member(lab, "audit", message_model="BROADCASTING")
    lab.run_for("5s")
    consumers = lab.broker().consumers
    assert sorted(consumers["billing"].subscriptions) == ["%RETRY%billing", "orders"]
    assert sorted(consumers["audit"].subscriptions) == ["orders"]


def test_both_offsets_are_one_past() -> None:
    lab = one_queue(quiet_lab())
    member(lab, "billing")
    results = send(lab.producer("shop"), *"abc")
    lab.run_for("15s")
    progress = row(lab, "billing")
    assert results[-1].queue_offset == 2
    assert (progress.broker_offset, progress.consumer_offset, progress.lag) == (3, 3, 0)


@pytest.mark.parametrize(("memory", "begins"), [(None, 0), ("16KB", 200)])
def test_where_a_new_group_begins_depends_on_the_queue(memory: str | None, begins: int) -> None:
    lab = one_queue(quiet_lab(memory=memory))
    send_many(lab.producer("shop"), 200, queue=0)
    member(lab, "billing")
    lab.run_for("5s")
    assert [one["next_offset"] for one in changes(lab, "queue.added") if one["queue"].topic == "orders"] == [begins]


def test_an_invalid_offset_stays_stored_until_a_client_pulls_and_commits() -> None:
    lab = one_queue(quiet_lab(), *"abc")
    lab.broker().groups.find("billing")
    assert Tool(lab).commit("billing", 0, 500) == 0
    lab.run_for("1m")
    assert lab.broker().offset_table.query("billing", "orders", 0) == 500
    member(lab, "billing")
    lab.run_for("5s")
    assert lab.broker().offset_table.query("billing", "orders", 0) == 3


def test_a_reset_of_a_topic_leaves_waiting_retries_alone() -> None:
    lab = one_queue(quiet_lab())
    consumer = after_retry_queue_is_read(lab, seen := Seen(lab, RECONSUME_LATER, CONSUME_SUCCESS))
    send(lab.producer("shop"), "a")
    lab.run_for("1s")
    Tool(lab).ask(222, topic="orders", group="billing", timestamp=-1, isForce=True)
    lab.run_for("60s")
    assert [message.reconsume_times for message in seen.messages] == [0, 1]
    consumer.reset_offset_by_timestamp(lab.began_ms)  # the push consumer's own way takes %RETRY% along
    lab.run_for("60s")
    assert sorted(message.reconsume_times for message in seen.messages[2:]) == [0, 1]


def test_the_first_message_at_or_after_the_time_not_the_closest() -> None:
    lab = one_queue(quiet_lab(), "early")
    early_ms = lab.broker().store.store_time_at("orders", 0, 0)
    lab.run_for("10m")
    send(lab.handles["shop-1"], "late")
    lab.broker().groups.find("billing")
    for at_ms, offset in ((early_ms, 0), (early_ms + 1, 1)):  # a ms after the first: still nearest to it
        Tool(lab, f"tool-{offset}").ask(222, topic="orders", group="billing", timestamp=at_ms, isForce=True)
        assert lab.broker().offset_table.query("billing", "orders", 0) == offset


def test_the_server_keeps_the_progress_of_clustering_groups_only() -> None:
    lab = one_queue(quiet_lab())
    member(lab, "billing")
    member(lab, "audit", message_model="BROADCASTING")
    lab.run_for("3s")
    send(lab.producer("shop"), *"abc")
    lab.run_for("20s")
    assert lab.broker().offset_table["orders@billing"] == {0: 3}
    assert "orders@audit" not in lab.broker().offset_table
    assert "}:3" in next((lab.directory / "offsets").rglob("offsets.json")).read_text("utf-8")


@pytest.mark.parametrize(
    ("in_pull", "first_gets", "second_gets"),
    [(False, [], ["TagB 2", "TagB 3"]), (True, ["TagA 0", "TagA 1"], ["TagB 2", "TagB 3"])],
)
def test_with_defaults_the_older_subscription_gets_nothing(
    in_pull: bool, first_gets: list[str], second_gets: list[str]
) -> None:
    lab = quiet_lab()
    lab.create_topic("orders")
    a, b = Seen(lab), Seen(lab)
    first = member(lab, "billing", a, tags="TagA", post_subscription_when_pull=in_pull)
    lab.run_for("5s")
    second = member(lab, "billing", b, tags="TagB", name="billing-2", post_subscription_when_pull=in_pull)
    lab.run_for("5s")
    assert (owned(first), owned(second)) == ([0, 1], [2, 3])
    second.subscribe("orders", "TagB")  # the latest word of the group
    lab.run_for("1s")
    for queue in range(4):
        for tag in ("TagA", "TagB"):
            send(lab.handles.get("shop-1") or lab.producer("shop"), f"{tag} {queue}", queue=queue, tags=tag)
    lab.run_for("60s")
    assert (sorted(a.bodies), sorted(b.bodies)) == (first_gets, second_gets)
    assert total_lag(lab, "billing") == 0
