"""The form of a value: what an answer has to return, in plain words, and what is accepted in its place.

Every exercise of the kit says it once, in ``returns``.

    int  str  bytes  bool          a value of that kind; what counts as one without harm is taken for one
    [int]                          a list of numbers
    {str: int}                     a dictionary
    tuple_of("retry", level=int)   a tuple with named parts; "retry" is what one of them is called
    record(size=int, topic=str)    a dictionary with these keys
    int | None                     one or the other

Accepted as equal: a list for a tuple and the reverse, numpy's numbers, 40.0 for 40, bytearray for bytes, subclasses.
"""

from __future__ import annotations

import functools
import operator
import types
import typing
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

KINDS = {
    int: "a whole number",
    float: "a number",
    str: "a string",
    bytes: "bytes",
    bool: "True or False",
    type(None): "None",
    object: "a value",
}


@dataclass(frozen=True, slots=True)
class Parts:
    """A tuple with named parts (``keyed`` false), or a dictionary with these keys. ``name``: what one is called."""

    name: str
    parts: tuple[tuple[str, Any], ...]
    keyed: bool


def tuple_of(name: str = "", **parts: Any) -> Parts:
    """The form of a tuple whose parts have names."""
    return Parts(name, tuple(parts.items()), keyed=False)


def record(name: str = "", **parts: Any) -> Parts:
    """The form of a dictionary with these keys; further keys are not looked at."""
    return Parts(name, tuple(parts.items()), keyed=True)


class Misfit(Exception):
    """A value has another form. ``shape`` is what was asked for at ``path``, ``found`` what is there."""

    def __init__(self, shape: Any, value: object, path: tuple[str, ...] = ()) -> None:
        super().__init__(described(shape))
        self.shape, self.found, self.path = shape, value, path


@dataclass(frozen=True, slots=True)
class Difference:
    """The first place where a value differs from the right one. ``part`` is the name that a rule goes by."""

    path: tuple[str, ...]
    part: str
    right: object
    found: object

    @property
    def place(self) -> str:
        """The place in words: "retry 3: level"; "" for the whole value."""
        return ": ".join(self.path)


def described(shape: Any, many: bool = False) -> str:
    """A form in words.

    >>> described([tuple_of(level=int, second=int)])
    'a list of tuples (level, second)'
    """
    if isinstance(shape, Parts):
        names = ", ".join(name for name, _ in shape.parts)
        if shape.keyed:
            return f"{'dictionaries' if many else 'a dictionary'} with the keys {names}"
        return f"{'tuples' if many else 'a tuple'} ({names})"
    if isinstance(shape, list):
        return f"{'lists' if many else 'a list'} of {described(shape[0], many=True)}"
    if isinstance(shape, dict):
        ((key, value),) = shape.items()
        return f"{'dictionaries' if many else 'a dictionary'}: {described(key)} -> {described(value)}"
    if isinstance(shape, types.UnionType):
        return " or ".join(described(option) for option in typing.get_args(shape))
    words = KINDS.get(shape, f"a {getattr(shape, '__name__', shape)}")
    return words.removeprefix("a ") + "s" if many and words.startswith("a ") else words


def fitted(shape: Any, value: Any, path: tuple[str, ...] = ()) -> Any:
    """The value in exactly this form, if it can be taken for one without harm. Misfit says where it cannot.

    >>> fitted([tuple_of(level=int)], [[3.0]])
    [(3,)]
    """
    if isinstance(shape, types.UnionType):
        for option in typing.get_args(shape):
            try:
                return fitted(option, value, path)
            except Misfit:
                continue
        raise Misfit(shape, value, path)
    if isinstance(shape, Parts):
        return _parts(shape, value, path)
    if isinstance(shape, list):
        if not isinstance(value, list | tuple) and not _is_array(value):
            raise Misfit(shape, value, path)
        return [fitted(shape[0], entry, (*path, _item(shape[0], number))) for number, entry in enumerate(value, 1)]
    if isinstance(shape, dict):
        if not isinstance(value, Mapping):
            raise Misfit(shape, value, path)
        ((of_key, of_value),) = shape.items()
        return {fitted(of_key, key, path): fitted(of_value, inner, (*path, str(key))) for key, inner in value.items()}
    return _plain(shape, value, path)


