"""The options of the data source rocketmq, read and checked once.

Lab 10 uses columns, topic and splitMB.

    path                 a store, a folder with the stores of several brokers, or several of either by load([...])
    columns              "topic,queue_id,..."; only these are decoded: Spark does not pass a source what a query needs
    topic, queues        "orders,%RETRY%billing" and "0,1": only these
    startTime, endTime   store time, from and before: ms since the epoch, or ISO 8601 (UTC without an offset)
    startPhysicalOffset, endPhysicalOffset     units that begin between these offsets; for one store
    splitMB              about how much of a log one task reads; default: so that there are four tasks for each that the
                         session runs at once, within 16 to 128
    startingOffsets      where a read begins: earliest (default), latest, or {"broker-a": 4096} for some brokers
    startingTimestamp    instead: at the first message of each log stored at or after that time, found by bisection;
                         startTime only chooses, among messages that are all read
    endingOffsets, endingTimestamp     the same for the end of a batch; default: latest
    maxBytesPerTrigger   one batch of a stream reads at most this many bytes of the logs ("64m"), at least one unit
    maxOffsetsPerTrigger one batch of a stream reads at most so many units of the logs, of whatever topic; the smaller
                         of the two limits counts
    failOnDataLoss       true (default): an error when queues know messages that the log does not hold, and in a stream
                         when files that it had not read yet were deleted; false: a DataLossWarning, and what is left is
                         read; Spark plans in a process of its own, whose warnings are in the log file of the JVM
    brokerName           the values of the column broker_name, "a,b" for two stores; default: the names of their folders

An option that has no meaning where it is given is refused: limits of a trigger and a begin at latest in a batch, ends
in a stream, two places to begin or to end. So is a topic that no store has. A broker that joins a running stream is
read from the beginning of its log, wherever the stream began.

Left out: pushed-down filters: Spark 4.3 keeps them between uses of one DataFrame and then answers wrongly
(tests/data/spark/test_pushed_filters.py). ``mqlab.data.spark.messages`` makes options of a condition instead.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass

from mqlab.data.arrow.columns import COLUMNS, schema
from mqlab.data.arrow.reading import Selection
from mqlab.data.arrow.stores import local_path
from mqlab.data.spark.log_places import EARLIEST, LATEST, LogPlaces, check_order, log_places_of
from mqlab.data.spark.option_values import (
    bytes_of,
    known_options,
    number_of,
    queue_ids_of,
    switch_of,
    time_of,
    words_of,
)
from mqlab.errors import UsageError

KNOWN = (
    "path",
    "paths",
    "columns",
    "topic",
    "queues",
    "startTime",
    "endTime",
    "startPhysicalOffset",
    "endPhysicalOffset",
    "startingOffsets",
    "startingTimestamp",
    "endingOffsets",
    "endingTimestamp",
    "splitMB",
    "brokerName",
    "maxBytesPerTrigger",
    "maxOffsetsPerTrigger",
    "failOnDataLoss",
)
OF_STREAMS = ("maxBytesPerTrigger", "maxOffsetsPerTrigger")
OF_BATCHES = ("endTime", "endPhysicalOffset", "endingOffsets", "endingTimestamp")


@dataclass(frozen=True, slots=True)
class Options:
    """The options of one read; ``names`` are the options that were given.

    ``split_bytes`` None: to be chosen from the size of the stores.
    """

    paths: tuple[str, ...]
    columns: tuple[str, ...]
    selection: Selection
    starting: LogPlaces
    ending: LogPlaces
    split_bytes: int | None = None
    broker_names: tuple[str, ...] = ()
    max_bytes_per_trigger: int | None = None
    max_offsets_per_trigger: int | None = None
    fail_on_data_loss: bool = True
    names: tuple[str, ...] = ()

    def check_batch(self) -> None:
        """Raise UsageError for options that have a meaning in a stream only."""
        used = [name for name in OF_STREAMS if name in self.names]
        if self.starting.word == LATEST:
            used.insert(0, f"startingOffsets {LATEST}")
        _refuse(used, "a batch", "begin a batch with startingTimestamp or startPhysicalOffset, or use readStream")

    def check_stream(self) -> None:
        """Raise UsageError for options that have no meaning in a stream."""
        used = [name for name in OF_BATCHES if name in self.names]
        _refuse(used, "a stream", "trigger(availableNow=True) ends on its own; .where(...) chooses by time")

    def check_bounds(self, stores: int) -> None:
        """Raise UsageError for physical offsets given for more than one store: each has its own."""
        if stores > 1 and (self.starting.only is not None or self.ending.only is not None):
            raise UsageError(
                f"startPhysicalOffset and endPhysicalOffset are for one store, and {stores} are read",
                hint='name the brokers: startingOffsets {"broker-a": 4096}, or choose by startTime and endTime',
            )


def _refuse(used: list[str], where: str, hint: str) -> None:
    if used:
        raise UsageError(f"{' and '.join(used)} {'have' if used[1:] else 'has'} no meaning in {where}", hint=hint)


def parse(raw_options: Mapping[str, str]) -> Options:
    """Options as Spark passes them, names in any case. Raises UsageError that names the option and its values.

    >>> parse({"path": "run/broker-a", "COLUMNS": "topic, queue_id", "queues": "0,1"}).columns
    ('topic', 'queue_id')
    """
    options = known_options(raw_options, KNOWN)
    paths = paths_of(options)
    columns = tuple(words_of(options, "columns")) or tuple(COLUMNS)
    # Unknown columns are an error here, on the driver, and not in a task.
    schema(columns)
    split = number_of(options, "splitMB")
    if split is not None and split < 1:
        raise UsageError(f"option splitMB is {split}: expected 1 or more")
    selection = Selection(
        tuple(words_of(options, "topic")),
        queue_ids_of(options),
        time_of(options, "startTime"),
        time_of(options, "endTime"),
    )
    starting = log_places_of(options, "startingOffsets", "startingTimestamp", "startPhysicalOffset", EARLIEST, "begins")
    ending = log_places_of(options, "endingOffsets", "endingTimestamp", "endPhysicalOffset", LATEST, "ends")
    check_order(starting, ending)
    most_offsets = number_of(options, "maxOffsetsPerTrigger")
    if most_offsets is not None and most_offsets < 1:
        raise UsageError(f"option maxOffsetsPerTrigger is {most_offsets}: expected 1 or more")
    return Options(
        paths,
        columns,
        selection,
        starting,
        ending,
        None if split is None else split << 20,
        tuple(words_of(options, "brokerName")),
        bytes_of(options, "maxBytesPerTrigger"),
        most_offsets,
        switch_of(options, "failOnDataLoss"),
        tuple(options),
    )


def paths_of(options: Mapping[str, str]) -> tuple[str, ...]:
    """The paths of load(path), load([paths]) or the option path. Raises UsageError without any, and for a path of
    another machine."""
    paths = json.loads(options["paths"]) if "paths" in options else []
    if options.get("path"):
        paths = [options["path"], *paths]
    if not paths:
        raise UsageError("no store to read", hint='say which: .option("path", directory) or .load(directory)')
    return tuple(local_path(path) for path in paths)
