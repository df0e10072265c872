"""Messages that the consume queues of a store know and its commit log does not hold.

RocketMQ's recovery cuts the queues to the log; a reader that changes nothing has to report the difference.

    log      ├ units ───────┤        ├ units ────────┤ end        a file is missing; the end was cut off
    queue    | 0 | 1 | 2 | 3 | 4 | 5 | 6 | 7 | 8 | 9 | 10 | 11 |  units 4, 5 and 10, 11 point at nothing: two losses

The log was cut, or copied before the queues of a running broker, or a power cut took its end.
Left out: messages that the queues have lost as well; damage inside the log, which the reader of its range reports.
"""

from __future__ import annotations

import itertools
import warnings
from bisect import bisect_left
from collections.abc import Iterable
from dataclasses import dataclass

from mqlab.data.arrow.growing import LogEnd, newest_unit
from mqlab.errors import CorruptionError
from mqlab.rocketmq.store.reading.queue_reader import QueueReader
from mqlab.rocketmq.store.reading.store_reader import StoreReader


class DataLossWarning(UserWarning):
    """The store knows of messages that were not read, and the caller allowed that."""


@dataclass(frozen=True, slots=True)
class Loss:
    """A stretch of physical offsets that the log in ``folder`` does not hold, and how many messages of the queues.

    ``witness`` names the queue unit that points furthest into it, in words.
    """

    folder: str
    start: int
    end: int
    messages: int
    witness: str

    def __str__(self) -> str:
        return str(self.error(""))

    def error(self, hint: str = "") -> CorruptionError:
        """The error that reports it."""
        return CorruptionError(
            "the commit log does not hold all messages that its queues know",
            where=self.folder,
            offset=self.start,
            expected=f"messages up to {self.end} ({self.witness})",
            found=f"none from {self.start} on, {self.messages:,} are missing",
            hint=hint
            or "the log was cut, or copied before the queues of a running broker: copy the store again; "
            "after a crash let its broker, or 'mqlab recover' on a copy, cut the queues; fail_on_data_loss=False, for "
            "Spark option('failOnDataLoss', 'false'), reads what is left",
        )


def find_losses(inspector: StoreReader, end: LogEnd, first: int, last: int | None = None) -> list[Loss]:
    """The losses in the part that is read, from the offset ``first`` up to ``last``; None: up to where the log ends.

    A read that ends before the log does is not affected by what is missing after it.
    """
    segments = inspector.log.segments()
    stop = end.offset if last is None else min(last, end.offset)
    holes = [(a.end, b.start) for a, b in itertools.pairwise(segments) if max(a.end, first) < min(b.start, stop)]
    if end.queues > end.offset and (last is None or last > end.offset):
        holes.append((end.offset, end.queues))
    return [_loss(inspector, start, stop) for start, stop in holes]


def report(losses: Iterable[Loss], fail_on_data_loss: bool) -> None:
    """Raise the first loss as CorruptionError, or warn of each (DataLossWarning)."""
    for loss in losses:
        if fail_on_data_loss:
            raise loss.error()
        warnings.warn(str(loss), DataLossWarning, stacklevel=3)


def _loss(inspector: StoreReader, start: int, stop: int) -> Loss:
    """The loss between two physical offsets, counted by the queues' units that point there."""
    messages, furthest, witness = 0, -1, "no queue has a unit there"
    for queue in inspector.queues():
        if newest_unit(queue) is None:
            continue
        low, high = _first_from(queue, start), _first_from(queue, stop)
        messages += high - low
        unit = queue.unit(high - 1) if low < high else None
        if unit is not None and unit.physical_offset > furthest:
            furthest = unit.physical_offset
            witness = f"unit {high - 1} of queue {queue.queue_id} of {queue.topic!r}"
    return Loss(inspector.log.folder, start, stop, messages, witness)


def _first_from(queue: QueueReader, physical_offset: int) -> int:
    """The queue offset of the first unit that points there or further."""

    def offset_of_unit(queue_offset: int) -> int:
        unit = queue.unit(queue_offset)
        return physical_offset if unit is None else unit.physical_offset

    offsets = range(queue.min_offset, queue.max_offset)
    return offsets.start + bisect_left(offsets, physical_offset, key=offset_of_unit)
