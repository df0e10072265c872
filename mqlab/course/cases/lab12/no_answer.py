"""lab12.no_answer: calls of a listener to which no answer came within two minutes, each told once.

SubBefore  a listener is called     ┐  request_id and msg_id name a call; a message that is called again has
SubAfter   it has answered          ┘  another request_id

batch n     calls and answers; of two calls near the end, the answers come with the next batch only: entries of a
            trace come up to ``late`` after their time
            a call that never ends; one that ends too late; one whose message is called again, and answered then
"""

from __future__ import annotations

import functools
import random
from collections.abc import Iterator

from mqlab.course.cases.lab12.films import (
    Film,
    FilmRun,
    OverFilm,
    clock,
    film_folder,
    kept_too_many,
    minutes_ms,
    place,
    told_by,
)
from mqlab.course.cases.lab12.moments import NINE
from mqlab.course.kit import Store
from mqlab.course.teach.exercises import Call, Finding
from mqlab.scales import MINUTE, SECOND

TYPES = {
    "type": "string",
    "time": "timestamp",
    "group_name": "string",
    "client": "string",
    "request_id": "string",
    "msg_id": "string",
}
SLICES, CALLS, PATIENCE_MS = 5, 15, 2 * MINUTE
LATE_MINUTES = (5, 4, 7)
SLACK_MS, SLACK_ROWS = MINUTE, 10
CallKey = tuple[str, str]  # request_id, msg_id
EARLY = "Report a call when it is older than two minutes, and not before"
SOON = "Report a call without an answer as soon as its answer cannot come any more: two minutes and late after it began"
ANSWERED = "Only calls are told that have no answer within two minutes"
NO_ANTI = "Spark has no left anti join of two streams: join them with leftOuter, and keep the rows without an answer"
APPEND_ONLY = "An outer join of two streams can only be written in append mode: a row comes when it is sure"
LONG_MEMORY = "State that is older than late and two minutes is of no use: no answer comes to it any more"


@functools.cache
def traced(seed: int, late: int) -> tuple[Film, Store]:
    """The film of a seed, whose entries come up to ``late`` minutes after their time."""
    rng = random.Random(f"lab12.no_answer {seed} {late}")
    long, short = (2 * late + 3) * MINUTE, late * MINUTE // 10
    slices: list[list[dict[str, object]]] = [[] for _ in range(SLICES)]
    numbers = iter(range(10_000))

    def begins(at: int, at_ms: int, msg_id: str = "") -> dict[str, object]:
        number = next(numbers)
        row = {
            "type": "SubBefore",
            "time": at_ms,
            "group_name": "billing",
            "client": f"billing-{1 + number % 3}",
            "request_id": f"R{number:04}",
            "msg_id": msg_id or f"M{number:04}",
        }
        slices[at].append(row)
        return row

    def ends(at: int, call: dict[str, object], at_ms: int) -> None:
        if at < SLICES:
            slices[at].append({**call, "type": "SubAfter", "time": at_ms})

    end = NINE
    for number in range(SLICES):
        begin, end = end, end + (long if number % 2 == 0 else short)
        ends(number, begins(number, end - 3 * SECOND), end - SECOND)
        if number % 2:
            continue
        for _ in range(CALLS):
            began = rng.randrange(begin, end - 10 * SECOND)
            ends(number, begins(number, began), began + rng.randrange(200, 5 * SECOND))
        # Answers that come later than their time, by up to nine tenths of late.
        for _ in range(2):
            began = end - 8 * late * MINUTE // 10 + rng.randrange(10 * SECOND)
            ends(number + 2, begins(number, began), began + 2 * SECOND)
        # No answer, early in the slice, so that it is due in the next one.
        early = begin + rng.randrange(20 * SECOND, (late - 1) * MINUTE)
        begins(number, early)
        slow = begins(number, early + SECOND)
        ends(number, slow, early + PATIENCE_MS + 30 * SECOND)
        just = begins(number, early + 3 * SECOND)  # its answer is the last that comes in time
        ends(number, just, early + 3 * SECOND + PATIENCE_MS)
        hung = begins(number, early + 2 * SECOND)
        retried = begins(number, early + 40 * SECOND, str(hung["msg_id"]))
        ends(number, retried, early + 41 * SECOND)
    for entries in slices:
        entries.sort(key=lambda row: int(str(row["time"])))
    film = Film(slices, "time")
    return film, film_folder(film, TYPES, f"five batches, entries up to {late} minutes late")


def calls(seed: int) -> Iterator[Call]:
    """One film; how late entries may be differs from seed to seed."""
    yield call_of(seed, LATE_MINUTES[seed % len(LATE_MINUTES)])


def call_of(seed: int, late: int) -> Call:
    """The calls without an answer of a film whose entries are up to ``late`` minutes late."""
    film, folder = traced(seed, late)
    return Call(film=folder, late=f"{late} minutes", given=film, about=folder.about)


