"""lab10.options: the options of a read that decodes no more than a query uses.

    a query ─▶ options (the answer) ─▶ parsed as the source parses them ─▶ the columns and messages they choose

Many dictionaries are right, so they are compared by what the source would do with them. No Spark is needed for that.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from datetime import datetime
from typing import Any

from mqlab.course.cases.forbids import FORBIDS
from mqlab.course.cases.lab10.days import day
from mqlab.course.cases.lab10.questions import messages
from mqlab.course.kit import OneOf, Pure, Slip
from mqlab.course.kit.shapes import Difference
from mqlab.course.teach.exercises import Call
from mqlab.errors import MqlabError

CHOICES = (
    ("queue_id", "body_length"),
    ("broker_name", "queue_id"),
    ("tags",),
    ("keys", "store_timestamp"),
    ("topic", "total_size"),
    ("msg_id", "born_timestamp", "reconsume_times"),
)
DAYS = 3  # the queries differ; the days need not
OPTIONS = {"topic", "queues", "startTime", "endTime", "columns"}


def calls(seed: int) -> Iterator[Call]:
    """Three queries of one of three days; two end when a message was stored, the third a millisecond later."""
    dice, store = random.Random(seed), day(seed % DAYS)
    for number, columns in enumerate(dice.sample(CHOICES, 3)):
        topic = dice.choice(("orders", "stock"))
        times = sorted(_ms(row) for row in messages(store) if row["topic"] == topic)
        begin, end = sorted(dice.sample(range(len(times)), 2))
        queues = sorted(dice.sample(range(4), 2))
        begin_ms, end_ms = times[begin], max(times[end], times[begin] + 1)
        if number == 2:
            of_queues = (_ms(row) for row in messages(store) if row["topic"] == topic and row["queue_id"] in queues)
            end_ms = max(begin_ms, *(ms for ms in of_queues if ms <= end_ms)) + 1
        right = {
            "topic": topic,
            "queues": ",".join(map(str, queues)),
            "startTime": str(begin_ms),
            "endTime": str(end_ms),
            "columns": ",".join(columns),
        }
        yield Call(
            topic=topic,
            queues=queues,
            begin_ms=begin_ms,
            end_ms=end_ms,
            columns=list(columns),
            right=right,
            given=store,
        )


def _first_difference(call: Call, answer: dict[str, Any]) -> Difference | None:
    """Options that are no texts, options that the source does not take, wrong columns, wrong messages."""
    from mqlab.data.spark.options import parse

    # 1. Texts, not lists, nor what str() makes of a list; numbers are taken for texts.
    for name, value in answer.items():
        if isinstance(value, list | tuple | set) or str(value)[:1] in ("[", "(", "{"):
            return Difference((f"option {name}",), "a list", call.right.get(name, "a text"), value)
    # 2. The source itself must accept the options.
    try:
        options = parse({"path": call.given, **{name: str(value) for name, value in answer.items()}})
    except MqlabError as error:
        part = "another name" if answer.keys() - OPTIONS else "another value"
        return Difference(("the options",), part, error.hint or "options that the source takes", error.text)
    # 3. They must decode exactly the columns that are used, and choose exactly the messages that were asked for.
    if sorted(options.columns) != sorted(call["columns"]):
        shown = answer.get("columns", "no option columns: all are decoded")
        return Difference(("option columns",), "columns", call.right["columns"], shown)
    selection = options.selection
    # Timestamps bound a read as times do: all messages of these stores are stored in the order of their times.
    begin_ms = selection.start_ms if options.starting.at_ms is None else options.starting.at_ms
    end_ms = selection.end_ms if options.ending.at_ms is None else options.ending.at_ms
    chosen = set(_chosen(call.given, selection.topics, selection.queues, begin_ms, end_ms))
    asked = (call["topic"],), tuple(call["queues"]), call["begin_ms"], call["end_ms"]
    expected = set(_chosen(call.given, *asked))
    for message in sorted(chosen ^ expected):
        stored_ms, topic, queue_id, broker_name, _ = message
        where = f"the message of {topic}, queue {queue_id} of {broker_name}, stored at {stored_ms}"
        part = "time" if topic == call["topic"] and queue_id in call["queues"] else "chosen"
        return Difference((where,), part, *(("read", "not read") if message in expected else ("not read", "read")))
    return None


def _chosen(
    store: str, topics: tuple[str, ...], queues: tuple[int, ...], begin_ms: int | None, end_ms: int | None
) -> list[tuple[Any, ...]]:
    return [
        (_ms(row), row["topic"], row["queue_id"], row["broker_name"], row["physical_offset"])
        for row in messages(store)
        if (not topics or row["topic"] in topics)
        and (not queues or row["queue_id"] in queues)
        and (begin_ms is None or _ms(row) >= begin_ms)
        and (end_ms is None or _ms(row) < end_ms)
    ]


def _ms(row: dict[str, Any]) -> int:
    stored: datetime = row["store_timestamp"]
    return round(stored.timestamp() * 1000)


CHOSEN_RULE = (
    "Use topic and queues so that unwanted messages are left out by topic and queues before anything is decoded"
)


def _in_seconds(call: Call) -> dict[str, Any]:
    begin_ms, end_ms = call["begin_ms"], call["end_ms"]
    return call.right | {"startTime": str(begin_ms // 1000), "endTime": str(end_ms // 1000)}  # type: ignore[no-any-return]


def _called_as_columns(call: Call) -> dict[str, Any]:
    return {"queue_id" if name == "queues" else name: value for name, value in call.right.items()}


OPTIONS_OF_A_READ = Pure(
    "lab10.options",
    "read_options(topic, queues, begin_ms, end_ms, columns)",
    points=2,
    about="three queries of a day",
    calls=calls,
    returns={str: object},
    compares=_first_difference,
    rules={
        "a list": "An option is one string: join the names or numbers of a list with commas",
        "another name": "The options have the names of the table: topic, queues, startTime, endTime, columns",
        "another value": "The source takes names in topic and columns, numbers in queues, and whole ms in startTime "
        "and endTime; several names or numbers are joined with commas",
        "columns": "columns names only what the query uses: a selecting column need not be decoded",
        "time": "startTime and endTime are store times in ms: the read begins at startTime and ends before endTime",
        "chosen": CHOSEN_RULE,
    },
    slips=[
        Slip(
            "lists",
            lambda call: OneOf(
                call.right | {name: text(call[name])} for name in ("queues", "columns") for text in (list, tuple, str)
            ),
            belief="lab10.list_is_option",
        ),
        Slip("end", lambda call: call.right | {"endTime": str(call["end_ms"] + 1)}, belief="lab10.both_included"),
        Slip("seconds", _in_seconds, belief="lab10.unix_seconds"),
        Slip("columns", _called_as_columns, belief="lab10.called_as_column"),
        Slip(
            "where",
            lambda call: {name: call.right[name] for name in ("startTime", "endTime", "columns")},
            CHOSEN_RULE,
            "lab10.pushed",
        ),
    ],
    forbids=FORBIDS["lab10.options"],
)
