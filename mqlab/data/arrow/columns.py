"""The columns of a commit log, and units of a file turned into a batch of them.

Mirrors: MessageExt; the fixed fields come from the layout table of mqlab.rocketmq.wire, so there is one layout. Used by
lab 10.

    fixed fields     an 88-byte window over the file, gathered by position, read as the struct that LAYOUT describes
                     (100 or 112 bytes where a host is IPv6: rows are grouped by the two bits of their sys_flag)
    variable fields  one Arrow array with starts and ends interleaved over the file; its even slots are taken
    properties       taken apart once for tags, keys, the unique key and the map: mqlab.data.arrow.property_columns
    body             compared with its check sum, then decompressed; a body that is not requested is not read

Left out: INNER_BATCH units; dictionary-encoded topics.
"""

from __future__ import annotations

import itertools
import mmap
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy
import pyarrow
import pyarrow.compute

from mqlab.data.arrow.property_columns import PAIRS, PropertyColumns, as_text, numbers, slices
from mqlab.data.arrow.ranges import LogRange
from mqlab.data.arrow.units import Positions, raise_corrupt
from mqlab.errors import CorruptionError, UsageError
from mqlab.rocketmq.wire import property_names, sys_flag
from mqlab.rocketmq.wire.compression import decompressed_body
from mqlab.rocketmq.wire.host import V4_SIZE, V6_SIZE, decode_host
from mqlab.rocketmq.wire.java_hash import crc32
from mqlab.rocketmq.wire.record_layout import LAYOUT, MAGIC_V1, MAGIC_V2

TIME = pyarrow.timestamp("us", tz="UTC")
_NUMBERS = {"i32": pyarrow.int32(), "i64": pyarrow.int64()}
_NUMPY = {"i8": ">i1", "i16": ">i2", "i32": ">i4", "i64": ">i8"}
_BODY = [spec.name for spec in LAYOUT].index("body")
_FIXED = LAYOUT[:_BODY]
LEAVE_OUT_BODY = "leave out the column body to read the rest: names=[...], for Spark option('columns', ...)"
_TIMES = ("born_timestamp", "store_timestamp")


@dataclass(frozen=True, slots=True)
class Column:
    """One column: its Arrow type and its meaning."""

    name: str
    type: pyarrow.DataType
    meaning: str


def _from_layout() -> list[Column]:
    columns = []
    for spec in _FIXED:
        if spec.name in _TIMES:
            columns.append(Column(spec.name, TIME, spec.meaning.replace(", ms", "")))
        elif spec.kind == "host":
            columns.append(Column(spec.name, pyarrow.string(), spec.meaning))
        else:
            columns.append(Column(spec.name, _NUMBERS[spec.kind], spec.meaning))
    return columns


def _all_columns() -> dict[str, Column]:
    text = pyarrow.string()
    own = [
        Column("topic", text, "the topic"),
        Column("tags", text, "property TAGS; null without one"),
        Column("keys", text, "property KEYS, separated by spaces; null without any"),
        Column("body", pyarrow.binary(), "the body as a consumer gets it, decompressed"),
        Column("properties", PAIRS, "all properties by name"),
        Column("msg_id", text, "the sender's unique key, else the offset id"),
        Column("offset_msg_id", text, "store host and physical offset in hex"),
        Column("broker_name", text, "which store, where several are read"),
    ]
    columns = {column.name: column for column in [*own, *_from_layout()]}
    first = ["topic", "queue_id", "queue_offset", "physical_offset", "store_timestamp", "tags", "keys", "body"]
    return {name: columns[name] for name in [*first, *(name for name in columns if name not in first)]}


COLUMNS = _all_columns()


def schema(names: Sequence[str] | None = None) -> pyarrow.Schema:
    """The Arrow schema of these columns; None: of all columns. Raises UsageError for an unknown name.

    >>> schema(["topic", "queue_id"])
    topic: string
    queue_id: int32
    """
    chosen = list(COLUMNS) if names is None else list(names)
    for name in chosen:
        if name not in COLUMNS:
            raise UsageError(f"there is no column {name!r}", hint=f"columns are {', '.join(COLUMNS)}")
    return pyarrow.schema([(name, COLUMNS[name].type) for name in chosen])


def _window(host_kinds: int) -> numpy.dtype[numpy.void]:
    """The struct of the fixed fields for the two host bits of a sys_flag."""
    parts: list[tuple[str, str]] = []
    for spec in _FIXED:
        if spec.kind == "host":
            parts.append((spec.name, f"V{V6_SIZE if host_kinds << 4 & spec.v6_bit else V4_SIZE}"))
        else:
            parts.append((spec.name, _NUMPY[spec.kind]))
    return numpy.dtype(parts)


_WINDOWS = [_window(kinds) for kinds in range(4)]
_FIXED_SIZES = numpy.array([window.itemsize for window in _WINDOWS])
_HEX = numpy.array([f"{byte:02X}".encode() for byte in range(256)]).view(numpy.uint16)  # two letters for each byte


