"""lab12.per_minute: counts by minute and broker that include a broker that comes late, and forget what is over.

    batch 0     both brokers
    batch 1, 2  broker-a alone: broker-b is cut off, and stores all the same
    batch 3     broker-a, and what broker-b has stored since: nearly as old as ``late`` allows
    batch 4, 5  both brokers, hours of them: a query that forgets nothing keeps all of that

Spark drops what is older than the watermark of the batch before, so a broker has to be away for two.
The sink is a table with the key (minute, broker_name): a row that comes again replaces the one before.
"""

from __future__ import annotations

import functools
import random
import re
from collections import Counter
from collections.abc import Iterator, Mapping

from mqlab.course.cases.lab12.films import (
    Film,
    FilmRun,
    OverFilm,
    film_folder,
    kept_too_many,
    minutes_ms,
    place,
    told_by,
)
from mqlab.course.cases.lab12.moments import BROKERS, DAY, NINE, shown
from mqlab.course.kit import Store
from mqlab.course.teach.exercises import Call, Finding
from mqlab.scales import MINUTE, SECOND

TYPES = {
    "broker_name": "string",
    "topic": "string",
    "keys": "string",
    "msg_id": "string",
    "store_timestamp": "timestamp",
}
LATE_MINUTES = (40, 60, 90)
Key = tuple[str, str]  # minute, broker name
DATE_AND_TIME = re.compile(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d")  # a timestamp, as a sink of a film shows it
COUNTED = "Each minute and broker has the number of messages that it stored in this minute, also when they come late"
MINUTE_IS_A_TIME = "minute is the time at which the minute begins, a timestamp: the start of its window"
LONG_DELAY = "A delay longer than late keeps minutes to which nothing can come any more"


@functools.cache
def counted(seed: int, late: int) -> tuple[Film, Store]:
    """The film of a seed, in which broker-b is cut off for nine tenths of ``late`` minutes."""
    rng = random.Random(f"lab12.per_minute {seed} {late}")
    cut = 20 * MINUTE
    seen, back = cut + 8 * late * MINUTE // 10, cut + 9 * late * MINUTE // 10
    borders = [0, cut, seen, back, back + 20 * MINUTE, back + 110 * MINUTE, back + 200 * MINUTE]
    slices: list[list[dict[str, object]]] = [[] for _ in borders[1:]]
    for broker in BROKERS:
        moments = sorted(rng.randrange(borders[-1]) for _ in range(borders[-1] // (2 * MINUTE)))
        # Each slice ends with a message of broker-a, so that the watermark goes on as far as it can.
        moments += [border - SECOND for border in borders[1:]] if broker == BROKERS[0] else []
        for number, after in enumerate(sorted(moments)):
            slice_number = next(index for index, border in enumerate(borders[1:]) if after < border)
            is_late = broker == BROKERS[1] and slice_number in (1, 2)
            slices[3 if is_late else slice_number].append(
                {
                    "broker_name": broker,
                    "topic": "orders",
                    "keys": f"O{number // 2}",  # an order has several messages
                    "msg_id": f"{broker[-1]}{number:05}",
                    "store_timestamp": NINE + after,
                }
            )
    film = Film(slices, "store_timestamp")
    return film, film_folder(film, TYPES, f"six batches, a broker {9 * late // 10} minutes late")


def calls(seed: int) -> Iterator[Call]:
    """One film; how late a broker may be differs from seed to seed."""
    yield call_of(seed, LATE_MINUTES[seed % len(LATE_MINUTES)])


def call_of(seed: int, late: int) -> Call:
    """The counts of a film in which a broker may be ``late`` minutes late."""
    film, folder = counted(seed, late)
    return Call(film=folder, late=f"{late} minutes", given=film, about=folder.about)


def counts(film: Film, batch: int) -> Counter[Key]:
    """The right board after a batch."""
    return Counter((shown(row["store_timestamp"] // MINUTE * MINUTE), row["broker_name"]) for row in film.until(batch))


def _board_is_right(call: Call, run: FilmRun) -> Finding | None:
    board: dict[Key, int] = {}
    for batch in [progress["batch"] for progress in run.batches]:
        rows = run.of(batch)
        for row in rows:
            if not isinstance(row["minute"], str) or not DATE_AND_TIME.fullmatch(row["minute"]):
                actual = row["minute"]
                return Finding(MINUTE_IS_A_TIME, place(call, batch), "2024-11-11 09:05:00", actual, call=call)
        board |= {(row["minute"], row["broker_name"]): row["messages"] for row in rows}
        wrong = _first_wrong(call, run, batch, board)
        if wrong is not None:
            return wrong
    return None


def _first_wrong(call: Call, run: FilmRun, batch: int, board: Mapping[Key, int]) -> Finding | None:
    right = counts(call.given, batch)
    for key in sorted(right.keys() | board.keys()):
        if right[key] == board.get(key, 0) and (key in right or key not in board):
            continue
        minute, broker = key
        expected, actual = f"messages: {right[key]}", f"messages: {board.get(key, 0)}"
        what = f"minute {minute[11:16]} of {broker}"
        if not any(row["minute"].startswith(DAY) for row in run.rows):
            row = run.of(batch)[0]
            return told_by(call, "lab12.now_is_the_minute", batch, f"minutes of {DAY}", row["minute"])
        if run.mode == "append" and key not in board:
            return told_by(call, "lab12.append_is_live", batch, expected, "no such row", what)
        if dropped := run.dropped_in(batch):
            actual += f", and {dropped} rows dropped by the watermark"
            return told_by(call, "lab12.late_is_counted", batch, expected, actual, what)
        return Finding(COUNTED, place(call, batch, what), expected, actual, call=call)
    return None


def _state_is_bounded(call: Call, run: FilmRun) -> Finding | None:
    film: Film = call.given
    late_ms = minutes_ms(call, "late")
    # Twice as long as anything can be late is enough for every way to say it.
    bound = film.newest_ms() - 2 * late_ms
    most = sum(minute > shown(bound - bound % SECOND) for minute, _ in counts(film, len(film.slices)))

    def why() -> str:
        if run.mode == "complete":
            return "lab12.complete_is_small"
        if not run.has_watermark:
            return "lab12.state_forgets"
        return LONG_DELAY if run.waits_longer(bound) or run.forgets else "lab12.start_is_the_window"

    return kept_too_many(call, run, most, why)


PER_MINUTE = OverFilm(
    "lab12.per_minute",
    "per_minute(messages, late)",
    points=3,
    about="a broker that comes late",
    calls=calls,
    columns=("minute", "broker_name", "messages"),
    refused=lambda words: "lab12.state_forgets" if "without watermark" in words else "",
    promises=[_board_is_right, _state_is_bounded],
)
