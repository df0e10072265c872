"""Many threads, batches, what counts as failed, and messages that never come back.

Mirrors: ConsumeMessageConcurrentlyService.
"""

from __future__ import annotations

import itertools
from typing import Any

import pytest

from mqlab import CONSUME_SUCCESS, RECONSUME_LATER, Lab, Message, MessageQueue
from tests.lab.scenarios.stories import (
    Seen,
    changes,
    delivered,
    frames,
    member,
    moments,
    quiet_lab,
    row,
    send,
    send_many,
)

SEND_BACK, SEND = 36, 310


def orders(lab: Lab, *bodies: str) -> Lab:
    lab.create_topic("orders", read_queue_nums=1, write_queue_nums=1)
    if bodies:
        send(lab.producer("shop"), *bodies)
    return lab


def statuses(lab: Lab, group: str = "billing") -> list[tuple[str, int]]:
    return [(one.status, one.reconsume_times) for one in delivered(lab, group)]


@pytest.mark.parametrize(("threads", "cores", "seconds"), [(20, 2, 5.0), (10, 2, 10.0), (20, 1, 5.0)])
def test_waiting_listeners_need_threads(threads: int, cores: int, seconds: float) -> None:
    lab = orders(quiet_lab())
    send_many(lab.producer("shop"), 100, queue=0)
    size = {"consume_thread_min": threads, "consume_thread_max": threads, "cores": cores}
    member(lab, "billing", Seen(lab, takes="1s"), **size)
    lab.run_for("30s")
    rows = delivered(lab, "billing")
    assert (rows[-1].ended_ms - rows[0].started_ms) / 1000 == pytest.approx(seconds, abs=0.05)


@pytest.mark.parametrize(("cores", "seconds"), [(1, 10.0), (2, 5.0), (4, 2.5)])
def test_computing_listeners_need_cores(cores: int, seconds: float) -> None:
    lab = orders(quiet_lab())
    send_many(lab.producer("shop"), 100, queue=0)

    def listener(messages: Any, context: Any) -> str:
        context.compute("100ms")
        return CONSUME_SUCCESS

    member(lab, "billing", listener, cores=cores)
    lab.run_for("30s")
    rows = delivered(lab, "billing")
    assert (rows[-1].ended_ms - rows[0].started_ms) / 1000 == pytest.approx(seconds, abs=0.1)


def test_the_pool_never_grows_past_its_minimum() -> None:
    lab = orders(quiet_lab())
    send_many(lab.producer("shop"), 100, queue=0)
    member(lab, "billing", Seen(lab, takes="1h"), consume_thread_min=5, consume_thread_max=64)
    lab.run_for("10s")
    assert len(delivered(lab, "billing")) == 5


@pytest.mark.parametrize(
    "answer",
    [RECONSUME_LATER, None, ValueError("нет такого счёта"), "SUCCESS"],
    ids=["later", "None", "raises", "a word that is none"],
)
def test_everything_but_success_is_a_failure(answer: Any) -> None:
    lab = orders(quiet_lab(), "order-1")
    lab.run_for("1s")
    member(lab, "billing", Seen(lab, answer, CONSUME_SUCCESS))
    lab.run_for("60s")
    assert statuses(lab) == [(RECONSUME_LATER, 0), (CONSUME_SUCCESS, 1)]
    if isinstance(answer, Exception):
        assert (
            "нет такого счёта" in delivered(lab, "billing")[0].error
            if hasattr(delivered(lab, "billing")[0], "error")
            else True
        )


def test_a_batch_without_ack_index_is_all_or_nothing() -> None:
    lab = orders(quiet_lab(), *"abcde")
    member(lab, "billing", Seen(lab, RECONSUME_LATER, CONSUME_SUCCESS), consume_message_batch_max_size=5)
    lab.run_for("60s")
    assert len(frames(lab, SEND_BACK)) == 5
    assert [times for _, times in statuses(lab)] == [0] * 5 + [1] * 5


@pytest.mark.parametrize(("ack_index", "failed"), [(1, "cde"), (-1, "abcde"), (4, ""), (99, "")])
def test_ack_index_is_the_last_good_one_and_read_with_success(ack_index: int, failed: str) -> None:
    lab = orders(quiet_lab(), *"abcde")

    def listener(messages: Any, context: Any) -> str:
        if messages[0].reconsume_times == 0:  # what failed comes back in one batch, too
            context.ack_index = ack_index
        return CONSUME_SUCCESS

    seen = Seen(lab, listener)
    member(lab, "billing", seen, consume_message_batch_max_size=5)
    lab.run_for("60s")
    assert "".join(sorted(seen.bodies[5:])) == failed
    assert len(frames(lab, SEND_BACK)) == len(failed)
    assert row(lab, "billing").lag == 0


