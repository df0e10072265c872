"""What slides and articles say of commits, sends, retries and threads.

Mirrors: ConsumerOffsetManager, DefaultMQProducerImpl, ConsumeMessageConcurrentlyService.
"""

from __future__ import annotations

from typing import Any

import pytest

from mqlab import CONSUME_SUCCESS, RECONSUME_LATER, SUSPEND_CURRENT_QUEUE_A_MOMENT, Lab, Message, MessageQueue
from mqlab.errors import BrokerError, ClientError, RemotingError, UsageError
from mqlab.rocketmq.client.settings import PushConsumerConfig
from mqlab.rocketmq.store import StoreConfig
from tests.lab.scenarios.stories import (
    Seen,
    changes,
    config,
    delivered,
    frames,
    member,
    owned,
    quiet_lab,
    row,
    send,
    send_many,
    to_queue,
)

SECOND_EACH = {"broker": {"message_delay_level": " ".join(["1s"] * 18)}}


def one_queue(lab: Lab, *bodies: str) -> Lab:
    lab.create_topic("orders", read_queue_nums=1, write_queue_nums=1)
    if bodies:
        send(lab.producer("shop"), *bodies)
    return lab


def two_brokers(**settings: Any) -> tuple[Lab, Any]:
    lab = quiet_lab(brokers=2)
    lab.create_topic("orders", read_queue_nums=1, write_queue_nums=1)
    producer = lab.producer("shop", **settings)
    producer.fetch_publish_message_queues("orders")
    return lab, producer


def failed_attempts(lab: Lab) -> list[str]:
    return [one["message_queue"].broker_name for one in changes(lab, "message.sent") if one["error"]]


def test_commits_are_one_way_and_the_three_offsets_come_with_a_pull() -> None:
    lab = one_queue(quiet_lab(), *"abc")
    member(lab, "billing")
    lab.run_for("15s")
    commits = frames(lab, 15)
    assert commits and all(one.about.is_oneway for one in commits)
    answers = [
        one.about.ext_fields
        for one in lab.journal
        if one.about is not None and "nextBeginOffset" in one.about.ext_fields
    ]
    assert {(each["minOffset"], each["maxOffset"], each["nextBeginOffset"]) for each in answers} >= {("0", "3", "3")}


def test_a_commit_is_in_the_table_at_once_and_in_the_file_up_to_five_seconds_later() -> None:
    lab = one_queue(quiet_lab())
    lab.run_for("3s")
    member(lab, "billing")
    lab.run_for("28s")
    send(lab.producer("shop"), *"abcde")
    lab.run_until(lambda: row(lab, "billing").consumer_offset == 5)
    assert config(lab, "consumerOffset.json")["offsetTable"]["orders@billing"] == {0: 0}
    lab.kill("broker-a")
    lab.start("broker-a")
    assert row(lab, "billing").consumer_offset == 0


def test_nobody_sends_again_what_was_not_acknowledged_somebody_pulls_it_again() -> None:
    lab = one_queue(quiet_lab(), "a")
    consumer = member(lab, "billing", Seen(lab, takes="10m"))
    lab.run_for("9m")
    assert len(delivered(lab, "billing")) == 1  # silence makes nobody send anything
    lab.kill(consumer)
    member(lab, "billing", seen := Seen(lab), name="billing-2")
    lab.run_for("10s")
    assert seen.bodies == ["a"]  # the next owner begins at the committed offset


def test_pull_and_lite_pull_filter_by_sql_where_the_broker_does() -> None:
    for enabled in (True, False):
        lab = one_queue(quiet_lab(broker={"enable_property_filter": enabled}))
        send(lab.producer("shop"), "7", properties={"a": "7"})
        send(lab.handles["shop-1"], "3", properties={"a": "3"})
        puller = lab.pull_consumer("audit")
        (queue,) = puller.fetch_subscribe_message_queues("orders")
        lite = lab.lite_pull_consumer("report")
        lite.subscribe("orders", None, sql="a > 5")
        if not enabled:
            with pytest.raises(BrokerError, match="does not support"):
                puller.pull(queue, None, 0, sql="a > 5")
            with pytest.raises(ClientError):
                lite.start()
            continue
        assert [message.body for message in puller.pull(queue, None, 0, sql="a > 5").msg_found_list] == [b"7"]
        lite.start()
        assert [message.body for message in lite.poll("5s")] == [b"7"]


