"""What is right in lab 10, and what a misunderstanding would answer: each question in plain Python, from rows.

    messages(store) ─▶ the rows of a store, read by mqlab.data.arrow without Spark
    fullest, busiest, cost, failures ─▶ the rows that an answer has to give; their other arguments are where it may err

The exercises are in counting and parts.
"""

from __future__ import annotations

import functools
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from operator import itemgetter
from typing import Any

Row = dict[str, Any]
Messages = Sequence[Row]

COLUMNS = (
    "topic",
    "broker_name",
    "queue_id",
    "queue_offset",
    "physical_offset",
    "store_timestamp",
    "tags",
    "keys",
    "properties",
    "reconsume_times",
)
RETRY, DEAD, WAITING = "%RETRY%", "%DLQ%", "SCHEDULE_TOPIC_XXXX"
ORIGIN, TARGET = "ORIGIN_MESSAGE_ID", "REAL_TOPIC"


@functools.cache
def messages(store: str) -> tuple[Row, ...]:
    """All messages of the stores in a directory, properties as dictionaries."""
    from mqlab.data.arrow import read_table

    listed = read_table(store, COLUMNS).to_pylist()
    return tuple({**row, "properties": dict(row["properties"])} for row in listed)


def _grouped(rows: Iterable[Row], by: Sequence[str]) -> list[list[Row]]:
    groups: dict[Any, list[Row]] = {}
    for row in rows:
        groups.setdefault(itemgetter(*by)(row), []).append(row)
    return list(groups.values())


def offsets(queue: Messages) -> int:
    """The number of messages that a queue would have if nothing had been deleted."""
    return 1 + max(int(row["queue_offset"]) for row in queue)


PLACE = ("broker_name", "queue_id")


Sized = tuple[int, str, int]  # the messages of a queue, negative; its broker's name; its id


def last(queues: Iterable[Sized]) -> Sized:
    """The last of the fullest queues."""
    return max(queues, key=lambda queue: (-queue[0], *queue[1:]))


def fullest(
    rows: Messages,
    size: Callable[[Messages], int] = len,
    queue: Sequence[str] = PLACE,
    best: Callable[[Iterable[Sized]], Sized] = min,
) -> list[Row]:
    """The fullest queue of each topic; of equal ones the first by broker name, then by queue id."""
    ranked: dict[str, list[Sized]] = {}
    for group in _grouped(rows, ("topic", *queue)):
        queue_key = min(row["broker_name"] for row in group), group[0]["queue_id"]
        ranked.setdefault(group[0]["topic"], []).append((-size(group), *queue_key))
    return [
        {"topic": topic, "broker_name": broker_name, "queue_id": queue_id, "messages": -messages}
        for topic, (messages, broker_name, queue_id) in sorted((topic, best(ranked[topic])) for topic in ranked)
    ]


def keys_of(row: Row) -> list[str]:
    """A message's keys, in their order."""
    return str(row["keys"] or "").split()


def whole_text(row: Row) -> list[str]:
    """All keys of a message as they stand there, as if they were one."""
    return [] if row["keys"] is None else [str(row["keys"])]


def customers_in(row: Row) -> list[str]:
    """The customers that a message is about."""
    return [key for key in keys_of(row) if key.startswith("C")]


def order_in(row: Row) -> str | None:
    """The order that a message is about."""
    return next((key for key in keys_of(row) if key.startswith("O")), None)


def place_of(row: Mapping[str, Any]) -> tuple[str, int]:
    """Where a message is: no two have one place."""
    return row["broker_name"], row["physical_offset"]


def busiest(
    rows: Messages,
    most: int | None,
    is_counted: Callable[[str], bool] = "orders".__eq__,
    customers: Callable[[Row], list[str]] = customers_in,
    event: Callable[[Row], object] = place_of,
) -> list[Row]:
    """The customers with the most events in the topics that are counted; of equal ones the first by name."""
    chosen = [row for row in rows if is_counted(row["topic"])]
    events = {(name, event(row)) for row in chosen for name in customers(row)}
    counts = Counter(name for name, _ in events)
    ranked = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
    return [{"customer": customer, "messages": messages} for customer, messages in ranked[:most]]


def is_one_of(tag: str | None, tags: Sequence[str]) -> bool:
    """Whether a message's tags are one of those that are wanted."""
    return tag in tags


def cost(
    rows: Messages,
    topic: str,
    tags: Sequence[str],
    fits: Callable[[str | None, Sequence[str]], object] = is_one_of,
    looks: Callable[[Messages], int] = len,
    queue: Sequence[str] = PLACE,
    is_of: Callable[[str, str], bool] = str.__eq__,
) -> list[Row]:
    """For each queue of a topic: what the broker looks at, and what it may deliver to a group that wants some tags."""
    groups = _grouped([row for row in rows if is_of(row["topic"], topic)], queue)
    costs = [
        {
            "broker_name": min(row["broker_name"] for row in group),
            "queue_id": group[0]["queue_id"],
            "looked_at": looks(group),
            "matched": sum(bool(fits(row["tags"], tags)) for row in group),
        }
        for group in groups
    ]
    return sorted(costs, key=itemgetter(*PLACE))


def back_to(row: Row) -> str | None:
    """The group to whose retry topic a message belongs."""
    return str(row["topic"]).removeprefix(RETRY) if row["topic"].startswith(RETRY) else None


def waits_for(row: Row) -> str | None:
    """The group to which a waiting copy will come back."""
    target = str(row["properties"].get(TARGET, ""))
    return target.removeprefix(RETRY) if row["topic"] == WAITING and target.startswith(RETRY) else None


def back_or_dead(row: Row) -> str | None:
    """The group to whose retry topic or dead letters a message belongs."""
    return str(row["topic"]).removeprefix(DEAD) if row["topic"].startswith(DEAD) else back_to(row)


def targets(row: Row) -> str | None:
    """The group whose retry topic a message names as its target, wherever it is now."""
    target = str(row["properties"].get(TARGET, row["topic"]))
    return target.removeprefix(RETRY) if target.startswith(RETRY) else None


def failures(
    rows: Messages,
    group: Callable[[Row], str | None] = back_to,
    message: Callable[[Row], object] = lambda row: row["properties"].get(ORIGIN),
    copies: Callable[[Messages], int] = len,
) -> list[Row]:
    """For each group: messages that came back to its retry topic, and copies of them that did."""
    came: dict[str, list[Row]] = {}
    for row in rows:
        name = group(row)
        if name is not None:
            came.setdefault(name, []).append(row)
    return [
        {
            "group_name": name,
            "messages": len({message(row) for row in came[name]} - {None}),
            "copies": copies(came[name]),
        }
        for name in sorted(came)
    ]
