"""What a consumer holds of a queue, and how far its offset may move.

Mirrors: ProcessQueue.
"""

from __future__ import annotations

from typing import Any

import pytest

from mqlab import CONSUME_SUCCESS, SUCCESS, Lab
from mqlab.rocketmq.client.consuming.process_queue import ProcessQueue
from tests.lab.scenarios.stories import Seen, changes, delivered, member, moments, quiet_lab, row, send_many


def held(consumer: Any, topic: str = "orders") -> ProcessQueue:
    (one,) = [process_queue for queue, process_queue in consumer.process_queues.items() if queue.topic == topic]
    return one


def one_queue_with(lab: Lab, count: int) -> Lab:
    lab.create_topic("orders", read_queue_nums=1, write_queue_nums=1)
    send_many(lab.producer("shop"), count, queue=0)
    return lab


def slow_for(*offsets: int, takes: str) -> Any:
    def listener(messages: Any, context: Any) -> str:
        if messages[0].queue_offset in offsets:
            context.sleep(takes)
        return CONSUME_SUCCESS

    return listener


def test_the_offset_is_the_smallest_that_is_left_and_jumps_when_that_is_done() -> None:
    """S0's example: 100 messages cached, all but the first done: the offset stays at the first, then jumps past all."""
    lab = one_queue_with(quiet_lab(), 200)
    consumer = member(lab, "billing", slow_for(100, takes="30s"))
    (queue,) = lab.pull_consumer("audit").fetch_subscribe_message_queues("orders")
    lab.run_for("20s")
    memory = consumer.offset_store.read_memory(queue)
    assert (memory, held(consumer).msg_count, held(consumer).queue_offset_max) == (100, 1, 199)
    assert (row(lab, "billing").consumer_offset, row(lab, "billing").lag) == (100, 100)
    lab.run_for("20s")
    assert consumer.offset_store.read_memory(queue) == 200
    jump = [one for one in changes(lab, "offset.updated") if one["before"] == 100]
    assert [one["commit_offset"] for one in jump] == [200]


def test_counts_and_sizes_follow_what_is_cached() -> None:
    lab = one_queue_with(quiet_lab(), 40)
    consumer = member(lab, "billing", Seen(lab, takes="10s"), consume_thread_min=10, consume_thread_max=10)
    lab.run_for("5s")
    assert held(consumer).msg_count == 40
    bodies = sum(len(message.body) for message in held(consumer).msg_tree_map.messages())
    assert held(consumer).msg_size == bodies > 40 * 20
    lab.run_for("10s")
    assert held(consumer).msg_count == 30
    lab.run_for("30s")
    assert (held(consumer).msg_count, held(consumer).msg_size) == (0, 0)


def test_an_orderly_batch_is_taken_out_and_committed_as_a_whole() -> None:
    lab = one_queue_with(quiet_lab(), 10)
    listener = Seen(lab, SUCCESS, takes="10s")
    consumer = member(lab, "billing", listener, orderly=True, consume_message_batch_max_size=4)
    lab.run_for("5s")
    taken = held(consumer).consuming_msg_orderly_tree_map
    assert [message.queue_offset for message in taken.messages()] == [0, 1, 2, 3]
    assert held(consumer).msg_count == 10 and held(consumer).max_span() == 5
    lab.run_for("60s")
    assert listener.batches == [4, 4, 2]
    assert [one["commit_offset"] for one in changes(lab, "offset.updated") if one["queue"].topic == "orders"] == [
        0,
        4,
        8,
        10,
    ]


def test_stuck_messages_leave_from_the_head_sixteen_a_sweep() -> None:
    """Twenty threads stuck for good: the sweep finds the first sixteen, the next one the rest."""
    lab = one_queue_with(quiet_lab(), 20)
    consumer = member(lab, "billing", Seen(lab, takes="100h"), consume_timeout="1m")
    lab.run_for("59s")
    assert held(consumer).msg_count == 20
    expired = lambda: [one["queue_offset"] for one in changes(lab, "message.expired")]  # noqa: E731
    lab.run_for("2s")
    assert expired() == []  # at the first sweep, a minute after the start, they are stuck for less than a minute
    lab.run_for("60s")
    assert expired() == list(range(16))
    assert {one["delay_level"] for one in changes(lab, "message.sent_back", client="billing-1")} == {3}
    lab.run_for("60s")
    assert sorted(expired()) == list(range(20))
    assert held(consumer).msg_count == 0


def test_the_sweep_does_not_move_the_offset_by_itself() -> None:
    lab = one_queue_with(quiet_lab(), 1)
    member(lab, "billing", Seen(lab, takes="100h"), consume_timeout="1m")
    lab.run_until(lambda: bool(changes(lab, "message.expired")), limit="5m")
    swept_ms = lab.now_ms - lab.began_ms
    lab.run_for("30s")
    after = [at for at in moments(lab, "offset.updated") if at > swept_ms]
    assert after  # the next pull that finds nothing corrects it, since nothing is cached any more
    assert row(lab, "billing").consumer_offset == 1


@pytest.mark.parametrize("wrong", [False, True])
def test_a_process_queue_of_ones_own(wrong: bool) -> None:
    """A learner's class in the place of mqlab's: one that forgets the + 1 delivers the last message once more."""

    class Mine(ProcessQueue):
        def remove_message(self, messages: Any) -> int:
            offset = super().remove_message(messages)
            return offset - 1 if wrong and not self.msg_count else offset

    lab = one_queue_with(quiet_lab(), 50)
    consumer = member(lab, "billing", process_queue=Mine)
    lab.run_for("4s")
    consumer.shutdown()
    member(lab, "billing", name="billing-2", process_queue=Mine)
    lab.run_for("10s")
    assert isinstance(held(lab.handles["billing-2"]), Mine)
    assert len(delivered(lab, "billing")) == (51 if wrong else 50)
