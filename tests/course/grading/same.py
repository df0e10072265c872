"""Equality that the tests of the wall need: values cross with their exact types."""

from __future__ import annotations

import dataclasses
import math
from typing import Any


def same(found: Any, expected: Any) -> bool:
    """Equal, with equal types all the way down: 1 is not True, 1.0 is not 1, [1] is not (1,).

    >>> same([1, (b"x",)], [1, (b"x",)]), same(True, 1), same([1], (1,))
    (True, False, False)
    """
    if type(found) is not type(expected):
        return False
    if isinstance(expected, (list, tuple)):
        return len(found) == len(expected) and all(map(same, found, expected))
    if isinstance(expected, dict):
        return _same_dict(found, expected)
    if isinstance(expected, (set, frozenset)):
        return found == expected and sorted(map(_typed, found)) == sorted(map(_typed, expected))
    if dataclasses.is_dataclass(expected):
        return all(same(getattr(found, f.name), getattr(expected, f.name)) for f in dataclasses.fields(expected))
    if isinstance(expected, float) and math.isnan(expected):
        return math.isnan(found)
    return bool(found == expected)


def _same_dict(found: dict[Any, Any], expected: dict[Any, Any]) -> bool:
    if len(found) != len(expected) or sorted(map(_typed, found)) != sorted(map(_typed, expected)):
        return False
    return all(same(found[key], item) for key, item in expected.items())


def _typed(value: Any) -> str:
    return f"{type(value).__name__} {value!r}"