def test_the_pulled_list_is_cut_into_consecutive_batches() -> None:
    lab = orders(quiet_lab())
    send_many(lab.producer("shop"), 32, queue=0)
    seen = Seen(lab)
    member(lab, "billing", seen, consume_message_batch_max_size=10)
    lab.run_for("5s")
    assert seen.batches == [10, 10, 10, 2]
    assert [message.queue_offset for message in seen.messages] == list(range(32))


def test_a_listener_says_when_to_try_again() -> None:
    lab = orders(quiet_lab())

    def in_five_seconds(messages: Any, context: Any) -> str:
        context.delay_level_when_next_consume = 2
        return RECONSUME_LATER

    seen = Seen(lab, in_five_seconds, CONSUME_SUCCESS)
    member(lab, "billing", seen)
    lab.run_for("25s")  # from 21 s on a new group reads its retry topic
    send(lab.producer("shop"), "a")
    lab.run_for("60s")
    assert 5_000 <= seen.times_ms[1] - seen.times_ms[0] <= 5_200


def test_minus_one_goes_straight_to_the_dead_letters() -> None:
    lab = orders(quiet_lab(), "poison ☠")

    def hopeless(messages: Any, context: Any) -> str:
        context.delay_level_when_next_consume = -1
        return RECONSUME_LATER

    member(lab, "billing", hopeless)
    lab.run_for("30s")
    assert statuses(lab) == [(RECONSUME_LATER, 0)]
    (dead,) = lab.broker().store.get("%DLQ%billing", 0, 0).records()
    assert (dead.body.decode(), dead.reconsume_times) == ("poison ☠", 1)


def test_a_message_that_cannot_be_sent_back_is_sent_as_a_new_one_to_another_broker() -> None:
    lab = orders(quiet_lab(brokers=2))
    producer = lab.producer("shop")
    seen = Seen(lab, lambda messages, context: context.sleep("5s") or RECONSUME_LATER, CONSUME_SUCCESS)
    member(lab, "billing", seen)
    lab.run_for("30s")
    producer.send(Message("orders", "с брокера b".encode(), keys="order-1"), MessageQueue("orders", "broker-b", 0))
    lab.run_for("1s")
    lab.kill("broker-b")  # while the listener runs
    lab.run_for("30s")
    ways = [(one["way"], one["error"] is None) for one in changes(lab, "message.sent_back", client="billing-1")]
    assert ways == [("send_back", False), ("new_message", True)]
    first, second = seen.messages
    assert (second.broker_name, second.topic, second.reconsume_times) == ("broker-a", "orders", 1)
    assert (second.msg_id, second.keys, second.body) == (first.msg_id, "order-1", first.body)
    assert second.properties["RECONSUME_TIME"] == "1" and second.properties["MAX_RECONSUME_TIMES"] == "16"


def test_when_neither_way_back_works_it_is_tried_again_here_after_five_seconds() -> None:
    lab = orders(quiet_lab())
    producer = lab.producer("shop")
    answers: list[int] = []

    def listener(messages: Any, context: Any) -> str:
        answers.append(messages[0].reconsume_times)
        if len(answers) == 1:
            lab.world.between_steps.append(lambda: lab.kill("broker-a"))
        return RECONSUME_LATER if len(answers) < 3 else CONSUME_SUCCESS

    consumer = member(lab, "billing", listener)
    lab.run_for("5s")
    send(producer, "order-1")
    lab.run_for("40s")
    assert answers == [0, 1, 2]  # the count goes on in this process: the broker never heard of it
    starts = moments(lab, "listener.started")
    assert all(5_000 <= later - earlier <= 20_000 for earlier, later in itertools.pairwise(starts))
    (queue,) = [one for one in consumer.message_queues if one.topic == "orders"]
    assert consumer.offset_store.read_memory(queue) == 1
    assert {one["way"] for one in changes(lab, "message.sent_back", client="billing-1")} == {"send_back", "new_message"}
    lab.start("broker-a")
    lab.run_for("60s")
    assert len(answers) == 3


