"""Spark's plan of a DataFrame in lines that fit a notebook, as a string.

The text is Spark's own; only its layout changes.

    frame.explain()    BatchScan rocketmq[topic#203, queue_id#204, …, body_length#225] (Python) RuntimeFilters: []
    plan_of(frame)     BatchScan rocketmq[topic, queue_id, …,
                          body_length]

Left out: the logical plans, and what Spark changes while a query runs.
"""

from __future__ import annotations

import contextlib
import io
import re
import textwrap
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

PLAN_COLUMNS = 92
_NUMBERS = re.compile(r"(?<=[\w)])#\d+L?|, \[plan_id=\d+\]| \(Python\)| RuntimeFilters: \[\]")


def plan_of(frame: DataFrame) -> str:
    """The output of ``frame.explain()`` without the numbers of columns and steps, with long lines folded."""
    with contextlib.redirect_stdout(io.StringIO()) as printed:
        frame.explain()
    lines = printed.getvalue().strip().splitlines()
    return "\n".join(fold(_NUMBERS.sub("", line)) for line in lines)


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
