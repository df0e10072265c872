"""A job that gives a sink one batch after the other in a Lab, as a stream does, and can be killed anywhere.

    batches     [[row, ...], [row, ...]]      what is in the log, cut as the job reads it
    the job     sink(connection, batch_id, read) ─▶ returns ─▶ the checkpoint: batch_id is done ─▶ the next batch
    killed      the batch that the checkpoint does not know comes again, in a new process
    sold(lab)   the rows of the table sold in the sink's database

Lab 12 uses it, next to streams that Spark runs.
Mirrors: MicroBatchExecution of Spark: the offsets of a batch, the batch, its commit.
Left out: everything else of Spark.
"""

from __future__ import annotations

import sqlite3
from collections import Counter
from collections.abc import Callable, Collection, Sequence
from contextlib import closing
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from mqlab.lab.world.lab import Lab
    from mqlab.lab.world.story import Story

GROUP, NODE, DATABASE = "job", "job-1", "sink"
COLUMNS = ("broker_name", "physical_offset", "keys", "cents")
STEP_MS, PATIENCE_MS = 100, 4_000
MOST_ROWS = 10_000

Row = dict[str, Any]
Read = Callable[[], list[Row]]
Sink = Callable[[sqlite3.Connection, int, Read], object]


class BatchJob:
    """The job's process in a Lab, and its checkpoint, in which ``done`` batches are.

    ``calls``: number of a batch -> how often the sink was called with it.
    """

    def __init__(self, lab: Lab, batches: Sequence[Sequence[Row]], read: Callable[[int], Read] | None = None) -> None:
        self.lab, self.batches, self.done = lab, batches, 0
        self.calls: Counter[int] = Counter()
        self.raised: BaseException | None = None
        self.killed: list[int] = []  # the batches that were under way when the process died
        self._read = read or (lambda number: lambda: [dict(row) for row in batches[number]])
        if NODE not in lab.handles:
            lab.producer(GROUP)

    def run(
        self, sink: Callable[[], Sink], *, forgets: Collection[int] = (), died: Callable[[], None] = lambda: None
    ) -> None:
        """Batch after batch, until the checkpoint has all, or the sink raises. ``sink()`` is the sink of a new process.

        After a batch in ``forgets`` the process dies once before it reaches the checkpoint. ``died`` is called when the
        sink was killed, before the next process starts.
        """
        forgotten, steps = set(forgets), 100 * (1 + len(self.batches))
        of_process: Sink | None = None
        while self.done < len(self.batches) and self.raised is None and steps:
            steps -= 1
            if not self.lab.node_handle(NODE).is_up:
                self.lab.run_for(STEP_MS)
                continue
            of_process = of_process or sink()
            if not self._returned(of_process):
                of_process = None
                if self.raised is None:
                    self.killed.append(self.done)
                    died()
            elif self.done in forgotten:
                forgotten.discard(self.done)
                of_process = None
            else:
                self.done += 1

    def _returned(self, sink: Sink) -> bool:
        """Whether the sink has returned; it has not when its process was killed meanwhile, or when it raised."""
        number, ended = self.done, list[BaseException | None]()
        life = self.lab.world.nodes[NODE].incarnation

        def work() -> None:
            sink(self.lab.database(DATABASE).connect(), number, self._read(number))

        self.calls[number] += 1
        self.lab.start_work(NODE, work).then(lambda _: ended.append(None), ended.append)
        for _ in range(PATIENCE_MS // STEP_MS):
            self.lab.run_for(STEP_MS)
            if not self.lab.node_handle(NODE).is_up or self.lab.world.nodes[NODE].incarnation != life:
                return False
            if ended:
                break
        self.raised = ended[0] if ended else TimeoutError("the sink has not returned")
        return self.raised is None


def job_story(sink: Sink, batches: Sequence[Sequence[Row]]) -> Story:
    """The story of a job with this sink, for ``play``, ``every_crash`` and ``crash_matrix``; the node is job-1."""

    def story(lab: Lab) -> None:
        job = BatchJob(lab, batches)
        job.run(lambda: sink)
        if job.raised is not None:
            raise job.raised

    return story


def sold(lab: Lab) -> list[tuple[Any, ...]]:
    """The rows of the table sold: broker_name, physical_offset, keys, cents. Raises what sqlite3 raises without it."""
    with closing(sqlite3.connect(lab.database(DATABASE).path)) as connection:
        return connection.execute(f"SELECT {', '.join(COLUMNS)} FROM sold").fetchmany(MOST_ROWS)
