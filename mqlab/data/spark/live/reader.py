"""A batch read of a cluster: bounds of every queue on the driver, pulls in the tasks.

    driver   bounds of all queues ── startingOffsets, endingOffsets ──> pieces ── in groups ──> tasks
    task     its own connections ── piece after piece ──> RecordBatches

A read is a snapshot: it ends where the queues ended when it was planned. Small queues share a task, long ones are cut.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence

import pyarrow
from pyspark.sql.datasource import DataSourceReader, InputPartition

from mqlab.data.arrow.ranges import together
from mqlab.data.spark.live.link import ClusterLink
from mqlab.data.spark.live.options import LiveOptions
from mqlab.data.spark.live.places import Bounds, Offsets
from mqlab.data.spark.live.pulled import QueueStretch, read_piece, report_loss
from mqlab.data.spark.tasks import freeze_once
from mqlab.errors import UsageError
from mqlab.rocketmq.wire.message import MessageQueue

SMALLEST_TASK, LARGEST_TASK = 5_000, 200_000  # messages


class Pieces(InputPartition):
    """The pieces of one task."""

    def __init__(self, pieces: list[QueueStretch]) -> None:
        super().__init__(pieces)


def tasks_of(begins: Mapping[MessageQueue, int], ends: Offsets, parallelism: int | None) -> list[InputPartition]:
    """The queues between these offsets as tasks: an equal share for each that runs at once, within bounds."""
    total = sum(max(end - begins[queue], 0) for queue, end in ends.items())
    share = -(-total // (parallelism or os.cpu_count() or 1))
    target = min(max(share, SMALLEST_TASK), LARGEST_TASK)
    pieces = [
        QueueStretch(queue, start, min(start + target, ends[queue]))
        for queue in sorted(ends)
        for start in range(begins[queue], ends[queue], target)
    ]
    return [Pieces(group) for group in together(pieces, target)]


def without_deleted(begins: Mapping[MessageQueue, int], bounds: Bounds, fail_on_data_loss: bool) -> Offsets:
    """The begins, moved to the first message that is there. Raises LostMessages unless that is allowed."""
    moved = dict(begins)
    for queue, begin in begins.items():
        first, end = bounds[queue]
        if begin < first:
            report_loss(
                f"messages {begin} to {first} of {queue!r} were deleted before they were read; "
                f"the queue now has {first} to {end}",
                fail_on_data_loss,
            )
            moved[queue] = first
    return moved


def read_pieces(partition: InputPartition, options: LiveOptions, names: Sequence[str]) -> Iterator[pyarrow.RecordBatch]:
    """The batches of one task."""
    freeze_once()
    # When there is nothing to read, Spark makes one partition of its own with None.
    if not partition.value:
        return
    with ClusterLink(options.servers) as link:
        for piece in partition.value:
            yield from read_piece(link, piece, names, options.group, options.tags, options.fail_on_data_loss)


class LiveReader(DataSourceReader):
    """Plans on the driver, reads in the tasks; picklable, without state."""

    def __init__(self, options: LiveOptions, names: Sequence[str], parallelism: int | None = None) -> None:
        options.check_batch()
        self.options = options
        self.names = list(names)
        self.parallelism = parallelism

    def partitions(self) -> list[InputPartition]:
        """Pieces of queues, decided now. Raises UsageError for topics, queues and offsets that are not there."""
        options = self.options
        with ClusterLink(options.servers) as link:
            bounds = link.bounds(options.topics)
            begins = options.starting.offsets(bounds, link.search)
            ends = options.ending.offsets(bounds, link.search)
        for queue, end in ends.items():
            # Times and words can cross each other without a mistake; two offsets cannot.
            if begins[queue] > end and queue in options.starting.named and queue in options.ending.named:
                raise UsageError(f"{queue!r} begins at {begins[queue]}, after its end at {end}")
        wanted = {queue: begin for queue, begin in begins.items() if begin < ends[queue]}
        begins = without_deleted(wanted, bounds, options.fail_on_data_loss)
        return tasks_of(begins, {queue: ends[queue] for queue in begins}, self.parallelism)

    def read(self, partition: InputPartition) -> Iterator[pyarrow.RecordBatch]:
        """The batches of one task. Raises LostMessages, RemotingError when a broker cannot be reached."""
        return read_pieces(partition, self.options, self.names)
