"""The columns that a text takes in a fixed-width display, so that Chinese and emoji line up, too.

Widths are those of Unicode's East Asian Width, through the wcwidth library.

    "order"  5      "订单"  4      "🙂"  2      "é" (e + accent)  1

Left out: terminals that draw emoji narrower than Unicode defines.
"""

from __future__ import annotations

from wcwidth import clip, wcswidth, wcwidth

ELLIPSIS = "…"
MAX_MARKS = 8  # characters per column, accents and joiners included: the rest of a long body is ignored


def printable(text: str) -> str:
    """The text with line ends and other control characters written out, so that it stays on one line.

    >>> printable("a\\n\\x01б")
    'a\\\\n\\\\x01б'
    """
    return "".join(c if wcwidth(c) >= 0 else c.encode("unicode_escape").decode() for c in text)


def width(text: str) -> int:
    """Columns that a printable text takes.

    >>> width("order"), width("订单"), width("🙂")
    (5, 4, 2)
    """
    columns = wcswidth(text)
    return columns if columns >= 0 else sum(max(wcwidth(c), 0) for c in text)


def cut(text: str, columns: int) -> str:
    """The text in at most ``columns`` columns, ended by an ellipsis where something is missing.

    A letter and its accents, or the parts of an emoji, are kept or left out together.

    >>> cut("订单已经支付", 6), cut("paid", 6)
    ('订单…', 'paid')
    """
    if width(text) <= columns:
        return text
    return clip(text[: MAX_MARKS * columns], 0, columns - 1, fillchar="") + ELLIPSIS
