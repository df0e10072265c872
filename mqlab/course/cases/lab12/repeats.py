"""lab12.without_repeats: a stream in which a message that its sender stored twice is there once.

    batch 0, 2, 4, 6    some minutes of messages, five of an order; now and then one that its sender stores again, at
                        any broker: at once, or up to ``within`` later, two batches later
    batch 1, 3, 5       a third of ``within``, so that what was remembered too shortly is forgotten by then

A copy has the msg_id of the message, and everything that a broker gives is new: place, offset_msg_id, store_timestamp.
"""

from __future__ import annotations

import functools
import random
from collections import Counter
from collections.abc import Iterator

from mqlab.course.cases.lab12.films import (
    Film,
    FilmRun,
    OverFilm,
    Row,
    film_folder,
    kept_too_many,
    minutes_ms,
    place,
    told_by,
)
from mqlab.course.cases.lab12.moments import BROKERS, NINE
from mqlab.course.kit import Store
from mqlab.course.teach.exercises import Call, Finding
from mqlab.scales import MINUTE, SECOND

TYPES = {
    "broker_name": "string",
    "keys": "string",
    "tags": "string",
    "msg_id": "string",
    "offset_msg_id": "string",
    "store_timestamp": "timestamp",
}
SLICES, ORDERS = 7, 8
STEPS = ("created", "paid", "packed", "sent", "arrived")
WITHIN_MINUTES = (10, 8, 12)
EACH_ONCE = "Each message has a row, in the batch in which it came first"
LONG_DELAY = "A delay longer than within keeps messages of which no copy comes any more"


@functools.cache
def copied(seed: int, within: int) -> tuple[Film, Store]:
    """The film of a seed, in which a copy comes up to ``within`` minutes after its message."""
    rng = random.Random(f"lab12.without_repeats {seed} {within}")
    slices: list[list[Row]] = []
    late: list[tuple[Row, int]] = []  # copies that come in the next long slice, and when
    end = NINE
    for number in range(SLICES):
        is_long = number % 2 == 0
        begin, end = end, end + (2 * within * MINUTE if is_long else within * MINUTE // 3)
        orders = range(ORDERS) if is_long else range(1)
        messages: list[Row] = [
            {"keys": f"O{number}{order}", "tags": step, "msg_id": f"0A0000{number:02}{order:02}{index:02}"}
            for order in orders
            for index, step in enumerate(STEPS)
        ]
        # Paid twice, and no copy: another message with the keys and the tags of one.
        messages += [{**messages[1], "msg_id": f"0A0000{number:02}P"}] if is_long else []
        moments = sorted(rng.randrange(begin, end - 20 * SECOND) for _ in messages)
        rows = [_stored(rng, message, at_ms) for message, at_ms in zip(messages, moments, strict=True)]
        if is_long:
            # Two copies come at once; of one near the end of the slice, a copy comes as late as it may.
            rows += [_stored(rng, message, at_ms) for message, at_ms in late]
            rows += [
                _stored(rng, messages[index], moments[index] + SECOND) for index in rng.sample(range(len(messages)), 2)
            ]
            message = {"keys": f"L{number}", "tags": STEPS[0], "msg_id": f"0A0000{number:02}L"}
            at_ms = end - within * MINUTE // 2
            rows.append(_stored(rng, message, at_ms))
            late = [(message, at_ms + within * MINUTE - 20 * SECOND)]
        rows.append(
            _stored(rng, {"keys": f"E{number}", "tags": STEPS[0], "msg_id": f"0A0000{number:02}E"}, end - SECOND)
        )
        slices.append(sorted(rows, key=_time))
    film = Film(slices, "store_timestamp")
    return film, film_folder(film, TYPES, f"seven batches, copies up to {within} minutes later")


def _stored(rng: random.Random, message: Row, at_ms: int) -> Row:
    stored = {"broker_name": rng.choice(BROKERS), "offset_msg_id": f"{rng.getrandbits(64):016X}"}
    return {**message, **stored, "store_timestamp": at_ms}


def _time(row: Row) -> int:
    return int(str(row["store_timestamp"]))


def calls(seed: int) -> Iterator[Call]:
    """One film; how late a copy may come differs from seed to seed."""
    yield call_of(seed, WITHIN_MINUTES[seed % len(WITHIN_MINUTES)])


def call_of(seed: int, within: int) -> Call:
    """The messages of a film without copies that come ``within`` minutes."""
    film, folder = copied(seed, within)
    return Call(film=folder, within=f"{within} minutes", given=film, about=folder.about)


def _each_once(call: Call, run: FilmRun) -> Finding | None:
    film: Film = call.given
    keys = {row["msg_id"]: row["keys"] for row in film.until(len(film.slices))}
    seen: Counter[str] = Counter()
    for batch in [progress["batch"] for progress in run.batches]:
        now = Counter(row["msg_id"] for row in run.of(batch))
        for name, count in sorted(now.items()):
            if count > 1:
                return told_by(call, "lab12.copies_are_equal", batch, "one row", f"{count} rows", f"msg_id {name}")
            if seen[name]:
                actual = "a row, though an earlier batch had one"
                return told_by(call, "lab12.memory_lasts", batch, "no row", actual, f"msg_id {name}")
        seen += now
        for name in sorted({row["msg_id"] for row in film.until(batch)} - seen.keys()):
            order = keys[name]
            what, actual = f"msg_id {name} of {order}", "no row"
            if any(keys.get(other) == order for other in seen):
                return told_by(call, "lab12.order_has_one", batch, "one row", f"{actual}, as {order} has one", what)
            return Finding(EACH_ONCE, place(call, batch, what), "one row", actual, call=call)
    return None


def _state_is_bounded(call: Call, run: FilmRun) -> Finding | None:
    film: Film = call.given
    within_ms = minutes_ms(call, "within")
    bound = film.newest_ms() - 2 * within_ms
    most = sum(row["store_timestamp"] > bound for row in film.until(len(film.slices)))

    def why() -> str:
        if not run.has_watermark:
            return "lab12.duplicates_end"
        return LONG_DELAY if run.waits_longer(bound) or run.forgets else "lab12.watermark_ends_all"

    return kept_too_many(call, run, most, why)


WITHOUT_REPEATS = OverFilm(
    "lab12.without_repeats",
    "without_repeats(messages, within)",
    points=4,
    about="messages that come twice",
    calls=calls,
    columns=("msg_id", "keys", "tags"),
    refused=lambda words: "lab12.duplicates_end" if "watermark" in words else "",
    promises=[_each_once, _state_is_bounded],
)
