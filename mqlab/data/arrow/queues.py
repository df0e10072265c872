"""Consume queues as Arrow columns: every unit of every queue, 20 bytes each, without looking into the log.

Mirrors: ConsumeQueue, read from outside. Lab 10 counts messages by queue and tags code with it, in a fraction of the
bytes of the log.

    file     | pre-blank … | unit 37 | unit 38 | … | zeros …     units from min_offset up to max_offset of the queue
    unit     physical_offset i64 | size i32 | tags_code i64      seen as one numpy array, copied column by column

A tag's code is its Java hash: ``tags_code("paid")``; two tags may share one (Aa and BB do).
Left out: batch consume queues; units of the queue extension.
"""

from __future__ import annotations

import mmap
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy
import pyarrow

from mqlab.data.arrow.columns import Column
from mqlab.data.arrow.known_topics import check_topics
from mqlab.data.arrow.property_columns import numbers
from mqlab.data.arrow.stores import StoreFolder, StorePath, find_stores
from mqlab.errors import UsageError
from mqlab.rocketmq.store.reading.store_reader import StoreReader
from mqlab.rocketmq.wire.java_hash import tags_code
from mqlab.rocketmq.wire.units import CQ_LAYOUT, CQ_UNIT_SIZE, PREBLANK_SIZE

_KINDS = {"i32": (">i4", pyarrow.int32()), "i64": (">i8", pyarrow.int64())}
_UNIT = numpy.dtype([(spec.name, _KINDS[spec.kind][0]) for spec in CQ_LAYOUT])
ALL_TAGS = "*"

COLUMNS = (
    Column("broker_name", pyarrow.string(), "which store, where several are read"),
    Column("topic", pyarrow.string(), "the topic"),
    Column("queue_id", pyarrow.int32(), "queue in the topic"),
    Column("queue_offset", pyarrow.int64(), "place in the queue, in messages"),
    *(Column(spec.name, _KINDS[spec.kind][1], spec.meaning) for spec in CQ_LAYOUT),
)
SCHEMA = pyarrow.schema([(column.name, column.type) for column in COLUMNS])


@dataclass(frozen=True, slots=True)
class QueueRange:
    """Some units of one queue's file: ``start`` to ``stop`` count units of the file, of which the first is
    ``first_offset``."""

    path: str
    first_offset: int
    start: int
    stop: int
    topic: str
    queue_id: int
    broker_name: str

    @property
    def size(self) -> int:
        return (self.stop - self.start) * CQ_UNIT_SIZE


@dataclass(frozen=True, slots=True)
class QueueSelection:
    """The units of these topics and queue ids, with the codes of these tags; an empty choice means all."""

    topics: tuple[str, ...] = ()
    queues: tuple[int, ...] = ()
    tags: tuple[str, ...] = ()

    def codes(self) -> list[int]:
        return [tags_code(tag) for tag in self.tags]


EVERY_UNIT = QueueSelection()


def tags_of(expression: str) -> tuple[str, ...]:
    """The tags of a subscription; none for all of them. Raises UsageError.

    >>> tags_of("paid || shipped"), tags_of("*")
    (('paid', 'shipped'), ())
    """
    tags = tuple(tag.strip() for tag in expression.split("||"))
    if tags in ((ALL_TAGS,), ("",)):
        return ()
    if not all(tags) or ALL_TAGS in tags:
        raise UsageError(f"not a tag expression: {expression!r}", hint="write 'paid || shipped', or '*' for all")
    return tags


def plan_queues(store: StoreFolder, selection: QueueSelection = EVERY_UNIT) -> list[QueueRange]:
    """The files of a store's queues with the units that can be read now, queue by queue."""
    ranges = []
    for queue in StoreReader(store.directory).queues():
        if selection.topics and queue.topic not in selection.topics:
            continue
        if selection.queues and queue.queue_id not in selection.queues:
            continue
        begin, end = queue.min_offset, queue.max_offset
        for file in queue.queue_files():
            start, stop = max(0, begin - file.first_offset), min(file.capacity, end - file.first_offset)
            if start < stop:
                queue_key = queue.topic, queue.queue_id, store.broker_name
                ranges.append(QueueRange(file.path, file.first_offset, start, stop, *queue_key))
    return ranges


def read_queue_range(where: QueueRange, selection: QueueSelection = EVERY_UNIT) -> Iterator[pyarrow.RecordBatch]:
    """The units of one range, at most one batch; pre-blank ones and those of other tags are left out."""
    with open(where.path, "rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as view:
        stop = min(where.stop, len(view) // CQ_UNIT_SIZE)  # a queue's file may have been cut since
        units = numpy.frombuffer(view[where.start * CQ_UNIT_SIZE : stop * CQ_UNIT_SIZE], dtype=_UNIT)
    chosen = (units["size"] > 0) & (units["size"] != PREBLANK_SIZE)
    if selection.tags:
        chosen &= numpy.isin(units["tags_code"], selection.codes())
    rows = numpy.flatnonzero(chosen)
    if not len(rows):
        return
    count = len(rows)
    offsets = numbers(rows + where.first_offset + where.start, pyarrow.int64())
    same = {"broker_name": where.broker_name, "topic": where.topic, "queue_id": where.queue_id}
    columns = [pyarrow.repeat(pyarrow.scalar(value, SCHEMA.field(name).type), count) for name, value in same.items()]
    fields = [units[name][rows].astype(units[name].dtype.newbyteorder("=")) for name in _UNIT.names or ()]
    named = zip(fields, _UNIT.names or (), strict=True)
    own = [numbers(values, SCHEMA.field(name).type) for values, name in named]
    yield pyarrow.RecordBatch.from_arrays([*columns, offsets, *own], schema=SCHEMA)


def read_queue_units(
    paths: StorePath | Sequence[StorePath], *, topics: Sequence[str] = (), queues: Sequence[int] = (), tags: str = "*"
) -> pyarrow.Table:
    """The units of the queues of whole stores: broker_name, topic, queue_id, queue_offset, physical_offset, size,
    tags_code; of some topics, queue ids and tags only ("paid || shipped", by their codes).

    Raises UsageError for a wrong path, topic or tag expression."""
    selection = QueueSelection(tuple(topics), tuple(queues), tags_of(tags))
    stores = find_stores(paths)
    check_topics(stores, topics)
    ranges = [where for store in stores for where in plan_queues(store, selection)]
    return pyarrow.Table.from_batches([b for where in ranges for b in read_queue_range(where, selection)], SCHEMA)