def test_an_ordered_async_send_tries_three_times_on_its_broker() -> None:
    attempts = {}
    for mode in ("send", "send_async", "send_oneway"):
        lab, producer = two_brokers()
        lab.kill("broker-b")
        try:
            outcome = getattr(producer, mode)(Message("orders", b"x"), selector=to_queue(1))
            if outcome is not None:
                outcome.result()
        except RemotingError:
            pass
        attempts[mode] = failed_attempts(lab)
    assert attempts == {"send": ["broker-b"], "send_async": ["broker-b"] * 3, "send_oneway": []}


def test_a_brokers_refusal_is_retried_only_for_the_listed_codes() -> None:
    refusing = {"start_accept_send_request_time_stamp": 2**50}  # SYSTEM_ERROR 1: listed
    for broker, mode, sends in (
        (refusing, "send", 3),
        ({"max_message_size": 100}, "send", 1),
        (refusing, "send_async", 1),
    ):
        lab = one_queue(quiet_lab(broker=broker))
        outcome = None
        with pytest.raises((BrokerError, ClientError)):
            outcome = getattr(lab.producer("shop"), mode)(Message("orders", b"x" * 500))
            outcome.result()
        assert len(frames(lab, 310)) == sends, mode


def test_a_plain_async_send_tries_another_broker() -> None:
    lab, producer = two_brokers()
    lab.kill("broker-b")
    results = [producer.send_async(Message("orders", b"x")).result() for _ in range(4)]
    assert {result.message_queue.broker_name for result in results} == {"broker-a"}
    assert set(failed_attempts(lab)) == {"broker-b"}


def test_whether_to_ask_another_broker_is_the_producers_setting() -> None:
    with pytest.raises(UsageError, match="retry_another_broker_when_not_store_ok"):
        Lab(broker={"retry_another_broker_when_not_store_ok": True})
    for elsewhere, statuses in ((False, {"SEND_OK", "FLUSH_DISK_TIMEOUT"}), (True, {"SEND_OK"})):
        lab = quiet_lab(brokers=2, broker={"flush_disk_type": "SYNC_FLUSH", "sync_flush_timeout": 300})
        lab.create_topic("orders", read_queue_nums=1, write_queue_nums=1)
        producer = lab.producer("shop", retry_another_broker_when_not_store_ok=elsewhere)
        lab.broker("broker-b").store.flusher.stalled = True
        results = send(producer, *"abcd")
        assert {result.send_status for result in results} == statuses


def test_a_batch_checks_the_wait_flag_level_and_topic_and_nothing_more() -> None:
    lab, producer = two_brokers()
    plain = Message("orders", b"plain")
    for other in (
        Message("orders", b"x", wait_store_msg_ok=False),
        Message("orders", b"x", delay_time_level=1),
        Message("%RETRY%billing", b"x"),
    ):
        with pytest.raises(ClientError):
            producer.send_batch([plain, other])
    half = Message("orders", b"half")
    half.properties |= {"TRAN_MSG": "true", "PGROUP": "pay"}
    assert producer.send_batch([plain, half]).send_status == "SEND_OK"
    member(lab, "billing", seen := Seen(lab))
    lab.run_for("5s")
    assert seen.bodies == ["plain", "half"]  # the flag of a member is not looked at


def test_the_form_with_the_group_behind_is_a_key_of_the_offset_table() -> None:
    lab = one_queue(quiet_lab(**SECOND_EACH), "a")
    member(lab, "billing", Seen(lab, RECONSUME_LATER), max_reconsume_times=1)
    lab.run_for("60s")
    assert {"%RETRY%billing", "%DLQ%billing"} <= set(lab.broker().topics)
    assert not [name for name in lab.broker().topics if "@" in name]
    assert "%RETRY%billing@billing" in lab.broker().offset_table


