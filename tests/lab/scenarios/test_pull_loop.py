"""Asking for messages, being held, being told another offset, and not asking when enough is cached.

Mirrors: DefaultMQPushConsumerImpl.pullMessage, PullMessageProcessor, PullRequestHoldService.
"""

from __future__ import annotations

import itertools
from typing import Any

import pytest

from mqlab import Lab, Message
from mqlab.rocketmq.wire import sys_flag
from tests.lab.scenarios.stories import (
    BODY,
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

PULL = 11
LONG_INDEX = {"broker": {"mapped_file_size_consume_queue": 100_000}}  # 5,000 entries: a scan also ends with its file


def one_queue(lab: Lab, topic: str = "orders") -> Lab:
    lab.create_topic(topic, read_queue_nums=1, write_queue_nums=1)
    return lab


def pulls(lab: Lab, topic: str = "orders") -> list[Any]:
    return [one for one in frames(lab, PULL) if one.about.ext_fields["topic"] == topic]


def test_the_first_pull_comes_half_a_second_after_the_queue() -> None:
    lab = one_queue(quiet_lab())
    member(lab, "billing")
    lab.run_for("5s")
    (added,) = [at for at in moments(lab, "queue.added") if at][:1]
    assert pulls(lab)[0].now_ms - lab.began_ms - added == 501


def test_flags_of_a_pull_say_whether_it_commits_and_brings_its_expression() -> None:
    for settings, first, later in (({}, 2, 3), ({"post_subscription_when_pull": True}, 6, 7)):
        lab = one_queue(quiet_lab())
        member(lab, "billing", tags="paid", **settings)
        producer = lab.producer("shop")
        lab.run_for("5s")
        send(producer, "one", "two", tags="paid")
        lab.run_for("30s")
        asked = [one.about.ext_fields for one in pulls(lab)]
        assert (int(asked[0]["sysFlag"]), int(asked[-1]["sysFlag"])) == (first, later)
        assert ("subscription" in asked[0]) == (first == 6)
        assert (asked[0]["commitOffset"], asked[-1]["commitOffset"]) == ("-1", "2")  # -1: none known yet


def test_flow_control_by_count_stops_above_a_thousand_and_so_at_1024() -> None:
    lab = one_queue(quiet_lab(**LONG_INDEX))
    send_many(lab.producer("shop"), 1_300, queue=0)
    consumer = member(lab, "billing", Seen(lab, takes="10m"), consume_thread_min=1, consume_thread_max=1)
    lab.run_for("10s")
    (process_queue,) = [held for queue, held in consumer.process_queues.items() if queue.topic == "orders"]
    assert process_queue.msg_count == 1_024  # 32 pulls of 32: 992 is not above the limit, 1024 is; at most 1,032
    assert {one["reason"] for one in changes(lab, "pull.flow_control")} == {"count"}
    asked = len(pulls(lab))
    lab.run_for("60s")
    assert len(pulls(lab)) == asked


def test_flow_control_by_size_in_whole_mebibytes() -> None:
    lab = one_queue(quiet_lab())
    producer = lab.producer("shop", compress_msg_body_over_howmuch=10_000_000)
    for _ in range(40):
        producer.send(Message("orders", b"x" * 100_000))
    limits = {"pull_threshold_size_for_queue": 1, "consume_thread_min": 1, "consume_thread_max": 1}
    consumer = member(lab, "billing", Seen(lab, takes="10m"), **limits)
    lab.run_for("10s")
    (process_queue,) = [held for queue, held in consumer.process_queues.items() if queue.topic == "orders"]
    assert process_queue.msg_size_mib == 2  # 1.99 MiB is "1", not above the limit
    assert {one["reason"] for one in changes(lab, "pull.flow_control")} == {"size"}


def test_flow_control_by_span_while_far_ahead_of_a_stuck_message() -> None:
    """The span is that of what is cached: pulling goes on when the far end is done, not when the stuck one is."""
    lab = one_queue(quiet_lab())
    send_many(lab.producer("shop"), 300, queue=0)

    def stuck_on_the_first(messages: Any, context: Any) -> str:
        context.sleep("30s" if messages[0].queue_offset == 0 else "100ms")
        return "CONSUME_SUCCESS"

    consumer = member(lab, "billing", stuck_on_the_first, consume_concurrently_max_span=100)
    lab.run_for("15s")
    stopped = changes(lab, "pull.flow_control")
    assert {one["reason"] for one in stopped} == {"span"}
    assert all(100 < one["span"] < 300 and one["count"] <= 128 for one in stopped)
    done = [one for one in delivered(lab, "billing") if one.status == "CONSUME_SUCCESS"]
    assert len(done) == 299
    assert [held.max_span() for queue, held in consumer.process_queues.items() if queue.topic == "orders"] == [0]
    assert row(lab, "billing").consumer_offset == 0


def test_an_interval_between_pulls_slows_a_consumer_down() -> None:
    lab = one_queue(quiet_lab())
    send_many(lab.producer("shop"), 96, queue=0)
    member(lab, "billing", pull_interval="2s")
    lab.run_for("4s")
    assert len(delivered(lab, "billing")) == 64
    lab.run_for("2s")
    assert len(delivered(lab, "billing")) == 96


def test_a_lost_answer_costs_thirty_one_seconds() -> None:
    lab = one_queue(quiet_lab())
    consumer = member(lab, "billing")
    producer = lab.producer("shop")
    lab.run_for("5s")
    lab.drop("broker-a", consumer)
    began_ms = lab.now_ms
    send(producer, "wakes the held pull, whose answer is lost")
    lab.run_until(lambda: len(delivered(lab, "billing")) == 1)
    (failed,) = changes(lab, "pull.failed")
    asked_ms = pulls(lab)[0].now_ms
    assert "no answer within 30000 ms" in failed["error"]
    assert lab.now_ms - asked_ms == 30_000 + 1_000 + 1 and lab.now_ms > began_ms


def test_a_scan_ends_after_800_entries_and_is_not_held() -> None:
    lab = one_queue(quiet_lab(**LONG_INDEX))
    producer = lab.producer("shop")
    send_many(producer, 2_000, queue=0, tags="noise")
    send(producer, "the one", tags="paid")
    seen = Seen(lab)
    member(lab, "billing", seen, tags="paid")
    lab.run_for("4s")
    assert [int(one.about.ext_fields["queueOffset"]) for one in pulls(lab)] == [0, 800, 1_600, 2_001]
    assert [after.now_ms - before.now_ms for before, after in zip(pulls(lab), pulls(lab)[1:], strict=False)] == [2] * 3
    assert seen.bodies == ["the one"]


def test_filtered_ranges_move_the_offset_only_when_nothing_is_cached() -> None:
    lab = one_queue(quiet_lab())
    producer = lab.producer("shop")
    send(producer, "slow", tags="paid")
    send_many(producer, 100, queue=0, tags="noise")
    member(lab, "billing", Seen(lab, takes="30s"), tags="paid")
    lab.run_for("25s")
    assert (row(lab, "billing").consumer_offset, row(lab, "billing").pull_offset) == (0, 101)
    lab.run_for("60s")
    assert row(lab, "billing").consumer_offset == 101


def test_an_offset_beyond_the_end_is_brought_to_the_end() -> None:
    lab = one_queue(quiet_lab())
    send(lab.producer("shop"), "a", "b", "c")
    lab.broker().groups.find("billing")
    Tool(lab).commit("billing", 0, 999)
    consumer = member(lab, "billing")
    lab.run_for("10s")
    (moved,) = changes(lab, "pull.offset_moved")
    assert (moved["next_offset"], moved["remark"]) == (3, "OFFSET_OVERFLOW_BADLY")
    assert [one["next_offset"] for one in changes(lab, "queue.added") if one["queue"].topic == "orders"] == [999, 3]
    assert owned(consumer) == [0] and row(lab, "billing").consumer_offset == 3
    assert len(delivered(lab, "billing")) == 0


def test_a_broker_that_lost_the_end_of_its_log_sends_its_readers_back() -> None:
    """Under asynchronous flush a power cut takes messages; a group that had read them stands beyond the end."""
    lab = one_queue(quiet_lab())
    member(lab, "billing")
    producer = lab.producer("shop")
    send(producer, *"abc")
    lab.run_for("20s")
    send(producer, *"defgh")
    lab.run_for("100ms")
    assert lab.broker().store.max_offset("orders", 0) == 8
    lab.power_off("broker-a")
    lab.run_for("1s")
    lab.start("broker-a")
    lab.run_for("60s")
    lost = 8 - lab.broker().store.max_offset("orders", 0)
    assert lost > 0
    assert row(lab, "billing").lag == 0
    send(producer, "new")
    lab.run_for("30s")
    again = [one.queue_offset for one in delivered(lab, "billing")]
    assert again == [*range(8), 8 - lost]  # the new message has an offset that another one had before


def test_memory_gives_32_messages_and_the_disk_8() -> None:
    lab = one_queue(quiet_lab(memory="32KB"))
    producer = lab.producer("shop")
    send_many(producer, 400, queue=0)
    puller = lab.pull_consumer("audit")
    (queue,) = puller.fetch_subscribe_message_queues("orders")
    assert len(puller.pull(queue, "*", 0, max_nums=32).msg_found_list) == 8
    assert len(puller.pull(queue, "*", 390, max_nums=32).msg_found_list) == 10
    assert len(puller.pull(queue, "*", 360, max_nums=32).msg_found_list) == 32


def test_an_idle_pull_is_held_for_fifteen_to_twenty_seconds() -> None:
    lab = one_queue(quiet_lab())
    member(lab, "billing")
    lab.run_for("3m")
    times = [one.now_ms for one in pulls(lab)]
    waits = [after - before for before, after in itertools.pairwise(times)]
    assert waits and all(15_000 <= wait <= 20_002 for wait in waits)
    assert {one["why"] for one in changes(lab, "pull.woken", topic="orders")} == {"timeout"}


def test_a_message_wakes_a_held_pull_at_once() -> None:
    lab = one_queue(quiet_lab())
    seen = Seen(lab)
    member(lab, "billing", seen)
    producer = lab.producer("shop")
    lab.run_for("7s")
    began_ms = lab.now_ms
    send(producer, BODY)
    lab.run_for("1s")
    assert seen.times_ms[0] - began_ms <= 8
    assert changes(lab, "pull.woken", topic="orders")[-1]["why"] == "arrived"


def test_a_message_that_does_not_match_wakes_it_at_the_next_five_seconds() -> None:
    lab = one_queue(quiet_lab())
    member(lab, "billing", tags="paid")
    producer = lab.producer("shop")
    lab.run_for("6s")
    asked = len(pulls(lab))
    send(producer, "noise", tags="noise")
    lab.run_for("100ms")
    assert len(pulls(lab)) == asked
    lab.run_for("5s")
    assert [one["why"] for one in changes(lab, "pull.woken", topic="orders")] == ["check"]
    assert int(pulls(lab)[-1].about.ext_fields["queueOffset"]) == 1


def test_short_polling_asks_every_second() -> None:
    lab = one_queue(quiet_lab(broker={"long_polling_enable": False}))
    member(lab, "billing")
    lab.run_for("30s")
    times = [one.now_ms for one in pulls(lab)]
    waits = {after - before for before, after in itertools.pairwise(times)}
    assert waits and all(1_000 <= wait <= 2_002 for wait in waits)


def test_a_held_pull_dies_with_its_client_and_with_its_broker() -> None:
    lab = one_queue(quiet_lab())
    consumer = member(lab, "billing")
    lab.run_for("3s")
    assert [pull.group for pull in lab.broker().held_pulls.held() if pull.topic == "orders"] == ["billing"]
    lab.kill(consumer)
    lab.run_for("10ms")
    assert lab.broker().held_pulls.held() == []
    lab.start(consumer)
    lab.run_for("5s")
    lab.kill("broker-a")
    lab.run_for("5s")
    lab.start("broker-a")
    lab.run_for("5s")
    assert [pull.group for pull in lab.broker().held_pulls.held() if pull.topic == "orders"] == ["billing"]


@pytest.mark.parametrize(("suspend", "waits"), [(True, True), (False, False)])
def test_only_a_pull_that_may_be_suspended_is_held(suspend: bool, waits: bool) -> None:
    lab = one_queue(quiet_lab())
    puller = lab.pull_consumer("audit")
    (queue,) = puller.fetch_subscribe_message_queues("orders")
    began_ms = lab.now_ms
    result = (puller.pull_block_if_not_found if suspend else puller.pull)(queue, "*", 0)
    assert result.pull_status == "NO_NEW_MSG"
    assert (lab.now_ms - began_ms >= 20_000) == waits
    flags = int(pulls(lab)[-1].about.ext_fields["sysFlag"])
    assert bool(flags & sys_flag.PULL_SUSPEND) == suspend
