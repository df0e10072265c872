"""Lab 10's replies to an answer: the rule that it breaks, and the first row that shows it.

    answer ─▶ rows_of (in the answer's own process) ─▶ rows ─▶ judge ─┬─ None
                                                                       └─ Finding   rule   row   expected   found

Rows are compared as values, in any order. The right rows are in questions, the stores in days.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

from mqlab.teach.cases.lab10 import questions as right
from mqlab.teach.cases.lab10.questions import Row
from mqlab.teach.exercises import Answers, Finding

Explain = Callable[[Row, Row | None], str]  # the right row and the one found  ->  the rule that is broken


def compare(name: str, found: Any, expected: Sequence[Row], by: Sequence[str], explain: Explain) -> Finding | None:
    """The first row, in the order of its ``by`` columns, that is missing, wrong, there twice or too many."""
    # 1. The form: rows with the right columns.
    columns = list(expected[0])
    if not isinstance(found, list) or not all(isinstance(row, dict) for row in found):
        return Finding(f"{name} returns a DataFrame", "its rows", columns, found)
    lacking = [column for row in found for column in columns if column not in row]
    if lacking:
        return Finding(f"{name} returns the columns {', '.join(columns)}", lacking[0], columns, list(found[0]))
    # 2. One row per key; other columns are ignored.
    given: dict[tuple[Any, ...], Row] = {}
    for row in found:
        key = tuple(row[column] for column in by)
        if key in given:
            return Finding(f"One row for each {', '.join(by)}", _place(by, row), "one row", "two rows")
        given[key] = {column: row[column] for column in columns}
    # 3. Missing and wrong rows, then those that are too many.
    for row in expected:
        mine = given.pop(tuple(row[column] for column in by), None)
        if mine != row:
            return Finding(explain(row, mine), _place(by, row), row, mine or "no such row")
    if given:
        row = next(iter(given.values()))
        return Finding(explain(row, None), _place(by, row), "no such row", row)
    return None


def _place(by: Sequence[str], row: Row) -> str:
    return ", ".join(f"{column} {row[column]!r}" for column in by)


# lab10.fullest ----------------------------------------------------------------------------------------------------

QUEUE_RULE = "A queue is topic, broker_name and queue_id together: every broker has a queue 0 of its own"
OFFSET_RULE = (
    "Count messages, not offsets: queue_offset goes on counting when retention deletes the beginning of a queue"
)
TIE_RULE = "Of equally full queues, take the first by broker_name, then by queue_id"
EACH_RULE = "Every topic has one row, the broker's own topics too"
FULLEST_RULE = "The fullest queue is the one with the most messages: the count is sorted downwards, with functions.desc"
EVERY_RULE = 'messages is how many messages the queue has: count("*") counts them all, other columns may be NULL'


def judge_fullest(answers: Answers, directory: str) -> Finding | None:
    """The fullest queue of each topic."""
    found = answers["rows_of"](answers["fullest"], directory)
    messages = right.rows(directory)

    def explain(row: Row, mine: Row | None) -> str:
        if mine is None:
            return EACH_RULE
        topic = [m for m in messages if m["topic"] == row["topic"]]
        together = Counter(m["queue_id"] for m in topic)
        alone = Counter((m["broker_name"], m["queue_id"]) for m in topic)
        last = {(m["broker_name"], m["queue_id"]): m["queue_offset"] + 1 for m in topic}
        if mine["messages"] == row["messages"]:
            return TIE_RULE
        if mine["messages"] in last.values() and max(last.values()) > row["messages"]:
            return OFFSET_RULE
        if mine["messages"] == alone[mine["broker_name"], mine["queue_id"]]:
            return FULLEST_RULE
        return QUEUE_RULE if mine["messages"] in together.values() else EVERY_RULE

    return compare("fullest", found, right.fullest(directory), ("topic",), explain)


# lab10.customers --------------------------------------------------------------------------------------------------

KEYS_RULE = "KEYS holds several keys with blanks between them, in any order: a customer is a key that begins with C"
COPIES_RULE = "A copy in a retry topic, or a waiting copy, is not another event: count the topic orders only"
NO_CUSTOMER_RULE = "A customer is a key that begins with C: a message without such a key belongs to no customer"
MOST_RULE = (
    "List the customers with the most messages of the topic orders, as many as most says; sort equal ones by name"
)
EVENTS_RULE = (
    "messages is how many messages are about the customer: an order of theirs has several, and all of them count"
)


def judge_busiest(answers: Answers, directory: str, most: int) -> Finding | None:
    """The customers with the most messages."""
    found = answers["rows_of"](answers["busiest"], directory, most)
    everywhere, of_orders = right.customers(directory, topics=""), right.customers(directory)

    def explain(row: Row, mine: Row | None) -> str:
        counted = (mine or row)["messages"]
        if isinstance(counted, int) and everywhere[row["customer"]] >= counted > of_orders[row["customer"]]:
            return COPIES_RULE
        names = [str(given["customer"]) for given in found]
        if any(name and (" " in name or not name.startswith("C")) for name in names):
            return KEYS_RULE
        if not all(name.startswith("C") for name in names):
            return NO_CUSTOMER_RULE
        if mine is None:
            return MOST_RULE
        return EVENTS_RULE if counted == right.orders_of(directory, row["customer"]) else KEYS_RULE

    return compare("busiest", found, right.busiest(directory, most), ("customer",), explain)


# lab10.cost -------------------------------------------------------------------------------------------------------

MISSED_RULE = "A queue without a match costs as much as any other: it has a row, with matched 0"
LOOKED_RULE = "The broker looks at every entry of a queue to find those that match: looked_at is all of them"
ZERO_RULE = "A queue without a match has a row, with matched 0: sum() over no rows is NULL, not 0"
NULL_RULE = "A message without tags is looked at too; count of a column leaves NULL out"
WHOLE_RULE = "Only messages with a tag of the list fit. Tags are compared as a whole: unpaid is not paid"
ANY_RULE = "tags is a list: a message with any one of these tags fits"
CONDITION_RULE = "count of a condition counts where it is false, too: count_if counts where it is true"
TOPIC_RULE = "Other topics have queues with the same numbers: count messages of the given topic only"
BROKER_RULE = "Every broker has a queue 0 of its own: give one row for each broker_name and queue_id"


def judge_cost(answers: Answers, directory: str, topic: str, tags: list[str]) -> Finding | None:
    """What each queue costs a group that wants some tags."""
    found = answers["rows_of"](answers["cost"], directory, topic, tags)
    of_topic = [m for m in right.rows(directory) if m["topic"] == topic]
    tagged = Counter(_queue(m) for m in of_topic if m["tags"] is not None)

    def explain(row: Row, mine: Row | None) -> str:
        # 1. No row, or no number in it.
        if mine is None:
            return MISSED_RULE if row["matched"] == 0 else BROKER_RULE
        if mine["matched"] is None:
            return ZERO_RULE
        # 2. Too many messages: those of other topics, of other brokers, or of a deleted beginning.
        if mine["looked_at"] == sum(_queue(m) == _queue(row) for m in right.rows(directory)) > row["looked_at"]:
            return TOPIC_RULE
        if (
            mine["looked_at"]
            == max(m["queue_offset"] for m in of_topic if _queue(m) == _queue(row)) + 1
            > row["looked_at"]
        ):
            return OFFSET_RULE
        # 3. The right queue, and other messages of it fit.
        if mine["matched"] != row["matched"]:
            if mine["looked_at"] != row["looked_at"]:
                return BROKER_RULE
            if mine["matched"] < row["matched"]:
                return ANY_RULE
            return CONDITION_RULE if all(given["matched"] == tagged[_queue(given)] for given in found) else WHOLE_RULE
        # 4. What fits is right, what is looked at is not.
        if mine["looked_at"] in (row["matched"], row["looked_at"] - row["matched"]):
            return LOOKED_RULE
        return NULL_RULE if mine["looked_at"] < row["looked_at"] else BROKER_RULE

    return compare("cost", found, right.cost(directory, topic, tags), ("broker_name", "queue_id"), explain)


def _queue(row: Row) -> tuple[Any, Any]:
    return row["broker_name"], row["queue_id"]


# lab10.failures ---------------------------------------------------------------------------------------------------

WAITING_RULE = "A copy in SCHEDULE_TOPIC_XXXX only waits: it comes to the retry topic later, and would be counted twice"
DEAD_RULE = "%DLQ% holds messages that will not come again: they are neither a group of their own nor retries"
GROUP_RULE = "group_name is the part of the topic's name after %RETRY%"
COPY_RULE = 'copies is how many messages are in the retry topic of the group, the first of each too: count("*")'
ORIGIN_RULE = (
    "Copies of one message have one ORIGIN_MESSAGE_ID, whatever their number; keys may belong to many messages"
)


def judge_failures(answers: Answers, directory: str) -> Finding | None:
    """Messages and copies that came back to each group."""
    found = answers["rows_of"](answers["failures"], directory)
    waiting = Counter(
        row["properties"].get("REAL_TOPIC", "").removeprefix(right.RETRY)
        for row in right.rows(directory)
        if row["topic"] == "SCHEDULE_TOPIC_XXXX"
    )
    dead = Counter(row["topic"] for row in right.rows(directory))

    def explain(row: Row, mine: Row | None) -> str:
        if mine is None:
            if any(str(given["group_name"]).startswith(right.RETRY) for given in found):
                return GROUP_RULE
            return WAITING_RULE if row["group_name"] == "SCHEDULE_TOPIC_XXXX" else DEAD_RULE
        if mine["copies"] == row["copies"]:
            return ORIGIN_RULE
        late = mine["copies"] in (row["copies"] + waiting[row["group_name"]], waiting[row["group_name"]])
        with_dead = row["copies"] + dead[f"%DLQ%{row['group_name']}"]
        return WAITING_RULE if late else DEAD_RULE if mine["copies"] == with_dead else COPY_RULE

    return compare("failures", found, right.failures(directory), ("group_name",), explain)


# lab10.parts ------------------------------------------------------------------------------------------------------

FULLEST_PART = 1.5
ALL_RULE = "Every message of the topic orders is in one part, and in one only"
RANGE_RULE = "A part is a number from 0 to parts - 1; a hash may be negative, and % keeps its sign"
ORDER_RULE = "All messages of one order are in one part: otherwise following an order needs a shuffle"
EVEN_RULE = f"The fullest part holds no more than {FULLEST_PART} times the mean: one hot customer must not fill it"
SAME_RULE = "The same question has the same answer: a task that is run again must not move messages"


def judge_parts(answers: Answers, directory: str, parts: int) -> Finding | None:
    """A part for each message of the topic orders: whole orders, evenly, the same each time."""
    # Ask twice: a part must not depend on chance or on the order of the rows.
    first, again = (_parts(answers["rows_of"](answers["in_parts"], directory, parts)) for _ in range(2))
    if isinstance(first, Finding):
        return first
    orders = {
        (row["broker_name"], row["physical_offset"]): row for row in right.rows(directory) if row["topic"] == "orders"
    }
    if first.keys() != orders.keys() or len(first) != sum(len(places) for places in first.values()):
        place = min(first.keys() ^ orders.keys(), default=min(orders))
        return Finding(ALL_RULE, _message_at(place), 1 if place in orders else 0, len(first.get(place, ())))
    part_of = {place: numbers[0] for place, numbers in first.items()}
    return _of_whole_orders(part_of, orders, parts) or _even(part_of, parts) or _unmoved(first, again)


def _parts(found: Any) -> dict[tuple[str, int], list[Any]] | Finding:
    columns = ["broker_name", "physical_offset", "part"]
    if not isinstance(found, list) or not all(isinstance(row, dict) and row.keys() >= set(columns) for row in found):
        seen = list(found[0]) if isinstance(found, list) and found and isinstance(found[0], dict) else found
        return Finding(f"in_parts returns the columns {', '.join(columns)}", "its rows", columns, seen)
    placed: dict[tuple[str, int], list[Any]] = {}
    for row in found:
        placed.setdefault((row["broker_name"], row["physical_offset"]), []).append(row["part"])
    return placed


def _message_at(place: tuple[str, int]) -> str:
    return f"the message at physical_offset {place[1]} of {place[0]}"


def _of_whole_orders(part_of: dict[tuple[str, int], Any], orders: dict[Any, Row], parts: int) -> Finding | None:
    part_of_order: dict[str, Any] = {}
    for place in sorted(part_of):
        part = part_of[place]
        if not isinstance(part, int) or not 0 <= part < parts:
            return Finding(RANGE_RULE, _message_at(place), f"0 to {parts - 1}", part)
        order = next((key for key in (orders[place]["keys"] or "").split() if key.startswith("O")), None)
        if order is not None and part_of_order.setdefault(order, part) != part:
            return Finding(ORDER_RULE, f"order {order}, {_message_at(place)}", part_of_order[order], part)
    return None


def _even(part_of: dict[tuple[str, int], Any], parts: int) -> Finding | None:
    sizes = Counter(part_of.values())
    part, size = sizes.most_common(1)[0]
    most = int(FULLEST_PART * len(part_of) / parts)
    return Finding(EVEN_RULE, f"part {part} of {parts}", f"at most {most} messages", size) if size > most else None


def _unmoved(first: Any, again: Any) -> Finding | None:
    moved = [place for place in sorted(first) if isinstance(again, Finding) or again.get(place) != first[place]]
    if not moved:
        return None
    second = None if isinstance(again, Finding) else again.get(moved[0])
    return Finding(SAME_RULE, _message_at(moved[0]), first[moved[0]], second)
