"""The columns of a commit log, and units of a file turned into a batch of them.

Mirrors: MessageExt; the fixed fields come from the layout table of mqlab.wire, so there is one layout. Lab 10.

    fixed fields     an 88-byte window over the file, gathered by position, read as the struct that LAYOUT describes
                     (100 or 112 bytes where a host is IPv6: rows are grouped by the two bits of their sys_flag)
    variable fields  one Arrow array with starts and ends interleaved over the file; its even slots are taken
    properties       tags, keys and the unique key by a pattern over the raw text; the whole map row by row

Left out: INNER_BATCH units; dictionary-encoded topics.
"""

from __future__ import annotations

import mmap
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy
import pyarrow
import pyarrow.compute

from mqlab.arrow.ranges import LogRange
from mqlab.arrow.units import Positions, raise_corrupt
from mqlab.errors import CorruptionError, UsageError
from mqlab.wire import properties as property_text
from mqlab.wire import property_names, sys_flag
from mqlab.wire.compression import decompressed_body
from mqlab.wire.host import V4_SIZE, V6_SIZE, decode_host
from mqlab.wire.record_layout import LAYOUT, MAGIC_V1

TIME = pyarrow.timestamp("us", tz="UTC")
PAIRS = pyarrow.map_(pyarrow.string(), pyarrow.string())
_NUMBERS = {"i32": pyarrow.int32(), "i64": pyarrow.int64()}
_NUMPY = {"i8": ">i1", "i16": ">i2", "i32": ">i4", "i64": ">i8"}
_BODY = [spec.name for spec in LAYOUT].index("body")
_FIXED = LAYOUT[:_BODY]
_TIMES = ("born_timestamp", "store_timestamp")


@dataclass(frozen=True, slots=True)
class Column:
    """One column: its Arrow type and what it holds."""

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
    found = {column.name: column for column in [*own, *_from_layout()]}
    first = ["topic", "queue_id", "queue_offset", "physical_offset", "store_timestamp", "tags", "keys", "body"]
    return {name: found[name] for name in [*first, *(name for name in found if name not in first)]}


COLUMNS = _all_columns()


def schema(names: Sequence[str] | None = None) -> pyarrow.Schema:
    """The Arrow schema of these columns, of all of them for None. Raises UsageError for a name there is not.

    >>> schema(["topic", "queue_id"])
    topic: string
    queue_id: int32
    """
    wanted = list(COLUMNS) if names is None else list(names)
    for name in wanted:
        if name not in COLUMNS:
            raise UsageError(f"there is no column {name!r}", hint=f"columns are {', '.join(COLUMNS)}")
    return pyarrow.schema([(name, COLUMNS[name].type) for name in wanted])


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
_SYS_FLAG_AT = _WINDOWS[0].fields["sys_flag"][1]  # type: ignore[index]  # the same in all four


