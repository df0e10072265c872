"""Bytes with the names of their fields: a classic dump, coloured by field, above a table of the same fields.

Lab 00 introduces it, lab 01 is about it.

    0000  00 00 00 b6 da a3 20 a7 …  |...... .…|      colours repeat the table, they are never the only sign
     #  offset  size  field        bytes        value
     1       0     4  total_size   00 00 00 b6  182

Input is a list of fields (mqlab.wire: of a commit-log unit, a consume-queue unit, an index entry).
Left out: the middle of long fields in the dump (the table has their lengths).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Protocol

from markupsafe import Markup

from mqlab.views.table import Table, shown_value
from mqlab.views.text_width import cut
from mqlab.views.view import View
from mqlab.wire import properties

LINE = 16
WHOLE_FIELD_BYTES = 256  # of a longer field the dump shows as much, from its start
TABLE_BYTES = 8
MAX_VALUE_COLUMNS = 48
FIELD_INK = "#1f2430"
FIELD_COLOURS = ("#cfe3ff", "#d3f0d8", "#ffe2c2", "#eadcff", "#ffd6de", "#d2eef0", "#f1edc2")


class FieldLike(Protocol):
    """The attributes that a field of mqlab.wire.layout has."""

    @property
    def name(self) -> str: ...
    @property
    def offset(self) -> int: ...
    @property
    def raw(self) -> bytes: ...
    @property
    def value(self) -> Any: ...
    @property
    def meaning(self) -> str: ...


class Hexdump(View):
    """Fields that follow each other, as bytes and as a table; ``base`` is the place of the first byte in its file.

    >>> from mqlab.wire.layout import Field
    >>> print(Hexdump([Field("size", 0, 4, b"\\0\\0\\0\\x07", 7, "bytes"), Field("tag", 4, 2, b"hi", "hi", "a text")]))
    00000000  00 00 00 07 68 69                                |....hi|
    #  offset  size  field  bytes        value  meaning
    -  ------  ----  -----  -----------  -----  -------
    1       0     4  size   00 00 00 07  7      bytes
    2       4     2  tag    68 69        hi     a text
    """

    def __init__(self, fields: Iterable[FieldLike], *, base: int = 0, title: str = "") -> None:
        self.fields = tuple(fields)
        self.base = base
        self.title = title

    def table(self) -> Table:
        """One row per field: #, offset, size, field, bytes, value, meaning."""
        return Table([self._row(number, field) for number, field in enumerate(self.fields, 1)], empty="no bytes")

    def _row(self, number: int, field: FieldLike) -> dict[str, Any]:
        shown = field.raw[:TABLE_BYTES].hex(" ") + (" …" if len(field.raw) > TABLE_BYTES else "")
        note = getattr(field, "note", "")
        value = cut(field_value(field.name, field.value), MAX_VALUE_COLUMNS)
        return {
            "#": number, "offset": self.base + field.offset, "size": len(field.raw), "field": field.name,
            "bytes": shown, "value": f"{value} ({note})" if note else value, "meaning": field.meaning,
        }  # fmt: skip

    def text(self) -> str:
        lines = [self.title] if self.title else []
        for line in self._lines():
            if line is None:
                lines.append(" " * 8 + "  …")
                continue
            digits = " ".join(f"{byte:02x}" for _, byte in line[1])
            letters = "".join(_letter(byte) for _, byte in line[1])
            lines.append(f"{line[0]:08x}  {digits:<{LINE * 3 - 1}}  |{letters}|")
        return "\n".join([*lines, str(self.table())])

    def html(self) -> Markup:
        dump = Markup("\n").join(self._html_line(line) for line in self._lines())
        title = Markup("<b>{}</b>").format(self.title) if self.title else Markup("")
        head = Markup("").join(
            Markup('<th style="text-align:left">{}</th>').format(name) for name in self.table().columns
        )
        body = Markup("\n").join(self._html_row(number, field) for number, field in enumerate(self.fields))
        return Markup(
            '<div>{}<pre style="line-height:1.5">{}</pre>'
            "<table><thead><tr>{}</tr></thead><tbody>\n{}\n</tbody></table></div>"
        ).format(title, dump, head, body)

    def _html_line(self, line: tuple[int, list[tuple[int, int]]] | None) -> Markup:
        if line is None:
            return Markup("          …")
        start, content = line
        digits = _spans(content, lambda byte: f"{byte:02x}", " ")
        letters = _spans(content, _letter, "")
        gap = " " * ((LINE - len(content)) * 3)
        return Markup("{}  {}{}  {}").format(f"{start:08x}", digits, gap, letters)

    def _html_row(self, index: int, field: FieldLike) -> Markup:
        row = self._row(index + 1, field)
        coloured = {"#", "field", "bytes"}
        return Markup("<tr>{}</tr>").format(
            Markup("").join(
                Markup('<td style="text-align:{};{}">{}</td>').format(
                    "right" if isinstance(value, int) else "left",
                    _paint(index) + ";white-space:nowrap" if name in coloured else _TABLE_STYLES.get(name, ""),
                    value,
                )
                for name, value in row.items()
            )
        )

    def _lines(self) -> list[tuple[int, list[tuple[int, int]]] | None]:
        """Lines of (address, [(field index, byte), …]); None marks lines that are left out."""
        owned = [
            (index, byte, at) for index, field in enumerate(self.fields) for at, byte in enumerate(bytes(field.raw))
        ]
        lines: list[tuple[int, list[tuple[int, int]]] | None] = []
        for start in range(0, len(owned), LINE):
            piece = owned[start : start + LINE]
            if all(at >= WHOLE_FIELD_BYTES and index == piece[0][0] for index, _, at in piece):
                if lines[-1] is not None:
                    lines.append(None)
                continue
            lines.append((self.base + start, [(index, byte) for index, byte, _ in piece]))
        return lines

    def __repr__(self) -> str:
        size = sum(len(field.raw) for field in self.fields)
        return f"<Hexdump of {size} bytes in {len(self.fields)} fields at {self.base}>"


def field_value(name: str, value: Any) -> str:
    """A field's value as its table shows it: hosts as address:port, properties as name=value."""
    if isinstance(value, tuple) and len(value) == 2 and isinstance(value[0], str):
        return f"[{value[0]}]:{value[1]}" if ":" in value[0] else f"{value[0]}:{value[1]}"
    if name == "properties" and isinstance(value, bytes):
        value = properties.decode(value)
    if isinstance(value, Mapping):
        return " ".join(f"{key}={item}" for key, item in value.items())
    return shown_value(name, value)


_TABLE_STYLES = {"value": "min-width:120px;max-width:260px;overflow-wrap:anywhere", "meaning": "min-width:140px"}


def _letter(byte: int) -> str:
    return chr(byte) if 32 <= byte < 127 else "."


def _paint(index: int) -> str:
    return f"background-color:{FIELD_COLOURS[index % len(FIELD_COLOURS)]};color:{FIELD_INK}"


def _spans(content: list[tuple[int, int]], show: Any, between: str) -> Markup:
    """Neighbouring bytes of one field in one span; a ``title`` is not needed, because the table has the number."""
    spans, position = [], 0
    while position < len(content):
        index, end = content[position][0], position
        while end < len(content) and content[end][0] == index:
            end += 1
        text = between.join(show(byte) for _, byte in content[position:end])
        spans.append(Markup('<span style="{}">{}</span>').format(_paint(index), text))
        position = end
    return Markup(between).join(spans)
