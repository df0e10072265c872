"""Every unit of a log compared with its own check sum, its queue and the index.

RocketMQ has no such tool; its recovery checks lengths and body check sums only. Lab 01 asks what that misses.

    unit  ─▶ layout, body CRC, the place it names       ─▶ its queue unit: place, size, tags
    queue ─▶ each unit names a message of that queue     index entry ─▶ a unit that has a key of that hash

Left out: fields that are stored only once (times, hosts, flags, own properties): damage there cannot be noticed.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from mqlab.rocketmq.store.reading.log_reader import GAP, UNIT, Piece, Segment, segment_at
from mqlab.rocketmq.store.reading.message_search import keys_of
from mqlab.rocketmq.store.reading.queue_reader import QueueFile, QueueReader
from mqlab.rocketmq.store.reading.store_reader import StoreReader
from mqlab.rocketmq.wire.java_hash import crc32, index_key_hash, tags_code
from mqlab.rocketmq.wire.names import SCHEDULE_TOPIC
from mqlab.rocketmq.wire.property_names import TAGS
from mqlab.rocketmq.wire.record import Record
from mqlab.rocketmq.wire.sys_flag import TRANSACTION_PREPARED, TRANSACTION_ROLLBACK, transaction_type

_NOT_IN_QUEUES = (TRANSACTION_PREPARED, TRANSACTION_ROLLBACK)


@dataclass(frozen=True, slots=True)
class Problem:
    """One thing that is wrong: a stable ``kind``, the file below the store's root, the physical offset if any."""

    kind: str
    file: str
    physical_offset: int | None
    text: str

    def __str__(self) -> str:
        where = "" if self.physical_offset is None else f" at {self.physical_offset}"
        return f"{self.file}{where}: {self.text}"


@dataclass(slots=True)
class _Queue:
    """A queue, its files and its bounds before the log is read.

    ``first_place``: the physical offset of its oldest message.
    """

    reader: QueueReader
    files: list[QueueFile]
    first_offset: int
    end_offset: int
    first_place: int
    agreeing: int = 0


class DeepCheck:
    """Reads the log once, then the index. ``end`` is where the log ends.

    Folders are listed once: what begins while it reads is not looked at, and a large store has a million units.
    """

    def __init__(self, store: StoreReader, segments: list[Segment], end: int) -> None:
        self._store = store
        self._segments = segments
        self._start = segments[0].start if segments else 0
        self._end = end
        self._dispatched = store.dispatched_physical_offset
        self._queues: dict[tuple[str, int], _Queue] = {}
        for reader in store.queues():
            files, first_offset, end_offset = reader.queue_files(), reader.min_offset, reader.max_offset
            first = reader.unit(first_offset, files)
            physical_offset = first.physical_offset if first else end
            self._queues[reader.topic, reader.queue_id] = _Queue(
                reader, files, first_offset, end_offset, physical_offset
            )

    def problems(self) -> Iterator[Problem]:
        """All problems, in the order log, queues, index."""
        for piece in self._store.log.scan(self._start, self._end, self._segments):
            file = f"commitlog/{self._file_of(piece.physical_offset)}"
            if piece.kind == GAP:
                yield Problem("damage", file, piece.physical_offset, f"{piece.size} bytes are no unit: {piece.text}")
            elif piece.kind == UNIT:
                for kind, text in self._unit_problems(piece, piece.record()):
                    yield Problem(kind, file, piece.physical_offset, text)
        yield from self._units_without_message()
        for name in self._store.index.names():
            yield from self._index_problems(name)

    def _unit_problems(self, piece: Piece, record: Record) -> Iterator[tuple[str, str]]:
        # 1. The unit itself: its body and the place that it names.
        if record.body and crc32(record.body) != record.body_crc:
            yield "check sum", f"the body's CRC-32 is {crc32(record.body):08x}, the unit says {record.body_crc:08x}"
        if record.physical_offset != piece.physical_offset:
            yield "place", f"the unit says it is at {record.physical_offset}"
        # 2. Its queue unit. Half messages and those of deleted topics have none.
        queue = self._queues.get((record.topic, record.queue_id))
        if transaction_type(record.sys_flag) in _NOT_IN_QUEUES or self._is_of_a_deleted_topic(piece, record, queue):
            return
        inside = queue is not None and queue.first_offset <= record.queue_offset < queue.end_offset
        unit = queue.reader.unit(record.queue_offset, queue.files) if queue is not None and inside else None
        if queue is None or unit is None:
            if piece.physical_offset < self._dispatched:
                yield "not in its queue", f"no unit {record.queue_offset} in queue {record.topic} {record.queue_id}"
            return
        expected, named = (piece.physical_offset, piece.size), (unit.physical_offset, unit.size)
        if expected != named:
            yield "queue unit", f"its queue unit names offset and size {named}, the message has {expected}"
            return
        # 3. The tags code. In the schedule topic it is the time of delivery.
        queue.agreeing += 1
        tags = tags_code(record.property_map.get(TAGS))
        if record.topic != SCHEDULE_TOPIC and unit.tags_code != tags:
            yield "queue unit", f"its queue unit has the tags code {unit.tags_code}, its tags make {tags}"

    def _is_of_a_deleted_topic(self, piece: Piece, record: Record, queue: _Queue | None) -> bool:
        """Deleting a topic deletes its queues and leaves its messages; a topic made again counts from 0."""
        if queue is None:
            topics = {topic for topic, _ in self._queues}
            return record.topic not in topics
        return queue.first_offset == 0 and piece.physical_offset < queue.first_place

    def _units_without_message(self) -> Iterator[Problem]:
        for queue in self._queues.values():
            missing = queue.end_offset - queue.first_offset - queue.agreeing
            if missing > 0:
                text = f"{missing} of the units {queue.first_offset}..{queue.end_offset} name no message of this queue"
                folder = f"consumequeue/{queue.reader.topic}/{queue.reader.queue_id}"
                yield Problem("queue unit", folder, None, text)

    def _index_problems(self, name: str) -> Iterator[Problem]:
        table = self._store.index.table(name)
        known: tuple[int, list[int]] = (-1, [])  # place of a message and the hashes of its keys
        strange = []
        for number in range(1, table.entries + 1) if table else []:
            assert table is not None
            key_hash, physical_offset, seconds, previous = table.entry(number)
            # The keys of one message are next to each other: its unit is decoded once.
            if known[0] != physical_offset:
                known = (physical_offset, self._key_hashes(physical_offset))
            there = self._start <= physical_offset < self._end
            if seconds < 0 or not 0 <= previous < number or (there and key_hash not in known[1]):
                strange.append((number, physical_offset))
        if strange:
            text = f"{len(strange)} entries do not lead to a message with their key, the first is entry {strange[0][0]}"
            yield Problem("index entry", f"index/{name}", strange[0][1], text)

    def _key_hashes(self, physical_offset: int) -> list[int]:
        piece = self._store.log.unit_at(physical_offset, self._segments)
        if piece is None:
            return []
        record = piece.record()
        return [index_key_hash(f"{record.topic}#{key}") for key in keys_of(record.property_map)]

    def _file_of(self, physical_offset: int) -> str:
        segment = segment_at(self._segments, physical_offset)
        return segment.path.rpartition("/")[2] if segment else f"{physical_offset:020d}"
