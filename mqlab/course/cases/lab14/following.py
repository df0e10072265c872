"""lab14.follow: the steps of a day that have to do with one message.

    rows of a day, an id ─▶ follow(rows, msg_id) ─▶ [188, 190, 191, 193, …]

Rows of programs name the message by its id; rows of queues name a place. A place is a queue with its number, it has the
message that was stored there last, and a message that is tried again has several.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from itertools import count
from typing import Any

from mqlab.course.cases.lab14.book import Row
from mqlab.course.cases.lab14.short_histories import over_a_power_cut
from mqlab.course.cases.lab14.worlds import rows_of
from mqlab.course.kit import Pure, Slip
from mqlab.course.kit.slips import OneOf
from mqlab.course.teach.exercises import Call

AT_PLACES = ("message.dispatched", "message.pulled")
ONCE_RULE = "follow lists each step once, in order, even if several of its rows are about the message"
IDS_RULE = "A row is about the message if its id is the message's, or its ids contain it: rows of listeners have ids"
PLACES_RULE = (
    "A message.dispatched names one place, a message.pulled all places of its offsets. Such a row is about the message "
    "that is at one of them at that moment"
)
ONLY_TWO_RULE = (
    "Only message.dispatched and message.pulled are about a message because of a place; the other rows are about it if "
    "they have its id"
)
BERN, PUBLIC = "Bern", (1, 2)
"""Its store gives numbers a second time, so that places change their messages."""


def steps_of(
    rows: Sequence[Row],
    msg_id: str,
    *,
    places: bool = True,
    whole: bool = True,
    copies: bool = True,
    moves: bool = True,
    keeps: bool = True,
) -> list[int]:
    """The steps at which a row is about the message. Each keyword, if false, is something that an answer may forget."""
    ids_at: dict[Any, str] = {}
    steps: list[int] = []
    was_stored = False
    for row in rows:
        queue = row.get("queue") if whole else None
        ids = {row.get("id"), *row.get("ids", ())}
        if row["what"] == "fault.powered_off" and not keeps:
            ids_at.clear()
        if row["what"] == "message.stored":
            is_copy = row["id"] == msg_id and was_stored
            was_stored = was_stored or row["id"] == msg_id
            if (copies or not is_copy) and (moves or ids_at.get((queue, row["offset"])) != msg_id):
                ids_at[queue, row["offset"]] = row["id"]
        elif row["what"] in AT_PLACES and places:
            ids |= {ids_at.get((queue, offset)) for offset in row.get("offsets", [row.get("offset")])}
        if msg_id in ids and row["step"] not in steps[-1:]:
            steps.append(row["step"])
    return steps


def steps_of_a_place(rows: Sequence[Row], msg_id: str, *, owner: str) -> list[int]:
    """The same where a place means one message on the whole day: each that was ever there, the last one, the first."""
    stored = [row for row in rows if row["what"] == "message.stored"]
    places = {(row["queue"], row["offset"]) for row in stored if row["id"] == msg_id}
    if owner != "each":
        ids_at = {(row["queue"], row["offset"]): row["id"] for row in (stored if owner == "last" else stored[::-1])}
        places = {position for position in places if ids_at[position] == msg_id}
    steps: list[int] = []
    for row in rows:
        offsets = row.get("offsets", [row.get("offset")]) if row["what"] in AT_PLACES else ()
        named = any((row["queue"], offset) in places for offset in offsets)
        if (named or msg_id in {row.get("id"), *row.get("ids", ())}) and row["step"] not in steps[-1:]:
            steps.append(row["step"])
    return steps


def _calls_of(day: int, rng: random.Random) -> list[Call]:
    """Messages of a day that show what an answer has forgotten, one for each thing, and another message."""
    rows = rows_of(BERN, day)
    ids = list(dict.fromkeys(row["id"] for row in rows if row["what"] == "message.stored"))
    chosen = []
    for forgotten in ({"copies": False}, {"moves": False}, {"whole": False}):
        fitting = [msg_id for msg_id in ids if steps_of(rows, msg_id, **forgotten) != steps_of(rows, msg_id)]
        if not fitting:
            return []
        chosen.append(rng.choice(fitting))
    return [
        Call(
            rows=rows, msg_id=msg_id, right=steps_of(rows, msg_id), about=f"message …{msg_id[-4:]} of {BERN}, day {day}"
        )
        for msg_id in dict.fromkeys([*chosen, rng.choice(ids)])
    ]


def calls(seed: int) -> list[Call]:
    """Messages of the first day, from a number on that the seed decides, on which all of that can be seen; two of a
    short history with a power cut, one that the disk keeps and one that it does not.
    """
    rng = random.Random(f"lab14 follow {seed}")
    begin = seed if seed in PUBLIC else rng.randrange(4, 400)
    of_a_day = next(fitting for day in count(begin) if (fitting := _calls_of(day, rng)))
    rows = over_a_power_cut(seed)
    short = [
        Call(rows=rows, msg_id=msg_id, right=steps_of(rows, msg_id), about=f"message {msg_id} of a short history")
        for msg_id in ("A1", "A2")
    ]
    return [*of_a_day, *short]


def _place(call: Call, seen: Any) -> str:
    """Where the two lists part: the first step that is in one of them only."""
    if seen is None or not isinstance(seen.found, list):
        return call.about
    only = sorted(set(seen.right) ^ set(seen.found))
    rows = [row for row in call["rows"] if row["step"] in only[:1]]
    words = f"step {only[0]}" + (f", {rows[-1]['what']} of {rows[-1]['node']}" if rows else "") if only else "the order"
    return f"{call.about}: {words}"


def _whole_day(call: Call) -> OneOf:
    return OneOf(steps_of_a_place(call["rows"], call["msg_id"], owner=owner) for owner in ("each", "last", "first"))


def _explained(call: Call, value: Any, seen: Any) -> str:
    """The rule of the first row that is missing, or too much."""
    missing, extra = set(call.right) - set(value), set(value) - set(call.right)
    if not missing and not extra:
        return ONCE_RULE
    step = min(missing | extra)
    whats = {row["what"] for row in call["rows"] if row["step"] == step}
    if whats & set(AT_PLACES):
        return PLACES_RULE
    return IDS_RULE if step in missing else ONLY_TWO_RULE


def _without(**forgotten: bool) -> Any:
    return lambda call: steps_of(call["rows"], call["msg_id"], **forgotten)


FOLLOW = Pure(
    "lab14.follow",
    "follow(rows, msg_id)",
    points=2,
    about="messages of a day",
    calls=calls,
    returns=[int],
    rules=ONCE_RULE,
    explain=_explained,
    place_of=_place,
    slips=[
        Slip("ids only", _without(places=False), belief="lab14.rows_have_ids"),
        Slip("offset only", _without(whole=False), belief="lab14.offset_is_place"),
        Slip("one place", _without(copies=False), belief="lab14.one_place"),
        Slip("its place for ever", _without(moves=False), belief="lab14.place_for_ever"),
        Slip("no place after a power cut", _without(keeps=False), belief="lab14.cut_empties"),
        Slip("a place of the whole day", _whole_day, belief="lab14.place_for_ever"),
    ],
)