def test_the_retry_topic_comes_with_the_first_heartbeat() -> None:
    lab = one_queue(quiet_lab())
    member(lab, "billing")
    lab.run_for("100ms")
    assert "%RETRY%billing" in lab.broker().topics and "%DLQ%billing" not in lab.broker().topics
    assert len(delivered(lab, "billing")) == 0


def test_dead_letters_can_be_read_and_go_with_the_log_after_72_hours() -> None:
    assert StoreConfig().file_reserved_time == 72
    lab = one_queue(quiet_lab(broker={"mapped_file_size_commit_log": 65_536, "file_reserved_time": 1}), "dead")
    consumer = member(lab, "billing", Seen(lab, RECONSUME_LATER), max_reconsume_times=0)
    lab.run_for("10s")
    reader = member(lab, "undertaker", seen := Seen(lab), topic="%DLQ%billing")
    lab.run_for("10s")
    assert seen.bodies == ["dead"]
    for handle in (consumer, reader):
        handle.shutdown()
    for _ in range(40):
        lab.handles["shop-1"].send(Message("orders", b"filler" * 500))
    lab.handles["shop-1"].shutdown()
    lab.run_for("5h")  # past four in the morning
    store = lab.broker().store
    assert store.min_offset("%DLQ%billing", 0) == store.max_offset("%DLQ%billing", 0) == 1


def test_an_orderly_failure_is_tried_each_second_for_ever_or_up_to_a_limit() -> None:
    for limit, tries in ((-1, 120), (5, 6)):
        lab = one_queue(quiet_lab(), "poison")
        seen = Seen(lab, SUSPEND_CURRENT_QUEUE_A_MOMENT)
        member(lab, "billing", seen, orderly=True, max_reconsume_times=limit)
        lab.run_for("2m")
        assert len(seen.bodies) == pytest.approx(tries, abs=2)
        assert {later - earlier for earlier, later in zip(seen.times_ms, seen.times_ms[1:], strict=False)} == {1_000}
        assert ("%DLQ%billing" in lab.broker().topics) == (limit == 5)


def test_one_owner_a_queue_is_where_it_tends_to_not_what_always_holds() -> None:
    lab = quiet_lab()
    lab.create_topic("orders", read_queue_nums=4, write_queue_nums=4)
    first, second = (member(lab, "billing", name=f"billing-{n}") for n in (1, 2))
    lab.run_for("5s")
    second.suspend()  # it rebalances no more, and keeps what it has
    third = member(lab, "billing", name="billing-3")
    lab.run_for("30s")
    assert [owned(each) for each in (first, second, third)] == [[0, 1], [2, 3], [3]]
    second.resume()
    lab.run_for("3s")
    assert [owned(each) for each in (first, second, third)] == [[0, 1], [2], [3]]


def test_threads_are_a_sum_to_do_not_something_the_client_does() -> None:
    """``cores * (waiting + computing) / computing`` keeps the cores busy; the pool has 20 unless told otherwise."""
    assert PushConsumerConfig().consume_thread_min == 20
    took_ms = {}
    for threads in (2, 8, 20):
        lab = one_queue(quiet_lab())
        send_many(lab.producer("shop"), 100, queue=0)

        def listener(messages: Any, context: Any) -> str:
            context.sleep("30ms")
            context.compute("10ms")
            return CONSUME_SUCCESS

        member(lab, "billing", listener, cores=2, consume_thread_min=threads, consume_thread_max=threads)
        lab.run_for("30s")
        rows = delivered(lab, "billing")
        took_ms[threads] = rows[-1].ended_ms - rows[0].started_ms
    assert took_ms[2] == pytest.approx(2_000, abs=100)
    assert took_ms[8] == pytest.approx(500, abs=60)  # 2 * (30 + 10) / 10 = 8 threads: both cores are busy
    assert took_ms[20] == pytest.approx(500, abs=60)  # more threads, no more work


