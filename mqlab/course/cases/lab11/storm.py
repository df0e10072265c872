"""lab11.storm: how much of what brokers stored in each minute was there for the second time, and what a message cost.

    minute   units but trace   of them in %RETRY%...   share    messages sent   calls with each of them
    00:00    34                2                       0.0588   30              3.1
    00:01    12                9                       0.75     1               6

A unit belongs to the minute in which it was stored. Copies that wait in the schedule topic are units, and not retries.
A message is sent once, in the minute of its first unit in a topic of an application, and all calls with it are its
own: those of every group, whenever they came.
"""

from __future__ import annotations

import functools
import shutil
from collections import Counter
from collections.abc import Callable, Sequence

from mqlab.course.cases.forbids import FORBIDS
from mqlab.course.cases.lab11.days import DAYS_KEPT, calls_of, day
from mqlab.course.given.lab11.trace_tables import Row
from mqlab.course.kit import Rows, Slip, Store
from mqlab.course.kit.stores import Stored, shared_folder, store_of
from mqlab.course.teach.exercises import Call
from mqlab.rocketmq.wire import names
from mqlab.rocketmq.wire import property_names as p
from mqlab.scales import HOUR, MINUTE

COLUMNS = ("minute_ms", "stored", "retries", "share", "sent", "calls_each")
OF_THE_BROKER = ("%", "RMQ_SYS_", names.SCHEDULE_TOPIC)
"""How the names of topics begin in which no application sends."""
Message = tuple[str, str]
OF_YESTERDAY = 4


@functools.cache
def stormy(seed: int) -> Store:
    """The day of a seed, and a broker that stores retries of yesterday's messages when no shop sends, and a minute
    later a message that nobody reads, in a topic with RETRY in its name.
    """
    folder = shared_folder("storm")
    shutil.copytree(day(seed), folder, dirs_exist_ok=True)
    at_ms = max(unit["stored_ms"] for unit in units_in(str(folder))) + 5 * MINUTE
    of_yesterday = [
        Stored(
            at_ms + number,
            f"{names.RETRY_PREFIX}mail",
            0,
            b"of yesterday",
            {p.UNIQ_KEY: f"0A000009{number:024X}", p.KEYS: f"y-{number}"},
            at_ms - 20 * HOUR,
            1,
        )
        for number in range(OF_YESTERDAY)
    ]
    unread = Stored(at_ms + MINUTE, "RETRY-later", 0, b"of a shop", {p.UNIQ_KEY: f"0A00000A{0:024X}", p.KEYS: "later"})
    store_of(folder / "broker-d", [*of_yesterday, unread])
    return Store(str(folder), f"the day of seed {seed}, and a broker with retries of yesterday")


def units_in(stores: str) -> list[Row]:
    """Topic, message (msg_id and keys), store time and born time of every unit, trace included."""
    from mqlab.data.arrow import read_table

    columns = ("topic", "msg_id", "keys", "store_timestamp", "born_timestamp")
    return [
        {
            "topic": unit["topic"],
            "message": (unit["msg_id"], unit["keys"] or ""),
            "stored_ms": round(unit["store_timestamp"].timestamp() * 1000),
            "born_ms": round(unit["born_timestamp"].timestamp() * 1000),
        }
        for unit in read_table(stores, columns).to_pylist()
    ]


def _retry(topic: str) -> bool:
    return topic.startswith(names.RETRY_PREFIX)


def _retry_or_waits(topic: str) -> bool:
    return _retry(topic) or topic == names.SCHEDULE_TOPIC


def _retry_or_dead(topic: str) -> bool:
    return _retry(topic) or topic.startswith(names.DLQ_PREFIX)


def _no_trace(topic: str) -> bool:
    return topic != names.TRACE_TOPIC


def _sent(topic: str) -> bool:
    return not topic.startswith(OF_THE_BROKER)


