"""Numbers in texts as Java reads them: what a property, a header field, a setting or a JSON string says.

Mirrors: Integer.parseInt and Long.parseLong.

    "5" "-5" "+5" "007" "１２"      5, -5, 5, 7, 12: one sign, digits of any script in Unicode's first plane
    "" " 5" "5 " "5.0" "1_000"      not a number
    "2147483648"                    a Long, not an Integer
"""

from __future__ import annotations

import re

_NUMBER = re.compile(r"[+-]?\d+")
_INT_END = 1 << 31
_LONG_END = 1 << 63


def parse_int(text: str) -> int:
    """The number that Integer.parseInt reads. Raises ValueError with Java's words.

    >>> parse_int("+7"), parse_int("-００12")
    (7, -12)
    >>> parse_int("2147483648")
    Traceback (most recent call last):
    ValueError: For input string: "2147483648"
    """
    return _parsed(text, _INT_END)


def parse_long(text: str) -> int:
    """The number that Long.parseLong reads. Raises ValueError with Java's words."""
    return _parsed(text, _LONG_END)


def int_or(text: str | None, default: int) -> int:
    """The Integer in a text, the default where there is none. Mirrors the getInt of RocketMQ's services.

    >>> int_or("3", -1), int_or("soon", -1), int_or(None, -1)
    (3, -1, -1)
    """
    try:
        return default if text is None else parse_int(text)
    except ValueError:
        return default


def long_or(text: str | None, default: int) -> int:
    """The Long in a text, the default where there is none. Mirrors the getLong of RocketMQ's services."""
    try:
        return default if text is None else parse_long(text)
    except ValueError:
        return default


def _parsed(text: str, end: int) -> int:
    # Java looks at UTF-16 units, none of which is a digit in a character outside the first plane.
    if _NUMBER.fullmatch(text) is not None and max(text) <= "\uffff":
        number = int(text)
        if -end <= number < end:
            return number
    raise ValueError(f'For input string: "{text}"')
