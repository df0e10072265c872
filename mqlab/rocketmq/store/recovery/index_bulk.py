"""Many units indexed at once with numpy: the same bytes that IndexService.put makes, for recoveries of millions.

RocketMQ indexes one by one; tests compare this with IndexService.put.

    log    … | KEYS 01 "a b" 02 UNIQ_KEY 01 "7F00…" 02 | …     separators 01 and 02 found by vector
           ─▶ values of UNIQ_KEY and KEYS ─▶ pieces ─▶ hashes, column by column (other scripts than ASCII one by one)
    file   entries appended in one write; slots: the newest entry of each, written page by page

Left out: numpy at import time (a broker starts with the standard library alone; each function imports it).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from mqlab.rocketmq.store.index_file import MAX_SECONDS, IndexFile
from mqlab.rocketmq.wire import sys_flag as flags
from mqlab.rocketmq.wire.java_hash import index_key_hash, string_hash
from mqlab.rocketmq.wire.property_names import KEY_SEPARATOR, KEYS, NAME_VALUE_SEPARATOR, PROPERTY_SEPARATOR, UNIQ_KEY
from mqlab.rocketmq.wire.units import INDEX_ENTRY_LAYOUT, INDEX_HEADER_SIZE, INDEX_SLOT_SIZE

if TYPE_CHECKING:
    import numpy

    from mqlab.rocketmq.store.index_service import IndexService

    Array = numpy.ndarray[Any, numpy.dtype[Any]]

_CHUNK_BYTES = 4 << 20  # of properties, searched at a time
_MOST_WAITING = 2_000_000  # entries; slots are scattered all over a file, so the more at once the better
_SLOTS_PER_WRITE = 1024
_NAME_END, _VALUE_END = ord(NAME_VALUE_SEPARATOR), ord(PROPERTY_SEPARATOR)


@dataclass(frozen=True, slots=True)
class Units:
    """Units of one log file, one row per unit. ``properties_starts`` and ``_ends`` count from the view's start.

    ``topic_numbers`` point into ``topics``; the other columns are fields of the units.
    """

    topics: list[str]
    topic_numbers: Array
    properties_starts: Array
    properties_ends: Array
    physical_offsets: Array
    store_timestamps: Array
    sys_flags: Array


@dataclass(frozen=True, slots=True)
class _Texts:
    """Keys found in some bytes: row of the unit, and where the string starts and ends."""

    rows: Array
    starts: Array
    ends: Array


class BulkIndex:
    """Collects the keys of many units; ``finish`` puts them into the index, as ``index.put`` would do one by one.

    Between the first ``add`` and ``finish`` nothing else may put into the index.
    """

    def __init__(self, index: IndexService) -> None:
        self._index = index
        self._hashes: list[Array] = []
        self._physical_offsets: list[Array] = []
        self._store_timestamps: list[Array] = []
        self._waiting = 0

    def add(self, view: memoryview, units: Units) -> None:
        """Find the keys of units, which come in physical order; ``view`` is their log file."""
        import numpy as np

        # 1. The same rules as in IndexService.put, for all rows at once.
        wanted = units.sys_flags & flags.TRANSACTION_MASK != flags.TRANSACTION_ROLLBACK
        if self._index.index_files:
            wanted &= units.physical_offsets >= self._index.end_physical_offset
            wanted &= units.physical_offsets != self._index.last_indexed
        # 2. Keys and hashes, some MiB of properties at a time.
        for chosen in _chunks(np.flatnonzero(wanted), units):
            data, starts, ends = packed(view, units.properties_starts[chosen], units.properties_ends[chosen])
            texts = _keys_of(data, starts, ends)
            self._hashes.append(_hashes(data, texts, units.topics, units.topic_numbers[chosen][texts.rows]))
            self._physical_offsets.append(units.physical_offsets[chosen][texts.rows])
            self._store_timestamps.append(units.store_timestamps[chosen][texts.rows])
            self._waiting += len(texts.rows)
            if self._waiting >= _MOST_WAITING:
                self.finish()

    def finish(self) -> None:
        """Make the entries of everything added so far."""
        import numpy as np

        if self._waiting:
            hashes = np.concatenate(self._hashes)
            physical_offsets = np.concatenate(self._physical_offsets)
            store_timestamps = np.concatenate(self._store_timestamps)
            done = 0
            # A full file is followed by the next one, so that one call may fill several.
            while done < len(hashes):
                index_file = self._index.file_with_room()
                done += _append(index_file, hashes[done:], physical_offsets[done:], store_timestamps[done:])
            self._index.has_grown()
            self._index.write_header()
        for waiting in (self._hashes, self._physical_offsets, self._store_timestamps):
            waiting.clear()
        self._waiting = 0


def packed(view: memoryview, starts: Array, ends: Array) -> tuple[Array, Array, Array]:
    """The bytes of many stretches side by side, and where each starts and ends there: bodies need not be searched."""
    import numpy as np

    lengths = ends - starts
    packed_ends = np.cumsum(lengths)
    packed_starts = packed_ends - lengths
    positions = np.arange(int(lengths.sum())) + np.repeat(starts - packed_starts, lengths)
    return np.frombuffer(view, np.uint8)[positions], packed_starts, packed_ends


def _chunks(chosen: Array, units: Units) -> Iterator[Array]:
    """Rows in groups whose properties have some MiB together."""
    import numpy as np

    ends = np.cumsum(units.properties_ends[chosen] - units.properties_starts[chosen])
    first = done = 0
    while first < len(chosen):
        after_last = max(first + 1, int(np.searchsorted(ends, done + _CHUNK_BYTES, "right")))
        yield chosen[first:after_last]
        first, done = after_last, int(ends[after_last - 1])


def _keys_of(data: Array, starts: Array, ends: Array) -> _Texts:
    """The unique key, then each key of each unit, in the order of ``put``. ``starts`` and ``ends``: its properties."""
    import numpy as np

    name_ends, value_ends = np.flatnonzero(data == _NAME_END), np.flatnonzero(data == _VALUE_END)
    unique = _values(data, UNIQ_KEY, name_ends, value_ends, starts, ends)
    keys = _pieces(data, _values(data, KEYS, name_ends, value_ends, starts, ends))
    all_rows = np.concatenate((unique.rows, keys.rows))
    order = np.argsort(all_rows, kind="stable")  # unique keys were put first, keys are in order
    return _Texts(
        all_rows[order],
        np.concatenate((unique.starts, keys.starts))[order],
        np.concatenate((unique.ends, keys.ends))[order],
    )


def _values(data: Array, name: str, name_ends: Array, value_ends: Array, starts: Array, ends: Array) -> _Texts:
    """Where each unit's value of one property is; of several the last counts, empty ones do not."""
    import numpy as np

    # 1. Ends of names before which the letters of this name are, the last letter first.
    marks = name_ends[np.searchsorted(name_ends, len(name)) :]
    for back, letter in enumerate(reversed(name.encode("ascii")), 1):
        marks = marks[data[marks - back] == letter]
    # 2. The unit of each; the name must begin where a property begins, inside the unit's properties.
    rows = np.searchsorted(starts, marks, "right") - 1
    name_starts = marks - len(name)
    inside = (rows >= 0) & (name_starts >= starts[rows]) & (marks < ends[rows])
    inside &= (name_starts == starts[rows]) | (data[name_starts - 1] == _VALUE_END)
    marks, rows = marks[inside], rows[inside]
    # 3. Where each value ends; of several in one unit, the last that is not empty counts.
    next_end = np.append(value_ends, len(data))[np.searchsorted(value_ends, marks)]
    stops = np.minimum(next_end, ends[rows])
    last = np.full(len(starts), -1)
    filled = np.flatnonzero(stops > marks + 1)
    last[rows[filled]] = filled
    valid = last[last >= 0]
    return _Texts(rows[valid], marks[valid] + 1, stops[valid])


