"""Messages of stores, chosen by a condition of which the source takes as much as it can, before Spark sees a row.

    messages("run", where="topic = 'orders' AND queue_id IN (0, 1) AND tags = 'paid'", columns="keys, body")

    condition                                   the source's option      left to Spark
    topic = 'orders', topic IN (...)            topic
    queue_id = 0, queue_id IN (...)             queues
    store_timestamp >= ..., <, BETWEEN          startTime, endTime
    tags = 'paid', OR, NOT, functions                                    all of it
    the columns of the condition, and columns=  columns

Spark tells a source that is written in Python neither the columns nor the condition of a query; a Parquet file gets
both. Spark checks the whole condition again, so that what the source takes changes the cost and never the answer.

Left out: the client of a Spark Connect server cannot look into a condition; there the source reads all.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from mqlab.data.arrow.columns import COLUMNS, schema
from mqlab.data.arrow.stores import StorePath
from mqlab.data.spark.option_values import words_of
from mqlab.data.spark.shipping import is_remote

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

# Comparisons with the column on the right, as the same with the column on the left.
MIRRORED = {
    "GreaterThan": "LessThan",
    "LessThan": "GreaterThan",
    "GreaterThanOrEqual": "LessThanOrEqual",
    "LessThanOrEqual": "GreaterThanOrEqual",
    "EqualTo": "EqualTo",
}
# A constant is made of these. What depends on the moment of the query, such as now(), is left to Spark.
CONSTANTS = {"Literal", "Cast", "Add", "Subtract", "TimestampAddInterval"}


def messages(
    paths: StorePath | Sequence[StorePath],
    where: str | Column | None = None,
    columns: str | Sequence[str] | None = None,
) -> DataFrame:
    """The messages under ``paths`` for which ``where`` is true, with these columns (default: all).

    ``paths`` as for ``load``; ``where`` is a condition in SQL or a Column; ``columns`` are names, or "keys, body".
    ``plan_of`` shows what the source reads. Raises UsageError for an unknown column or topic, and Spark's
    AnalysisException for a condition that is none.
    """
    from mqlab.data.spark.session import session

    several = [paths] if isinstance(paths, str) or hasattr(paths, "__fspath__") else list(paths)
    names = schema(words_of({"columns": columns}, "columns") if isinstance(columns, str) else columns).names
    reader = session().read.format("rocketmq")
    everything = reader.load([str(path) for path in several])
    if where is None:
        return reader.option("columns", ",".join(names)).load([str(path) for path in several])
    filtered = everything.where(where)
    if is_remote(session()):
        return filtered.select(*names)
    condition = filtered._jdf.queryExecution().analyzed().condition()
    used = [name for name in COLUMNS if name in names or name in _columns_of(condition)]
    for option, value in {"columns": ",".join(used), **options_of(condition)}.items():
        reader = reader.option(option, value)
    return reader.load([str(path) for path in several]).where(where).select(*names)


def options_of(condition: Any) -> dict[str, str]:
    """The options that a condition of Spark allows: each keeps all rows for which the condition can be true.

    ``condition`` is an expression of an analysed plan, in the JVM.
    """
    options: dict[str, str] = {}
    starts, ends = [], []
    for column, kind, values in _comparisons(condition):
        if column == "topic" and kind in ("EqualTo", "In") and not any("," in value for value in values):
            options.setdefault("topic", ",".join(values))
        elif column == "queue_id" and kind in ("EqualTo", "In") and min(values) >= 0:
            options.setdefault("queues", ",".join(map(str, values)))
        elif column == "store_timestamp" and kind != "In":
            # Brokers count whole milliseconds, Spark microseconds: a limit moves to the next whole millisecond.
            ceiling, after = -(-values[0] // 1000), values[0] // 1000 + 1
            if kind in ("EqualTo", "GreaterThanOrEqual", "GreaterThan"):
                starts.append(after if kind == "GreaterThan" else ceiling)
            if kind in ("EqualTo", "LessThanOrEqual", "LessThan"):
                ends.append(ceiling if kind == "LessThan" else after)
    if starts:
        options["startTime"] = str(max(starts))
    if ends:
        options["endTime"] = str(min(ends))
    return options


def _comparisons(condition: Any, referred: str | None = None) -> Iterator[tuple[str, str, list[Any]]]:
    """The comparisons with constants that must all be true: a column, how it is compared, and the constants.

    ``referred`` is the column that a part of BETWEEN refers to.
    """
    kind, children = _kind(condition), _children(condition)
    if kind == "And":
        for child in children:
            yield from _comparisons(child, referred)
    elif kind == "Between":
        both, definition = _children(children[0])
        of = _children(definition)[0]
        if _kind(of) == "AttributeReference":
            yield from _comparisons(both, of.name())
    elif kind == "In" or kind in MIRRORED:
        if kind != "In" and _is_constant(children[0]):
            kind, children = MIRRORED[kind], children[::-1]
        column = _column(children[0], referred)
        values = [_value(child) for child in children[1:]]
        # A comparison with null is never true, which Spark knows better.
        if column is not None and values and None not in values:
            yield column, kind, values


def _column(expression: Any, referred: str | None) -> str | None:
    kind = _kind(expression)
    return expression.name() if kind == "AttributeReference" else referred if kind == "CommonExpressionRef" else None


def _value(expression: Any) -> Any:
    """The value of a constant; None for null, and for what is not constant or has no value."""
    from py4j.protocol import Py4JJavaError

    if not _is_constant(expression):
        return None
    try:
        value = expression.eval(None)
    except Py4JJavaError:  # a text that is not a number: Spark says so when the query runs
        return None
    # A text of Spark's is an object of the JVM, a number is a number of Python.
    return value if value is None or isinstance(value, int) else value.toString()


def _is_constant(expression: Any) -> bool:
    return _kind(expression) in CONSTANTS and all(map(_is_constant, _children(expression)))


def _columns_of(condition: Any) -> set[str]:
    """The names of the columns that a condition looks at."""
    if _kind(condition) == "AttributeReference":
        return {condition.name()}
    return {name for child in _children(condition) for name in _columns_of(child)}


def _kind(expression: Any) -> str:
    return str(expression.getClass().getSimpleName())


def _children(expression: Any) -> list[Any]:
    children = expression.children()
    return [children.apply(number) for number in range(children.size())]
