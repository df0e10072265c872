"""The work of one Spark task of the data source, and how much it reads.

Lab 10 counts the tasks of a read.

    ranges of one log, or of several brokers' ── together ──> a task: about splitMB of log, by default a share of it all

Left out: the choice of where a task runs, because every executor must reach the store under the same path.
"""

from __future__ import annotations

import gc
import os
from collections.abc import Iterator, Sequence

import pyarrow
from pyspark import TaskContext
from pyspark.sql.datasource import InputPartition

from mqlab.data.arrow.ranges import LogRange, together
from mqlab.data.arrow.reading import Selection, read_range

LARGEST_SPLIT = 128 << 20


class Ranges(InputPartition):
    """The ranges of one task."""

    def __init__(self, ranges: list[LogRange]) -> None:
        super().__init__(ranges)


def tasks(ranges: Sequence[LogRange], target_bytes: int) -> list[InputPartition]:
    """The ranges in groups of about ``target_bytes``."""
    return [Ranges(group) for group in together(list(ranges), target_bytes)]


def split_bytes(total: int, parallelism: int | None, tasks_per_core: int, smallest: int) -> int:
    """How much of ``total`` bytes one task should read: an equal share for so many tasks per core, within bounds.

    ``parallelism`` is how many tasks the session runs at once; None: as many as this machine has cores.

    >>> split_bytes(150 << 20, 2, 4, 16 << 20) / (1 << 20)
    18.75
    """
    return min(max(total // (tasks_per_core * (parallelism or os.cpu_count() or 1)), smallest), LARGEST_SPLIT)


def read_task(partition: InputPartition, names: Sequence[str], selection: Selection) -> Iterator[pyarrow.RecordBatch]:
    """The batches of one task. Raises CorruptionError with file and physical offset."""
    freeze_once()
    # When there is nothing to read, Spark makes one partition of its own with None.
    for where in partition.value or []:
        yield from read_range(where, names, selection)


_frozen = False


def freeze_once() -> None:
    """Take a worker's imported modules out of garbage collection, which Spark's worker runs after every task.

    In any other process it does nothing: frozen objects are not freed at the end, and libraries (DuckDB's nanobind)
    print long warnings about them.
    """
    global _frozen
    if not _frozen and TaskContext.get() is not None:
        gc.freeze()
        _frozen = True
