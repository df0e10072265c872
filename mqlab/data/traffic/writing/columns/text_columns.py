"""Columns of numbers as columns of text: decimal digits and hexadecimal, by tables of four characters.

    731_100_000_042  ──▶  7311 0000 0042   three look-ups in a table of 10,000 times four letters
    0x00012F4C       ──▶  0001 2F4C        two look-ups in a table of 65,536

A text column is an array of dtype V<width>, ready to be laid into the rows of a Shape.
Left out: numbers of different widths in one column.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from mqlab.data.traffic.draws import Array

_DECIMAL = np.frombuffer("".join(f"{n:04d}" for n in range(10_000)).encode(), np.uint32)
_HEX = np.frombuffer("".join(f"{n:04X}" for n in range(65_536)).encode(), np.uint32)
_HEAD_MS = 100_000_000


def pool(texts: Sequence[bytes]) -> Array:
    """A table of texts of one length."""
    return np.array(texts, f"V{len(texts[0])}")


def table(width: int) -> Array:
    """All numbers of ``width`` (1 to 3) digits, leading zeros included, by number."""
    return pool([f"{n:0{width}d}".encode() for n in range(10**width)])


def digits(numbers: Array, width: int) -> Array:
    """Numbers as text of ``width`` digits, a multiple of four.

    >>> digits(np.array([42, 731]), 8).tolist()
    [b'00000042', b'00000731']
    """
    text = np.empty((len(numbers), width // 4), np.uint32)
    for column in range(width // 4 - 1, -1, -1):
        numbers, last = np.divmod(numbers, 10_000)
        text[:, column] = _DECIMAL[last]
    return text.view(f"V{width}")[:, 0]


def hexadecimal(numbers: Array, width: int) -> Array:
    """Numbers as upper-case hexadecimal text of ``width`` digits, a multiple of four.

    >>> hexadecimal(np.array([0x12F4C]), 8).tolist()
    [b'00012F4C']
    """
    text = np.empty((len(numbers), width // 4), np.uint32)
    for column in range(width // 4):
        text[:, column] = _HEX[(numbers >> 4 * (width - 4 - 4 * column)) & 0xFFFF]
    return text.view(f"V{width}")[:, 0]


_MOMENT = np.dtype([("head", "V5"), ("rest", "V8")])


def moments(times_ms: Array) -> Array:
    """Times of 13 digits (years 2001 to 2286) as text.

    >>> moments(np.array([1700000000456])).tolist()
    [b'1700000000456']
    """
    text = np.empty(len(times_ms), _MOMENT)
    head, rest = np.divmod(times_ms, _HEAD_MS)
    heads, rows = np.unique(head, return_inverse=True) if len(head) and head.min() != head.max() else (head[:1], 0)
    text["head"] = pool([f"{n:05d}".encode() for n in heads.tolist()] or [b"00000"])[rows]
    text["rest"] = digits(rest, 8)
    return text.view("V13")


def joined(*columns: Array) -> Array:
    """Text columns side by side."""
    names = [f"c{number}" for number in range(len(columns))]
    text = np.empty(len(columns[0]), np.dtype([(n, c.dtype) for n, c in zip(names, columns, strict=True)]))
    for name, column in zip(names, columns, strict=True):
        text[name] = column
    return text.view(f"V{text.dtype.itemsize}")
