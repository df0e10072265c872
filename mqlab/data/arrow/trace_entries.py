"""Bodies of the trace topic as entries, taken apart many at a time; an entry that cannot be parsed keeps the reason.

Mirrors: TraceDataEncoder.decoderFromTraceDataString.

    body  SubBefore␁1767225600000␁DefaultRegion␁billing␁0A00…␁0A01…␁0␁order-1␂SubAfter␁…␂
          fields end with 0x01, entries with 0x02

    reason   null                         the entry was parsed
             unknown type                 its first field is not one of the four types
             n fields, at least m         cut short, or of a version older than 4.4
             number expected in field n   damaged
             no end mark                  the body ends inside it

All bodies of a batch are one text, split twice: into entries, and these into fields. A column is then one take of the
places at which its field is, by the type of each entry. Left out: Recall entries, and the fields that a cloud's trace
adds.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy
import pyarrow
import pyarrow.compute

from mqlab.data.arrow.property_columns import as_text, numbers

ENTRY_END, FIELD_END = "\x02", "\x01"
SHOWN_FIELD_END = "|"
STATUSES = ("SUCCESS", "TIME_OUT", "EXCEPTION", "RETURNNULL", "FAILED")  # ConsumeReturnType's ordinals
LONGEST_RAW = 1_000
A_NUMBER = r"^\s*[+-]?[0-9]{1,18}\s*$"  # with more digits it is neither a time, nor a number of retries and no duration

# type -> column -> number of its field; fields counted from 0, the type itself is field 0
FIELDS: Mapping[str, Mapping[str, int]] = {
    "Pub": {"time": 1, "group_name": 3, "topic": 4, "msg_id": 5, "keys": 7, "cost_ms": 10},
    "SubBefore": {"time": 1, "group_name": 3, "request_id": 4, "msg_id": 5, "retry_times": 6, "keys": 7},
    "SubAfter": {
        "request_id": 1,
        "msg_id": 2,
        "cost_ms": 3,
        "success": 4,
        "keys": 5,
        "code": 6,
        "time": 7,
        "group_name": 8,
    },
    "EndTransaction": {"time": 1, "group_name": 3, "topic": 4, "msg_id": 5, "keys": 7},
}
TYPES = tuple(FIELDS)
FEWEST = {"Pub": 12, "SubBefore": 8, "SubAfter": 6, "EndTransaction": 13}
NUMBERS = {
    "Pub": ("time", "cost_ms"),
    "SubBefore": ("time", "retry_times"),
    "SubAfter": ("cost_ms",),
    "EndTransaction": ("time",),
}
INT_MAX = (1 << 31) - 1


class Entries:
    """The entries of some bodies, in their order. ``body`` is the number of the body that each is in."""

    def __init__(self, bodies: pyarrow.Array) -> None:
        # 1. Pieces between end marks. After the last one of a body is nothing, or an entry that was cut.
        pieces = pyarrow.compute.split_pattern(as_text(bodies), ENTRY_END)
        texts, bounds = pieces.flatten(), _bounds(pieces)
        counts = numpy.diff(bounds)
        body = numpy.repeat(numpy.arange(len(counts)), counts)
        position = numpy.arange(len(texts)) - bounds[body]
        ended = position < counts[body] - 1
        kept = numpy.flatnonzero(ended | _flags(pyarrow.compute.not_equal(texts, "")))
        self.body, self.position, self._ended = body[kept], position[kept].astype(numpy.int32), ended[kept]
        self._texts = texts.take(numbers(kept, pyarrow.int64()))
        # 2. Fields: all of them in one array, and where those of each entry begin.
        fields = pyarrow.compute.split_pattern(self._texts, FIELD_END)
        self._fields, begins = fields.flatten(), _bounds(fields)
        self._begins, self._sizes = begins[:-1], numpy.diff(begins)
        # 3. The type of each, as a number; the last number is of those that are unknown.
        types = pyarrow.compute.index_in(self._at(0), pyarrow.array(TYPES))
        self._type = types.fill_null(len(TYPES)).to_numpy(zero_copy_only=False)

    def __len__(self) -> int:
        return len(self.body)

    def columns(self) -> dict[str, pyarrow.Array]:
        """The columns of an entry by their names; ``time`` in ms, null where the entry cannot be parsed."""
        numeric = {name: _as_numbers(self._field(name)) for name in ("time", "retry_times", "cost_ms")}
        retries = numeric["retry_times"]
        fits = pyarrow.compute.less_equal(pyarrow.compute.abs(retries), INT_MAX)
        numeric["retry_times"] = pyarrow.compute.if_else(fits, retries, None).cast(pyarrow.int32())
        reason = self._reason(numeric)
        fine, success = reason.is_null(), self._field("success")
        plain = {name: _or_null(self._field(name)) for name in ("group_name", "topic", "msg_id", "request_id", "keys")}
        return {
            "type": pyarrow.array([*TYPES, None]).take(numbers(self._type, pyarrow.int32())),
            "time": pyarrow.compute.if_else(fine, numeric["time"], None),
            **plain,
            "keys": plain["keys"].fill_null(""),
            "retry_times": numeric["retry_times"],
            "cost_ms": numeric["cost_ms"],
            "success": pyarrow.compute.if_else(
                pyarrow.compute.is_in(success, pyarrow.array(["true", "false"])),
                pyarrow.compute.equal(success, "true"),
                None,
            ),
            "status": self._status(success),
            "position": numbers(self.position, pyarrow.int32()),
            "repeat": numbers(self._repeats(), pyarrow.int32()),
            "reason": reason,
            "raw": self._raw(_flags(fine)),
        }

    def _at(self, index: Any) -> pyarrow.Array:
        """The field with this number of each entry, or with these numbers; null where it has none."""
        there = (index >= 0) & (self._sizes > index)
        return self._fields.take(numbers(numpy.where(there, self._begins + index, 0), pyarrow.int64(), ~there))

    def _field(self, name: str) -> pyarrow.Array:
        """The text of a column of each entry; null where its type has none, or it is too short."""
        index = numpy.array([FIELDS[kind].get(name, -1) for kind in TYPES] + [-1])[self._type]
        if name == "success":  # of a Pub the last of its 13 fields, or of 14 in newer ones
            index = numpy.where(self._type == TYPES.index("Pub"), numpy.where(self._sizes >= 14, 13, 12), index)
        return self._at(index)

    def _status(self, success: pyarrow.Array) -> pyarrow.Array:
        """The result of a call: its code, or for an old client without a code the flag success."""
        codes = _as_numbers(self._field("code"))
        known = pyarrow.compute.and_(
            pyarrow.compute.greater_equal(codes, 0), pyarrow.compute.less(codes, len(STATUSES))
        ).fill_null(False)
        by_code = pyarrow.array(STATUSES).take(pyarrow.compute.if_else(known, codes, None))
        good = pyarrow.compute.equal(success, "true").fill_null(False)
        status = pyarrow.compute.coalesce(by_code, pyarrow.compute.if_else(good, STATUSES[0], STATUSES[-1]))
        return pyarrow.compute.if_else(pyarrow.array(self._type == TYPES.index("SubAfter")), status, None)

    def _reason(self, numeric: Mapping[str, pyarrow.Array]) -> pyarrow.Array:
        """Why an entry cannot be parsed; null when it can. Of several reasons the one that is noted last counts."""
        reasons = numpy.full(len(self), None, dtype=object)
        missing = {name: _flags(values.is_null()) for name, values in numeric.items()}
        for number, kind in enumerate(TYPES):
            mine = self._type == number
            for column in reversed(NUMBERS[kind]):
                reasons[mine & missing[column]] = f"number expected in field {FIELDS[kind][column]}"
            for row in numpy.flatnonzero(mine & (self._sizes < FEWEST[kind])):
                reasons[row] = f"{self._sizes[row]} fields, at least {FEWEST[kind]} expected"
        reasons[self._type == len(TYPES)] = "unknown type"
        reasons[~self._ended] = "no end mark"
        return pyarrow.array(reasons, type=pyarrow.string())

    def _repeats(self) -> Any:
        """How many entries with the same text come before each in its body: messages that look alike in a trace."""
        codes = self._texts.dictionary_encode()
        same = self.body * (len(codes.dictionary) + 1) + codes.indices.to_numpy()
        order = numpy.argsort(same, kind="stable")
        begins = numpy.flatnonzero(numpy.diff(same[order], prepend=-1))
        before = numpy.empty(len(self), dtype=numpy.int32)
        before[order] = numpy.arange(len(self)) - numpy.repeat(begins, numpy.diff(begins, append=len(self)))
        return before

    def _raw(self, fine: Any) -> pyarrow.Array:
        """The text of the entries that cannot be parsed, not more of it than a reader needs."""
        shown = numpy.full(len(self), None, dtype=object)
        for row in numpy.flatnonzero(~fine):
            shown[row] = self._texts[row].as_py().replace(FIELD_END, SHOWN_FIELD_END)[:LONGEST_RAW]
        return pyarrow.array(shown, type=pyarrow.string())


def _bounds(lists: pyarrow.Array) -> Any:
    """Where each list begins in the flattened values, and the end of the last one."""
    bounds = lists.offsets.to_numpy().astype(numpy.int64)
    return bounds - bounds[0]


def _flags(values: pyarrow.Array) -> Any:
    return values.to_numpy(zero_copy_only=False).astype(bool)


def _or_null(texts: pyarrow.Array) -> pyarrow.Array:
    """Texts; null for an empty one, and for the word null, which Java writes for a missing value."""
    return pyarrow.compute.if_else(pyarrow.compute.is_in(texts, pyarrow.array(["", "null"])), None, texts)


def _as_numbers(texts: pyarrow.Array) -> pyarrow.Array:
    """Whole numbers; null for what is none."""
    good = pyarrow.compute.match_substring_regex(texts, A_NUMBER)
    digits = pyarrow.compute.utf8_trim_whitespace(pyarrow.compute.if_else(good, texts, None))
    return pyarrow.compute.utf8_ltrim(digits, "+").cast(pyarrow.int64())