def with_fractions(shape: Any) -> Any:
    """The same form, in which a number need not be a whole one."""
    if isinstance(shape, types.UnionType):
        return functools.reduce(operator.or_, map(with_fractions, typing.get_args(shape)))
    if isinstance(shape, Parts):
        return Parts(shape.name, tuple((name, with_fractions(part)) for name, part in shape.parts), shape.keyed)
    if isinstance(shape, list):
        return [with_fractions(shape[0])]
    if isinstance(shape, dict):
        return {key: with_fractions(inner) for key, inner in shape.items()}
    return float if shape is int else shape


def _parts(shape: Parts, value: Any, path: tuple[str, ...]) -> Any:
    if shape.keyed:
        if not isinstance(value, Mapping):
            raise Misfit(shape, value, path)
        for name, _ in shape.parts:
            if name not in value:
                raise Misfit(shape, "no such key", (*path, name))
        return {name: fitted(part, value[name], (*path, name)) for name, part in shape.parts}
    if not isinstance(value, list | tuple) or len(value) != len(shape.parts):
        raise Misfit(shape, value, path)
    return tuple(fitted(part, got, (*path, name)) for (name, part), got in zip(shape.parts, value, strict=True))


def _plain(kind: type, value: Any, path: tuple[str, ...]) -> Any:
    if kind is object or type(value) is kind:
        return value
    if kind is int and not isinstance(value, bool):
        if isinstance(value, float) and value.is_integer():
            return int(value)
        if not isinstance(value, float) and hasattr(value, "__index__"):
            return operator.index(value)
    if kind is float and not isinstance(value, bool) and hasattr(value, "__float__") and not isinstance(value, str):
        return float(value)
    if kind is bool and type(value).__name__ in ("bool_", "bool"):  # numpy's
        return bool(value)
    if kind is str and isinstance(value, str):
        return str(value)
    if kind is bytes and isinstance(value, bytes | bytearray | memoryview):
        return bytes(value)
    raise Misfit(kind, value, path)


def _is_array(value: Any) -> bool:
    return type(value).__module__.partition(".")[0] in ("numpy", "array") and hasattr(value, "tolist")


def _item(shape: Any, number: int) -> str:
    return f"{getattr(shape, 'name', '') or 'entry'} {number}"


def difference(shape: Any, right: Any, actual: Any, path: tuple[str, ...] = (), part: str = "") -> Difference | None:
    """The first difference of two values of one form: part by part, items before their number."""
    if right == actual:
        return None
    if isinstance(shape, Parts):
        for number, (name, of_part) in enumerate(shape.parts):
            key: Any = name if shape.keyed else number
            inner = difference(of_part, right[key], actual[key], (*path, name), name)
            if inner is not None:
                return inner
    # A list of plain values is looked at as a whole; one of records, record by record.
    if isinstance(shape, list) and isinstance(shape[0], Parts) and isinstance(right, list) and isinstance(actual, list):
        for number, (wanted, got) in enumerate(zip(right, actual, strict=False), 1):
            inner = difference(shape[0], wanted, got, (*path, _item(shape[0], number)), part)
            if inner is not None:
                return inner
        if shape[0].name:
            return Difference((*path, f"number of {plural(shape[0].name)}"), "number", len(right), len(actual))
    if isinstance(shape, dict) and isinstance(right, dict) and isinstance(actual, dict):
        ((_, of_value),) = shape.items()
        for key in [*right, *(key for key in actual if key not in right)]:
            if key not in actual or key not in right:
                return Difference(
                    (*path, str(key)), part or "key", right.get(key, "no such key"), actual.get(key, "no such key")
                )
            inner = difference(of_value, right[key], actual[key], (*path, str(key)), part or str(key))
            if inner is not None:
                return inner
    return Difference(path, part, right, actual)


def leaves(shape: Any, value: Any, part: str, name: str = "") -> list[Any]:
    """All plain values that belong to a part, in order; those of the whole value for the part ""."""
    if isinstance(shape, Parts):
        pairs = [
            (of_part, value[key if shape.keyed else number], key) for number, (key, of_part) in enumerate(shape.parts)
        ]
        return [leaf for of_part, inner, key in pairs for leaf in leaves(of_part, inner, part, key)]
    if isinstance(shape, list):
        return [leaf for inner in value for leaf in leaves(shape[0], inner, part, name)]
    if isinstance(shape, dict):
        ((_, of_value),) = shape.items()
        return [leaf for key, inner in value.items() for leaf in leaves(of_value, inner, part, name or str(key))]
    return [value] if name == part else []


def plural(name: str) -> str:
    """A noun's plural.

    >>> plural("retry"), plural("unit")
    ('retries', 'units')
    """
    return f"{name[:-1]}ies" if name.endswith("y") else f"{name}s"
