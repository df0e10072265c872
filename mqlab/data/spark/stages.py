"""What Spark did for a query, stage by stage: tasks, rows that moved between them, and the slowest task of each.

Mirrors: the page "Stages" of Spark's own user interface, as a table.

    stages_of(lambda: frame.collect())

    stage  tasks  rows_in  rows_out  median_rows  most_rows   task_s  slowest_s
        7      8        0        32            0          0     0.91       0.20     reads the log, counts its piece
        8      2       32         0           16         20     0.03       0.02     adds the counts up

``session(ui=True)`` starts Spark with that interface; ``session().sparkContext.uiWebUrl`` is its address.
Left out: a Spark Connect server, which keeps this to itself; rows that a source has read.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from mqlab.data.spark.shipping import is_remote
from mqlab.errors import UsageError

if TYPE_CHECKING:
    import pandas

COMPLETE, MOST_TASKS = "COMPLETE", 10_000
FLUSH_MS = 10_000
COLUMNS = ("stage", "tasks", "rows_in", "rows_out", "median_rows", "most_rows", "task_s", "slowest_s")


def stages_of(action: Callable[[], Any]) -> pandas.DataFrame:
    """Run an action on frames, such as ``lambda: frame.collect()``, and return one row per stage that ran for it.

        stage, tasks            the number that Spark gave it, and how many tasks it had
        rows_in, rows_out       rows that its tasks read from, and wrote for, other tasks: what moved between them
        median_rows, most_rows  rows_in of a task: of the middle one, and of the one that got most
        task_s, slowest_s       seconds of all its tasks together, and of the slowest one

    A stage whose result was there already is skipped by Spark and has no row. Stages of other queries that run at the
    same time are among the rows. Raises UsageError for a session of Spark Connect.
    """
    import pandas

    from mqlab.data.spark.session import session

    spark = session()
    if is_remote(spark):
        raise UsageError(
            "a Spark Connect server does not say what its stages did",
            hint="use a session of your own: session('local[*]')",
        )
    context = spark.sparkContext._jsc.sc()
    before = {stage.stageId() for stage in _stages(context)}
    action()
    new = [stage for stage in _stages(context) if stage.stageId() not in before]
    complete = [stage for stage in new if stage.status().toString() == COMPLETE]
    rows = [_row(context, stage) for stage in sorted(complete, key=lambda stage: stage.stageId())]
    return pandas.DataFrame(rows, columns=list(COLUMNS))


def _stages(context: Any) -> list[Any]:
    """The stages that Spark remembers, after everything that was reported has arrived."""
    context.listenerBus().waitUntilEmpty(FLUSH_MS)
    stage_list = context.statusStore().stageList(None, False, False, _no_quantiles(context), None)
    return [stage_list.apply(number) for number in range(stage_list.size())]


def _no_quantiles(context: Any) -> Any:
    from pyspark import SparkContext

    gateway = SparkContext._gateway
    assert gateway is not None
    return gateway.new_array(gateway.jvm.double, 0)


def _row(context: Any, stage: Any) -> dict[str, Any]:
    task_list = context.statusStore().taskList(stage.stageId(), stage.attemptId(), MOST_TASKS)
    tasks = [task_list.apply(number) for number in range(task_list.size())]
    rows = [_read(task) for task in tasks]
    times = [task.duration().get() / 1000 for task in tasks if task.duration().isDefined()]
    return {
        "stage": stage.stageId(),
        "tasks": stage.numTasks(),
        "rows_in": stage.shuffleReadRecords(),
        "rows_out": stage.shuffleWriteRecords(),
        "median_rows": int(statistics.median(rows or [0])),
        "most_rows": max(rows, default=0),
        "task_s": round(sum(times), 2),
        "slowest_s": round(max(times, default=0), 2),
    }


def _read(task: Any) -> int:
    """Rows that a task has read from other tasks."""
    metrics = task.taskMetrics()
    return int(metrics.get().shuffleReadMetrics().recordsRead()) if metrics.isDefined() else 0
