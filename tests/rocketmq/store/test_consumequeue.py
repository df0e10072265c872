"""One consume queue by itself: numbering, pre-blank units, cutting over file borders, its beginning."""

from __future__ import annotations

from pathlib import Path

import pytest

from mqlab.lab.runtime.crash_files import CrashFiles
from mqlab.rocketmq.store.consumequeue import ConsumeQueue
from mqlab.rocketmq.wire.units import PREBLANK


@pytest.fixture
def queue(scratch: Path) -> ConsumeQueue:
    """An empty queue with files of ten units."""
    return ConsumeQueue(CrashFiles(), str(scratch), "订单", 3, 200)


def fill(queue: ConsumeQueue, first: int, count: int) -> None:
    """Units of 100-byte messages that stand one behind the other in the log."""
    for number in range(first, first + count):
        assert queue.put(number * 100, 100, -number, number)


def reopened(queue: ConsumeQueue, scratch: Path) -> ConsumeQueue:
    queue.close()
    again = ConsumeQueue(CrashFiles(), str(scratch), "订单", 3, 200)
    again.load()
    again.recover()
    return again


def test_units_over_several_files(queue: ConsumeQueue, scratch: Path) -> None:
    fill(queue, 0, 25)
    assert [mapped.start_offset for mapped in queue.files.mapped_files] == [0, 200, 400]
    assert (queue.min_queue_offset, queue.max_queue_offset, queue.max_physical_offset) == (0, 25, 2500)
    assert queue.unit(17) == (1700, 100, -17) and queue.unit(25) is None and queue.unit(-1) is None
    assert [unit[0] for unit in queue.units(8, 5) or ()] == [800, 900]  # to the end of the file
    assert queue.units(25, 5) is None
    again = reopened(queue, scratch)
    assert (again.max_queue_offset, again.max_physical_offset) == (25, 2500)


def test_what_is_there_already_is_not_put_again(queue: ConsumeQueue) -> None:
    fill(queue, 0, 3)
    assert not queue.put(100, 100, 0, 1)
    assert not queue.put(300, 100, 0, 1)  # RocketMQ takes it for a repeat
    assert queue.put(300, 100, 0, 0)  # but not a 0
    assert queue.put(400, 100, 0, 9)  # and a gap is closed
    assert queue.max_queue_offset == 5


@pytest.mark.parametrize("first, start, blanks", [(7, 0, 7), (10, 200, 0), (23, 400, 3)])
def test_a_queue_that_begins_late(queue: ConsumeQueue, scratch: Path, first: int, start: int, blanks: int) -> None:
    fill(queue, first, 2)
    assert (queue.min_queue_offset, queue.max_queue_offset) == (first, first + 2)
    assert queue.files.min_offset == start
    assert bytes(queue.files.mapped_files[0].view[: 20 * blanks]) == PREBLANK * blanks
    again = reopened(queue, scratch)
    again.correct_min_offset(0)
    assert (again.min_queue_offset, again.max_queue_offset) == (first, first + 2)


@pytest.mark.parametrize("numbers", [(-5, -4), (1 << 62, (1 << 62) + 1)])
def test_a_queue_offset_that_no_file_can_have(queue: ConsumeQueue, numbers: tuple[int, int]) -> None:
    for place, number in enumerate(numbers):
        queue.append((place * 100, 100, 0), number)
    assert queue.max_queue_offset == 2


@pytest.mark.parametrize("end", range(0, 2700, 50))
def test_cutting_anywhere(queue: ConsumeQueue, scratch: Path, end: int) -> None:
    fill(queue, 0, 25)
    queue.truncate(end)
    left = min(25, -(-end // 100))  # units of messages that begin before the end of the log
    assert queue.max_queue_offset == left
    assert queue.max_physical_offset == (left * 100 if left else -1)
    fill(queue, left, 12)
    assert [queue.unit(number) for number in range(left + 12)] == [(n * 100, 100, -n) for n in range(left + 12)]
    assert reopened(queue, scratch).max_queue_offset == left + 12


def test_cutting_everything_keeps_the_numbering_of_a_queue_that_lost_its_first_files(
    queue: ConsumeQueue, scratch: Path
) -> None:
    fill(queue, 0, 25)
    queue.delete_before(1500)
    queue.truncate(500)
    queue.correct_min_offset(0)
    assert (queue.min_queue_offset, queue.max_queue_offset) == (10, 10)
    again = reopened(queue, scratch)
    again.correct_min_offset(0)
    assert (again.min_queue_offset, again.max_queue_offset) == (10, 10)
    fill(again, 10, 3)
    assert again.max_queue_offset == 13


def test_the_beginning_follows_the_log(queue: ConsumeQueue) -> None:
    fill(queue, 0, 25)
    for log_begins, first in ((0, 0), (1, 1), (100, 1), (1050, 11), (2400, 24), (2401, 25), (9999, 25)):
        queue.min_queue_offset = 0
        queue.correct_min_offset(log_begins)
        assert queue.min_queue_offset == first
    assert queue.delete_before(2401) == 2  # never the last file
    assert queue.files.min_offset == 400


def test_search_by_time(queue: ConsumeQueue) -> None:
    fill(queue, 5, 20)
    times = {number * 100: 1000 + number // 2 * 10 for number in range(25)}
    stored = times.__getitem__
    assert [queue.search_time(at, "lower", stored) for at in (0, 1020, 1030, 1031, 1120, 1121)] == [5, 5, 6, 8, 24, 25]
    assert [queue.search_time(at, "upper", stored) for at in (0, 1020, 1030, 1039, 1120, 9999)] == [5, 5, 7, 7, 24, 24]
