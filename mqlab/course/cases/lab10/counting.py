"""lab10.fullest, busiest, cost, failures: what is in the log, counted in Spark.

    fullest    all messages              ─▶ the fullest queue of each topic
    busiest    all messages              ─▶ the customers with the most events
    cost       all messages, some tags   ─▶ what each queue costs a group that wants them
    failures   all messages              ─▶ messages and copies that came back, for each group

What is right, and what each misunderstanding would count, is computed in questions; the stores are in days.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from operator import itemgetter
from typing import Any

from mqlab.course.cases.forbids import FORBIDS
from mqlab.course.cases.lab10 import questions as count
from mqlab.course.cases.lab10.days import day, even_day
from mqlab.course.cases.lab10.questions import Row, messages
from mqlab.course.kit import OneOf, Rows, Slip, Store
from mqlab.course.kit.rows import WrongRow
from mqlab.course.teach.exercises import Call
from mqlab.course.words import refutation

THROUGH = "rows_of"


def asked(question: Callable[..., list[Row]], store: Store, **arguments: Any) -> list[Call]:
    """One question to a store, with its right rows."""
    return [Call(messages=store, **arguments, right=question(messages(store), **arguments))]


def wrongly(
    question: Callable[..., list[Row]], then: Callable[[list[Row]], list[Row]] = list, **how: Any
) -> Callable[[Call], list[Row]]:
    """What the question's answer would be with a misunderstanding; ``then``: what is done to its rows."""

    def answer(call: Call) -> list[Row]:
        arguments = {name: value for name, value in call.arguments.items() if name != "messages"}
        return then(question(messages(call["messages"]), **arguments, **how))

    return answer


def _with_tags(queue: count.Messages) -> int:
    return sum(row["tags"] is not None for row in queue)


def _with_keys(queue: count.Messages) -> int:
    return sum(row["keys"] is not None for row in queue)


def _by_queue_first(queues: Iterable[count.Sized]) -> count.Sized:
    return min(queues, key=lambda sized: (sized[0], sized[2], sized[1]))


def _last_broker(queues: Iterable[count.Sized]) -> count.Sized:
    ranked = list(queues)
    most = min(ranked)[0]
    broker = max(sized[1] for sized in ranked if sized[0] == most)
    return min(sized for sized in ranked if sized[:2] == (most, broker))


def _last_queue(queues: Iterable[count.Sized]) -> count.Sized:
    return min(queues, key=lambda sized: (sized[0], sized[1], -sized[2]))


_OTHER_ORDERS = (_by_queue_first, _last_broker, _last_queue)


def _another_queue(call: Call, rows: Sequence[Mapping[str, Any]], wrong: WrongRow) -> str:
    """A queue and its right number of messages, but not the fullest one, or not the first of equal ones."""
    actual = dict(wrong.found or {})
    if wrong.part == "twice" or (wrong.right is not None and actual.get("messages") == wrong.right["messages"]):
        return refutation("lab10.equal_is_free")
    queue = [
        row
        for row in messages(call["messages"])
        if all(row[name] == actual.get(name) for name in ("topic", *count.PLACE))
    ]
    return refutation("lab10.sorted_downwards") if queue and len(queue) == actual["messages"] else ""


FULLEST = Rows(
    "lab10.fullest",
    "fullest(messages)",
    points=3,
    about="a day",
    through=THROUGH,
    forbids=FORBIDS["lab10.fullest"],
    calls=lambda seed: [*asked(count.fullest, day(seed)), *asked(count.fullest, even_day(seed))],
    columns=("topic", "broker_name", "queue_id", "messages"),
    by=("topic",),
    slips=[
        Slip("offsets", wrongly(count.fullest, size=count.offsets), belief="lab10.highest_offset"),
        Slip("with tags", wrongly(count.fullest, size=_with_tags), belief="lab10.count_of_column"),
        Slip("with keys", wrongly(count.fullest, size=_with_keys), belief="lab10.count_of_column"),
        Slip("numbers", wrongly(count.fullest, queue=("queue_id",)), belief="lab10.queue_number"),
        Slip(
            "equal ones",
            lambda call: OneOf(wrongly(count.fullest, best=best)(call) for best in _OTHER_ORDERS),
            belief="lab10.equal_is_free",
        ),
        Slip("upwards", wrongly(count.fullest, best=max), belief="lab10.sorted_downwards"),
        Slip("last", wrongly(count.fullest, best=count.last), belief="lab10.greatest_struct"),
        Slip(
            "one for all",
            wrongly(count.fullest, lambda rows: [max(rows, key=itemgetter("messages"))]),
            belief="lab10.one_for_all",
        ),
    ],
    explain=_another_queue,
    rules={
        "missing": refutation("lab10.one_for_all"),
        "messages": refutation("lab10.count_of_column"),
        "": refutation("lab10.greatest_struct"),
    },
    weights={"": 1, "a store whose first file is gone": 3},
)


