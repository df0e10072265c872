"""lab10.fullest, busiest, cost, failures: what is in the log, counted in Spark.

    fullest    all messages              ─▶ the fullest queue of each topic
    busiest    all messages              ─▶ the customers with the most events
    cost       all messages, some tags   ─▶ what each queue costs a group that wants them
    failures   all messages              ─▶ messages and copies that came back, for each group

What is right, and what each misunderstanding would count, is computed in questions; the stores are in days.
"""

from __future__ import annotations

from collections.abc import Sequence

from mqlab.teach.cases.forbids import FORBIDS
from mqlab.teach.cases.lab10 import questions as count
from mqlab.teach.cases.lab10.days import day
from mqlab.teach.cases.lab10.questions import messages
from mqlab.teach.exercises import Call
from mqlab.teach.kit import OneOf, Rows, Slip, Store
from mqlab.teach.kit.rows import Row, WrongRow
from mqlab.teach.words import refutation

THROUGH = "rows_of"


def _rows(call: Call) -> count.Messages:
    return messages(call["messages"])


# lab10.fullest ----------------------------------------------------------------------------------------------------


def fullest_of(store: Store) -> list[Call]:
    """One question: the fullest queues of a store."""
    return [Call(messages=store, right=count.fullest(messages(store)))]


def _with_tags(queue: count.Messages) -> int:
    return sum(row["tags"] is not None for row in queue)


def _size(row: Row) -> int:
    return int(row["messages"])


def _another_queue(call: Call, rows: Sequence[Row], wrong: WrongRow) -> str:
    """A queue and its right number of messages, but not the fullest one."""
    found = dict(wrong.found or {})
    queue = [row for row in _rows(call) if all(row[name] == found.get(name) for name in ("topic", *count.PLACE))]
    return refutation("lab10.sorted_downwards") if queue and len(queue) == found["messages"] else ""


FULLEST = Rows(
    "lab10.fullest", "fullest(messages)", points=3, about="a day", through=THROUGH, forbids=FORBIDS["lab10.fullest"],
    calls=lambda seed: fullest_of(day(seed)), columns=("topic", "broker_name", "queue_id", "messages"), by=("topic",),
    slips=[
        Slip("offsets", lambda call: count.fullest(_rows(call), count.offsets), belief="lab10.highest_offset"),
        Slip("with tags", lambda call: count.fullest(_rows(call), _with_tags), belief="lab10.count_of_column"),
        Slip("numbers", lambda call: count.fullest(_rows(call), queue=("queue_id",)), belief="lab10.queue_number"),
        Slip("upwards", lambda call: count.fullest(_rows(call), best=max), belief="lab10.sorted_downwards"),
        Slip("last", lambda call: count.fullest(_rows(call), best=count.last), belief="lab10.greatest_struct"),
        Slip("one for all", lambda call: [max(count.fullest(_rows(call)), key=_size)], belief="lab10.one_for_all"),
    ],
    explain=_another_queue,
    rules={
        "missing": refutation("lab10.one_for_all"), "messages": refutation("lab10.count_of_column"),
        "": refutation("lab10.greatest_struct"),
    },
    weights={"": 1, "a store whose first file is gone": 3},
)  # fmt: skip

# lab10.busiest ----------------------------------------------------------------------------------------------------


def busiest_of(store: Store, most: int) -> list[Call]:
    """One question: the busiest customers of a store."""
    return [Call(messages=store, most=most, right=count.busiest(messages(store), most))]


def _names(call: Call, rows: Sequence[Row], wrong: WrongRow) -> str:
    """What names and numbers tell: a few copies among the events, keys that are nobody's name."""
    if wrong.part == "messages" and wrong.found is not None and wrong.right is not None:
        (everywhere,) = (row for row in _most(call, 10**9, topics="") if row["customer"] == wrong.key[0])
        if wrong.right["messages"] < wrong.found["messages"] <= everywhere["messages"]:
            return refutation("lab10.all_are_events")
    names = [str(row["customer"] or "") for row in rows]
    if any(" " in name or (name and not name.startswith("C")) for name in names):
        return refutation("lab10.one_key")
    nobody = "A customer is a key that begins with C: a message without such a key belongs to no customer"
    return "" if all(names) else nobody


def _most(call: Call, most: int = 0, **how: object) -> list[dict[str, object]]:
    return count.busiest(_rows(call), most or call["most"], **how)  # type: ignore[arg-type]


BUSIEST = Rows(
    "lab10.busiest", "busiest(messages, most)", points=3, about="a day", through=THROUGH,
    calls=lambda seed: busiest_of(day(seed), 3 + seed % 5), columns=("customer", "messages"), by=("customer",),
    slips=[
        Slip("every topic", lambda call: _most(call, topics=""), belief="lab10.all_are_events"),
        Slip("every key", lambda call: _most(call, customers=count.keys_of), belief="lab10.every_key"),
        Slip("one key", lambda call: _most(call, customers=count.whole_text), belief="lab10.one_key"),
        Slip("second key", lambda call: _most(call, customers=lambda row: count.keys_of(row)[1:2]),
             belief="lab10.second_key"),
        Slip("orders", lambda call: _most(call, event=count.order_in), belief="lab10.order_is_event"),
    ],
    explain=_names,
    rules={
        "": "List the customers with the most messages of the topic orders, as many as most says; equal ones by name",
        "messages": refutation("lab10.one_key"),
    },
    weights={"": 1, "keys of all kinds": 2}, forbids=FORBIDS["lab10.busiest"],
)  # fmt: skip