def storm(
    units: Sequence[Row],
    calls: Sequence[Row],
    *,
    again: Callable[[str], bool] = _retry,
    counts: Callable[[str], bool] = _no_trace,
    time: str = "stored_ms",
    sent: Callable[[str], bool] = _sent,
) -> list[Row]:
    """The rows; the arguments behind ``calls`` are where an answer may err."""
    minutes: dict[int, list[int]] = {}
    for unit in units:
        if counts(unit["topic"]):
            count = minutes.setdefault(unit[time] // MINUTE * MINUTE, [0, 0])
            count[0] += 1
            count[1] += again(unit["topic"])
    cohorts = _messages_by_minute(units, sent, time)
    calls_with = Counter(_message_of(call) for call in calls)
    return [
        {"minute_ms": minute, "stored": stored, "retries": retries, "share": retries / stored}
        | _each(cohorts.get(minute, ()), calls_with)
        for minute, (stored, retries) in sorted(minutes.items())
    ]


def _message_of(call: Row) -> Message:
    return call["msg_id"], call["keys"]


def _messages_by_minute(
    units: Sequence[Row], sent: Callable[[str], bool] = _sent, time: str = "stored_ms"
) -> dict[int, list[Message]]:
    """The messages that were sent in each minute: each once, in the minute of its first unit."""
    first: dict[Message, int] = {}
    for unit in units:
        if sent(unit["topic"]):
            first[unit["message"]] = min(unit[time], first.get(unit["message"], unit[time]))
    minutes: dict[int, list[Message]] = {}
    for message, at_ms in first.items():
        minutes.setdefault(at_ms // MINUTE * MINUTE, []).append(message)
    return minutes


def _each(messages: Sequence[Message], calls_with: Counter[Message]) -> Row:
    """How many messages, and how many calls with each on average: None without any."""
    calls = sum(calls_with[message] for message in messages)
    return {"sent": len(messages), "calls_each": calls / len(messages) if messages else None}


def _read(call: Call) -> tuple[list[Row], list[Row]]:
    return _units_of(call["messages"]), calls_of(call["messages"])


@functools.lru_cache(maxsize=DAYS_KEPT)
def _units_of(stores: str) -> list[Row]:
    """The units of a day, which does not change."""
    return units_in(stores)


def _mean_of_the_day(call: Call) -> list[Row]:
    rows = storm(*_read(call))
    share = sum(row["retries"] for row in rows) / sum(row["stored"] for row in rows)
    return [row | {"share": share} for row in rows]


def _without_groups(call: Call) -> list[Row]:
    """A message and the number of its retry name a call: groups are forgotten."""
    units, calls = _read(call)
    return storm(units, list({(*_message_of(call), call["retry_times"]): call for call in calls}.values()))


def _by_minute_of_calls(call: Call) -> list[Row]:
    """The calls of a minute are divided by the messages that were sent in it."""
    units, calls = _read(call)
    began = Counter(call["started_ms"] // MINUTE * MINUTE for call in calls)
    return [
        row | {"calls_each": began[row["minute_ms"]] / row["sent"] if row["sent"] else None}
        for row in storm(units, calls)
    ]


def _with_calls(call: Call) -> list[Row]:
    """Only messages that a listener was called with are counted."""
    units, calls = _read(call)
    called = {_message_of(call) for call in calls}
    only = [unit if unit["message"] in called else unit | {"topic": names.SCHEDULE_TOPIC} for unit in units]
    sent = {row["minute_ms"]: row for row in storm(only, calls)}
    return [
        row | {name: sent[row["minute_ms"]][name] for name in ("sent", "calls_each")} for row in storm(units, calls)
    ]


def _minutes_with_senders(call: Call) -> list[Row]:
    return [row for row in storm(*_read(call)) if row["sent"]]


def _nought_for_none(call: Call) -> list[Row]:
    return [row | {"calls_each": row["calls_each"] or 0.0} for row in storm(*_read(call))]


def _units_as_messages(call: Call) -> list[Row]:
    """A message that was stored twice counts twice, and so do its calls."""
    units, calls = _read(call)
    minutes = Counter(unit["stored_ms"] // MINUTE * MINUTE for unit in units if _sent(unit["topic"]))
    calls_with, total = Counter(_message_of(call) for call in calls), Counter[int]()
    for unit in units:
        if _sent(unit["topic"]):
            total[unit["stored_ms"] // MINUTE * MINUTE] += calls_with[unit["message"]]
    return [
        row | {"sent": minutes[minute], "calls_each": total[minute] / minutes[minute] if minutes[minute] else None}
        for row in storm(units, calls)
        for minute in (row["minute_ms"],)
    ]


def _with_retries(call: Call) -> list[Row]:
    return [row for row in storm(*_read(call)) if row["retries"]]


def _wrongly(**how: object) -> Callable[[Call], list[Row]]:
    return lambda call: storm(*_read(call), **how)  # type: ignore[arg-type]


def asked(seed: int) -> list[Call]:
    """One day, and yesterday's retries after it."""
    stores = stormy(seed)
    return [Call(messages=stores, right=storm(_units_of(stores), calls_of(stores)), about=stores.about)]


STORM = Rows(
    "lab11.storm",
    "storm(messages, calls)",
    points=5,
    about="a day",
    through="rows_with_trace",
    forbids=FORBIDS["lab11.storm"],
    calls=asked,
    columns=COLUMNS,
    by=("minute_ms",),
    seeds=(1,),
    slips=[
        Slip("waiting copies", _wrongly(again=_retry_or_waits), belief="lab11.waiting_is_retry"),
        Slip("dead letters", _wrongly(again=_retry_or_dead), belief="lab11.dead_is_retry"),
        Slip("with trace", _wrongly(counts=lambda topic: True), belief="lab11.trace_is_load"),
        Slip("by birth", _wrongly(time="born_ms"), belief="lab11.born_is_stored"),
        Slip("groups", _without_groups, belief="lab11.one_group"),
        Slip("minute of the call", _by_minute_of_calls, belief="lab11.cost_when_called"),
        Slip("called ones", _with_calls, belief="lab11.uncalled_left_out"),
        Slip("units", _units_as_messages, belief="lab11.unit_is_message"),
        Slip(
            "copies",
            _wrongly(sent=_no_trace),
            "sent counts messages in topics of applications: what a broker stores in its own topics was sent before",
        ),
        Slip("mean", _mean_of_the_day, belief="lab11.mean_is_enough"),
        Slip("without minutes of none", _with_retries, "A minute without retries has a row as well, with 0 retries"),
        Slip(
            "without minutes of no sender",
            _minutes_with_senders,
            "A minute in which nothing was sent has a row as well: retries come when everybody is asleep",
        ),
        Slip(
            "0 for none",
            _nought_for_none,
            "Where nothing was sent, calls_each is NULL: 0 would say that its messages cost nothing",
        ),
    ],
    rules={
        "missing": "Each minute in which something was stored has a row. minute_ms is its beginning in ms, a multiple "
        "of 60,000",
        "extra": "A minute is that of store_timestamp, and trace is left out",
        "stored": "stored is the number of units in this minute, of all topics but RMQ_SYS_TRACE_TOPIC",
        "retries": "retries is the number of units in topics that begin with %RETRY%",
        "share": "share is retries / stored of this minute",
        "sent": "sent is the number of messages (msg_id and keys) whose first unit in a topic of an application is of "
        "this minute",
        "calls_each": "calls_each is the number of all calls with the messages of this minute, divided by sent; NULL "
        "when nothing was sent",
    },
)
