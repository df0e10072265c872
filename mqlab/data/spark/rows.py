"""The answer of a function of DataFrames about a store, as plain rows.

The checks of lab 10 compare such rows and never a printed table.

    store directory ── rocketmq ──▶ DataFrame ── function ──▶ DataFrame ── collect ──▶ [{"topic": "orders", ...}, ...]

Left out: functions of several stores; a folder of stores is read as one.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from mqlab.errors import UsageError


def rows_of(function: Callable[..., Any], path: str | Path, *arguments: Any) -> list[dict[str, Any]]:
    """The rows of ``function(messages, *arguments)``, where ``messages`` are all messages stored under ``path``.

    Each row is a dictionary of column names and plain values. Raises UsageError when the function returns anything but
    a DataFrame.
    """
    from pyspark.sql import DataFrame

    from mqlab.data.spark.session import session

    answer = function(session().read.format("rocketmq").load(str(path)), *arguments)
    if not isinstance(answer, DataFrame):
        name = getattr(function, "__name__", "the function")
        raise UsageError(
            f"{name} returned {_kind(answer)}: expected a DataFrame of Spark",
            hint="leave out what ends the recipe: collect(), toPandas(), count(), show()",
        )
    return [row.asDict(recursive=True) for row in answer.collect()]


def _kind(answer: Any) -> str:
    """The kind of a value in words, which distinguish a DataFrame of pandas from one of Spark.

    >>> _kind(None), _kind([])
    ('nothing', 'a list')
    """
    if answer is None:
        return "nothing"
    library, name = type(answer).__module__.partition(".")[0], type(answer).__name__
    return f"a {name}" if library in ("builtins", "pyspark") else f"a {name} of {library}"