def unanswered(film: Film) -> dict[CallKey, int]:
    """Each call without an answer within two minutes, and when it began."""
    entries = film.until(len(film.slices))
    answered = {(row["request_id"], row["msg_id"]): row["time"] for row in entries if row["type"] == "SubAfter"}
    began = {(row["request_id"], row["msg_id"]): row["time"] for row in entries if row["type"] == "SubBefore"}
    return {
        call: at_ms for call, at_ms in began.items() if call not in answered or answered[call] > at_ms + PATIENCE_MS
    }


def _told_once(call: Call, run: FilmRun) -> Finding | None:
    told_in: dict[CallKey, int] = {}
    for row in run.rows:
        key = row["request_id"], row["msg_id"]
        if key in told_in:
            actual, what = f"told again; batch {told_in[key]} had told it", f"call {key[0]} of {key[1]}"
            return told_by(call, "lab12.alarm_is_a_state", row["batch"], "told once", actual, what)
        told_in[key] = row["batch"]
    return None


def _told_in_time(call: Call, run: FilmRun) -> Finding | None:
    film: Film = call.given
    right, late_ms = unanswered(film), minutes_ms(call, "late")
    told_in: dict[CallKey, int] = {}
    for batch in [progress["batch"] for progress in run.batches]:
        for row in run.of(batch):
            key = row["request_id"], row["msg_id"]
            what = f"call {key[0]} of {key[1]}"
            if key not in right:
                return _false_alarm(call, key, batch, what)
            newest = film.newest_ms(batch)
            if newest < right[key] + PATIENCE_MS:
                actual = f"told at {clock(newest)}, {(newest - right[key]) // SECOND} s after it began"
                return Finding(EARLY, place(call, batch, what), "not told yet", actual, call=call)
            told_in[key] = batch
        # What was due before this batch began.
        before = film.newest_ms(batch - 1) if batch else 0
        for key, began in right.items():
            if key not in told_in and began + PATIENCE_MS + late_ms + SLACK_MS <= before:
                return _not_told(call, run, batch, key, began)
    return None


def _false_alarm(call: Call, key: CallKey, batch: int, what: str) -> Finding:
    film: Film = call.given
    answers = (
        number
        for number, entries in enumerate(film.slices)
        for row in entries
        if row["type"] == "SubAfter" and (row["request_id"], row["msg_id"]) == key
    )
    comes = next(answers, batch)
    if comes > batch:
        actual = f"told, though its answer comes with batch {comes}"
        return told_by(call, "lab12.trace_is_on_time", batch, "not told: it was answered", actual, what)
    return Finding(ANSWERED, place(call, batch, what), "not told: it was answered", "told", call=call)


def _not_told(call: Call, run: FilmRun, batch: int, key: CallKey, began: int) -> Finding:
    film: Film = call.given
    what, expected = f"call {key[0]} of {key[1]}", f"told: it began at {clock(began)}"
    again = [row for row in film.until(batch) if row["msg_id"] == key[1] and row["request_id"] != key[0]]
    if not run.rows and run.kept_rows > 2 * len(film.slices[0]):
        actual = f"nothing is reported, and {run.kept_rows} rows are in state"
        return told_by(call, "lab12.one_watermark_is_enough", batch, expected, actual, what)
    if not run.rows:
        return told_by(call, "lab12.inner_join_tells", batch, expected, "nothing is reported", what)
    if again and any(row["batch"] <= batch for row in run.rows):
        actual = f"not told; {again[0]['request_id']} is another call of {key[1]}"
        return told_by(call, "lab12.message_is_a_call", batch, expected, actual, what)
    return Finding(SOON, place(call, batch, what), expected, "not told", call=call)


def _state_is_bounded(call: Call, run: FilmRun) -> Finding | None:
    film: Film = call.given
    bound = film.newest_ms() - 2 * (minutes_ms(call, "late") + PATIENCE_MS)
    most = sum(row["time"] > bound for row in film.until(len(film.slices))) + SLACK_ROWS
    return kept_too_many(call, run, most, lambda: "lab12.range_has_one_end" if run.mode == "append" else LONG_MEMORY)


def _refused(words: str) -> str:
    if "LeftAnti" in words:
        return NO_ANTI
    if "Append" in words:
        return APPEND_ONLY
    return "lab12.join_waits_for_ever" if "watermark" in words else ""


NO_ANSWER = OverFilm(
    "lab12.no_answer",
    "no_answer(entries, late)",
    points=5,
    about="listeners that hang",
    calls=calls,
    columns=("request_id", "msg_id", "group_name", "called"),
    refused=_refused,
    promises=[_told_once, _told_in_time, _state_is_bounded],
)
