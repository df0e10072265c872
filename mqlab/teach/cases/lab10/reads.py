"""Lab 10's question about the options of a read: what a query needs, and what an answer's options would decode.

    Wanted ─▶ options (the answer) ─▶ parsed as the source parses them ─▶ the columns and messages they choose

No Spark is needed to judge them. The stores are in days.
"""

from __future__ import annotations

import random
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from mqlab.errors import MqlabError
from mqlab.teach.cases.lab10 import questions as right
from mqlab.teach.exercises import Answers, Finding

HOUR_MS = 3_600_000
CHOICES = (
    ("queue_id", "body_length"), ("broker_name", "queue_id"), ("tags",), ("keys", "store_timestamp"),
    ("topic", "total_size"), ("msg_id", "born_timestamp", "reconsume_times"),
)  # fmt: skip

OPTIONS = {"topic", "queues", "startTime", "endTime", "columns"}

TEXT_RULE = "An option is one string: the names or numbers of a list are joined by commas"
OPTIONS_RULE = "The options have the names of the table: topic, queues, startTime, endTime, columns"
NAMES_RULE = "columns and topic name what the source has; several names are joined by commas, without blanks"
DECODED_RULE = "columns names what the query uses, and nothing else: a column that only selects need not be decoded"
TIME_RULE = "startTime and endTime are store times in ms: read from startTime on, and before endTime"
CHOSEN_RULE = "Messages that the query does not want are left out by topic and queues, before anything is decoded"


@dataclass(frozen=True, slots=True)
class Wanted:
    """Messages of a topic's queues, stored from ``begin_ms`` on and before ``end_ms``; ``columns`` are those in use."""

    topic: str
    queues: tuple[int, ...]
    begin_ms: int
    end_ms: int
    columns: tuple[str, ...]


def wanted(directory: str, seed: int) -> list[Wanted]:
    """Questions about a store; each ends at the very time at which a message was stored."""
    dice = random.Random(seed)
    questions = []
    for columns in dice.sample(CHOICES, 3):
        topic = dice.choice(("orders", "stock"))
        times = sorted(_ms(row) for row in right.rows(directory) if row["topic"] == topic)
        begin, end = sorted(dice.sample(range(len(times)), 2))
        queues = tuple(sorted(dice.sample(range(4), 2)))
        questions.append(Wanted(topic, queues, times[begin], max(times[end], times[begin] + 1), columns))
    return questions


def judge_options(answers: Answers, directory: str, questions: list[Wanted]) -> Finding | None:
    """Each question's options, parsed and applied to the store."""
    for one in questions:
        asked = (one.topic, list(one.queues), one.begin_ms, one.end_ms, list(one.columns))
        found = answers["read_options"](*asked)
        where = f"read_options{asked}"
        if not isinstance(found, dict) or not all(isinstance(name, str) for name in found):
            return Finding("read_options returns a dictionary of options", where, {"topic": one.topic}, found)
        listed = [name for name, value in found.items() if isinstance(value, list | tuple | set) or _printed(value)]
        if listed:
            return Finding(TEXT_RULE, f"{where}: option {listed[0]}", "a string", found[listed[0]])
        finding = _finding(one, {name: str(value) for name, value in found.items()}, where, directory)
        if finding:
            return finding
    return None


def _printed(value: object) -> bool:
    """Whether a text is what str() makes of a list."""
    return isinstance(value, str) and value[:1] in ("[", "(", "{")


def _finding(one: Wanted, found: dict[str, str], where: str, directory: str) -> Finding | None:
    from mqlab.spark.options import parse

    # 1. The source itself must accept the options.
    try:
        options = parse({"path": directory, **found})
    except MqlabError as error:
        rule = OPTIONS_RULE if found.keys() - OPTIONS else NAMES_RULE
        return Finding(rule, where, error.hint or "options that the source takes", error.text)
    # 2. They must decode exactly the columns that are used.
    if sorted(options.columns) != sorted(one.columns):
        shown = found.get("columns", "no option columns: all are decoded")
        return Finding(DECODED_RULE, where, ",".join(one.columns), shown)
    # 3. They must choose exactly the messages that were asked for.
    selection = options.selection
    chosen = set(_chosen(directory, selection.topics, selection.queues, selection.start_ms, selection.end_ms))
    expected = set(_chosen(directory, (one.topic,), one.queues, one.begin_ms, one.end_ms))
    wrong = sorted(chosen ^ expected)
    if not wrong:
        return None
    stored_ms, topic, queue_id, broker_name, _ = wrong[0]
    at = f"the message of {topic}, queue {queue_id} of {broker_name}, stored at {stored_ms}"
    rule = TIME_RULE if topic == one.topic and queue_id in one.queues else CHOSEN_RULE
    right_now = ("read", "not read") if wrong[0] in expected else ("not read", "read")
    return Finding(rule, f"{where}: {at}", *right_now)


def _chosen(
    directory: str, topics: tuple[str, ...], queues: tuple[int, ...], begin_ms: int | None, end_ms: int | None
) -> list[tuple[Any, ...]]:
    return [
        (_ms(row), row["topic"], row["queue_id"], row["broker_name"], row["physical_offset"])
        for row in right.rows(directory)
        if (not topics or row["topic"] in topics)
        and (not queues or row["queue_id"] in queues)
        and (begin_ms is None or _ms(row) >= begin_ms)
        and (end_ms is None or _ms(row) < end_ms)
    ]


def _ms(row: dict[str, Any]) -> int:
    stored: datetime = row["store_timestamp"]
    return round(stored.timestamp() * 1000)
