"""How two values of a SQL92 filter compare: properties are strings, literals have types, conversions are Java's.

Mirrors: ComparisonExpression and ConstantExpression (org.apache.rocketmq.filter).

    string with a number   the string is read as the number's type: Integer, Long or Double; else an evaluation error
    two strings            compared as strings by =, as Doubles by < and >
    nothing (None)         = of two is TRUE, on the right alone FALSE, on the left alone unknown
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass

from mqlab.errors import FilterError

MAX_INTEGER = 0x7FFFFFFF
MAX_LONG = 0x7FFFFFFFFFFFFFFF

_WHOLE = re.compile(r"[+-]?\d+")  # any script's digits, as Integer.valueOf takes them
_DECIMAL = re.compile(r"[+-]?(?:NaN|Infinity|(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?[fFdD]?)", re.ASCII)
_HEXADECIMAL = re.compile(r"([+-]?0[xX](?:[0-9a-fA-F]+\.?[0-9a-fA-F]*|\.[0-9a-fA-F]+)[pP][+-]?[0-9]+)[fFdD]?", re.ASCII)


@dataclass(frozen=True, slots=True)
class Number:
    """A number with its Java type: ``limit`` is the largest of Integer or Long, None for Double."""

    value: int | float
    limit: int | None = None

    def negated(self) -> Number:
        """The number with the other sign; literals and their negatives are never Java's lowest, so none overflows."""
        return Number(-self.value, self.limit)


Value = Number | str | bool | None


def as_type_of(text: str, number: Number) -> Number:
    """The string read as the type of a number. Raises FilterError."""
    if number.limit is None:
        return Number(java_double(text))
    if _WHOLE.fullmatch(text):
        value = int(text) if len(text) < 40 else number.limit + 1
        if -number.limit - 1 <= value <= number.limit:
            return Number(value, number.limit)
    raise FilterError(f"{text!r} is no {'Integer' if number.limit == MAX_INTEGER else 'Long'}")


def java_double(text: str) -> float:
    """What Double.valueOf makes of a string. Raises FilterError.

    >>> java_double(" 7.5f "), java_double("0x1p4"), java_double("Infinity")
    (7.5, 16.0, inf)
    """
    trimmed = text.strip("".join(map(chr, range(33))))
    if _DECIMAL.fullmatch(trimmed):
        return float(trimmed if trimmed.endswith(("NaN", "Infinity")) else trimmed.rstrip("fFdD"))
    hexadecimal = _HEXADECIMAL.fullmatch(trimmed)
    if hexadecimal:
        try:
            return float.fromhex(hexadecimal[1])
        except OverflowError:
            return -math.inf if trimmed.startswith("-") else math.inf
    raise FilterError(f"{text!r} is not a Double")


def equal(left: Value, right: Value) -> bool | None:
    """The ``=`` of two values. Raises FilterError when a string cannot be read as the other's type."""
    if left is None or right is None:
        return True if left is right else (None if left is None else False)
    if isinstance(left, str) and isinstance(right, str):
        return left == right
    if isinstance(left, bool) and isinstance(right, str):
        raise FilterError(
            f"a boolean cannot be compared with the text {right!r}", hint="write the property on the left"
        )
    if isinstance(left, str) and isinstance(right, bool):
        return (left.lower() == "true") == right
    if isinstance(left, bool) or isinstance(right, bool):
        return left is right
    return order(left, right) == 0


def order(left: Number | str, right: Number | str) -> int:
    """Below, equal, above: -1, 0, 1; NaN above all, -0.0 below 0.0. Raises FilterError as above."""
    if isinstance(left, str):
        left = as_type_of(left, Number(0.0) if isinstance(right, str) else right)
    if isinstance(right, str):
        right = as_type_of(right, left)
    if left.limit is None or right.limit is None:
        this, other = _total_order(float(left.value)), _total_order(float(right.value))
        return (this > other) - (this < other)
    return (left.value > right.value) - (left.value < right.value)


def _total_order(value: float) -> tuple[int, float, float]:
    if math.isnan(value):
        return (1, 0.0, 0.0)
    return (0, value, math.copysign(1.0, value) if value == 0 else 0.0)
