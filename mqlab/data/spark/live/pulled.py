"""The messages of one queue between two offsets, pulled and turned into record batches.

    PULL_MESSAGE ──▶ units as they are stored ── up to 4 MiB ──▶ columns of mqlab.data.arrow ──▶ RecordBatch

A broker compares the hashes of tags; messages whose tag only has the same hash are dropped here, as a client does.
Every offset is accounted for: without tags each has to come; what the broker steps over was deleted (DataLoss).
"""

from __future__ import annotations

import itertools
import struct
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy
import pyarrow
import pyarrow.compute

from mqlab.data.arrow.columns import UnitColumns
from mqlab.data.arrow.losses import DataLossWarning
from mqlab.data.arrow.ranges import SMALLEST_UNIT, LogRange
from mqlab.data.arrow.reading import BATCH_ROWS
from mqlab.data.spark.live.link import ClusterLink
from mqlab.data.spark.marks import mark_of
from mqlab.errors import CorruptionError, StoreError
from mqlab.rocketmq.client import statuses
from mqlab.rocketmq.client.instance.broker_calls import PullAnswer
from mqlab.rocketmq.filter import tags as tag_filter
from mqlab.rocketmq.filter.tags import TagFilter
from mqlab.rocketmq.wire.message import MessageQueue
from mqlab.rocketmq.wire.record_layout import fixed_offset

PULL_NUMS, BATCH_BYTES = 1024, 4 << 20  # a broker gives fewer: 32 from memory, 8 from disk by default
_SIZE, _QUEUE_OFFSET = struct.Struct(">i"), struct.Struct(">q")
_QUEUE_OFFSET_AT = fixed_offset("queue_offset")


@dataclass(frozen=True, slots=True)
class QueueStretch:
    """A queue from an offset up to another one, which is not read any more."""

    queue: MessageQueue
    start: int
    end: int

    @property
    def size(self) -> int:
        return self.end - self.start


class PulledUnits(UnitColumns):
    """Units that came over the network one after the other, from anywhere in their broker's log."""

    def _belongs(self, stored: Any) -> Any:
        return stored >= 0


class LostMessages(StoreError):
    """Messages that a read was to have were deleted before it came to them."""


def report_loss(what: str, fail_on_data_loss: bool) -> None:
    """Raise LostMessages, or warn (DataLossWarning) where that is allowed."""
    if fail_on_data_loss:
        raise LostMessages(what, hint="option('failOnDataLoss', 'false') continues with what is left")
    warnings.warn(what, DataLossWarning, stacklevel=2)


def read_piece(
    link: ClusterLink, piece: QueueStretch, columns: Sequence[str], group: str, tags: TagFilter, fail_on_data_loss: bool
) -> Iterator[pyarrow.RecordBatch]:
    """The batches of one piece. Raises LostMessages, CorruptionError for a unit that is damaged."""
    waiting = bytearray()
    rows = 0
    for body in _bodies(link, piece, group, tags, fail_on_data_loss):
        waiting += body
        rows += 1
        if len(waiting) >= BATCH_BYTES or rows >= BATCH_ROWS:
            yield from _batch(bytes(waiting), piece, columns, tags)
            waiting.clear()
            rows = 0
    if waiting:
        yield from _batch(bytes(waiting), piece, columns, tags)


def _batch(body: bytes, piece: QueueStretch, columns: Sequence[str], tags: TagFilter) -> Iterator[pyarrow.RecordBatch]:
    where = LogRange(f"a pull from {piece.queue!r}", 0, 0, len(body), piece.queue.broker_name)
    units = PulledUnits(body, where, numpy.array(_places(body, where.path), dtype=numpy.int64))
    if tags.tags_set:
        chosen = pyarrow.compute.is_in(units.column("tags"), pyarrow.array(tags.tags_set, pyarrow.string()))
        kept = chosen.to_numpy(zero_copy_only=False)
        if not kept.all():
            units = PulledUnits(body, where, units.positions[kept])
    if len(units):
        yield units.batch(columns)


def _bodies(link: ClusterLink, piece: QueueStretch, group: str, tags: TagFilter, fail: bool) -> Iterator[bytes]:
    """The units of a piece, one by one. Checks that no offset is missing that the broker should have."""
    queue, next_offset = piece.queue, piece.start
    is_all = tags.passes_all
    while next_offset < piece.end:
        answer = link.pull(queue, next_offset, min(PULL_NUMS, piece.end - next_offset), group, tags)
        came = next_offset
        if answer.pull_status == statuses.FOUND:
            # A batch of messages can reach beyond what was asked for.
            end = min(answer.next_begin_offset, piece.end)
            for offset, unit in _units(answer, queue):
                if is_all and min(offset, end) > came:
                    report_loss(_gone(queue, came, min(offset, end), answer), fail)
                if offset >= end:
                    break
                came = offset + 1
                yield unit
            if end <= next_offset:
                raise CorruptionError(
                    f"{answer.address} found messages of {queue!r} and continues at {end}, not after {next_offset}"
                )
            next_offset = end
        elif answer.pull_status == statuses.NO_MATCHED_MSG and answer.next_begin_offset > next_offset:
            next_offset = min(answer.next_begin_offset, piece.end)
            if is_all:  # nothing was to be filtered: these were deleted
                report_loss(_gone(queue, came, next_offset, answer), fail)
        elif answer.min_offset > next_offset:
            next_offset = min(answer.min_offset, piece.end)
            report_loss(_gone(queue, came, next_offset, answer), fail)
        else:
            report_loss(
                f"{queue!r} ends at {answer.max_offset} now, {next_offset} to {piece.end} were still to be read: "
                "its broker has lost the end of its log, or the topic was created again",
                fail,
            )
            return


def mark_before(link: ClusterLink, queue: MessageQueue, offset: int, group: str) -> int | None:
    """The mark of the message before an offset of a queue; None when there is none any more."""
    if offset <= 0:
        return None
    answer = link.pull(queue, offset - 1, 1, group, tag_filter.parse(None))
    units = _units(answer, queue) if answer.pull_status == statuses.FOUND else ()
    return next((mark_of(unit) for unit_offset, unit in units if unit_offset == offset - 1), None)


def _gone(queue: MessageQueue, start: int, end: int, answer: PullAnswer) -> str:
    held = f"the queue now has {answer.min_offset} to {answer.max_offset}"
    return f"messages {start} to {end} of {queue!r} were deleted before they were read; {held}"


def _units(answer: PullAnswer, queue: MessageQueue) -> Iterator[tuple[int, bytes]]:
    """Queue offset and bytes of each unit of an answer."""
    body = answer.body
    places = [*_places(body, f"a pull from {queue!r}"), len(body)]
    for start, end in itertools.pairwise(places):
        yield _QUEUE_OFFSET.unpack_from(body, start + _QUEUE_OFFSET_AT)[0], body[start:end]


def _places(body: bytes, where: str) -> list[int]:
    """Where the units of a body begin."""
    places, position = [], 0
    while position < len(body):
        size = _SIZE.unpack_from(body, position)[0] if position + SMALLEST_UNIT <= len(body) else 0
        if not SMALLEST_UNIT <= size <= len(body) - position:
            raise CorruptionError("the answer to a pull does not consist of whole units", where=where, offset=position)
        places.append(position)
        position += size
    return places
