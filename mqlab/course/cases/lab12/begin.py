"""lab12.begin: the options and the trigger of a stream that begins at a moment and ends when it has caught up.

    moment, most bytes ─▶ (options, trigger) ─▶ the source's reader, driven as Spark drives it ─▶ begins, batches, end

Many dictionaries are right, so they are compared by what the source does with them. No Spark is needed for that.
"""

from __future__ import annotations

import functools
import random
from collections.abc import Iterator, Mapping
from typing import Any

from mqlab.course.cases.lab12.moments import BROKERS, NINE, shown
from mqlab.course.kit import OneOf, Pure, Slip, Store, tuple_of
from mqlab.course.kit.shapes import Difference
from mqlab.course.kit.stores import Stored, shared_folder, store_of
from mqlab.course.teach.exercises import Call
from mqlab.course.words import refutation
from mqlab.errors import MqlabError
from mqlab.scales import HOUR, MINUTE, SECOND

STORES = 2  # the calls differ; the stores need not
SMALLER_THAN_A_MESSAGE = 50
NAMES = ("topic", "physical_offset")


@functools.cache
def stores(number: int) -> Store:
    """Two brokers with three hours of messages; broker-b stores nothing in the last one."""
    rng = random.Random(f"lab12.begin {number}")
    folder = shared_folder("begin")
    for broker in BROKERS:
        hours = 3 if broker == BROKERS[0] else 2
        moments = sorted(NINE + rng.randrange(hours * HOUR) for _ in range(120 * hours))
        store_of(
            folder / broker,
            [
                Stored(at_ms, "orders", index % 4, b"." * rng.choice((20, 300, 900)), {"KEYS": f"O{index}"})
                for index, at_ms in enumerate(moments)
            ],
        )
    return Store(str(folder), f"three hours of two brokers, number {number}")


def calls(seed: int) -> Iterator[Call]:
    """The moment of a message within the two logs, one after the end of broker-b's, and a limit that is smaller than a
    message.
    """
    rng, store = random.Random(seed), stores(seed % STORES)
    within, late = rng.randrange(40, 80), NINE + 2 * HOUR + rng.randrange(1, 30) * MINUTE
    wanted = (
        (_log(store)[BROKERS[0]][within][1], rng.randrange(8, 20) * 1000),
        (late, rng.randrange(2, 5) * 1000),
        (NINE + 2 * HOUR + rng.randrange(50, 55) * MINUTE, SMALLER_THAN_A_MESSAGE),
    )
    for at_ms, most_bytes in wanted:
        yield stream_from(store, at_ms, most_bytes)


def stream_from(store: Store, at_ms: int, most_bytes: int) -> Call:
    """A stream that is asked for."""
    options = {"startingTimestamp": str(at_ms), "maxBytesPerTrigger": str(most_bytes)}
    about = f"from {shown(at_ms - at_ms % SECOND)[11:]} on, {most_bytes:,} bytes per batch"
    right = options, {"availableNow": True}
    return Call(at_ms=at_ms, most_bytes=most_bytes, right=right, given=store, about=about)


def _first_difference(call: Call, value: Any) -> Difference | None:
    """Options that the source does not take, another beginning, a batch that is too large, a stream without an end."""
    from mqlab.data.spark.options import parse
    from mqlab.data.spark.stream import RocketMQStreamReader

    options, trigger = (dict(part) for part in value)
    # 1. The source must accept the options.
    try:
        parsed = parse({"path": call.given, **{name: str(option) for name, option in options.items()}})
        reader = RocketMQStreamReader(parsed, NAMES)
        begins = reader.initialOffset()
    except MqlabError as error:
        part = "a time as a place" if {"startPhysicalOffset", "startingOffsets"} & options.keys() else "refused"
        return Difference(("options",), part, error.hint or "options that the source takes", error.text)
    # 2. Where it begins, and what it chooses from there on.
    different = _begins_elsewhere(call, parsed, begins) or _chooses(call, parsed)
    # 3. How it goes on.
    return different or _ends(trigger) or _too_large(call, trigger, parsed, reader, begins)


def _begins_elsewhere(call: Call, parsed: Any, begins: Mapping[str, int]) -> Difference | None:
    wanted = first_places(call.given, call["at_ms"])
    for name, physical_offset in wanted.items():
        if begins[name] == physical_offset:
            continue
        part = "latest" if parsed.starting.word == "latest" else "place"
        if not parsed.starting.option and parsed.selection.start_ms is not None:
            part = "filter"
        actual = f"begins at {begins[name]}"
        if begins[name] < physical_offset:
            actual += f": reads {physical_offset - begins[name]:,} bytes that are older"
        return Difference((name,), part, f"begins at {physical_offset}", actual)
    return None


def _chooses(call: Call, parsed: Any) -> Difference | None:
    chosen = parsed.selection
    if chosen.topics or chosen.queues or chosen.end_ms is not None or (chosen.start_ms or 0) > call["at_ms"]:
        return Difference(("options",), "chosen", "all messages from the moment on", "some of them only")
    return None


def _ends(trigger: Mapping[str, Any]) -> Difference | None:
    names = sorted(trigger)
    if names == ["availableNow"] and trigger["availableNow"] is True:
        return None
    if names == ["once"] and trigger["once"] is True:
        return None  # it ends, and is judged by its only batch
    actual = ", ".join(f"{name}={trigger[name]!r}" for name in names) or "no trigger: the next batch follows at once"
    known = names in (["processingTime"], ["continuous"], [], ["realTime"])
    return Difference(("trigger",), "goes on" if known else "no trigger", "a trigger that ends by itself", actual)


