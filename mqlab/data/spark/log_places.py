"""Where a read of stores begins or ends: as an option says it, and as a physical offset of each broker's log.

Mirrors: startingOffsets, endingOffsets and startingTimestamp of Spark's source for Kafka; the offsets are physical.

    earliest, latest             the first unit that is still there; the end of the last one that is complete
    {"broker-a": 4096}           this broker so, the others by the option's default
    2026-01-31T09:30:00          the first unit of each log stored at or after that time, found by bisection
    startPhysicalOffset=4096     of the only store; in a batch, a unit need not begin there

Left out: queue offsets; a log is read in the order of its bytes.
"""

from __future__ import annotations

import json
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from mqlab.data.arrow.losses import DataLossWarning
from mqlab.data.arrow.moments import first_stored_at
from mqlab.data.spark.option_values import number_of, time_of
from mqlab.errors import StoreError, UsageError
from mqlab.rocketmq.store.reading.store_reader import StoreReader

EARLIEST, LATEST = "earliest", "latest"

Offsets = dict[str, int]


@dataclass(frozen=True, slots=True)
class LogPlaces:
    """What the options say: ``named`` brokers have an offset, the others the ``only`` one, a time, or ``word``.

    ``option`` is the name of the option that was given; empty for none.
    """

    word: str
    named: Mapping[str, int] = field(default_factory=dict)
    at_ms: int | None = None
    only: int | None = None
    option: str = ""

    def offsets(self, inspectors: Mapping[str, StoreReader], end_of: Callable[[str], int]) -> Offsets:
        """The physical offset in each broker's log; ``end_of`` says where a log ends now.

        Raises UsageError for a broker that is not there, and for an offset after the end of its log.
        """
        unknown = sorted(set(self.named) - set(inspectors))
        if unknown:
            raise UsageError(
                f"{self.option} names {', '.join(unknown)}", hint=f"brokers are {', '.join(sorted(inspectors))}"
            )
        return {name: self._offset(name, inspector, end_of) for name, inspector in inspectors.items()}

    def _offset(self, name: str, inspector: StoreReader, end_of: Callable[[str], int]) -> int:
        if name in self.named:
            end = end_of(name)
            if self.named[name] > end:
                raise UsageError(f"{self.option}: the log of {name} ends at {end}, before {self.named[name]}")
            return self.named[name]
        if self.only is not None:
            return self.only
        if self.at_ms is not None:
            return first_stored_at(inspector, self.at_ms, end_of(name))
        return end_of(name) if self.word == LATEST else inspector.min_physical_offset


def log_places_of(
    options: Mapping[str, str], offsets: str, timestamp: str, only: str, default: str, what: str
) -> LogPlaces:
    """The place that one of three options gives. Raises UsageError for more than one of them and for other values.

    >>> given = {"startingOffsets": '{"broker-a": 4096}'}
    >>> log_places_of(given, "startingOffsets", "startingTimestamp", "startPhysicalOffset", "earliest", "begins").named
    {'broker-a': 4096}
    """
    used = [name for name in (offsets, timestamp, only) if name in options]
    if len(used) > 1:
        raise UsageError(
            f"{' and '.join(used)} both say where a read {what}",
            hint=f'give one of them: {offsets} can name a place for each broker, {{"broker-a": 4096}}',
        )
    option = used[0] if used else ""
    if option != offsets:
        return LogPlaces(default, at_ms=time_of(options, timestamp), only=number_of(options, only), option=option)
    text = options[offsets].strip()
    if text.lower() in (EARLIEST, LATEST):
        return LogPlaces(text.lower(), option=offsets)
    try:
        named = json.loads(text)
        if isinstance(named, dict) and all(type(offset) is int and offset >= 0 for offset in named.values()):
            return LogPlaces(default, named, option=offsets)
    except ValueError:
        pass
    raise UsageError(
        f'option {offsets} is {text!r}: expected {EARLIEST}, {LATEST} or offsets such as {{"broker-a": 4096}}',
        hint="an offset is a place of the commit log at which a message begins: the column physical_offset",
    )


def check_order(begin: LogPlaces, end: LogPlaces) -> None:
    """Raise UsageError for a read that would end where it begins, or before."""
    if end.word == EARLIEST:
        raise UsageError(f"{end.option} {EARLIEST}: a read that ends there has nothing to read")
    pairs: Sequence[tuple[int | None, int | None]] = (
        (begin.at_ms, end.at_ms),
        (begin.only, end.only),
        *((begin.named[name], end.named[name]) for name in begin.named if name in end.named),
    )
    for first, last in pairs:
        if first is not None and last is not None and first > last:
            raise UsageError(
                f"{end.option} ({last}) is before {begin.option} ({first})", hint="a read goes from the older on"
            )


def check_not_deleted(name: str, inspector: StoreReader, begin: int, fail_on_data_loss: bool) -> int:
    """``begin``, or the first place of a broker's log when its units from there on were deleted and that is allowed.

    Raises StoreError when it is not.
    """
    first = inspector.min_physical_offset
    if begin < first:
        what = f"{inspector.log.folder}: messages {begin} to {first} of {name} were deleted before they were read"
        report_lost(what, fail_on_data_loss)
    return max(begin, first)


def report_lost(what: str, fail_on_data_loss: bool) -> None:
    """Raise StoreError, or warn (DataLossWarning) when such losses are allowed."""
    if fail_on_data_loss:
        raise StoreError(what, hint="option('failOnDataLoss', 'false') continues with what is left")
    warnings.warn(what, DataLossWarning, stacklevel=3)
