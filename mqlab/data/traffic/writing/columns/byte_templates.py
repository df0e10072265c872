"""Stretches of bytes that many messages share except for a few places: laid out once, then filled column by column.

    Shape   KEYS 01 O............ 20 C........ 02      two slots of text, twelve and eight wide
            ─▶ one row per message                     template copied, each slot written as a column
            ─▶ the log's buffer, each row at its place  one numpy assignment

    Stretch several shapes for one stretch of a message (by tag, by the length of a name): each message has a class

Left out: slots whose width differs from message to message: that is what classes are for.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from mqlab.data.traffic.draws import Array

_MARK = "\x03"
_MARK_BYTE = _MARK.encode()


def slot(name: str, width: int) -> str:
    """A place for text, written into the template of a Shape."""
    return f"{_MARK}{name}:{width}{_MARK}"


class TemplateShape:
    """``template`` with slots as ``slot`` writes them; before it ``start``, in which ``head`` names numeric fields.

    >>> shape = TemplateShape(("key=" + slot("key", 2)).encode())
    >>> shape.rows(1, {"key": np.array([b"ab"], "V2")}).tolist()
    [b'key=ab']
    """

    def __init__(self, template: bytes, start: bytes = b"", head: Mapping[str, tuple[str, int]] | None = None) -> None:
        names, formats, offsets = [], [], []
        for name, (kind, offset) in (head or {}).items():
            names.append(name)
            formats.append(np.dtype(kind))
            offsets.append(offset)
        fixed = bytearray(start)
        # Between two marks is a slot, so every second piece is one.
        for number, piece in enumerate(template.split(_MARK_BYTE)):
            if number % 2:
                name, _, width = piece.decode().partition(":")
                names.append(name if name not in names else f"{name}+{len(names)}")
                formats.append(np.dtype(f"V{width}"))
                offsets.append(len(fixed))
                fixed += bytes(int(width))
            else:
                fixed += piece
        self.size = len(fixed)
        self._template = np.frombuffer(bytes(fixed), np.uint8)
        self._dtype = np.dtype({"names": names, "formats": formats, "offsets": offsets, "itemsize": max(1, self.size)})
        self.slots = {name: name.partition("+")[0] for name in names}

    def rows(self, count: int, columns: Mapping[str, Array], chosen: Array | slice = slice(None)) -> Array:
        """``count`` rows of dtype V<size>: those of the ``chosen`` places of the columns."""
        rows = np.empty((count, self.size), np.uint8)
        rows[:] = self._template
        fields = rows.view(self._dtype)[:, 0]
        for name, column in self.slots.items():
            fields[name] = columns[column][chosen]
        return rows.view(f"V{self.size}")[:, 0]

    def __repr__(self) -> str:
        return f"<Shape of {self.size} bytes: {', '.join(self.slots)}>"


class Stretch:
    """Shapes by class."""

    def __init__(self, shapes: Sequence[TemplateShape]) -> None:
        self.shapes = shapes
        self.sizes = np.array([shape.size for shape in shapes], np.int64)

    def put(self, buffer: Array, places: Array, classes: Array, columns: Mapping[str, Array]) -> None:
        """Write each message's stretch at its place in the buffer (uint8)."""
        if len(self.shapes) == 1:
            self._put(buffer, places, 0, columns, slice(None))
            return
        # Messages of one class are written together: one numpy assignment per class.
        order = np.argsort(classes, kind="stable")
        ends = np.cumsum(np.bincount(classes, minlength=len(self.shapes)))
        first = 0
        for number, end in enumerate(ends.tolist()):
            if end > first:
                chosen = order[first:end]
                self._put(buffer, places[chosen], number, columns, chosen)
            first = end

    def _put(
        self, buffer: Array, places: Array, number: int, columns: Mapping[str, Array], chosen: Array | slice
    ) -> None:
        shape = self.shapes[number]
        if not shape.size or not len(places):
            return
        # A window begins at every byte of the buffer, so that a place is an index.
        windows = np.ndarray((len(buffer) - shape.size + 1,), f"V{shape.size}", buffer.data, strides=(1,))
        windows[places] = shape.rows(len(places), columns, chosen)
