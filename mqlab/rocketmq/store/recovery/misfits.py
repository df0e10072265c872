"""What a recovery does with units whose queue offset is not the next one of their queue.

Mirrors: the checks in ConsumeQueue.putMessagePositionInfo, which looks at each unit alone. Lab 01.

    the queue ends at 10, and the next unit has the queue offset
    12              entries before it are missing    a crash recovery starts one log file earlier; at the oldest: append
    3, then 10      a unit of another queue with a damaged id     dropped, as in RocketMQ
    3, then 11      the 3 was the 10, damaged        appended
    3, then 4       the numbering began again        the queue begins again at 3 (a topic deleted and made again,
                                                     or the units before were the damaged ones)

For a deleted topic (see deleted_topics), units from before the deletion are not missing. The first unit after it that
has the queue offset 0 begins the queue again; no second unit is needed to confirm it.

Left out: several damaged units next to each other.
"""

from __future__ import annotations

from typing import NamedTuple

from mqlab.rocketmq.store.consumequeue import ConsumeQueue, Unit
from mqlab.rocketmq.store.recovery.deleted_topics import DeletedTopics

MOST_PROBLEMS = 50


class QueueGap(Exception):
    """A queue misses entries before the unit that is being dispatched."""


class Doubtful(NamedTuple):
    """A unit that waits for the next one of its queue to explain it."""

    unit: Unit
    queue_offset: int
    queue_end: int


class Misfits:
    """Judges the misfits of one scan that began at ``scan_start``; ``problems`` gets a line for each.

    With ``notice_gaps`` a gap raises QueueGap.
    """

    def __init__(
        self, problems: list[str], deleted_topics: DeletedTopics, *, scan_start: int, notice_gaps: bool
    ) -> None:
        self._problems = problems
        self._deleted_topics = deleted_topics
        self._scan_start = scan_start
        self._notice_gaps = notice_gaps
        self._doubtful: dict[ConsumeQueue, Doubtful] = {}

    def judge(self, queue: ConsumeQueue, unit: Unit, queue_offset: int) -> bool:
        """Decide about a unit; True when it (or the one before it) was put into the queue."""
        end = queue.max_queue_offset
        earlier = self._doubtful.pop(queue, None)
        # 1. A unit was in doubt, and its queue has grown without it.
        if earlier is not None and earlier.queue_end != end:
            self._drop(queue, earlier)  # the next unit was the right one
            earlier = None

        # 2. Beyond the end: either the unit in doubt is the one between, or entries are missing.
        if queue_offset > end:
            if earlier is not None and queue_offset == end + 1:
                self._report(queue, earlier, f"it is where {end} should be")
                queue.append(earlier.unit, end)
                queue.append(unit, queue_offset)
                return True
            return self._beyond(queue, unit, queue_offset, end)

        # 3. Before the end: two units in a row, or a deletion, show that the numbering began again.
        if earlier is not None and queue_offset == earlier.queue_offset + 1:
            self._begin_again(queue, earlier)
            queue.append(unit, queue_offset)
            return True
        if queue_offset == 0 and self._is_first_since_deletion(queue, unit):
            self._begin_again(queue, Doubtful(unit, queue_offset, end))
            return True

        # 4. Nothing explains it yet: the next unit of its queue decides.
        if earlier is not None:
            self._drop(queue, earlier)
        self._doubtful[queue] = Doubtful(unit, queue_offset, end)
        return False

    def _is_first_since_deletion(self, queue: ConsumeQueue, unit: Unit) -> bool:
        log_end = self._deleted_topics.end_of(queue.topic)
        return log_end >= 0 and queue.max_physical_offset <= log_end <= unit[0]

    def _begin_again(self, queue: ConsumeQueue, first: Doubtful) -> None:
        self._report(queue, first, f"the numbering begins again; units before it that are dropped: {first.queue_end}")
        queue.destroy()
        queue.append(first.unit, first.queue_offset)

    def _beyond(self, queue: ConsumeQueue, unit: Unit, queue_offset: int, end: int) -> bool:
        if self._notice_gaps and self._scan_start > self._deleted_topics.end_of(queue.topic):
            raise QueueGap(f"{_name(queue)} ends at {end}, but the unit at {unit[0]} calls itself {queue_offset}")
        if queue.files.mapped_files:
            self._report(queue, Doubtful(unit, queue_offset, end), f"it is put at {end}")
        queue.append(unit, queue_offset)
        return True

    def finish(self) -> None:
        """The scan is over: a doubtful unit with the queue offset 0 is appended, as in RocketMQ; others are dropped."""
        for queue, doubtful in self._doubtful.items():
            if doubtful.queue_end != queue.max_queue_offset or doubtful.queue_offset != 0:
                self._drop(queue, doubtful)
            else:
                self._report(queue, doubtful, f"it is put at {doubtful.queue_end}")
                queue.append(doubtful.unit, 0)
        self._doubtful.clear()

    def _drop(self, queue: ConsumeQueue, doubtful: Doubtful) -> None:
        self._report(queue, doubtful, "it is in no queue")

    def _report(self, queue: ConsumeQueue, doubtful: Doubtful, what: str) -> None:
        if len(self._problems) < MOST_PROBLEMS:
            own = f"calls itself {_name(queue)} {doubtful.queue_offset}"
            self._problems.append(f"the unit at {doubtful.unit[0]} {own}, the queue is at {doubtful.queue_end}: {what}")

    def __repr__(self) -> str:
        return f"<Misfits {len(self._doubtful)} in doubt>"


def _name(queue: ConsumeQueue) -> str:
    return f"{queue.topic}[{queue.queue_id}]"
