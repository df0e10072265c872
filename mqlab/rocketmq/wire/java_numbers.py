"""Numbers in texts as Java reads them: what a property, a header field, a setting or a JSON string says.

Mirrors: Integer.parseInt and Long.parseLong.

    "5" "-5" "+5" "007" "１２"      5, -5, 5, 7, 12: one sign, digits of any script in Unicode's first plane
    "" " 5" "5 " "5.0" "1_000"      not a number
    "2147483648"                    a Long, not an Integer
"""

from __future__ import annotations

import functools
import re
from typing import TypeVar

# Java looks at UTF-16 units, none of which is a digit in a character outside the first plane.
_NUMBER = re.compile("[+-]?(?:(?![\U00010000-\U0010ffff])\\d)+")
_INT_END = 1 << 31
_LONG_END = 1 << 63
Default = TypeVar("Default", int, None)


@functools.lru_cache(maxsize=1024)  # the fields of most requests hold the same few numbers
def parse_int(text: str) -> int:
    """The number that Integer.parseInt reads. Raises ValueError with Java's words.

    >>> parse_int("+7"), parse_int("-００12")
    (7, -12)
    >>> parse_int("2147483648")
    Traceback (most recent call last):
    ValueError: For input string: "2147483648"
    """
    number = int(text) if _NUMBER.fullmatch(text) else _INT_END
    if -_INT_END <= number < _INT_END:
        return number
    raise _not_a_number(text)


@functools.lru_cache(maxsize=1024)
def parse_long(text: str) -> int:
    """The number that Long.parseLong reads. Raises ValueError with Java's words."""
    number = int(text) if _NUMBER.fullmatch(text) else _LONG_END
    if -_LONG_END <= number < _LONG_END:
        return number
    raise _not_a_number(text)


def int_or(text: str | None, default: Default) -> int | Default:
    """The Integer in a text, the default where there is none. Mirrors the getInt of RocketMQ's services.

    >>> int_or("3", -1), int_or("soon", -1), int_or(None, -1)
    (3, -1, -1)
    """
    try:
        return default if text is None else parse_int(text)
    except ValueError:
        return default


def long_or(text: str | None, default: Default) -> int | Default:
    """The Long in a text, the default where there is none. Mirrors the getLong of RocketMQ's services."""
    try:
        return default if text is None else parse_long(text)
    except ValueError:
        return default


def _not_a_number(text: str) -> ValueError:
    return ValueError(f'For input string: "{text}"')
