"""A store directory read from outside: never changed, never locked, decoded as far as it is intact.

RocketMQ has no such tool: its own tools start a store to read it. Lab 01 uses it; ``lab.store`` is one.

    StoreInspector("store")
      .messages(topic=, queue=, key=, ...)   messages in the order of the log        .message_at(physical_offset)
      .queue("orders", 0)   .queues()        bounds and units of consume queues      .index_files()   .checkpoint()
      .problems()                            what is damaged or missing              .tree()          .map(message)
      .timer_units()   .timer_slots()   .timer_checkpoint()   the files of the timer wheel
      .hexdump(offset)   .checkpoint_hexdump()   .queue(…).hexdump(n)   .index.hexdump(entry=, slot=)   .index.chain(…)

A running store and one of 500 GB can be read as well: files are opened when a question needs them, and a log of more
than 64 MiB is not read from its start but found through its queues and its index.

Left out: batch consume queues, queue extensions and compaction; ``tree`` names their files.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, cast

from mqlab.errors import CorruptionError, UsageError
from mqlab.lab.inspector.message_listing import MessageListing
from mqlab.lab.inspector.shown_parts import ShownIndex, ShownQueue
from mqlab.rocketmq.store.reading import checkpoint_format, store_tree
from mqlab.rocketmq.store.reading.deep_check import Problem
from mqlab.rocketmq.store.reading.file_sizes import FoundSizes, found_sizes
from mqlab.rocketmq.store.reading.index_reader import IndexSummary
from mqlab.rocketmq.store.reading.log_reader import BLANK, UNIT, Piece
from mqlab.rocketmq.store.reading.message_search import MessageSearch, Question
from mqlab.rocketmq.store.reading.store_problems import find_problems
from mqlab.rocketmq.store.reading.store_reader import StoreReader
from mqlab.rocketmq.wire.message import MessageExt
from mqlab.rocketmq.wire.record import field_map
from mqlab.rocketmq.wire.timer_units import Slot, TimerUnit

if TYPE_CHECKING:
    from mqlab.lab.views.hexdump import Hexdump
    from mqlab.lab.views.store_map import StoreMap
    from mqlab.lab.views.table import Table

SMALL_LOG_BYTES = 64 * 1024 * 1024  # up to here a question may read the whole log


class StoreInspector(StoreReader):
    """The store in ``directory``, for reading. Raises UsageError when there is no such directory.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as empty:
    ...     StoreInspector(empty).max_physical_offset
    0
    """

    index: ShownIndex

    def _index(self, folder: str) -> ShownIndex:
        return ShownIndex(self.files, folder, self._open_files)

    def _queue(self, topic: str, queue_id: int, log_start: int) -> ShownQueue:
        return ShownQueue(self.files, self._folder_of(topic, queue_id), self._open_files, topic, queue_id, log_start)

    def messages(
        self,
        topic: str | None = None,
        queue: int | None = None,
        key: str | None = None,
        *,
        from_ms: int | None = None,
        to_ms: int | None = None,
        count: int | None = None,
        offset: int | None = None,
    ) -> MessageListing:
        """Messages in the order of the log, to loop over or to look at. See ``pieces`` for the choices."""
        question = self._question(topic, queue, key, from_ms, to_ms, count, offset)
        chosen = {name: value for name, value in asdict(question).items() if value is not None}
        words = "".join(f" {name}={value!r}" for name, value in chosen.items())
        return MessageListing(lambda: self._search(question), words)

    def pieces(
        self,
        topic: str | None = None,
        queue: int | None = None,
        key: str | None = None,
        *,
        from_ms: int | None = None,
        to_ms: int | None = None,
        count: int | None = None,
        offset: int | None = None,
    ) -> Iterator[Piece]:
        """The same as units of the log: ``.record()`` decodes one, ``.raw()`` returns its bytes.

        ``topic``, ``queue`` (needs a topic) and ``key`` (a key or a unique key, compared as text) choose; ``from_ms``
        and ``to_ms`` are store times, both included; ``count`` is how many at most, from the end if negative;
        ``offset`` (needs topic and queue) is the queue offset to begin at. Damage is skipped; ``problems`` lists it.
        """
        return self._search(self._question(topic, queue, key, from_ms, to_ms, count, offset))

    def message_at(self, physical_offset: int) -> MessageExt | None:
        """The message whose unit starts at a physical offset; None when no unit starts there."""
        piece = self.log.unit_at(physical_offset)
        return piece.message() if piece else None

    def blanks(self, *, deep: bool | None = None) -> list[tuple[int, int]]:
        """(physical offset, size) of the blank at the end of each full file. ``deep`` reads the log from its start."""
        deep = self.log_bytes() <= SMALL_LOG_BYTES if deep is None else deep
        segments = self.log.segments()
        end = self.max_physical_offset
        if deep:
            pieces = self.log.scan(self.min_physical_offset, end, segments)
            return [(piece.physical_offset, piece.size) for piece in pieces if piece.kind == BLANK]
        blanks = (self.log.blank_of(segment) for segment in segments if segment.end <= end)
        return [(piece.physical_offset, piece.size) for piece in blanks if piece is not None]

    def queues(self, topic: str | None = None) -> Sequence[ShownQueue]:
        """All queues, or those of one topic."""
        return cast(Sequence[ShownQueue], super().queues(topic))

    def queue(self, topic: str, queue_id: int) -> ShownQueue:
        """One queue. Raises UsageError, naming the queues and topics there are, when it has no folder."""
        return cast(ShownQueue, super().queue(topic, queue_id))

    def index_files(self) -> list[IndexSummary]:
        """The header of each index file, oldest first."""
        return self.index.summaries()

    def sizes(self) -> FoundSizes:
        """The segment sizes the store was written with, as far as its files show them."""
        return found_sizes(self.files, self.directory)

    def timer_units(self) -> list[tuple[int, TimerUnit]]:
        """The units of the timer log with their positions, oldest first; [] without one."""
        return list(self.timer.units())

    def timer_slots(self) -> dict[int, Slot]:
        """The slots of the wheel's file that were ever used, by their number."""
        return self.timer.slots()

    def timer_checkpoint(self) -> dict[str, int] | None:
        """The numbers of the timer's check file by name; None when there is none."""
        return self.timer.checkpoint()

    def tree(self) -> Table:
        """All files: path, kind, bytes, and which part of the store they hold."""
        from mqlab.lab.views.table import Table

        return Table(store_tree.rows(self.files, self.directory), title=self.directory, empty="an empty directory")

    def other_parts(self) -> list[str]:
        """Parts of a RocketMQ store that are here and that mqlab does not read: batch consume queue, compaction."""
        return store_tree.other_parts(self.files, self.directory)

    def problems(self, *, deep: bool | None = None) -> list[Problem]:
        """What is damaged, missing or contradicts itself; [] for a healthy store.

        ``deep`` reads every unit and compares it with queues and index; by default for logs of up to 64 MiB.
        """
        return find_problems(self, deep=self.log_bytes() <= SMALL_LOG_BYTES if deep is None else deep)

    def hexdump(self, physical_offset: int) -> Hexdump:
        """The unit at a physical offset as bytes with the names of its fields."""
        from mqlab.lab.views.hexdump import Hexdump

        piece = self.log.piece_at(physical_offset)
        if piece is None:
            raise UsageError(
                f"no file of the log holds offset {physical_offset}",
                hint=f"the log goes from {self.min_physical_offset} to {self.max_physical_offset}",
            )
        if piece.kind != UNIT and piece.kind != BLANK:
            raise CorruptionError(piece.text, where=self.log.folder, hint="messages() lists where units start")
        raw = piece.raw() if piece.kind == UNIT else bytes(piece.view[-piece.size :][:8])
        return Hexdump(field_map(raw), base=physical_offset, title=f"{piece.kind} at {physical_offset}")

    def map(self, message: str | None = None, *, topic: str | None = None) -> StoreMap:
        """Log, queues and index side by side with their arrows; the message with a unique id or key is lit up.

        ``topic`` chooses the units of one topic. A long log is shown from its newest units on.
        """
        from mqlab.lab.inspector.map_of_store import map_of

        return map_of(self, message, topic, os.path.basename(self.directory.rstrip("/")))

    def checkpoint_hexdump(self) -> Hexdump:
        """The five numbers of the checkpoint file as bytes with their names. UsageError when there is no such file."""
        from mqlab.lab.views.hexdump import Hexdump

        data = self.checkpoint_bytes()
        if data is None:
            raise UsageError("this store has no checkpoint yet", hint="a broker writes it when it flushes or closes")
        return Hexdump(checkpoint_format.field_map(data), title=f"checkpoint: the first 40 of {len(data)} bytes")

    @staticmethod
    def _question(
        topic: str | None,
        queue: int | None,
        key: str | None,
        from_ms: int | None,
        to_ms: int | None,
        count: int | None,
        offset: int | None,
    ) -> Question:
        if topic is None and queue is not None:
            raise UsageError("a queue number alone does not name a queue", hint="give the topic too: topic='orders'")
        if offset is not None and (topic is None or queue is None):
            raise UsageError("a queue offset belongs to one queue", hint="give topic and queue too")
        return Question(topic, queue, key, from_ms, to_ms, count, offset)

    def _search(self, question: Question) -> Iterator[Piece]:
        return MessageSearch(self, question, small=self.log_bytes() <= SMALL_LOG_BYTES).pieces()