def test_the_pool_is_20_of_20_and_never_grows() -> None:
    settings = PushConsumerConfig()
    assert (settings.consume_thread_min, settings.consume_thread_max) == (20, 20)
    lab = one_queue(quiet_lab())
    send_many(lab.producer("shop"), 100, queue=0)
    member(lab, "billing", Seen(lab, takes="1h"), consume_thread_max=60)
    lab.run_for("10s")
    assert len(delivered(lab, "billing")) == 20


def test_local_retry_after_five_seconds_only_if_the_resend_failed_too() -> None:
    for broker_stays_dead, tries in ((True, [0, 1]), (False, [0])):
        lab = one_queue(quiet_lab())
        seen = Seen(lab, lambda messages, context: context.sleep("2s") or RECONSUME_LATER)
        member(lab, "billing", seen)
        producer = lab.producer("shop")
        lab.run_for("30s")
        send(producer, "a")
        lab.run_for("1s")
        if broker_stays_dead:
            lab.kill("broker-a")
        lab.run_for("9s")
        assert [one.reconsume_times for one in delivered(lab, "billing")] == tries
        if broker_stays_dead:
            assert 5_000 <= seen.times_ms[1] - seen.times_ms[0] - 2_000 <= 6_000


@pytest.mark.parametrize(
    ("ack_index", "answer", "good"),
    [(99, CONSUME_SUCCESS, 3), (0, CONSUME_SUCCESS, 1), (99, RECONSUME_LATER, 0), (99, None, 0)],
)
def test_only_success_with_an_ack_index_over_the_batch_is_success(ack_index: int, answer: Any, good: int) -> None:
    lab = one_queue(quiet_lab(), *"abc")

    def without_any_exception(messages: Any, context: Any) -> Any:
        context.ack_index = ack_index
        return answer

    member(lab, "billing", Seen(lab, without_any_exception, CONSUME_SUCCESS), consume_message_batch_max_size=3)
    lab.run_for("8s")
    assert len(frames(lab, 36)) == 3 - good


def test_level_zero_is_three_plus_the_retry_count_up_to_the_highest() -> None:
    lab = one_queue(quiet_lab(**SECOND_EACH), "a")
    member(lab, "billing", Seen(lab, RECONSUME_LATER), max_reconsume_times=20)
    lab.run_for("60s")
    asked = [one.about.ext_fields["delayLevel"] for one in frames(lab, 36)]
    assert set(asked) == {"0"}
    levels = [int(record.property_map["DELAY"]) for record in lab.broker().store.get("%RETRY%billing", 0, 0).records()]
    assert levels == [*range(3, 19), 18, 18, 18, 18]


def test_acknowledged_messages_stay_and_every_group_reads_them() -> None:
    lab = one_queue(quiet_lab(), *"abc")
    member(lab, "billing", first := Seen(lab))
    lab.run_for("30s")
    assert row(lab, "billing").lag == 0
    member(lab, "audit", second := Seen(lab))
    lab.run_for("10s")
    assert first.bodies == second.bodies == ["a", "b", "c"]
    assert len(lab.broker().store.get("orders", 0, 0).units) == 3


def test_the_offset_is_the_smallest_of_everything_cached_not_of_a_batch() -> None:
    lab = one_queue(quiet_lab(), *"abcdefgh")

    def slow_first_batch(messages: Any, context: Any) -> str:
        if messages[0].queue_offset == 0:
            context.sleep("5s")
        return CONSUME_SUCCESS

    consumer = member(lab, "billing", slow_first_batch, consume_message_batch_max_size=2)
    lab.run_for("4s")
    assert len([one for one in delivered(lab, "billing") if one.status == CONSUME_SUCCESS]) == 6
    assert consumer.offset_store.read_memory(MessageQueue("orders", "broker-a", 0)) == 0
    lab.run_for("4s")
    assert consumer.offset_store.read_memory(MessageQueue("orders", "broker-a", 0)) == 8
