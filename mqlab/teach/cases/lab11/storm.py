"""lab11.storm: how much of what brokers stored in each minute was there for the second time.

    minute   units but trace   of them in %RETRY%...   share
    00:00    34                2                       0.0588
    00:01    12                9                       0.75

A unit belongs to the minute in which it was stored. Copies that wait in the schedule topic are units, and not retries.
"""

from __future__ import annotations

from collections.abc import Callable

from mqlab.scales import MINUTE
from mqlab.teach.cases.forbids import FORBIDS
from mqlab.teach.cases.lab11.days import day
from mqlab.teach.exercises import Call
from mqlab.teach.kit import Rows, Slip
from mqlab.teach.trace_tables import Row
from mqlab.wire import names

COLUMNS = ("minute_ms", "stored", "retries", "share")


def units_in(stores: str) -> list[Row]:
    """Topic, store time and born time of every unit, trace included."""
    from mqlab.arrow import read_table

    return [
        {"topic": unit["topic"], "stored_ms": round(unit["store_timestamp"].timestamp() * 1000),
         "born_ms": round(unit["born_timestamp"].timestamp() * 1000)}
        for unit in read_table(stores, ("topic", "store_timestamp", "born_timestamp")).to_pylist()
    ]  # fmt: skip


def _retry(topic: str) -> bool:
    return topic.startswith(names.RETRY_PREFIX)


def _retry_or_waits(topic: str) -> bool:
    return _retry(topic) or topic == names.SCHEDULE_TOPIC


def _retry_or_dead(topic: str) -> bool:
    return _retry(topic) or topic.startswith(names.DLQ_PREFIX)


def _no_trace(topic: str) -> bool:
    return topic != names.TRACE_TOPIC


def storm(
    units: list[Row],
    *,
    again: Callable[[str], bool] = _retry,
    counts: Callable[[str], bool] = _no_trace,
    time: str = "stored_ms",
) -> list[Row]:
    """The rows; the arguments are where an answer may err."""
    minutes: dict[int, list[int]] = {}
    for unit in units:
        if counts(unit["topic"]):
            count = minutes.setdefault(unit[time] // MINUTE * MINUTE, [0, 0])
            count[0] += 1
            count[1] += again(unit["topic"])
    return [
        {"minute_ms": minute, "stored": stored, "retries": retries, "share": retries / stored}
        for minute, (stored, retries) in sorted(minutes.items())
    ]


def _mean_of_the_day(call: Call) -> list[Row]:
    rows = storm(units_in(call["messages"]))
    share = sum(row["retries"] for row in rows) / sum(row["stored"] for row in rows)
    return [row | {"share": share} for row in rows]


def _with_retries(call: Call) -> list[Row]:
    return [row for row in storm(units_in(call["messages"])) if row["retries"]]


def _wrongly(**how: object) -> Callable[[Call], list[Row]]:
    return lambda call: storm(units_in(call["messages"]), **how)  # type: ignore[arg-type]


def asked(seed: int) -> list[Call]:
    """One day."""
    stores = day(seed)
    return [Call(messages=stores, right=storm(units_in(stores)), about=stores.about)]


STORM = Rows(
    "lab11.storm", "storm(messages)", points=4, about="a day", through="rows_of", forbids=FORBIDS["lab11.storm"],
    calls=asked, columns=COLUMNS, by=("minute_ms",), seeds=(1,),
    slips=[
        Slip("waiting copies", _wrongly(again=_retry_or_waits), belief="lab11.waiting_is_retry"),
        Slip("dead letters", _wrongly(again=_retry_or_dead), belief="lab11.dead_is_retry"),
        Slip("with trace", _wrongly(counts=lambda topic: True), belief="lab11.trace_is_load"),
        Slip("by birth", _wrongly(time="born_ms"), belief="lab11.born_is_stored"),
        Slip("mean", _mean_of_the_day, belief="lab11.mean_is_enough"),
        Slip("without minutes of none", _with_retries,
             "A minute without retries has a row as well, with 0 retries"),
    ],
    rules={
        "missing": "Each minute in which something was stored has a row",
        "extra": "A minute is that of store_timestamp, and trace is left out",
        "stored": "stored is the number of units in this minute, of all topics but RMQ_SYS_TRACE_TOPIC",
        "retries": "retries is the number of units in topics that begin with %RETRY%",
        "share": "share is retries / stored of this minute",
    },
)  # fmt: skip