def _names(call: Call, rows: Sequence[Mapping[str, Any]], wrong: WrongRow) -> str:
    """What names and numbers tell: a few copies among the events, keys that are nobody's name."""
    if wrong.part == "messages" and wrong.found is not None and wrong.right is not None:
        everywhere = {row["customer"]: row["messages"] for row in count.busiest(messages(call["messages"]), None, _any)}
        if wrong.right["messages"] < (wrong.found["messages"] or 0) <= everywhere[wrong.key[0]]:
            return refutation("lab10.all_are_events")
    names = [str(row["customer"] or "") for row in rows]
    keys = {key for row in messages(call["messages"]) for key in count.keys_of(row)}
    if any(name and (name not in keys or not name.startswith("C")) for name in names):
        return refutation("lab10.one_key")
    nobody = "A customer is a key that begins with C: a message without such a key belongs to no customer"
    return "" if all(names) else nobody


def _any(*names: str) -> bool:
    """Every topic counts."""
    return True


BUSIEST = Rows(
    "lab10.busiest",
    "busiest(messages, most)",
    points=3,
    about="a day",
    through=THROUGH,
    calls=lambda seed: [
        *asked(count.busiest, day(seed), most=3 + seed % 5),
        *asked(count.busiest, even_day(seed), most=2),
    ],
    columns=("customer", "messages"),
    by=("customer",),
    slips=[
        Slip("every topic", wrongly(count.busiest, is_counted=_any), belief="lab10.all_are_events"),
        Slip(
            "topics that begin so",
            wrongly(count.busiest, is_counted=lambda topic: topic.startswith("orders")),
            belief="lab10.topic_begins_so",
        ),
        Slip("every key", wrongly(count.busiest, customers=count.keys_of), belief="lab10.every_key"),
        Slip("one key", wrongly(count.busiest, customers=count.whole_text), belief="lab10.one_key"),
        Slip(
            "second key",
            wrongly(count.busiest, customers=lambda row: count.keys_of(row)[1:2]),
            belief="lab10.second_key",
        ),
        Slip("orders", wrongly(count.busiest, event=count.order_in), belief="lab10.order_is_event"),
    ],
    explain=_names,
    rules={
        "": "List the customers with the most messages of the topic orders, at most `most` of them; equal ones by name",
        "messages": "messages is how many messages of the topic orders have the customer among their keys, which have "
        "any order: every message counts, on each broker, with or without tags",
    },
    weights={"": 1, "keys of all kinds": 2},
    forbids=FORBIDS["lab10.busiest"],
)

TAGS = (["paid", "created"], ["refunded"], ["shipped", "cancelled"])


def _looks_at_some(call: Call) -> OneOf:
    """What fits, or what does not."""

    def looks(fitting: bool) -> list[Row]:
        tags = call["tags"]
        return wrongly(count.cost, looks=lambda queue: sum((row["tags"] in tags) == fitting for row in queue))(call)

    return OneOf((looks(True), looks(False)))


def _fits_one(call: Call) -> OneOf:
    """What has the first of the tags, or the last."""
    return OneOf(wrongly(count.cost, fits=lambda tag, tags, index=index: tag == tags[index])(call) for index in (0, -1))


def _contains(text: str | None, tags: Sequence[str]) -> bool:
    return any(tag in (text or "") for tag in tags)


