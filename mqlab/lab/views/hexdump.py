"""Bytes with the names of their fields: a classic dump, a border and a number around each field, above their table.

Lab 00 introduces it, lab 01 is about it.

          1           2                               in a notebook each field has a border, its number in the table,
    0000 |00 00 00 b6|da a3 20 a7 …  |...... .…|       and its name and value where the pointer rests on it;
     #  offset  size  field        bytes        value  every second one is shaded, so that neighbours differ in grey
     1       0     4  total_size   00 00 00 b6  182

Input is a list of fields (mqlab.rocketmq.wire: of a commit-log unit, a consume-queue unit, an index entry).
Left out: the middle of long fields in the dump (the table has their lengths).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import groupby
from typing import Any, Protocol

from markupsafe import Markup

from mqlab.lab.views.table import Table, shown_value
from mqlab.lab.views.templates import filled
from mqlab.lab.views.text_width import cut
from mqlab.lab.views.view import View
from mqlab.rocketmq.wire import properties

LINE = 16
WHOLE_FIELD_BYTES = 256  # of a longer field the dump shows as much, from its start
TABLE_BYTES = 8
MAX_VALUE_COLUMNS = 240  # all properties of an ordinary message
Line = tuple[int, list[tuple[int, int, int]]]
STYLE = (
    ".mqlab-view pre.mqlab-hex{line-height:2.3;margin:0;padding-top:.5em}"
    "@media (max-width:480px){.mqlab-view pre.mqlab-hex{font-size:11px}}"
    ".mqlab-hex span{position:relative;border:1px solid var(--mq-muted);padding:2px 0;margin:0 -1px}"
    ".mqlab-hex .on{border-left:none;margin-left:0}.mqlab-hex .off{border-right:none;margin-right:0}"
    ".mqlab-hex .shaded,.mqlab-fields .shaded{background:var(--mq-shade)}"
    ".mqlab-view .mqlab-hex sup{position:absolute;top:-.95em;left:1px;font-size:.68em;line-height:1}"
    ".mqlab-hex sup{color:var(--mq-ink)}"
    ".mqlab-hex span:hover,.mqlab-hex span:focus{outline:2px solid var(--mq-blue)}"
    ".mqlab-fields td.n{border:1px solid var(--mq-muted)}"
    ".mqlab-fields td.n,.mqlab-fields td.b{white-space:nowrap}"
    ".mqlab-fields td.v{min-width:200px;max-width:260px;overflow-wrap:anywhere}.mqlab-fields td.m{min-width:140px}"
)
SHADED = ("#", "field", "bytes")
KINDS = {"#": "n", "field": "b", "bytes": "b", "value": "v", "meaning": "m"}


class FieldLike(Protocol):
    """The attributes that a field of mqlab.rocketmq.wire.layout has."""

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

    >>> from mqlab.rocketmq.wire.layout import Field
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
            "#": number,
            "offset": self.base + field.offset,
            "size": len(field.raw),
            "field": field.name,
            "bytes": shown,
            "value": f"{value} ({note})" if note else value,
            "meaning": field.meaning,
        }

    def text(self) -> str:
        lines = [self.title] if self.title else []
        for line in self._lines():
            if line is None:
                lines.append(" " * 8 + "  …")
                continue
            digits = " ".join(f"{byte:02x}" for _, byte, _ in line[1])
            letters = "".join(_letter(byte) for _, byte, _ in line[1])
            lines.append(f"{line[0]:08x}  {digits:<{LINE * 3 - 1}}  |{letters}|")
        return "\n".join([*lines, str(self.table())])

    def html(self) -> Markup:
        table = self.table()
        rows = [
            [self._cell(name, row[name], shaded=number % 2 == 1) for name in table.columns]
            for number, row in enumerate(table)
        ]
        return filled(
            "hexdump.html",
            style=Markup(STYLE),
            title=self.title,
            lines=[self._spans(line) for line in self._lines()],
            columns=table.columns,
            rows=rows,
            empty=table.empty,
        )

    @staticmethod
    def _cell(name: str, value: Any, *, shaded: bool) -> dict[str, Any]:
        kind = KINDS.get(name, "")
        return {
            "side": "right" if isinstance(value, int) else "left",
            "kind": f"{kind} shaded" if shaded and name in SHADED else kind,
            "value": value,
        }

    def _spans(self, line: Line | None) -> dict[str, Any] | None:
        """One line for its template: its address, and per field the pieces of digits and of letters."""
        if line is None:
            return None
        start, content = line
        pieces = []
        for index, group in groupby(content, key=lambda byte: byte[0]):
            owned = list(group)
            first, last = owned[0][2] == 0, owned[-1][2] == len(self.fields[index].raw) - 1
            pieces.append(
                {
                    "number": index + 1 if first else "",
                    "kind": " ".join(("shaded" if index % 2 else "plain", *["on"][first:], *["off"][last:])),
                    "title": self._words(index),
                    "digits": " ".join(f"{byte:02x}" for _, byte, _ in owned),
                    "letters": "".join(_letter(byte) for _, byte, _ in owned),
                }
            )
        return {"address": f"{start:08x}", "pieces": pieces, "gap": " " * ((LINE - len(content)) * 3)}

    def _words(self, index: int) -> str:
        """What is shown where the pointer rests on a field: its number, name and value."""
        field = self.fields[index]
        return f"{index + 1} {field.name} = {cut(field_value(field.name, field.value), MAX_VALUE_COLUMNS)}"

    def _lines(self) -> list[Line | None]:
        """Lines of (address, [(field index, byte, its place in the field), …]); None marks lines that are left out."""
        owned = [
            (index, byte, position)
            for index, field in enumerate(self.fields)
            for position, byte in enumerate(bytes(field.raw))
        ]
        lines: list[Line | None] = []
        for start in range(0, len(owned), LINE):
            piece = owned[start : start + LINE]
            if all(position >= WHOLE_FIELD_BYTES and index == piece[0][0] for index, _, position in piece):
                if lines[-1] is not None:
                    lines.append(None)
                continue
            lines.append((self.base + start, piece))
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


def _letter(byte: int) -> str:
    return chr(byte) if 32 <= byte < 127 else "."
