"""Splits the properties of many units at once: one pass finds all names and values, from which columns are taken.

Mirrors: MessageDecoder.string2messageProperties, which parses one string; mqlab.rocketmq.wire.properties defines what
is right.

    texts    KEYS 01 k1 k2 02 TAGS 01 paid 02 │ TAGS 01 订单 │ ...          those of all rows, one after the other
    token    ├ name ┤    ├ value ┤                                         from a row's begin or an 02 to the next one
    counts   with an 01 in it, a name before and a value after it; of several of one name the last

Left out: a token of 2 GB or more (a unit's properties have 32,767 bytes at most).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy
import pyarrow

from mqlab.rocketmq.wire import properties as property_text
from mqlab.rocketmq.wire.property_names import NAME_VALUE_SEPARATOR, PROPERTY_SEPARATOR

PAIRS = pyarrow.map_(pyarrow.string(), pyarrow.string())
_MARK, _END = ord(NAME_VALUE_SEPARATOR), ord(PROPERTY_SEPARATOR)


@dataclass(frozen=True, slots=True)
class Tokens:
    """Places in the texts of all rows, one per property, in order. ``row``: the unit it belongs to."""

    name_at: Any
    mark_at: Any
    end: Any
    row: Any


class PropertyColumns:
    """The properties of some units; ``texts`` is a binary array without nulls, one row per unit."""

    def __init__(self, texts: pyarrow.Array) -> None:
        self._rows = len(texts)
        self._texts = texts
        _, offsets, data = texts.buffers()
        bounds = numpy.frombuffer(offsets, dtype=numpy.int32)[texts.offset : texts.offset + self._rows + 1]
        self._bounds = bounds.astype(numpy.int64)
        self._buffer = data if data is not None else pyarrow.py_buffer(b"")
        self._bytes = numpy.frombuffer(self._buffer, dtype=numpy.uint8)[: self._bounds[-1]]
        self._tokens = self._take_apart()
        self._name_lengths = self._tokens.mark_at - self._tokens.name_at

    def _take_apart(self) -> Tokens:
        """Find all properties of all rows at once."""
        data, bounds = self._bytes, self._bounds
        if not len(data):
            nothing = numpy.zeros(0, dtype=numpy.int64)
            return Tokens(nothing, nothing, nothing, nothing)
        # 1. A token begins where a row begins and after each end mark.
        begins = numpy.zeros(len(data) + 1, dtype=bool)
        begins[1:] = data == _END
        begins[bounds[:-1]] = True
        begins[-1] = False
        starts = numpy.flatnonzero(begins)
        ends = numpy.append(starts[1:], len(data))
        ends = ends - (data[ends - 1] == _END)
        # 2. The first name mark in each token separates name and value.
        marks = numpy.append(numpy.flatnonzero(data == _MARK), len(data))
        if len(marks) != len(starts) + 1 or (marks[:-1] < starts).any() or (marks[:-1] >= ends).any():
            marks = marks[numpy.searchsorted(marks, starts)]  # not one per token: take the first at or after each start
        else:
            marks = marks[:-1]
        # 3. Tokens without a name or a value are ignored, as Java ignores them.
        counts = (marks > starts) & (marks + 1 < ends)
        if not counts.all():
            starts, marks, ends = starts[counts], marks[counts], ends[counts]
        first = numpy.searchsorted(starts, bounds)
        return Tokens(starts, marks, ends, numpy.repeat(numpy.arange(self._rows), numpy.diff(first)))

    def column(self, name: str) -> pyarrow.Array:
        """One property of every row as text, null where it is missing."""
        letters = name.encode()
        tokens = self._tokens
        # Names are compared letter by letter, all tokens at once; few are left after the length.
        of_name = numpy.flatnonzero(self._name_lengths == len(letters))
        for index, letter in enumerate(letters):
            of_name = of_name[self._bytes[tokens.name_at[of_name] + index] == letter]
        row = tokens.row[of_name]
        starts, ends = numpy.zeros((2, self._rows), dtype=numpy.int64)
        starts[row], ends[row] = tokens.mark_at[of_name] + 1, tokens.end[of_name]  # of several, the last one wins
        return as_text(slices(self._buffer, starts, ends, missing=ends == 0))

    def maps(self) -> pyarrow.Array:
        """All properties of every row, in their order."""
        tokens = self._tokens
        names = as_text(slices(self._buffer, tokens.name_at, tokens.mark_at))
        if self._has_repeated(names):  # rare: the last value at the first one's place, as the plain reader does it
            return pyarrow.array([list(property_text.decode(raw).items()) for raw in self._texts.to_pylist()], PAIRS)
        values = as_text(slices(self._buffer, tokens.mark_at + 1, tokens.end))
        bounds = numpy.searchsorted(tokens.row, numpy.arange(self._rows + 1)).astype(numpy.int32)
        return pyarrow.MapArray.from_arrays(bounds, names, values)

    def _has_repeated(self, names: pyarrow.Array) -> bool:
        """Whether some row has two properties of one name."""
        encoded = names.dictionary_encode()
        which = numpy.frombuffer(encoded.indices.buffers()[1], dtype=numpy.int32)
        places = self._tokens.row * len(encoded.dictionary) + which
        places.sort()
        return bool((places[1:] == places[:-1]).any())


def slices(buffer: Any, starts: Any, ends: Any, missing: Any = None) -> pyarrow.Array:
    """The bytes from each start to its end, as binary; null where ``missing`` is True. Starts never decrease.

    One Arrow array over the buffer with starts and ends interleaved, of which every other slot is taken.
    """
    count = len(starts)
    if missing is not None:
        present = numpy.flatnonzero(~missing)
        places = numpy.zeros(count, dtype=numpy.int64)
        places[present] = numpy.arange(len(present)) * 2
        slots = numbers(places, pyarrow.int64(), missing)
        starts, ends = starts[present], ends[present]
    else:
        slots = numbers(numpy.arange(0, 2 * count, 2), pyarrow.int64())
    bounds = numpy.empty(2 * len(starts) + 1, dtype=numpy.int32)
    bounds[0:-1:2], bounds[1:-1:2], bounds[-1] = starts, ends, ends[-1] if len(ends) else 0
    buffers = [None, pyarrow.py_buffer(bounds), pyarrow.py_buffer(buffer)]
    return pyarrow.Array.from_buffers(pyarrow.binary(), 2 * len(starts), buffers).take(slots)


def numbers(values: Any, kind: pyarrow.DataType, missing: Any = None) -> pyarrow.Array:
    """A numpy array of the width of ``kind`` as an Arrow array, without a copy.

    pyarrow.array would do the same, after a second spent on importing pandas to see whether it is a Series.
    """
    present = None if missing is None else pyarrow.py_buffer(numpy.packbits(~missing, bitorder="little"))
    return pyarrow.Array.from_buffers(kind, len(values), [present, pyarrow.py_buffer(numpy.ascontiguousarray(values))])


def as_text(raw: pyarrow.Array) -> pyarrow.Array:
    """Bytes as text; bytes that are not UTF-8 become U+FFFD, as everywhere in mqlab."""
    try:
        return raw.cast(pyarrow.string())
    except pyarrow.ArrowInvalid:
        values = [value if value is None else value.decode("utf-8", "replace") for value in raw.to_pylist()]
        return pyarrow.array(values, type=pyarrow.string())
