"""Spark's plan of a DataFrame in lines that fit a notebook, as a string.

The text is Spark's own; only its layout changes.

    frame.explain()    BatchScan rocketmq[topic#203, queue_id#204, …, body_length#225] (Python) RuntimeFilters: []
    plan_of(frame)     BatchScan rocketmq[topic, queue_id, …,
                          body_length]

A scan of rocketmq that reads columns which the query does not use is followed by a hint: Spark does not tell a Python
source what a query needs, and the option columns does.

Left out: the logical plans, and what Spark changes while a query runs.
"""

from __future__ import annotations

import contextlib
import io
import re
import textwrap
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyspark.sql import DataFrame

PLAN_COLUMNS = 92
_SCAN = re.compile(r"BatchScan rocketmq\[([^\]]*)\]")
_NUMBERS = re.compile(r"(?<=[\w)])#\d+L?|, \[plan_id=\d+\]| \(Python\)| RuntimeFilters: \[\]")


def plan_of(frame: DataFrame) -> str:
    """The output of ``frame.explain()`` without the numbers of columns and steps, with long lines folded.

    Hints about columns that are read for nothing come last.
    """
    with contextlib.redirect_stdout(io.StringIO()) as printed:
        frame.explain()
    plan = printed.getvalue().strip()
    lines = [fold(_NUMBERS.sub("", line)) for line in plan.splitlines()]
    return "\n".join(lines + [fold(hint) for hint in unused_columns(plan, frame.columns)])


def unused_columns(plan: str, results: Sequence[str]) -> list[str]:
    """A hint for each scan of rocketmq that reads columns which no step names and the results do not have.

    >>> unused_columns("Project [topic#1]\\n+- BatchScan rocketmq[topic#1, body#2]", ["topic"])
    ['Hint: the scan reads 2 columns, and 1 of them is used: .option("columns", "topic") reads less']
    """
    # A column has one number in the whole plan: a step that uses it says so by this number.
    used = set(re.findall(r"\w+#\d+", _SCAN.sub("", plan)))
    hints = []
    for scan in dict.fromkeys(_SCAN.findall(plan)):
        read = re.findall(r"(\w+)#(\d+)", scan)
        needed = [name for name, number in read if name in results or f"{name}#{number}" in used]
        if len(needed) < len(read):
            columns = ",".join(needed or [read[0][0]])
            how_many = f"{len(needed) or 'none'} of them {'are' if needed[1:] else 'is'} used"
            hints.append(
                f'Hint: the scan reads {len(read)} columns, and {how_many}: .option("columns", "{columns}") reads less'
            )
    return hints


def fold(line: str) -> str:
    """A line of a plan in lines that fit; continued lines are indented further than the step's name.

    >>> print(fold("   +- BatchScan rocketmq[" + ", ".join(["store_timestamp"] * 6) + "]"))
       +- BatchScan rocketmq[store_timestamp, store_timestamp, store_timestamp, store_timestamp,
             store_timestamp, store_timestamp]
    """
    further_in = " " * (len(line) - len(line.lstrip(" :|+-")) + 3)
    return textwrap.fill(
        line, PLAN_COLUMNS, subsequent_indent=further_in, break_long_words=False, break_on_hyphens=False
    )