COST = Rows(
    "lab10.cost",
    "cost(messages, topic, tags)",
    points=3,
    about="a day",
    through=THROUGH,
    by=count.PLACE,
    calls=lambda seed: [
        *asked(count.cost, day(seed), topic="orders", tags=TAGS[seed % len(TAGS)]),
        *asked(count.cost, even_day(seed), topic="orders", tags=["created", "paid"]),
    ],
    columns=("broker_name", "queue_id", "looked_at", "matched"),
    slips=[
        Slip("contains", wrongly(count.cost, fits=_contains), belief="lab10.tag_in_text"),
        Slip("what fits", _looks_at_some, belief="lab10.reads_little"),
        Slip("numbers", wrongly(count.cost, queue=("queue_id",)), belief="lab10.queue_number"),
        Slip(
            "matches",
            wrongly(count.cost, lambda rows: [row for row in rows if row["matched"]]),
            belief="lab10.no_match_no_cost",
        ),
        Slip("with tags", wrongly(count.cost, looks=_with_tags), belief="lab10.untagged_unseen"),
        Slip("every topic", wrongly(count.cost, is_of=_any), belief="lab10.one_queue_0"),
        Slip("topics that begin so", wrongly(count.cost, is_of=str.startswith), belief="lab10.topic_begins_so"),
        Slip("condition", wrongly(count.cost, fits=lambda tag, tags: tag is not None), belief="lab10.count_condition"),
        Slip("first tag", _fits_one, belief="lab10.first_tag"),
        Slip("offsets", wrongly(count.cost, looks=count.offsets), belief="lab10.highest_offset"),
        Slip(
            "sum of nothing",
            wrongly(count.cost, lambda rows: [row | {"matched": row["matched"] or None} for row in rows]),
            "A queue without a match has a row, with matched 0: sum() over no rows is NULL, not 0",
        ),
    ],
    rules={
        "": "Every broker has its own queue 0: return one row per broker_name and queue_id",
        "looked_at": refutation("lab10.reads_little"),
        "matched": refutation("lab10.tag_in_text"),
    },
    weights={"": 1, "tags of all kinds": 2, "tags nobody used": 1},
    forbids=FORBIDS["lab10.cost"],
)

WAITING = (
    count.targets,
    lambda row: count.back_to(row) or count.waits_for(row),
    count.waits_for,
    lambda row: count.back_to(row) or (row["topic"] if row["topic"] == count.WAITING else None),
)


def _longer_names(call: Call, rows: Sequence[Mapping[str, Any]], wrong: WrongRow) -> str:
    """Names of groups with a piece of %RETRY% before them."""
    groups = tuple(row["group_name"] for row in call.right)
    named = [str(row["group_name"]) for row in rows if row["group_name"] not in groups]
    cut = [name for name in named if name.endswith(groups) and not name.startswith(count.DEAD)]
    return (
        "group_name is the part of the topic's name after %RETRY%" if cut and wrong.part in ("missing", "extra") else ""
    )


FAILURES = Rows(
    "lab10.failures",
    "failures(messages)",
    points=3,
    about="a day",
    through=THROUGH,
    calls=lambda seed: asked(count.failures, day(seed)),
    columns=("group_name", "messages", "copies"),
    by=("group_name",),
    explain=_longer_names,
    slips=[
        Slip("keys", wrongly(count.failures, message=lambda row: row["keys"]), belief="lab10.key_is_message"),
        Slip("copies", wrongly(count.failures, message=count.place_of), belief="lab10.copy_is_message"),
        Slip("dead letters", wrongly(count.failures, group=count.back_or_dead), belief="lab10.dead_came_back"),
        Slip(
            "waiting",
            lambda call: OneOf(wrongly(count.failures, group=group)(call) for group in WAITING),
            belief="lab10.waiting_came_back",
        ),
        Slip(
            "counts",
            wrongly(count.failures, copies=lambda came: sum(row["reconsume_times"] for row in came)),
            belief="lab10.counts_add_up",
        ),
    ],
    rules={
        "copies": refutation("lab10.counts_add_up"),
        "messages": refutation("lab10.copy_is_message"),
        "": f"{refutation('lab10.retry_in_name')}. {refutation('lab10.dead_came_back')}",
    },
    weights={"": 1, "several copies": 3},
    forbids=FORBIDS["lab10.failures"],
)