class Units:
    """Some units of one file as columns. Raises CorruptionError when the parts of a unit do not add up.

    ``positions`` are places in the file, ascending, each with at least the smallest unit behind it in the range.
    """

    def __init__(self, view: mmap.mmap | bytes, where: LogRange, positions: Positions) -> None:
        self._view = view
        self._where = where
        self._bytes = numpy.frombuffer(view, dtype=numpy.uint8)
        self.positions = positions
        end = min(where.end - where.file_start, len(view))
        self._check(positions + _WINDOWS[0].itemsize <= end, numpy.arange(len(positions)))
        kinds = self._be("i4", positions + _SYS_FLAG_AT) >> 4 & 3
        self._groups: list[tuple[Any, Any]] = []  # (row numbers, structs) for each kind of hosts
        self._number: dict[str, Any] = {}
        self._fixed_size = numpy.zeros(len(positions), dtype=numpy.int64)
        for kind, window in enumerate(_WINDOWS):
            rows = numpy.flatnonzero(kinds == kind)
            if len(rows):
                self._check(positions[rows] + window.itemsize <= end, rows)
                self._groups.append((rows, self._gather(positions[rows], window)))
                self._fixed_size[rows] = window.itemsize
        self._measure()

    def __len__(self) -> int:
        return len(self.positions)

    def _gather(self, positions: Positions, window: numpy.dtype[numpy.void]) -> Any:
        """The structs that begin at these positions: every place of the file seen as one, some copied."""
        places = len(self._bytes) - window.itemsize + 1
        size = window.itemsize
        every = numpy.ndarray((places,), dtype=f"V{size}", buffer=self._view, strides=(1,))
        return every[positions].view(window)

    def _be(self, kind: str, positions: Any) -> Any:
        """Big-endian numbers at any positions, as native int64."""
        size = int(kind[1:])
        number = numpy.zeros(len(positions), dtype=numpy.int64)
        for place in range(size):
            number = number << 8 | self._bytes[positions + place]
        return number - (number >> (8 * size - 1) << 8 * size)  # the sign

    def number(self, name: str) -> Any:
        """A fixed numeric field of every unit, in native byte order."""
        if name not in self._number:
            values = numpy.zeros(len(self), dtype=numpy.int64)
            for rows, structs in self._groups:
                values[rows] = structs[name]
            self._number[name] = values
        return self._number[name]

    def _measure(self) -> None:
        """Find where body, topic and properties stand, and that they end where the unit does. As wire's ``measure``."""
        everything = numpy.arange(len(self))
        unit_end = self.positions + self.number("total_size")
        self._check(unit_end <= min(self._where.end - self._where.file_start, len(self._bytes)), everything)
        self.body_at = self.positions + self._fixed_size
        self.body_end = self.body_at + numpy.maximum(self.number("body_length"), 0)
        wide = self.number("magic") != MAGIC_V1
        self.topic_at = self.body_end + 1 + wide
        self._check(self.topic_at <= unit_end, everything)
        topic_length = self._be("i1", self.body_end)
        rows = numpy.flatnonzero(wide)
        topic_length[rows] = self._be("i2", self.body_end[rows])
        self._check(topic_length >= 0, everything)
        self.topic_end = self.topic_at + topic_length
        self.properties_at = self.topic_end + 2
        self._check(self.properties_at <= unit_end, everything)
        self.properties_end = self.properties_at + numpy.maximum(self._be("i2", self.topic_end), 0)
        self._check(self.properties_end == unit_end, everything)

    def _check(self, good: Any, rows: Any) -> None:
        bad = numpy.flatnonzero(~good)
        if len(bad):
            raise_corrupt(self._view, self._where, int(self.positions[rows[bad[0]]]))

    def batch(self, names: Sequence[str]) -> pyarrow.RecordBatch:
        """The columns asked for. The batch is a copy: the file may be let go."""
        arrays = [self.column(name) for name in names]
        return pyarrow.RecordBatch.from_arrays(arrays, schema=schema(names))

    def column(self, name: str) -> pyarrow.Array:
        """One column of COLUMNS."""
        maker = getattr(self, f"_{name}", None)
        if maker is not None:
            return maker()
        if COLUMNS[name].type == TIME:
            return pyarrow.array(self.number(name) * 1000, type=pyarrow.int64()).cast(TIME)
        if name in ("born_host", "store_host"):
            return self._host(name)
        return pyarrow.array(self.number(name), type=pyarrow.int64()).cast(COLUMNS[name].type)

    def _variable(self, starts: Any, ends: Any) -> pyarrow.Array:
        """The bytes from each start to its end, as binary."""
        between = numpy.empty(2 * len(self) + 1, dtype=numpy.int32)
        between[0:-1:2], between[1:-1:2], between[-1] = starts, ends, ends[-1] if len(self) else 0
        buffers = [None, pyarrow.py_buffer(between), pyarrow.py_buffer(self._view)]
        slots = pyarrow.Array.from_buffers(pyarrow.binary(), 2 * len(self), buffers)
        return slots.take(pyarrow.array(numpy.arange(0, 2 * len(self), 2)))

    def _topic(self) -> pyarrow.Array:
        return as_text(self._variable(self.topic_at, self.topic_end))

    def _body(self) -> pyarrow.Array:
        bodies = self._variable(self.body_at, self.body_end)
        compressed = numpy.flatnonzero(self.number("sys_flag") & sys_flag.COMPRESSED)
        if not len(compressed):
            return bodies
        values = bodies.to_pylist()
        for row in compressed.tolist():
            values[row] = self._decompressed(row, values[row])
        return pyarrow.array(values, type=pyarrow.binary())

    def _decompressed(self, row: int, body: bytes) -> bytes:
        try:
            return decompressed_body(body, int(self.number("sys_flag")[row]))
        except CorruptionError as error:
            raise CorruptionError(
                error.text, where=self._where.path, offset=self._where.file_start + int(self.body_at[row]),
                expected=error.expected, found=error.found,
                hint="leave out the column body to read the rest: option('columns', ...)",
            ) from error

    def _property_text(self) -> pyarrow.Array:
        return as_text(self._variable(self.properties_at, self.properties_end))

    def _properties(self) -> pyarrow.Array:
        texts = self._property_text().to_pylist()
        return pyarrow.array([list(property_text.decode(text).items()) for text in texts], type=PAIRS)

    def _property(self, name: str) -> pyarrow.Array:
        """One property of every unit, null where it is missing: the last that is not empty counts, as in decode."""
        pattern = f"(?s)^(?:.*\x02)?{name}\x01(?P<value>[^\x02]+)"
        found = pyarrow.compute.extract_regex(self._property_text(), pattern)
        return pyarrow.compute.struct_field(found, "value")

    def _tags(self) -> pyarrow.Array:
        return self._property(property_names.TAGS)

    def _keys(self) -> pyarrow.Array:
        return self._property(property_names.KEYS)

    def _msg_id(self) -> pyarrow.Array:
        return pyarrow.compute.coalesce(self._property(property_names.UNIQ_KEY), self._offset_msg_id())

    def _offset_msg_id(self) -> pyarrow.Array:
        offsets = self.number("physical_offset").astype(">i8").tobytes().hex().upper()
        hosts = [host.hex().upper() for host in self._raw_hosts("store_host")]
        return pyarrow.array(
            [host + offsets[16 * row : 16 * row + 16] for row, host in enumerate(hosts)], type=pyarrow.string()
        )

    def _raw_hosts(self, name: str) -> list[bytes]:
        found = [b""] * len(self)
        for rows, structs in self._groups:
            column = structs[name]
            for row, host in zip(rows.tolist(), column.tolist(), strict=True):
                found[row] = host
        return found

    def _host(self, name: str) -> pyarrow.Array:
        return pyarrow.array([host_text(host) for host in self._raw_hosts(name)], type=pyarrow.string())

    def _broker_name(self) -> pyarrow.Array:
        return pyarrow.array([self._where.broker_name] * len(self), type=pyarrow.string())


def as_text(raw: pyarrow.Array) -> pyarrow.Array:
    """Bytes as text; bytes that are not UTF-8 become U+FFFD, as everywhere in mqlab."""
    try:
        return raw.cast(pyarrow.string())
    except pyarrow.ArrowInvalid:
        return pyarrow.array([value.decode("utf-8", "replace") for value in raw.to_pylist()], type=pyarrow.string())


def host_text(raw: bytes) -> str:
    """A stored host as ``ip:port``.

    >>> host_text(bytes.fromhex("0a01020300002a9f"))
    '10.1.2.3:10911'
    """
    address, port = decode_host(raw)
    return f"[{address}]:{port}" if ":" in address else f"{address}:{port}"