def _pieces(data: Array, values: _Texts) -> _Texts:
    """The values split at blanks, without empty pieces."""
    import numpy as np

    blanks = np.flatnonzero(data == ord(KEY_SEPARATOR))
    of_value = np.searchsorted(values.starts, blanks, "right") - 1
    inside = (of_value >= 0) & (blanks < values.ends[of_value]) if len(values.starts) else np.zeros(len(blanks), bool)
    blanks, of_value = blanks[inside], of_value[inside]
    rows = np.concatenate((values.rows, values.rows[of_value]))
    starts = np.concatenate((values.starts, blanks + 1))
    order = np.argsort(starts, kind="stable")
    ends = np.sort(np.concatenate((values.ends, blanks)))
    rows, starts = rows[order], starts[order]
    filled = ends > starts
    return _Texts(rows[filled], starts[filled], ends[filled])


def _hashes(data: Array, texts: _Texts, topics: list[str], topic_numbers: Array) -> Array:
    """index_key_hash of ``topic#key`` for each text."""
    import numpy as np

    prefixes = np.array([string_hash(f"{topic}#") & 0xFFFFFFFF for topic in topics], np.uint32)
    lengths = texts.ends - texts.starts
    order = np.argsort(-lengths.astype(np.int16), kind="stable")  # properties hold at most 32,767 bytes
    starts, ascending = texts.starts[order], lengths[order][::-1]
    values = prefixes[topic_numbers[order]]
    other_scripts = np.zeros(len(order), bool)
    for column in range(int(lengths.max(initial=0))):
        longer = len(order) - int(np.searchsorted(ascending, column, "right"))
        letters = data[starts[:longer] + column]
        values[:longer] = values[:longer] * np.uint32(31) + letters
        other_scripts[:longer] |= letters >= 0x80
    hashes = np.empty(len(order), np.int64)
    hashes[order] = np.abs(values.view(np.int32).astype(np.int64)) & 0x7FFFFFFF
    for number in order[other_scripts]:
        key = data[texts.starts[number] : texts.ends[number]].tobytes().decode("utf-8", "replace")
        hashes[number] = index_key_hash(f"{topics[topic_numbers[number]]}#{key}")
    return hashes


