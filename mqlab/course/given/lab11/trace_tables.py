"""The trace of clients as tables: entries of a body, calls of listeners, and the frames that answers of lab 11 get.

    message of the trace topic ── read_entries ──▶ one row per entry        entries(body), as a learner writes it
    all of a day's entries     ── calls_of ──────▶ one row per call and message in it
    stores                     ── rows_of_calls and others ──▶ an answer's DataFrame as rows

The tables are lists of dictionaries; a function of DataFrames gets them as frames of the session. Times are ms since
1970. ``forgets=10`` leaves out every tenth trace message, as if it had been lost on its way to the broker.

Mirrors: TraceDataEncoder.decoderFromTraceDataString; mqadmin queryMsgTraceById, for all messages.
Left out: Recall entries, what a cloud's trace adds; two messages of one call that have the same id.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from mqlab.rocketmq.client.sending.trace import CONTENT_SPLITTER, FIELD_SPLITTER
from mqlab.rocketmq.wire import names

Row = dict[str, Any]

FIELDS: Mapping[str, Mapping[str, int]] = {
    "Pub": {"time_ms": 1, "group_name": 3, "msg_id": 5, "keys": 7, "cost_ms": 10, "success": 13},
    "SubBefore": {"time_ms": 1, "group_name": 3, "request_id": 4, "msg_id": 5, "retry_times": 6, "keys": 7},
    "SubAfter": {
        "request_id": 1,
        "msg_id": 2,
        "cost_ms": 3,
        "success": 4,
        "keys": 5,
        "time_ms": 7,
        "group_name": 8,
    },
    "EndTransaction": {"time_ms": 1, "group_name": 3, "msg_id": 5, "keys": 7},
}
"""Kind of entry -> column -> number of its field; the kind itself is field 0."""
FEWEST: Mapping[str, int] = {"Pub": 13, "SubBefore": 8, "SubAfter": 6, "EndTransaction": 13}
NUMBERS = ("time_ms", "cost_ms", "retry_times")
COLUMNS = (
    "position",
    "kind",
    "time_ms",
    "group_name",
    "request_id",
    "msg_id",
    "keys",
    "cost_ms",
    "retry_times",
    "success",
    "reason",
)
NO_END_MARK, UNKNOWN_KIND, TOO_SHORT, NOT_A_NUMBER = "no end mark", "unknown kind", "too short", "not a number"
SUCCESS, FAILED, NO_RESULT = "SUCCESS", "FAILED", "NO_RESULT"

ENTRIES = (
    "broker_name STRING, trace_msg_id STRING, position INT, kind STRING, time_ms BIGINT, group_name STRING,"
    " request_id STRING, msg_id STRING, keys STRING, cost_ms BIGINT, retry_times INT, success BOOLEAN, reason STRING"
)
CALLS = (
    "group_name STRING, request_id STRING, msg_id STRING, keys STRING, retry_times INT, started_ms BIGINT,"
    " ended_ms BIGINT, status STRING"
)


def read_entries(body: bytes) -> list[Row]:
    """The entries of one trace body, in order. What cannot be read is a row with its position and the reason.

    >>> read_entries(b"SubBefore\\x011767\\x01R\\x01billing\\x01A0\\x01B0\\x010\\x01order-1\\x02")[0]["keys"]
    'order-1'
    """
    *whole, rest = body.split(FIELD_SPLITTER.encode())
    rows = [_read(position, _fields(piece)) for position, piece in enumerate(whole)]
    return [*rows, _unread(len(whole), NO_END_MARK)] if rest else rows


def _fields(piece: bytes) -> list[str]:
    return piece.decode("utf-8", "replace").split(CONTENT_SPLITTER)


def _unread(position: int, reason: str) -> Row:
    return dict.fromkeys(COLUMNS) | {"position": position, "reason": reason}


def _read(position: int, field: list[str]) -> Row:
    columns = FIELDS.get(field[0])
    if columns is None:
        return _unread(position, UNKNOWN_KIND)
    if len(field) < FEWEST[field[0]]:
        return _unread(position, TOO_SHORT)
    texts = {name: field[index] for name, index in columns.items() if index < len(field)}
    if field[0] == "Pub" and len(field) == FEWEST["Pub"]:  # of a release that did not write the offset_msg_id
        texts["success"] = field[-1]
    if not all(texts[name].isascii() and texts[name].isdigit() for name in NUMBERS if name in texts):
        return _unread(position, NOT_A_NUMBER)
    row: Row = {name: None if text == "null" else text for name, text in texts.items()}
    row |= {name: int(texts[name]) for name in NUMBERS if name in texts}
    if "success" in texts:
        row["success"] = texts["success"] == "true"
    return dict.fromkeys(COLUMNS) | {"position": position, "kind": field[0]} | row


def trace_bodies(path: str | Path) -> list[Row]:
    """The messages of the trace topic: broker_name, trace_msg_id and body, in the order of brokers and logs."""
    from mqlab.data.arrow import Selection, read_table

    chosen = Selection(topics=(names.TRACE_TOPIC,))
    table = read_table(str(path), ("broker_name", "msg_id", "body"), chosen)
    rows: list[Row] = table.rename_columns(["broker_name", "trace_msg_id", "body"]).to_pylist()
    return rows


def entries_in(
    path: str | Path, *, forgets: int = 0, read: Callable[[bytes], Iterable[Row]] = read_entries
) -> list[Row]:
    """The entries of all trace messages under a path, each with the broker and the id of the message that has it."""
    return [
        {"broker_name": message["broker_name"], "trace_msg_id": message["trace_msg_id"], **entry}
        for number, message in enumerate(trace_bodies(path), 1)
        if not forgets or number % forgets
        for entry in read(message["body"])
    ]


def calls_of(entries: Iterable[Row]) -> list[Row]:
    """One row per call of a listener and message in it, in the order of their beginnings."""
    began: dict[tuple[str, str], Row] = {}
    ended: dict[tuple[str, str], Row] = {}
    for entry in entries:
        halves = {"SubBefore": began, "SubAfter": ended}.get(entry["kind"])
        if halves is not None:
            halves[entry["request_id"], entry["msg_id"]] = entry
    calls = [call_row(before, ended.get(call)) for call, before in began.items()]
    return sorted(calls, key=lambda row: (row["started_ms"], row["request_id"], row["msg_id"]))


def call_row(before: Row, after: Row | None) -> Row:
    """A row of CALLS, of both halves of a call; ``after`` None: nothing came back."""
    row = {name: before[name] for name in ("group_name", "request_id", "msg_id", "keys", "retry_times")}
    row |= {"started_ms": before["time_ms"], "ended_ms": None, "status": NO_RESULT}
    if after is not None:
        # An old client tells how long it took and not when it was.
        by_cost = before["time_ms"] + after["cost_ms"]
        row["ended_ms"] = by_cost if after["time_ms"] is None else after["time_ms"]
        row["status"] = SUCCESS if after["success"] else FAILED
    return row


def calls_in(path: str | Path, *, forgets: int = 0) -> list[Row]:
    """What ``calls_of`` makes of the entries under a path."""
    return calls_of(entries_in(path, forgets=forgets))


def rows_of_calls(function: Callable[..., Any], path: str | Path, *, forgets: int = 0) -> list[Row]:
    """The rows of ``function(entries)``, where ``entries`` are those of all stores under a path.

    Raises UsageError when the function returns anything but a DataFrame.
    """
    from mqlab.data.spark import rows_of, session

    entries = session().createDataFrame(entries_in(path, forgets=forgets), ENTRIES)

    @functools.wraps(function)
    def answer(messages: Any) -> Any:
        return function(entries)

    return rows_of(answer, path)


def rows_of_life(
    function: Callable[..., Any],
    path: str | Path,
    trace: str | Path | None = None,
    offsets: str | Path | None = None,
    *,
    forgets: int = 0,
) -> list[Row]:
    """The rows of ``function(messages, calls, committed)`` for the stores under a path.

    ``messages`` are all of the log that are not trace; a message without keys has the keys "", as in a trace.
    ``committed`` is the table of lab 12's board. ``trace`` and ``offsets``: stores whose trace and offsets are read
    instead. Raises UsageError when the function returns anything but a DataFrame.
    """
    from mqlab.course.given.lab11.lag_board import COMMITTED, offsets_in
    from mqlab.data.spark import rows_of, session

    calls = session().createDataFrame(calls_in(path if trace is None else trace, forgets=forgets), CALLS)
    committed = session().createDataFrame(offsets_in(path if offsets is None else offsets), COMMITTED)

    @functools.wraps(function)
    def answer(messages: Any) -> Any:
        return function(_without_trace(messages), calls, committed)

    return rows_of(answer, path)


def rows_with_calls(function: Callable[..., Any], path: str | Path, trace: str | Path | None = None) -> list[Row]:
    """The rows of ``function(messages, calls)``, with the tables of rows_of_life."""

    @functools.wraps(function)
    def answer(messages: Any, calls: Any, _committed: Any) -> Any:
        return function(messages, calls)

    return rows_of_life(answer, path, trace)


def rows_with_trace(function: Callable[..., Any], path: str | Path) -> list[Row]:
    """The rows of ``function(messages, calls)``, with the tables of rows_of_life, and the trace among the messages."""
    from mqlab.data.spark import rows_of, session

    calls = session().createDataFrame(calls_in(path), CALLS)

    @functools.wraps(function)
    def answer(messages: Any) -> Any:
        return function(_keys_as_in_a_trace(messages), calls)

    return rows_of(answer, path)


def rows_of_group(function: Callable[..., Any], path: str | Path, group: str, tags: Sequence[str]) -> list[Row]:
    """The rows of ``function(messages, calls, tags)``, with the tables of rows_of_life and the calls of one group."""

    @functools.wraps(function)
    def answer(messages: Any, calls: Any, _committed: Any) -> Any:
        return function(messages, calls.where(calls.group_name == group), list(tags))

    return rows_of_life(answer, path)


def _without_trace(messages: Any) -> Any:
    return _keys_as_in_a_trace(messages.where(f"topic != '{names.TRACE_TOPIC}'"))


def _keys_as_in_a_trace(messages: Any) -> Any:
    from pyspark.sql import functions

    return messages.withColumn("keys", functions.coalesce("keys", functions.lit("")))