# lab10.cost -------------------------------------------------------------------------------------------------------

TAGS = (["paid", "created"], ["refunded"], ["shipped", "cancelled"])


def cost_of(store: Store, topic: str, tags: list[str]) -> list[Call]:
    """One question: what some tags of a topic cost in each queue of a store."""
    fits = tags.__contains__
    return [Call(messages=store, topic=topic, tags=tags, right=count.cost(messages(store), topic, fits))]


def _cost(call: Call, **how: object) -> list[dict[str, object]]:
    given: dict[str, object] = {"topic": call["topic"], "fits": call["tags"].__contains__}
    return count.cost(_rows(call), **(given | how))  # type: ignore[arg-type]


def _looks_at_some(call: Call) -> OneOf:
    """What fits, or what does not."""

    def looks(fitting: bool) -> list[dict[str, object]]:
        return _cost(call, looks=lambda queue: sum((row["tags"] in call["tags"]) == fitting for row in queue))

    return OneOf((looks(True), looks(False)))


def _contains(call: Call) -> list[dict[str, object]]:
    return _cost(call, fits=lambda tags: any(one in (tags or "") for one in call["tags"]))


COST = Rows(
    "lab10.cost", "cost(messages, topic, tags)", points=3, about="a day", through=THROUGH, by=count.PLACE,
    calls=lambda seed: cost_of(day(seed), "orders", TAGS[seed % len(TAGS)]),
    columns=("broker_name", "queue_id", "looked_at", "matched"),
    slips=[
        Slip("contains", _contains, belief="lab10.tag_in_text"),
        Slip("what fits", _looks_at_some, belief="lab10.reads_little"),
        Slip("numbers", lambda call: _cost(call, queue=("queue_id",)), belief="lab10.queue_number"),
        Slip("matches", lambda call: [row for row in _cost(call) if row["matched"]], belief="lab10.no_match_no_cost"),
        Slip("with tags", lambda call: _cost(call, looks=_with_tags), belief="lab10.untagged_unseen"),
        Slip("every topic", lambda call: _cost(call, topic=""), belief="lab10.one_queue_0"),
        Slip("condition", lambda call: _cost(call, fits=lambda tags: tags is not None), belief="lab10.count_condition"),
        Slip("first tag", lambda call: _cost(call, fits=call["tags"][:1].__contains__), belief="lab10.first_tag"),
        Slip("offsets", lambda call: _cost(call, looks=count.offsets), belief="lab10.highest_offset"),
        Slip("sum of nothing", lambda call: [row | {"matched": row["matched"] or None} for row in _cost(call)],
             "A queue without a match has a row, with matched 0: sum() over no rows is NULL, not 0"),
    ],
    rules={
        "": "Every broker has a queue 0 of its own: give one row for each broker_name and queue_id",
        "looked_at": refutation("lab10.reads_little"), "matched": refutation("lab10.tag_in_text"),
    },
    weights={"": 1, "tags of all kinds": 2, "tags nobody used": 1}, forbids=FORBIDS["lab10.cost"],
)  # fmt: skip

# lab10.failures ---------------------------------------------------------------------------------------------------

HOW_WAITING_IS_COUNTED = (
    count.targets, lambda row: count.back_to(row) or count.waits_for(row), count.waits_for,
    lambda row: count.back_to(row) or (row["topic"] if row["topic"] == count.WAITING else None),
)  # fmt: skip


def failures_of(store: Store) -> list[Call]:
    """One question: what came back to the groups of a store."""
    return [Call(messages=store, right=count.failures(messages(store)))]


def _back(call: Call, **how: object) -> list[dict[str, object]]:
    return count.failures(_rows(call), **how)  # type: ignore[arg-type]


FAILURES = Rows(
    "lab10.failures", "failures(messages)", points=3, about="a day", through=THROUGH,
    calls=lambda seed: failures_of(day(seed)), columns=("group_name", "messages", "copies"), by=("group_name",),
    slips=[
        Slip("keys", lambda call: _back(call, message=lambda row: row["keys"]), belief="lab10.key_is_message"),
        Slip("copies", lambda call: _back(call, message=count.place_of), belief="lab10.copy_is_message"),
        Slip("dead letters", lambda call: _back(call, group=count.back_or_dead), belief="lab10.dead_came_back"),
        Slip("waiting", lambda call: OneOf(_back(call, group=group) for group in HOW_WAITING_IS_COUNTED),
             belief="lab10.waiting_came_back"),
        Slip("counts", lambda call: _back(call, copies=lambda came: sum(row["reconsume_times"] for row in came)),
             belief="lab10.counts_add_up"),
        Slip("whole topic", lambda call: [row | {"group_name": f"%RETRY%{row['group_name']}"} for row in _back(call)],
             "group_name is the part of the topic's name after %RETRY%"),
    ],
    rules={
        "copies": refutation("lab10.counts_add_up"), "messages": refutation("lab10.copy_is_message"),
        "": refutation("lab10.dead_came_back"),
    },
    weights={"": 1, "several copies": 3}, forbids=FORBIDS["lab10.failures"],
)  # fmt: skip