class UnitColumns:
    """Some units of one file as columns. Raises CorruptionError for a unit that is damaged, or whose lengths disagree.

    ``positions`` are places in the file, ascending, each with room for the smallest unit after it in the range.
    """

    def __init__(self, view: mmap.mmap | bytes, where: LogRange, positions: Positions) -> None:
        self._view = view
        self._where = where
        self._bytes = numpy.frombuffer(view, dtype=numpy.uint8)
        self._end = min(where.end - where.file_start, len(view))
        self._properties: PropertyColumns | None = None
        self.positions = positions
        # 1. Every unit has the smallest window, a magic, and its own place.
        self._require(positions + _WINDOWS[0].itemsize <= self._end, positions)
        smallest = self._gather(positions, _WINDOWS[0])
        magic, stored = smallest["magic"], smallest["physical_offset"]
        self._wide = magic != MAGIC_V1
        self._require(((magic == MAGIC_V2) | ~self._wide) & self._belongs(stored), positions)
        # 2. Units are grouped by their kinds of hosts: an IPv6 host makes the window longer.
        kinds = smallest["sys_flag"] >> 4 & 3  # sys_flag comes before the hosts: at the same place in all four windows
        self._groups: list[tuple[Any, Any]] = [(slice(None), smallest)]  # (rows, structs) for each kind of hosts
        self._fixed_size: Any = _WINDOWS[0].itemsize
        if kinds.any():
            self._fixed_size = _FIXED_SIZES[kinds]
            self._require(positions + self._fixed_size <= self._end, positions)
            rows_of = ((numpy.flatnonzero(kinds == kind), window) for kind, window in enumerate(_WINDOWS))
            self._groups = [(rows, self._gather(positions[rows], window)) for rows, window in rows_of if len(rows)]
        self._measure()

    def __len__(self) -> int:
        return len(self.positions)

    def at(self, chosen: Any) -> UnitColumns:
        """The units for which an array of truth values is true."""
        return UnitColumns(self._view, self._where, self.positions[chosen])

    def _belongs(self, stored: Any) -> Any:
        """True for each unit whose own physical offset is its place in the log."""
        return stored == self.positions + self._where.file_start

    def _every(self, kind: str) -> Any:
        """A view of the file with a value of this kind at every byte."""
        size = numpy.dtype(kind).itemsize
        return numpy.ndarray((max(len(self._view) - size + 1, 0),), kind, self._view, 0, (1,))

    def _gather(self, positions: Positions, window: numpy.dtype[numpy.void]) -> Any:
        """The structs that begin at these positions, copied."""
        return self._every(f"V{window.itemsize}")[positions].view(window)

    def number(self, name: str) -> Any:
        """A fixed numeric field of every unit, in native byte order."""
        rows, structs = self._groups[0]
        kind = structs.dtype[name].newbyteorder("=")
        if len(self._groups) == 1:
            return structs[name].astype(kind)
        values = numpy.empty(len(self), dtype=kind)
        for rows, structs in self._groups:
            values[rows] = structs[name]
        return values

    def _measure(self) -> None:
        """Find body, topic and properties, and check that they end where the unit ends, as ``measure`` does."""
        unit_end = self.positions + self.number("total_size")
        self._require(unit_end <= self._end, self.positions)
        self.body_at = self.positions + self._fixed_size
        self.body_end = self.body_at + numpy.maximum(self.number("body_length"), 0)
        self.topic_at = self.body_end + 1 + self._wide
        self._require(self.topic_at <= unit_end, self.positions)
        topic_length = self._every("i1")[self.body_end].astype(numpy.int64)
        if self._wide.any():
            wide = numpy.flatnonzero(self._wide)
            topic_length[wide] = self._every(">i2")[self.body_end[wide]]
        self.topic_end = self.topic_at + topic_length
        self.properties_at = self.topic_end + 2
        self._require((topic_length >= 0) & (self.properties_at <= unit_end), self.positions)
        properties_length = self._every(">i2")[self.topic_end].astype(numpy.int64)
        self.properties_end = self.properties_at + numpy.maximum(properties_length, 0)
        self._require(self.properties_end == unit_end, self.positions)

    def _require(self, good: Any, positions: Positions) -> None:
        if not good.all():
            raise_corrupt(self._view, self._where, int(positions[numpy.argmin(good)]))

    def batch(self, names: Sequence[str]) -> pyarrow.RecordBatch:
        """A batch of these columns. It is a copy, so the file may be closed afterwards."""
        arrays = [self.column(name) for name in names]
        return pyarrow.RecordBatch.from_arrays(arrays, schema=schema(names))

    def column(self, name: str) -> pyarrow.Array:
        """One column of COLUMNS."""
        maker = getattr(self, f"_column_{name}", None)
        if maker is not None:
            return maker()
        if COLUMNS[name].type == TIME:
            return numbers(self.number(name) * 1000, TIME)
        if name in ("born_host", "store_host"):
            return self._host(name)
        return numbers(self.number(name), COLUMNS[name].type)

    def _column_topic(self) -> pyarrow.Array:
        return as_text(slices(self._view, self.topic_at, self.topic_end))

    def _column_body(self) -> pyarrow.Array:
        bodies = slices(self._view, self.body_at, self.body_end)
        self._check_sums(bodies)
        compressed = numpy.flatnonzero(self.number("sys_flag") & sys_flag.COMPRESSED)
        if not len(compressed):
            return bodies
        values = bodies.to_pylist()
        for row in compressed.tolist():
            values[row] = self._decompressed(row, values[row])
        return pyarrow.array(values, type=pyarrow.binary())

    def _check_sums(self, bodies: pyarrow.Array) -> None:
        """Compare bodies as they are stored, still compressed, with their check sums, as ``check_body`` does.

        An empty body does not have a check sum. Each message of a batch is a unit with a sum of its own. The copies
        that are handed out are checked, not the file.
        """
        _, offsets, data = bodies.buffers()
        bounds = numpy.frombuffer(offsets, dtype=numpy.int32)[bodies.offset : bodies.offset + len(bodies) + 1].tolist()
        view = memoryview(data if data is not None else b"")
        computed = [crc32(view[start:end]) for start, end in itertools.pairwise(bounds)]
        stored = self.number("body_crc")
        wrong = numpy.flatnonzero((stored != numpy.array(computed, dtype=numpy.int64)) & (self.body_end > self.body_at))
        if len(wrong):
            row = int(wrong[0])
            raise CorruptionError(
                "the body does not match its check sum",
                where=self._where.path,
                offset=self._where.file_start + int(self.body_at[row]),
                expected=f"a body of the check sum {int(stored[row]) & 0xFFFFFFFF:08X}",
                found=f"{computed[row]:08X}",
                hint=LEAVE_OUT_BODY,
            )

    def _decompressed(self, row: int, body: bytes) -> bytes:
        try:
            return decompressed_body(body, int(self.number("sys_flag")[row]))
        except CorruptionError as error:
            raise CorruptionError(
                error.what,
                where=self._where.path,
                offset=self._where.file_start + int(self.body_at[row]),
                expected=error.expected,
                found=error.found,
                hint=LEAVE_OUT_BODY,
            ) from error

    def _property_columns(self) -> PropertyColumns:
        if self._properties is None:
            self._properties = PropertyColumns(slices(self._view, self.properties_at, self.properties_end))
        return self._properties

    def _column_properties(self) -> pyarrow.Array:
        return self._property_columns().maps()

    def property_column(self, name: str) -> pyarrow.Array:
        """One property as text, whether COLUMNS has it or not; null where a unit does not have it."""
        return self._property_columns().column(name)

    def _column_tags(self) -> pyarrow.Array:
        return self.property_column(property_names.TAGS)

    def _column_keys(self) -> pyarrow.Array:
        return self.property_column(property_names.KEYS)

    def _column_msg_id(self) -> pyarrow.Array:
        unique = self.property_column(property_names.UNIQ_KEY)
        return pyarrow.compute.coalesce(unique, self._column_offset_msg_id()) if unique.null_count else unique

    def _column_offset_msg_id(self) -> pyarrow.Array:
        parts = [hex_text(structs["store_host"], structs["physical_offset"]) for _, structs in self._groups]
        return self._in_order(parts)

    def _host(self, name: str) -> pyarrow.Array:
        """Hosts as text; each distinct host is converted once."""
        parts = []
        for _, structs in self._groups:
            different, which = numpy.unique(structs[name], return_inverse=True)
            texts = pyarrow.array([host_text(host.tobytes()) for host in different], type=pyarrow.string())
            parts.append(texts.take(numbers(which, pyarrow.int64())))
        return self._in_order(parts)

    def _in_order(self, parts: list[pyarrow.Array]) -> pyarrow.Array:
        """The arrays of the groups as one, in the order of the rows."""
        if len(parts) == 1:
            return parts[0]
        rows = numpy.concatenate([rows for rows, _ in self._groups])
        return pyarrow.concat_arrays(parts).take(numbers(numpy.argsort(rows), pyarrow.int64()))

    def _column_broker_name(self) -> pyarrow.Array:
        return pyarrow.repeat(pyarrow.scalar(self._where.broker_name, pyarrow.string()), len(self))


def hex_text(hosts: Any, offsets: Any) -> pyarrow.Array:
    """Hosts followed by offsets as capital hex digits: the offset message id."""
    count = len(offsets)
    parts = [numpy.ascontiguousarray(part).view(numpy.uint8).reshape(count, -1) for part in (hosts, offsets)]
    letters = _HEX[numpy.hstack(parts)]
    bounds = numpy.arange(0, letters.nbytes + 1, letters.nbytes // count, dtype=numpy.int32)
    buffers = [None, pyarrow.py_buffer(bounds), pyarrow.py_buffer(letters)]
    return pyarrow.Array.from_buffers(pyarrow.string(), count, buffers)


def host_text(raw: bytes) -> str:
    """A stored host as ``ip:port``.

    >>> host_text(bytes.fromhex("0a01020300002a9f"))
    '10.1.2.3:10911'
    """
    address, port = decode_host(raw)
    return f"[{address}]:{port}" if ":" in address else f"{address}:{port}"
