"""Which units of a store answer a question, and the shortest way to them.

Mirrors: what mqadmin's queryMsgByKey, queryMsgByOffset and consumeMessage do together. Lab 01 asks by key and by time.

    small log (64 MiB)    every unit is looked at                                   nothing can be missed
    large log   key       index files, then the part of the log after the index
                topic     its queues merged by physical offset, then the part that is not dispatched yet
                time      bisection in a queue finds where a time begins
                nothing   the log from its start; from its end with a negative count

Left out: several threads.
"""

from __future__ import annotations

import heapq
from bisect import bisect_left
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice

from mqlab.rocketmq.store.reading.log_reader import UNIT, Piece
from mqlab.rocketmq.store.reading.queue_reader import QueueReader
from mqlab.rocketmq.store.reading.store_reader import StoreReader
from mqlab.rocketmq.wire.property_names import KEY_SEPARATOR, KEYS, UNIQ_KEY


@dataclass(frozen=True, slots=True)
class Question:
    """What is searched for; None means any value. See StoreInspector.pieces."""

    topic: str | None = None
    queue: int | None = None
    key: str | None = None
    from_ms: int | None = None
    to_ms: int | None = None
    count: int | None = None
    offset: int | None = None

    def accepts(self, piece: Piece) -> bool:
        """Whether a unit is one of those asked for, ``count`` aside."""
        if self.topic is not None and piece.topic != self.topic.encode("utf-8", "replace"):
            return False
        if not (self.from_ms or 0) <= piece.store_timestamp <= (2**63 if self.to_ms is None else self.to_ms):
            return False
        if self.queue is None and self.key is None:
            return True
        if self.key is not None and self.key.encode("utf-8", "replace") not in piece.properties:
            return False
        record = piece.record()
        if self.queue is not None and record.queue_id != self.queue:
            return False
        if self.offset is not None and record.queue_offset < self.offset:
            return False
        return self.key is None or self.key in keys_of(record.property_map)


class MessageSearch:
    """One search in one store. ``small``: the log may be read from its start."""

    def __init__(self, store: StoreReader, question: Question, *, small: bool) -> None:
        self._store = store
        self._question = question
        self._small = small
        self._segments = store.log.segments()

    def pieces(self) -> Iterator[Piece]:
        """The units in physical order, at most ``count`` of them; a negative count means the last ones."""
        count = self._question.count
        if count is None:
            return self._accepted(self._candidates())
        if count >= 0:
            return islice(self._accepted(self._candidates()), count)
        return iter(deque(self._accepted(self._candidates(last=-count)), maxlen=-count))

    def _accepted(self, candidates: Iterable[Piece]) -> Iterator[Piece]:
        return (piece for piece in candidates if piece.kind == UNIT and self._question.accepts(piece))

    def _candidates(self, last: int | None = None) -> Iterator[Piece]:
        question, store = self._question, self._store
        # 1. A small log is read whole: nothing can be missed.
        if self._small:
            return store.log.scan(store.min_physical_offset, store.max_physical_offset, self._segments)
        # 2. A key: the index.
        if question.key is not None:
            return self._by_key(question.key)
        # 3. Everything else: queues, each from the first offset that may have an answer.
        queues = store.queues(question.topic)
        if question.queue is not None:
            queues = [queue for queue in queues if queue.queue_id == question.queue]
        if last is not None and question.from_ms is None and question.to_ms is None:
            starts = [max(queue.min_offset, queue.max_offset - last) for queue in queues]
        elif question.topic is None:
            return self._from_time(queues)
        elif question.offset is not None:
            starts = [max(queue.min_offset, question.offset) for queue in queues]
        else:
            starts = [self._first_at(queue, question.from_ms) for queue in queues]
        return self._until_time(self._by_queues(queues, starts))

    def _by_key(self, key: str) -> Iterator[Piece]:
        question, store = self._question, self._store
        begin_ms = max(0, (question.from_ms or 0) - 1000)  # the index has times in whole seconds, rounded down
        end_ms = 2**63 - 1 if question.to_ms is None else question.to_ms
        places: dict[int, None] = {}
        for topic in [question.topic] if question.topic is not None else store.topics():
            places.update(dict.fromkeys(store.index.candidates(topic, key, begin_ms, end_ms)))
        indexed_to = max((summary.end_physical_offset for summary in store.index.summaries()), default=None)
        for physical_offset in sorted(places):
            if indexed_to is not None and physical_offset <= indexed_to:
                yield from self._unit_at(physical_offset)
        # The index is behind the log by the units that were not dispatched yet.
        first_not_indexed = store.min_physical_offset if indexed_to is None else indexed_to
        for piece in store.log.scan(first_not_indexed, store.max_physical_offset, self._segments):
            if piece.physical_offset not in places:
                yield piece

    def _by_queues(self, queues: Sequence[QueueReader], starts: list[int]) -> Iterator[Piece]:
        """Units that queues name from these offsets on, in physical order, then those that are not dispatched yet."""
        lists = [self._places(queue, start) for queue, start in zip(queues, starts, strict=True)]
        for physical_offset in heapq.merge(*lists):
            yield from self._unit_at(physical_offset)
        yield from self._not_dispatched()

    def _not_dispatched(self) -> Iterator[Piece]:
        store = self._store
        return store.log.scan(store.dispatched_physical_offset, store.max_physical_offset, self._segments)

    def _from_time(self, queues: Sequence[QueueReader]) -> Iterator[Piece]:
        """The log from the first unit that any queue has for the requested time."""
        store, from_ms = self._store, self._question.from_ms
        start = store.min_physical_offset
        if from_ms is not None:
            firsts = (queue.unit(self._first_at(queue, from_ms)) for queue in queues)
            start = min((u.physical_offset for u in firsts if u is not None), default=store.dispatched_physical_offset)
        return self._until_time(store.log.scan(start, store.max_physical_offset, self._segments))

    def _until_time(self, pieces: Iterator[Piece]) -> Iterator[Piece]:
        to_ms = self._question.to_ms
        for piece in pieces:
            if to_ms is not None and piece.kind == UNIT and piece.store_timestamp > to_ms:
                return  # store times never decrease along the log
            yield piece

    def _first_at(self, queue: QueueReader, from_ms: int | None) -> int:
        """The queue offset of the first unit stored at or after a time; units of deleted messages count as earlier."""
        first, after_last = queue.min_offset, queue.max_offset
        if from_ms is None:
            return first

        def is_late(queue_offset: int) -> bool:
            unit = queue.unit(queue_offset)
            piece = self._store.log.unit_at(unit.physical_offset, self._segments) if unit else None
            return piece is not None and piece.store_timestamp >= from_ms

        return first + bisect_left(range(first, after_last), True, key=is_late)

    def _places(self, queue: QueueReader, start: int) -> Iterator[int]:
        return (unit.physical_offset for _, unit in queue.units(start))

    def _unit_at(self, physical_offset: int) -> Iterator[Piece]:
        piece = self._store.log.unit_at(physical_offset, self._segments)
        if piece is not None:
            yield piece


def keys_of(properties: dict[str, str]) -> list[str]:
    """What a message can be found by: each of its keys, and its unique key."""
    return [key for key in (*properties.get(KEYS, "").split(KEY_SEPARATOR), properties.get(UNIQ_KEY)) if key]
