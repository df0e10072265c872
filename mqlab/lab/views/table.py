"""Rows with named columns: the form of deliveries, progress and most other answers of a lab.

Mirrors: the tables that mqadmin prints. Lab 00 begins with one.

    Table([Row, Row, …])    row.queue_offset, row["queue_offset"]; len, index, slice, for
      ├ print(table)        aligned plain text, Chinese and emoji included
      ├ in a notebook       an HTML table in the notebook's own colours
      └ .to_pandas()        a DataFrame, for everything else

Left out: sorting, grouping, joining: that is what pandas is for.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, overload

from markupsafe import Markup
from wcwidth import ljust, rjust

from mqlab.counts import counted
from mqlab.durations import calendar
from mqlab.errors import UsageError
from mqlab.lab.views.on_demand import OnDemand
from mqlab.lab.views.text_width import cut, printable, width
from mqlab.lab.views.view import View
from mqlab.rocketmq.wire.message import MessageQueue

if TYPE_CHECKING:
    import pandas

MAX_CELL_COLUMNS = 60
MAX_HTML_COLUMNS = 200
UNBROKEN_COLUMNS = 32  # a shorter value stays on one line
MAX_ROWS_SHOWN = 60
FIRST_CALENDAR_MS = 10**11  # a time above this is a date (1973 or later), below it a duration


class Row:
    """One row: values by name (``row.tags`` or ``row["tags"]``), iterated in column order like a tuple.

    >>> row = Row({"topic": "orders", "keys": "order-1"}); row.keys, row["topic"], tuple(row)
    ('order-1', 'orders', ('orders', 'order-1'))
    """

    __slots__ = ("_values",)

    def __init__(self, values: Mapping[str, Any]) -> None:
        object.__setattr__(self, "_values", dict(values))

    def __getattr__(self, name: str) -> Any:
        try:
            return object.__getattribute__(self, "_values")[name]
        except KeyError:
            raise AttributeError(f"no column {name!r}; there are: {', '.join(self._values)}") from None

    def __setattr__(self, name: str, value: Any) -> None:
        raise AttributeError("a row says what happened and cannot be changed; as_dict() gives a copy")

    def __getitem__(self, name: str | int) -> Any:
        if isinstance(name, int):
            return tuple(self._values.values())[name]
        try:
            return self._values[name]
        except KeyError:
            raise KeyError(f"no column {name!r}; there are: {', '.join(self._values)}") from None

    def __iter__(self) -> Iterator[Any]:
        return iter(self._values.values())

    def __len__(self) -> int:
        return len(self._values)

    def __eq__(self, other: object) -> bool:
        return self._values == other._values if isinstance(other, Row) else NotImplemented

    def __hash__(self) -> int:
        return hash(tuple(self._values))

    def __reduce__(self) -> tuple[type[Row], tuple[dict[str, Any]]]:
        return Row, (self._values,)

    def as_dict(self) -> dict[str, Any]:
        """A copy as a dictionary, in column order."""
        return dict(self._values)

    def __repr__(self) -> str:
        return "Row(" + ", ".join(f"{name}={value!r}" for name, value in self._values.items()) + ")"


def as_row(item: Any) -> Row:
    """A row of a mapping, a dataclass or a named tuple."""
    return item if isinstance(item, Row) else Row(_values_of(item))


def _row_with(values: dict[str, Any]) -> Row:
    """A row that keeps a dictionary as it is: tables have many rows."""
    row = Row.__new__(Row)
    object.__setattr__(row, "_values", values)
    return row


def _values_of(item: Any) -> Mapping[str, Any]:
    if isinstance(item, dict):
        return item
    if isinstance(item, Row):
        values: dict[str, Any] = item._values
        return values
    if isinstance(item, Mapping):
        return item
    if dataclasses.is_dataclass(item) and not isinstance(item, type):
        return {name: getattr(item, name) for name in type(item).__dataclass_fields__}
    if hasattr(item, "_asdict"):
        named: dict[str, Any] = item._asdict()
        return named
    raise UsageError(
        f"a table is made of mappings, dataclasses or named tuples, not of {type(item).__name__}",
        hint="give a list of dictionaries with the same keys",
    )


class Table(View):
    """Rows with the same columns, in order.

    ``columns`` chooses and orders them (default: as they first appear). A value that a row lacks is None, shown as "-".
    With ``columns``, rows that are OnDemand stay so.

    >>> print(Table([{"topic": "订单", "lag": 12}, {"topic": "orders", "lag": 0}], title="Lag"))
    Lag
    topic   lag
    ------  ---
    订单     12
    orders    0
    """

    def __init__(
        self,
        rows: Iterable[Any],
        *,
        columns: Sequence[str] | None = None,
        title: str = "",
        empty: str = "no rows",
    ) -> None:
        self.title = title
        self.empty = empty
        self._rows: Sequence[Row]
        # 1. Rows on demand with named columns are not read now: there may be a million.
        if columns is not None and isinstance(rows, OnDemand):
            self.columns: tuple[str, ...] = tuple(columns)
            self._rows = OnDemand(rows, lambda item: self._row(_values_of(item)))
            return
        # 2. Otherwise all rows are read; without names, columns are those of the rows in order of appearance.
        records = [_values_of(item) for item in rows]
        if columns is None:
            seen: dict[str, None] = {}
            for values in records:
                # Most rows have the same keys, and comparing them is cheaper than updating.
                if values.keys() != seen.keys():
                    seen.update(dict.fromkeys(values))
            columns = list(seen)
        self.columns = tuple(columns)
        self._rows = [self._row(values) for values in records]

    def _row(self, values: Mapping[str, Any]) -> Row:
        return _row_with({name: values.get(name) for name in self.columns})

    @property
    def rows(self) -> list[Row]:
        """The rows as a new list."""
        return list(self._rows)

    def column(self, name: str) -> list[Any]:
        """All values of one column, in row order; for an unknown one UsageError names the columns."""
        if name not in self.columns:
            raise UsageError(f"no column {name!r} in this table", hint=f"its columns: {', '.join(self.columns)}")
        return [row._values[name] for row in self._rows]

    def to_pandas(self) -> pandas.DataFrame:
        """A DataFrame with the raw values (times stay ms since the epoch)."""
        import pandas

        return pandas.DataFrame([tuple(row) for row in self._rows], columns=list(self.columns))

    def to_dicts(self) -> list[dict[str, Any]]:
        """The rows as plain dictionaries, for code that does not use mqlab."""
        return [row.as_dict() for row in self._rows]

    def table(self) -> Table:
        """Itself: every view has a table."""
        return self

    def text(self, most: int = MAX_ROWS_SHOWN) -> str:
        """The rows as aligned text, ``most`` of them."""
        shown = [[shown_value(name, row._values[name]) for name in self.columns] for row in self._rows[:most]]
        if not shown:
            return f"{self.title}: {self.empty}" if self.title else self.empty
        cells = [[cut(printable(value), MAX_CELL_COLUMNS) for value in line] for line in shown]
        widths = [max(width(name), *(width(line[i]) for line in cells)) for i, name in enumerate(self.columns)]
        rights = [self._is_number(name) for name in self.columns]

        def joined(values: Iterable[str]) -> str:
            cells = zip(values, widths, rights, strict=True)
            parts = [rjust(value, columns) if right else ljust(value, columns) for value, columns, right in cells]
            return "  ".join(parts).rstrip()

        lines = [self.title] if self.title else []
        lines += [joined(self.columns), joined("-" * w for w in widths), *map(joined, cells), *self._rest(most)]
        return "\n".join(lines)

    def html(self) -> Markup:
        from mqlab.lab.views.templates import filled

        columns = [(name, "right" if self._is_number(name) else "left") for name in self.columns]
        rows = [
            [self._html_cell(name, row._values[name]) for name in self.columns] for row in self._rows[:MAX_ROWS_SHOWN]
        ]
        return filled("table.html", title=self.title, columns=columns, rows=rows, rest=self._rest(), empty=self.empty)

    @staticmethod
    def _html_cell(name: str, value: Any) -> tuple[str, bool]:
        """The text of a cell, and whether it is so short that it stays on one line."""
        shown = cut(shown_value(name, value), MAX_HTML_COLUMNS)
        return shown, width(shown) <= UNBROKEN_COLUMNS

    def _rest(self, shown: int = MAX_ROWS_SHOWN) -> list[str]:
        more = len(self._rows) - shown
        return [f"… {counted(more, 'more rows')}; .to_pandas() has all {len(self._rows):,}"] if more > 0 else []

    def _is_number(self, name: str) -> bool:
        values = [row._values[name] for row in self._rows[:MAX_ROWS_SHOWN] if row._values[name] is not None]
        return bool(values) and all(isinstance(v, int | float) and not isinstance(v, bool) for v in values)

    def __iter__(self) -> Iterator[Row]:
        return iter(self._rows)

    def __len__(self) -> int:
        return len(self._rows)

    @overload
    def __getitem__(self, index: int) -> Row: ...
    @overload
    def __getitem__(self, index: slice) -> Table: ...
    def __getitem__(self, index: int | slice) -> Row | Table:
        if isinstance(index, slice):
            return Table(self._rows[index], columns=self.columns, title=self.title, empty=self.empty)
        return self._rows[index]

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Table):
            return NotImplemented
        return self.columns == other.columns and list(self._rows) == list(other._rows)

    __hash__ = None  # type: ignore[assignment]  # equal by content, and content may hold unhashable values

    def __repr__(self) -> str:
        name = f" {self.title!r}" if self.title else ""
        return f"<Table{name} of {len(self._rows)} rows: {', '.join(self.columns)}>"


def shown_value(name: str, value: Any) -> str:
    """A value as a table shows it: times as UTC dates, bytes as text where they are text, None as "-", an error as
    the last line of its traceback.

    >>> shown_value("store_timestamp", 1767225600012), shown_value("waited_ms", 12), shown_value("body", b"\\xff\\x00")
    ('2026-01-01 00:00:00.012', '12', 'ff00')
    """
    if value is None:
        return "-"
    if isinstance(value, bytes | bytearray | memoryview):
        return text_of_bytes(bytes(value))
    if isinstance(value, float):
        return f"{value:.6g}"
    if name == "error" and isinstance(value, str) and value.strip():
        return value.strip().splitlines()[-1]
    if isinstance(value, MessageQueue):
        return f"{value.topic} {value.broker_name} {value.queue_id}"  # str() is RocketMQ's long form
    # A small number of ms is a duration; only a number that is a date after 1973 is shown as a time.
    is_time = name.endswith(("_ms", "_timestamp")) and isinstance(value, int) and not isinstance(value, bool)
    if is_time and value >= FIRST_CALENDAR_MS:
        return calendar(value)
    if isinstance(value, Mapping):
        return " ".join(f"{key}={shown_value('', item)}" for key, item in value.items())
    if isinstance(value, list | tuple) and not hasattr(value, "_fields"):
        return ", ".join(shown_value("", item) for item in value)
    return str(value)


def text_of_bytes(data: bytes) -> str:
    """Bytes as text when they are printable UTF-8, else as hexadecimal digits."""
    try:
        decoded = data.decode()
    except UnicodeDecodeError:
        return data.hex()
    return decoded if printable(decoded) == decoded else data.hex() if "\x00" in decoded else printable(decoded)
