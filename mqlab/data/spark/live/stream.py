"""The stream of a cluster's topics: queues that grow, read batch by batch, each message once.

Spark's checkpoint takes the place of a consumer group's offsets.

    offset         {"orders": {"broker-a": {"0": 17, "1": 4}}}      the next message of each queue, with a mark of the
                                                                    one before: see mqlab.data.spark.marks
    latestOffset   where the queues end now                         cut to maxOffsetsPerTrigger
    batch          from one offset to the next                      the same messages whenever Spark asks again
    AvailableNow   up to where the queues ended when the query began

A queue that appears later joins at its first message. Left out: waiting; Spark asks again at its trigger.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import pyarrow
from pyspark.sql.datasource import DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadLimit, ReadMaxRows, SupportsTriggerAvailableNow

from mqlab.data.spark.live.link import ClusterLink
from mqlab.data.spark.live.options import LiveOptions
from mqlab.data.spark.live.places import Bounds, Offsets, OffsetsAsJson, as_json, from_json, marks_from_json
from mqlab.data.spark.live.pulled import mark_before, report_loss
from mqlab.data.spark.live.reader import read_pieces, tasks_of, without_deleted
from mqlab.errors import UsageError
from mqlab.rocketmq.wire.message import MessageQueue


class LiveStreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Plans on the driver, over connections that it keeps, and reads in the tasks."""

    def __init__(self, options: LiveOptions, names: Sequence[str], parallelism: int | None = None) -> None:
        options.check_stream()
        self.options = options
        self.names = list(names)
        self.parallelism = parallelism
        self._link: ClusterLink | None = None
        self._target: Offsets | None = None
        self._seen: OffsetsAsJson | None = None
        self._planned: OffsetsAsJson | None = None

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_link": None}  # a task has connections of its own

    def _bounds(self) -> dict[MessageQueue, tuple[int, int]]:
        return self._connected().bounds(self.options.topics)

    def _connected(self) -> ClusterLink:
        if self._link is None:
            self._link = ClusterLink(self.options.servers)
        return self._link

    def initialOffset(self) -> OffsetsAsJson:
        """Where a query without a checkpoint begins. Raises UsageError for topics and queues that are not there."""
        link = self._connected()
        bounds = link.bounds(self.options.topics)
        offsets = self.options.starting.offsets(bounds, link.search)
        return as_json(
            offsets,
            {queue: self._mark(queue, offset) for queue, offset in offsets.items() if offset > bounds[queue][0]},
        )

    def getDefaultReadLimit(self) -> ReadLimit:
        """The limit of the option maxOffsetsPerTrigger."""
        limit = self.options.max_offsets_per_trigger
        return ReadAllAvailable() if limit is None else ReadMaxRows(limit)

    def latestOffset(self, start: OffsetsAsJson, limit: ReadLimit) -> OffsetsAsJson:
        """How far the next batch reads. Raises LostMessages when messages were deleted that it had not read."""
        bounds = self._bounds()
        begins, marks = from_json(start), marks_from_json(start)
        # 1. Queues that are gone, and queues that were made again.
        ends = dict(begins)
        anew = self._made_anew(begins, marks, bounds)
        here = {queue: begin for queue, begin in begins.items() if queue in bounds and queue not in anew}
        first = without_deleted(here, bounds, self.options.fail_on_data_loss)
        # 2. How far each can be read.
        for queue, (least, end) in bounds.items():
            if queue not in begins:
                if self._target is None or queue in self._target:
                    ends[queue] = least  # a new queue: the next batch reads from here
            elif queue in anew:
                ends[queue] = least  # a topic that was made again, and losses are allowed: the next batch begins there
            elif self._target is not None:
                ends[queue] = max(min(self._target.get(queue, begins[queue]), end), begins[queue])
            else:
                ends[queue] = end
        self._seen = as_json(ends)
        # 3. The limit shortens the batch.
        if isinstance(limit, ReadMaxRows):
            ends.update(cut(first, ends, limit.max_rows))
        elif not isinstance(limit, ReadAllAvailable):
            raise UsageError(f"the limit {limit} is not supported", hint="option maxOffsetsPerTrigger sets one")
        # 4. What was read last of each queue, if the batch reads of it.
        read = {queue: end for queue, end in ends.items() if queue in here and end > begins[queue]}
        kept = {queue: mark for queue, mark in marks.items() if queue not in anew}
        self._planned = as_json(ends, {**kept, **{queue: self._mark(queue, end) for queue, end in read.items()}})
        return self._planned

    def _made_anew(self, begins: Offsets, marks: Mapping[MessageQueue, int], bounds: Bounds) -> list[MessageQueue]:
        """The queues of which not the messages were read that are in them now. Raises LostMessages; see ``_lost``."""
        anew = []
        for queue, begin in begins.items():
            if queue not in bounds:
                self._lost(f"there is no queue {queue!r} any more; it had been read up to {begin}")
                continue
            least, end = bounds[queue]
            if end < begin:
                self._lost(
                    f"{queue!r} ends at {end}, it had been read up to {begin}: its broker has lost the end of its log, "
                    "or the topic was created again"
                )
                anew.append(queue)
            elif end > begin > least and self._is_another(queue, begin, marks.get(queue)):
                self._lost(
                    f"{queue!r} had been read up to {begin}, and message {begin - 1} is another one now: the topic was "
                    f"created again; the queue now has {least} to {end}"
                )
                anew.append(queue)
        return anew

    def _mark(self, queue: MessageQueue, offset: int) -> int | None:
        return mark_before(self._connected(), queue, offset, self.options.group)

    def _is_another(self, queue: MessageQueue, offset: int, mark: int | None) -> bool:
        """Whether the message before an offset is not the one that was marked. One that is gone tells nothing."""
        now = None if mark is None else self._mark(queue, offset)
        return now is not None and now != mark

    def _lost(self, what: str) -> None:
        report_loss(what, self.options.fail_on_data_loss)

    def prepareForTriggerAvailableNow(self) -> None:
        """The query ends where the queues end now."""
        self._target = {queue: end for queue, (_, end) in self._bounds().items()}

    def reportLatestOffset(self) -> OffsetsAsJson | None:
        """How far the queues could be read when Spark last asked; the query's progress shows it."""
        return self._seen

    def partitions(self, start: OffsetsAsJson, end: OffsetsAsJson) -> list[InputPartition]:
        """The tasks of one batch. A batch that is read again after a restart may have lost messages meanwhile."""
        begins, ends = from_json(start), from_json(end)
        changed = {queue: offset for queue, offset in ends.items() if begins.get(queue, offset) < offset}
        bounds = self._bounds()
        for queue in [queue for queue in changed if queue not in bounds]:
            self._lost(f"there is no queue {queue!r} any more; {begins[queue]} to {changed[queue]} were to be read")
            del changed[queue]
        if end != self._planned:  # planned by a process that is gone: the topic may have been made again meanwhile
            marks = marks_from_json(end)
            for queue, offset in list(changed.items()):
                if self._is_another(queue, offset, marks.get(queue)):
                    self._lost(
                        f"message {offset - 1} of {queue!r} is not the one that was to be read: the topic was "
                        "created again"
                    )
                    del changed[queue]
        first = without_deleted({queue: begins[queue] for queue in changed}, bounds, self.options.fail_on_data_loss)
        return tasks_of(first, {queue: end for queue, end in changed.items() if first[queue] < end}, self.parallelism)

    def read(self, partition: InputPartition) -> Iterator[pyarrow.RecordBatch]:
        """The batches of one task. Raises LostMessages, RemotingError when a broker cannot be reached."""
        return read_pieces(partition, self.options, self.names)

    def stop(self) -> None:
        """Close the connections of the driver."""
        if self._link is not None:
            self._link.close()
            self._link = None


def cut(begins: Mapping[MessageQueue, int], ends: Offsets, limit: int) -> Offsets:
    """The ends of queues with something to read so that together they have ``limit`` messages or less.

    Each queue gives in proportion to its backlog, but at least one: no queue waits for the others.

    >>> a, b = MessageQueue("orders", "broker-a", 0), MessageQueue("orders", "broker-a", 1)
    >>> cut({a: 0, b: 10}, {a: 300, b: 110}, 40)
    {orders broker-a 0: 30, orders broker-a 1: 20}
    """
    backlog = {queue: ends[queue] - begin for queue, begin in begins.items() if ends[queue] > begin}
    total = sum(backlog.values())
    if total <= limit:
        return {}
    return {queue: begins[queue] + max(limit * size // total, 1) for queue, size in backlog.items()}
