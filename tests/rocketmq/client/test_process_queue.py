"""ProcessQueue: the minimal offset rule, the orderly maps, flow-control numbers.

Mirrors: ProcessQueue.
"""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mqlab.errors import UsageError
from mqlab.rocketmq.client.consuming.process_queue import MIB, ProcessQueue
from mqlab.rocketmq.wire import property_names
from mqlab.rocketmq.wire.message import MessageExt
from mqlab.rocketmq.wire.record import Record


def message(queue_offset: int, body: bytes = "заказ 订单 🚀".encode(), max_offset: int | None = None) -> MessageExt:
    made = MessageExt.from_record(Record("orders", body, queue_offset=queue_offset))
    if max_offset is not None:
        made.properties[property_names.MAX_OFFSET] = str(max_offset)
    return made


def filled(first: int, last: int) -> ProcessQueue:
    process_queue = ProcessQueue()
    process_queue.put_message([message(offset) for offset in range(first, last + 1)])
    return process_queue


def test_the_offset_stays_at_the_smallest_message_that_is_not_done() -> None:
    process_queue = filled(2101, 2200)
    for offset in range(2102, 2200):
        assert process_queue.remove_message([message(offset)]) == 2101
    assert process_queue.remove_message([message(2200)]) == 2101
    assert process_queue.remove_message([message(2101)]) == 2201
    assert process_queue.remove_message([message(2101)]) == -1


def test_counts_and_span() -> None:
    process_queue = ProcessQueue()
    assert process_queue.max_span() == 0
    process_queue.put_message([message(5, b"x" * MIB), message(9, b"y" * (MIB - 1))])
    assert (process_queue.msg_count, process_queue.msg_size, process_queue.msg_size_mib) == (2, 2 * MIB - 1, 1)
    assert process_queue.max_span() == 4
    process_queue.put_message([message(9, b"again")])
    assert process_queue.msg_count == 2
    process_queue.remove_message([message(5, b"x" * MIB)])
    assert process_queue.msg_count == 1


def test_put_says_whether_an_orderly_task_must_be_started() -> None:
    process_queue = ProcessQueue()
    assert process_queue.put_message([]) is False
    assert process_queue.put_message([message(0)]) is True
    assert process_queue.put_message([message(1)]) is False
    assert [each.queue_offset for each in process_queue.take_messages(5)] == [0, 1]
    assert process_queue.take_messages(5) == []
    assert process_queue.put_message([message(2)]) is True


def test_accumulation_is_what_the_broker_has_beyond_the_last_message() -> None:
    process_queue = ProcessQueue()
    process_queue.put_message([message(3, max_offset=10)])
    assert process_queue.msg_acc_cnt == 7


def test_orderly_commit_rollback_and_again() -> None:
    process_queue = filled(10, 14)
    first = process_queue.take_messages(2)
    assert process_queue.contains_message(first[0]) is False
    process_queue.make_message_to_consume_again(first)
    assert [each.queue_offset for each in process_queue.take_messages(2)] == [10, 11]
    assert process_queue.commit() == 12
    assert process_queue.msg_count == 3
    process_queue.take_messages(2)
    process_queue.rollback()
    assert [each.queue_offset for each in process_queue.take_messages(9)] == [12, 13, 14]
    assert process_queue.commit() == 15
    assert (process_queue.msg_count, process_queue.msg_size) == (0, 0)
    with pytest.raises(UsageError, match="no message taken"):
        process_queue.commit()


def test_limits_are_strict() -> None:
    process_queue = ProcessQueue(now_ms=1_000)
    assert not process_queue.is_pull_expired(121_000)
    assert process_queue.is_pull_expired(121_001)
    assert not process_queue.is_lock_expired(31_000)
    assert process_queue.is_lock_expired(31_001)


@given(st.integers(0, 2**32), st.integers(1, 200))
def test_any_order_of_results_never_passes_a_message_that_is_not_done(seed: int, count: int) -> None:
    order = list(range(count))
    random.Random(seed).shuffle(order)
    process_queue = filled(0, count - 1)
    left = dict.fromkeys(range(count))
    for offset in order:
        del left[offset]
        expected = min(left) if left else count
        assert process_queue.remove_message([message(offset)]) == expected
    assert (process_queue.msg_count, process_queue.msg_size) == (0, 0)


def test_status_line() -> None:
    assert repr(filled(3, 5)) == "<ProcessQueue 3 messages, 3..5, max 5 consuming>"
