"""The options of the data source rocketmq, read and checked once.

Lab 10 uses columns, topic and splitMB.

    path                 a store, a folder with the stores of several brokers, or several of either by load([...])
    columns              "topic,queue_id,..."; only these are decoded: Spark does not pass a source what a query needs
    topic, queues        "orders,%RETRY%billing" and "0,1": only these
    startTime, endTime   store time, from and before: ms since the epoch, or ISO 8601 (UTC without an offset)
    startPhysicalOffset, endPhysicalOffset     units that begin between these offsets; for one store
    splitMB              about how much of a log one task reads; default: so that there are four tasks for each that the
                         session runs at once, within 16 to 128
    startingOffsets      a stream's begin: earliest (default), latest, or {"broker-a": 4096} for some brokers
    maxBytesPerTrigger   one batch of a stream reads at most this many bytes of the logs ("64m"), at least one unit
    failOnDataLoss       true (default): an error when queues know messages that the log does not hold, and in a stream
                         when files that it had not read yet were deleted; false: a warning, and what is left is read
    brokerName           the values of the column broker_name, "a,b" for two stores; default: the names of their folders

An option that has no meaning where it is given is refused: startingOffsets and maxBytesPerTrigger in a batch, endTime
and endPhysicalOffset in a stream, startPhysicalOffset beside startingOffsets. So is a topic that no store has.

Left out: pushed-down filters: Spark 4.3 keeps them between uses of one DataFrame and then answers wrongly.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime

from mqlab.arrow.columns import COLUMNS, schema
from mqlab.arrow.reading import Selection
from mqlab.arrow.stores import local_path
from mqlab.errors import UsageError

KNOWN = (
    "path", "paths", "columns", "topic", "queues", "startTime", "endTime", "startPhysicalOffset", "endPhysicalOffset",
    "splitMB", "brokerName", "startingOffsets", "maxBytesPerTrigger", "failOnDataLoss",
)  # fmt: skip
EARLIEST, LATEST = "earliest", "latest"
OF_STREAMS, OF_BATCHES = ("startingOffsets", "maxBytesPerTrigger"), ("endTime", "endPhysicalOffset")
_UNITS = {"": 1, "b": 1, "k": 1 << 10, "kb": 1 << 10, "m": 1 << 20, "mb": 1 << 20, "g": 1 << 30, "gb": 1 << 30}


@dataclass(frozen=True, slots=True)
class Options:
    """The options of one read; ``names`` are the options that were given.

    ``split_bytes`` None: to be chosen from the size of the stores.
    """

    paths: tuple[str, ...]
    columns: tuple[str, ...]
    selection: Selection
    start_physical_offset: int | None = None
    end_physical_offset: int | None = None
    split_bytes: int | None = None
    broker_names: tuple[str, ...] = ()
    starting: str = EARLIEST
    starting_offsets: Mapping[str, int] = field(default_factory=dict)
    max_bytes_per_trigger: int | None = None
    fail_on_data_loss: bool = True
    names: tuple[str, ...] = ()

    def check_batch(self) -> None:
        """Raise UsageError for options that have a meaning in a stream only."""
        self._refuse(OF_STREAMS, "a batch", "begin a batch with startPhysicalOffset or startTime, or use readStream")

    def check_stream(self) -> None:
        """Raise UsageError for options that have no meaning in a stream."""
        self._refuse(OF_BATCHES, "a stream", "trigger(availableNow=True) ends by itself; .where(...) chooses by time")
        if "startingOffsets" in self.names and "startPhysicalOffset" in self.names:
            raise UsageError(
                "startingOffsets and startPhysicalOffset both say where a stream begins",
                hint='give one of them: startingOffsets can name a place for each broker, {"broker-a": 4096}',
            )

    def _refuse(self, without_meaning: Sequence[str], place: str, hint: str) -> None:
        given = [name for name in without_meaning if name in self.names]
        if given:
            raise UsageError(f"{' and '.join(given)} {'have' if given[1:] else 'has'} no meaning in {place}", hint=hint)

    def check_bounds(self, stores: int) -> None:
        """Raise UsageError for physical offsets given for more than one store: each has its own."""
        if stores > 1 and (self.start_physical_offset is not None or self.end_physical_offset is not None):
            raise UsageError(
                f"startPhysicalOffset and endPhysicalOffset are for one store, and {stores} are read",
                hint="read them one by one, or choose by startTime and endTime",
            )


def parse(given: Mapping[str, str]) -> Options:
    """Options as Spark passes them, names in any case. Raises UsageError that names the option and its values.

    >>> parse({"path": "run/broker-a", "COLUMNS": "topic, queue_id", "queues": "0,1"}).columns
    ('topic', 'queue_id')
    """
    options = known_options(given, KNOWN)
    paths = paths_of(options)
    start, end = number_of(options, "startPhysicalOffset"), number_of(options, "endPhysicalOffset")
    columns = tuple(words_of(options, "columns")) or tuple(COLUMNS)
    # Unknown columns are an error here, on the driver, and not in a task.
    schema(columns)
    split = number_of(options, "splitMB")
    if split is not None and split < 1:
        raise UsageError(f"option splitMB is {split}: expected 1 or more")
    selection = Selection(
        tuple(words_of(options, "topic")), queue_ids_of(options),
        time_of(options, "startTime"), time_of(options, "endTime"),
    )  # fmt: skip
    starting, starting_offsets = _starting(options)
    return Options(
        paths, columns, selection, start, end, None if split is None else split << 20,
        tuple(words_of(options, "brokerName")), starting, starting_offsets, bytes_of(options, "maxBytesPerTrigger"),
        switch_of(options, "failOnDataLoss"), tuple(options),
    )  # fmt: skip


def known_options(given: Mapping[str, str], known: Sequence[str]) -> dict[str, str]:
    """The options by their right names, given in any case. Raises UsageError for an unknown option."""
    names = {name.lower(): name for name in known}
    options: dict[str, str] = {}
    for name, value in given.items():
        if name.lower() not in names:
            raise UsageError(f"there is no option {name!r}", hint=f"options are {', '.join(known)}")
        options[names[name.lower()]] = value
    return options


def paths_of(options: Mapping[str, str]) -> tuple[str, ...]:
    """The paths of load(path), load([paths]) or the option path. Raises UsageError without any, and for a path of
    another machine."""
    paths = json.loads(options["paths"]) if "paths" in options else []
    if options.get("path"):
        paths = [options["path"], *paths]
    if not paths:
        raise UsageError("no store to read", hint='say which: .option("path", directory) or .load(directory)')
    return tuple(local_path(path) for path in paths)


def words_of(options: Mapping[str, str], name: str) -> list[str]:
    """The words of a comma-separated list; an empty list for an option that is not given."""
    return [word for part in options.get(name, "").split(",") if (word := part.strip())]


def number_of(options: Mapping[str, str], name: str) -> int | None:
    """A whole number, None for an option that is not given. Raises UsageError."""
    text = options.get(name)
    if text is None:
        return None
    try:
        return int(text)
    except ValueError:
        raise UsageError(f"option {name} is {text!r}: expected a whole number") from None


def queue_ids_of(options: Mapping[str, str]) -> tuple[int, ...]:
    """The option queues. Raises UsageError."""
    words = words_of(options, "queues")
    if not all(word.isdecimal() for word in words):
        raise UsageError(f"option queues is {options['queues']!r}: expected queue ids such as '0,1'")
    return tuple(int(word) for word in words)


def time_of(options: Mapping[str, str], name: str) -> int | None:
    """A time in ms since the epoch, None for an option that is not given. Raises UsageError."""
    text = options.get(name)
    if text is None:
        return None
    if text.lstrip("-").isdecimal():
        return int(text)
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise UsageError(
            f"option {name} is {text!r}: expected ms since the epoch or a time such as 2026-01-31T09:30:00"
        ) from None
    moment = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
    return round(moment.timestamp() * 1000)


def _starting(options: Mapping[str, str]) -> tuple[str, dict[str, int]]:
    """Where a stream begins: earliest or latest, and brokers that begin elsewhere."""
    text = options.get("startingOffsets", EARLIEST).strip()
    if text.lower() in (EARLIEST, LATEST):
        return text.lower(), {}
    try:
        offsets = json.loads(text)
        if isinstance(offsets, dict) and all(type(offset) is int and offset >= 0 for offset in offsets.values()):
            return EARLIEST, offsets
    except ValueError:
        pass
    raise UsageError(
        f'option startingOffsets is {text!r}: expected {EARLIEST}, {LATEST} or offsets such as {{"broker-a": 4096}}',
        hint="an offset is a place of the commit log at which a message begins: the column physical_offset",
    )


def bytes_of(options: Mapping[str, str], name: str) -> int | None:
    """A number of bytes, with or without a unit, None for an option that is not given. Raises UsageError."""
    text = options.get(name)
    if text is None:
        return None
    found = re.fullmatch(r"\s*(\d+)\s*([a-zA-Z]*)\s*", text)
    if found is None or found[2].lower() not in _UNITS or not int(found[1]):
        raise UsageError(f"option {name} is {text!r}: expected a number of bytes such as 1048576 or '64m'")
    return int(found[1]) * _UNITS[found[2].lower()]


def switch_of(options: Mapping[str, str], name: str) -> bool:
    """An option that is true unless it is given otherwise. Raises UsageError."""
    text = options.get(name, "true").strip().lower()
    if text not in ("true", "false"):
        raise UsageError(f"option {name} is {text!r}: expected true or false")
    return text == "true"