def _too_large(
    call: Call, trigger: Mapping[str, Any], parsed: Any, reader: Any, begins: Mapping[str, int]
) -> Difference | None:
    """The first batch that is larger than it may be: more bytes than the limit, and more than one message."""
    from pyspark.sql.streaming.datasource import ReadAllAvailable

    from mqlab.data.spark.stream import numbers_of

    limit = ReadAllAvailable() if "once" in trigger else reader.getDefaultReadLimit()
    reader.prepareForTriggerAvailableNow()
    begin, number, most = dict(begins), 0, call["most_bytes"]
    while (end := numbers_of(reader.latestOffset(begin, limit))) != begin:
        size = sum(end[name] - begin[name] for name in end)
        if size > most and _messages_between(call.given, begin, end) > 1:
            part = "once" if "once" in trigger else _why_large(parsed)
            expected = f"at most {most:,} bytes, or one message"
            return Difference((f"batch {number}",), part, expected, f"{size:,} bytes")
        begin, number = end, number + 1
    return None


def _why_large(parsed: Any) -> str:
    if parsed.max_bytes_per_trigger is not None:
        return "another limit"
    return "units" if parsed.max_offsets_per_trigger is not None else "no limit"


@functools.cache
def _log(store: str) -> dict[str, tuple[tuple[int, int], ...]]:
    """Broker name -> place in the log and store time of each message."""
    from mqlab.data.arrow import read_table

    rows = read_table(store, ("broker_name", "physical_offset", "store_timestamp")).to_pylist()
    return {
        broker: tuple(
            sorted(
                (row["physical_offset"], round(row["store_timestamp"].timestamp() * 1000))
                for row in rows
                if row["broker_name"] == broker
            )
        )
        for broker in BROKERS
    }


def first_places(store: str, at_ms: int) -> dict[str, int]:
    """Where a stream from a moment on begins in each log: at its first message of that time, or at its end."""
    from mqlab.data.spark.options import parse
    from mqlab.data.spark.stream import RocketMQStreamReader

    ends = RocketMQStreamReader(parse({"path": store, "startingOffsets": "latest"}), NAMES).initialOffset()
    log = _log(store)
    return {
        name: next((physical_offset for physical_offset, ms in log[name] if ms >= at_ms), ends[name])
        for name in BROKERS
    }


def _messages_between(store: str, begin: Mapping[str, int], end: Mapping[str, int]) -> int:
    return sum(
        begin[name] <= physical_offset < end[name]
        for name, places in _log(store).items()
        for physical_offset, _ in places
    )


def _with(options: Any = None, trigger: Any = None) -> Any:
    """The right answer of a call with other options (None: left out) or another trigger; numbers may be strings."""

    def would(call: Call) -> OneOf:
        right, until = call.right
        changed = {**right, **(options(call) if options else {})}
        texts = {name: text for name, text in changed.items() if text is not None}
        numbers = {name: int(text) if text.isdigit() else text for name, text in texts.items()}
        return OneOf((options, trigger or until) for options in (texts, numbers))

    return would


BEGIN = Pure(
    "lab12.begin",
    "begin(at_ms, most_bytes)",
    points=3,
    about="three streams",
    calls=calls,
    returns=tuple_of(options={str: object}, trigger={str: object}),
    compares=_first_difference,
    rules={
        "a time as a place": refutation("lab12.time_is_place"),
        "refused": "The options of the source have the names of the table above; values are strings or numbers",
        "latest": refutation("lab12.latest_is_now"),
        "filter": refutation("lab12.filter_begins"),
        "place": "startingTimestamp is the moment as it is given, in ms: a log begins at its first message from then",
        "chosen": "Read everything from that time on: leave out no topic, queue or time",
        "goes on": refutation("lab12.stream_never_ends"),
        "no trigger": "trigger is what .trigger(**trigger) takes: one name with its value, {'availableNow': True}",
        "once": refutation("lab12.once_keeps_limits"),
        "units": refutation("lab12.offsets_are_bytes"),
        "no limit": "Without maxBytesPerTrigger a batch takes all available data",
        "another limit": f"{refutation('lab12.small_limit_stops')}; 1k would be 1,024 bytes",
    },
    slips=[
        Slip(
            "latest",
            _with(lambda call: {"startingTimestamp": None, "startingOffsets": "latest"}),
            belief="lab12.latest_is_now",
        ),
        Slip(
            "filter",
            _with(lambda call: {"startingTimestamp": None, "startTime": str(call["at_ms"])}),
            belief="lab12.filter_begins",
        ),
        Slip("once", _with(trigger={"once": True}), belief="lab12.once_keeps_limits"),
        Slip(
            "units",
            _with(lambda call: {"maxBytesPerTrigger": None, "maxOffsetsPerTrigger": str(call["most_bytes"])}),
            belief="lab12.offsets_are_bytes",
        ),
        Slip("every second", _with(trigger={"processingTime": "1 second"}), belief="lab12.stream_never_ends"),
        Slip(
            "at least 4 KB",
            _with(lambda call: {"maxBytesPerTrigger": str(max(call["most_bytes"], 4096))}),
            belief="lab12.small_limit_stops",
        ),
        Slip(
            "a place",
            _with(lambda call: {"startingTimestamp": None, "startPhysicalOffset": str(call["at_ms"])}),
            belief="lab12.time_is_place",
        ),
    ],
)