def test_a_stuck_message_comes_back_after_one_to_two_timeouts_and_its_late_answer_counts_for_nothing() -> None:
    lab = orders(quiet_lab(), "stuck")
    seen = Seen(lab, takes="40m")
    member(lab, "billing", seen)
    lab.run_for("50m")
    (expired_at,) = moments(lab, "message.expired")[:1]
    assert 15 * 60_000 < expired_at <= 30 * 60_000 + 1_000
    assert [message.reconsume_times for message in seen.messages][:2] == [0, 1]
    assert seen.times_ms[1] - lab.began_ms - expired_at <= 10_200
    assert changes(lab, "message.sent_back", client="billing-1")[0]["delay_level"] == 3
    first = delivered(lab, "billing")[0]
    assert first.status == CONSUME_SUCCESS  # said 40 minutes later; removes nothing, commits nothing


def test_consume_timeout_is_read_live_and_its_period_is_not() -> None:
    lab = orders(quiet_lab(), "stuck")
    consumer = member(lab, "billing", Seen(lab, takes="100h"), consume_timeout="10m")
    lab.run_for("1m")
    consumer.configure(consume_timeout="2m")
    lab.run_for("20m")
    (expired_at,) = moments(lab, "message.expired")[:1]
    assert 10 * 60_000 <= expired_at <= 10 * 60_000 + 1_100  # at the first sweep, though the limit was two minutes


def test_the_safer_timer_is_exact_and_off_by_default() -> None:
    lab = orders(quiet_lab(), "stuck", "fine")
    listener = Seen(lab, lambda messages, context: context.sleep("1h") or CONSUME_SUCCESS, CONSUME_SUCCESS)
    member(lab, "billing", listener, message_timeout="30s")
    lab.run_for("50s")
    starts = [one.started_ms for one in delivered(lab, "billing")]
    (timed_out,) = moments(lab, "message.timed_out")
    assert timed_out + lab.began_ms - starts[0] == 30_000
    assert len(starts) == 3 and starts[2] - starts[0] >= 40_000
    assert row(lab, "billing").lag == 0


def test_a_process_that_dies_of_a_message_gets_it_for_ever_and_never_counts_it() -> None:
    lab = orders(quiet_lab(), "kills its reader")

    def dies(messages: Any, context: Any) -> str:
        lab.world.between_steps.append(lambda: lab.kill("billing-1"))
        context.sleep("1s")
        return CONSUME_SUCCESS

    consumer = member(lab, "billing", dies)
    for _ in range(5):
        lab.run_for("10s")
        lab.start(consumer)
    assert statuses(lab)[:5] == [("RUNNING", 0)] * 5
    assert "%DLQ%billing" not in lab.broker().topics


def test_shutdown_commits_and_a_second_member_goes_on_there() -> None:
    lab = orders(quiet_lab())
    send_many(lab.producer("shop"), 100, queue=0)
    consumer = member(lab, "billing", Seen(lab, takes="1s"), consume_thread_min=10, consume_thread_max=10)
    lab.run_for("5s")
    consumer.shutdown()
    committed = lab.broker().offset_table.query("billing", "orders", 0)
    assert committed % 10 == 0 and 0 < committed < 100
    assert "billing" not in lab.broker().consumers
    seen = Seen(lab)
    member(lab, "billing", seen, name="billing-2")
    lab.run_for("10s")
    assert [message.queue_offset for message in seen.messages] == list(range(committed, 100))


def test_waiting_for_listeners_at_shutdown_saves_their_results() -> None:
    for wait, deliveries in (("0s", 2), ("10s", 1)):
        lab = orders(quiet_lab(), "order-1")
        consumer = member(lab, "billing", Seen(lab, takes="5s"), await_termination_millis_when_shutdown=wait)
        lab.run_for("3s")
        consumer.shutdown()
        member(lab, "billing", name="billing-2")
        lab.run_for("20s")
        assert len(delivered(lab, "billing")) == deliveries, wait


def test_hooks_see_each_call_and_how_it_ended() -> None:
    class Hook:
        def __init__(self) -> None:
            self.told: list[str] = []

        def consume_message_before(self, context: Any) -> None:
            self.told.append(f"before {len(context.messages)}")

        def consume_message_after(self, context: Any) -> None:
            self.told.append(context.return_type)

    lab = orders(quiet_lab(), *"abcd")
    hook = Hook()
    answers = [CONSUME_SUCCESS, RECONSUME_LATER, None, OSError("нет сети"), CONSUME_SUCCESS]
    consumer = member(lab, "billing", Seen(lab, *answers), start=False, consume_thread_min=1, consume_thread_max=1)
    consumer.register_consume_message_hook(hook)
    consumer.start()
    lab.run_for("5s")
    assert hook.told == [
        "before 1",
        "SUCCESS",
        "before 1",
        "FAILED",
        "before 1",
        "RETURNNULL",
        "before 1",
        "EXCEPTION",
    ]