def _append(index_file: IndexFile, hashes: Array, physical_offsets: Array, store_timestamps: Array) -> int:
    """Add as many entries as the file has room for, as single puts would. Returns how many."""
    import numpy as np

    first = index_file.index_count
    count = min(len(hashes), index_file.index_num - first)
    numbers = np.arange(first, first + count)
    slots = hashes[:count] % index_file.hash_slot_num
    order = np.argsort(slots, kind="stable")
    in_slot_order = slots[order]
    is_first = np.concatenate(([True], in_slot_order[1:] != in_slot_order[:-1]))
    table = np.frombuffer(
        index_file.view, ">i4", index_file.hash_slot_num, INDEX_HEADER_SIZE
    )  # what the slots hold so far
    there = table[in_slot_order].astype(np.int64)
    there[(there < 0) | (there > numbers[order])] = 0
    previous = np.empty(count, np.int64)
    previous[order] = np.where(is_first, there, np.concatenate(([0], numbers[order][:-1])))

    begin = index_file.begin_timestamp
    begins = np.full(count, int(store_timestamps[0]) if first == 1 else begin)
    begins[0] = begin  # entry 1 of a follow-up file counts from the end of the file before
    seconds = np.where(
        (begins > 0) & (store_timestamps[:count] > begins), (store_timestamps[:count] - begins) // 1000, 0
    )
    entries = np.empty(count, np.dtype([(s.name, {"i32": ">i4", "i64": ">i8"}[s.kind]) for s in INDEX_ENTRY_LAYOUT]))
    entries["key_hash"] = hashes[:count]
    entries["physical_offset"] = physical_offsets[:count]
    entries["seconds"] = np.minimum(seconds, MAX_SECONDS)
    entries["previous"] = previous
    index_file.write(index_file.entry_position(first), entries.tobytes())
    is_last = np.concatenate((is_first[1:], [True]))
    _write_slots(index_file, table, in_slot_order[is_last], numbers[order][is_last])
    index_file.appended(
        count,
        int((previous == 0).sum()),
        (int(physical_offsets[0]), int(store_timestamps[0])),
        (int(physical_offsets[count - 1]), int(store_timestamps[count - 1])),
    )
    return count


def _write_slots(index_file: IndexFile, table: Array, slots: Array, numbers: Array) -> None:
    """Write the newest entry numbers into ``slots`` (ascending), neighbours together."""
    import numpy as np

    groups = slots // _SLOTS_PER_WRITE
    borders = [0, *(np.flatnonzero(np.diff(groups)) + 1).tolist(), len(slots)]
    for first, after_last in pairwise(borders):
        low, high = int(slots[first]), int(slots[after_last - 1]) + 1
        changed = table[low:high].copy()
        changed[slots[first:after_last] - low] = numbers[first:after_last]
        index_file.write(INDEX_HEADER_SIZE + INDEX_SLOT_SIZE * low, changed.tobytes())
