"""JSON as fastjson writes and reads it: integer keys without quotes, objects as keys, tabs.

Mirrors: com.alibaba.fastjson as RocketMQ 5.3 uses it for config files and admin bodies. Lab 00 opens such a file.

    {"offsetTable":{"orders@billing":{0:5,3:7}}}          not standard JSON: Python's json refuses it
    {{"brokerName":"broker-a","queueId":0,"topic":"t"}:5}  an object as key; here its text becomes the key

    {'a':1,b:2,}  // c      also read: single quotes, names without quotes, surplus commas, comments, a BOM, 5L, NaN

Left out: what makes objects of Java (@type, $ref, Set[1], new Date(5), x'41').
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

from mqlab.rocketmq.wire.java_hash import joined_surrogates
from mqlab.rocketmq.wire.java_numbers import parse_int, parse_long

_SPACE = re.compile(r"(?:[\x00-\x20\x7f]|//[^\n]*(?:\n|\Z)|/\*.*?\*/)*", re.DOTALL)
_QUOTED = {'"': re.compile(r'"(?:[^"\\]|\\.)*"', re.DOTALL), "'": re.compile(r"'(?:[^'\\]|\\.)*'", re.DOTALL)}
_ESCAPE = re.compile(r"\\(u[0-9a-fA-F]{4}|x[0-9a-fA-F]{2}|.)", re.DOTALL)
_ESCAPED = dict(zip("btnvfFr\"'\\/01234567", "\b\t\n\v\f\f\r\"'\\/\0\1\2\3\4\5\6\7", strict=True))
_NAME = re.compile("[A-Za-z_$\u0100-\U0010ffff][A-Za-z0-9_\u0100-\U0010ffff]*")
_WORDS = {"true": True, "false": False, "null": None, "undefined": None, "NaN": None}
_WORD = re.compile(r"(?:true|false|null|undefined|NaN)(?![A-Za-z0-9_$])")
_NUMBER = re.compile(r"(?P<whole>[+-]?[0-9]+)(?P<fraction>(?:\.[0-9]*)?(?:[eE][+-]?[0-9]+)?)(?P<kind>[LSBFD]?)")
_ZERO_FRACTION = re.compile(r"\.0*$")


def _constant(word: str) -> None:
    """NaN, which Python's reader knows and fastjson takes for null. Raises ValueError for the infinities."""
    if word != "NaN":
        raise ValueError(f"{word} is not a value")


_load_standard = json.JSONDecoder(parse_constant=_constant).decode
_write = json.JSONEncoder(ensure_ascii=False, separators=(",", ":")).encode
_MAX_DEPTH = 200


def to_json(value: Any) -> bytes:
    """Standard JSON, compact, UTF-8: what mqlab itself puts on the wire (integer keys become strings)."""
    return _write(value).encode("utf-8", "replace")


def loads(text: str | bytes) -> Any:
    """The value in a JSON text; number keys become numbers, object keys the compact JSON text of the object.

    Raises ValueError with the position for anything that is not JSON in this wider sense. An empty text is an error
    here, where fastjson returns null.

    >>> loads('{"offsetTable":{"orders@billing":{0:5,3:7}}}')
    {'offsetTable': {'orders@billing': {0: 5, 3: 7}}}
    >>> loads("{{'queueId':0,topic:'t'}:5} // by hand")
    {'{"queueId":0,"topic":"t"}': 5}
    """
    if isinstance(text, bytes):
        text = text.decode("utf-8", "replace")
    try:
        return _load_standard(text)  # many times faster than the parser below, and nearly always enough
    except (ValueError, RecursionError):
        pass
    try:
        value, end = _value(text, _skip(text, text.startswith("\ufeff")), 0)
        end = _skip(text, end)
    except (IndexError, RecursionError) as error:
        raise ValueError(f"the text ends inside a value (length {len(text)})") from error
    if end != len(text):
        raise ValueError(f"something follows the value at position {end}: {text[end : end + 20]!r}")
    return value


def to_int(value: Any) -> int:
    """The Integer that fastjson makes of a value. Raises ValueError, where it refuses the text too.

    >>> to_int(4), to_int("+4"), to_int(4.9), to_int("4.00")
    (4, 4, 4, 4)
    """
    if isinstance(value, str):
        return parse_int(_ZERO_FRACTION.sub("", value.replace(",", "")))
    return parse_int(str(_cut(value)))


def data_of(value: Any, name: str) -> Any:
    """A field of a file's object, None where the file says null or [] or does not have it. See ``table``."""
    return value.get(name) if isinstance(value, dict) else None


def to_long(value: Any) -> int:
    """The Long that fastjson makes of a value. Raises ValueError, where it refuses the text too.

    >>> to_long("1,000"), to_long(True)
    (1000, 1)
    """
    return parse_long(value.replace(",", "") if isinstance(value, str) else str(_cut(value)))


def table(value: Any, name: str) -> dict[Any, Any]:
    """The object of that name in a configuration file; empty if the file does not name it, or says null or [].

    Mirrors the maps that RocketMQ's tables hold from the start. Raises ValueError for anything else in its place,
    null included.

    >>> table({}, "offsetTable"), table({"offsetTable": {"orders@billing": {0: 5}}}, "offsetTable")
    ({}, {'orders@billing': {0: 5}})
    """
    if value is None or value == []:
        return {}
    entries = value.get(name, {})
    if not isinstance(entries, dict):
        raise ValueError(f"{name} is not an object")
    return entries


def _cut(value: Any) -> int:
    """The whole part of a number. Raises ValueError for what is not a number."""
    if not isinstance(value, int | float):
        raise ValueError(f"{value!r} is not a number")
    try:
        return int(value)
    except OverflowError as error:
        raise ValueError(f"{value!r} is not a whole number") from error


def _value(text: str, position: int, depth: int) -> tuple[Any, int]:
    if depth > _MAX_DEPTH:
        raise ValueError(f"nested deeper than {_MAX_DEPTH} at position {position}")
    if text[position] == "{":
        return _object(text, _next_item(text, position + 1), depth)
    if text[position] == "[":
        return _array(text, _next_item(text, position + 1), depth)
    if text[position] in _QUOTED:
        return _string(text, position)
    word = _WORD.match(text, position)
    if word is not None:
        return _WORDS[word[0]], word.end()
    return _number(text, position)


def _object(text: str, position: int, depth: int) -> tuple[dict[Any, Any], int]:
    values: dict[Any, Any] = {}
    while text[position] != "}":
        key, position = _key(text, position, depth)
        position = _skip(text, position)
        if text[position] != ":":
            raise ValueError(f"expected ':' at position {position}, found {text[position]!r}")
        values[key], position = _value(text, _skip(text, position + 1), depth + 1)
        position = _after_item(text, position, "}")
    return values, position + 1


def _key(text: str, position: int, depth: int) -> tuple[Any, int]:
    if text[position] in "{[":
        value, end = _value(text, position, depth + 1)
        return _write(value), end
    if text[position] in _QUOTED:
        return _string(text, position)
    name = _NAME.match(text, position)
    if name is not None:
        return name[0], name.end()
    # Queue ids and delay levels: fastjson writes integer keys without quotes.
    if text[position] != "+" and _NUMBER.match(text, position) is not None:
        return _number(text, position)
    raise ValueError(f"expected a key at position {position}, found {text[position]!r}")


def _array(text: str, position: int, depth: int) -> tuple[list[Any], int]:
    values: list[Any] = []
    while text[position] != "]":
        value, position = _value(text, position, depth + 1)
        values.append(value)
        position = _after_item(text, position, "]")
    return values, position + 1


def _string(text: str, position: int) -> tuple[str, int]:
    quoted = _QUOTED[text[position]].match(text, position)
    if quoted is None:
        raise ValueError(f"a string that is not closed, at position {position}")
    inside = quoted[0][1:-1]
    return (joined_surrogates(_ESCAPE.sub(_meant, inside)) if "\\" in inside else inside), quoted.end()


def _meant(escape: re.Match[str]) -> str:
    """What an escape in a string stands for."""
    letters = escape[1]
    if letters[0] in "ux" and len(letters) > 1:
        return chr(int(letters[1:], 16))
    if letters in _ESCAPED:
        return _ESCAPED[letters]
    raise ValueError(f"unknown escape \\{letters} in a string")


def _number(text: str, position: int) -> tuple[int | float, int]:
    number = _NUMBER.match(text, position)
    if number is None:
        raise ValueError(f"expected a value at position {position}, found {text[position : position + 20]!r}")
    whole, fraction, kind = number.group("whole", "fraction", "kind")
    if fraction or kind in ("F", "D"):
        return float(whole + fraction), number.end()
    return int(whole), number.end()


def _after_item(text: str, position: int, closing: str) -> int:
    position = _skip(text, position)
    if text[position] == ",":
        return _next_item(text, position)
    if text[position] != closing:
        raise ValueError(f"expected ',' or {closing!r} at position {position}, found {text[position]!r}")
    return position


def _next_item(text: str, position: int) -> int:
    """Where the next item begins, or the closing bracket; fastjson does not count the commas before it."""
    position = _skip(text, position)
    while text[position] == ",":
        position = _skip(text, position + 1)
    return position


def _skip(text: str, position: int) -> int:
    space = _SPACE.match(text, position)
    assert space is not None
    return space.end()


def pretty(value: Any) -> str:
    """The text of fastjson's pretty format: tabs, LF, no space after a colon, integer keys unquoted, None left out.

    Keys stay in the order given: Java sorts those of beans, and those of maps come as its HashMap has them.

    >>> print(pretty({"offsetTable": {"orders@billing": {0: 5, 3: 7}}, "none": {}}).replace("\\t", "  "))
    {
      "offsetTable":{
        "orders@billing":{0:5,3:7
        }
      },
      "none":{}
    }
    """
    return _pretty(value, 0)


def _pretty(value: Any, depth: int) -> str:
    # Most values in a broker's files are numbers and truths, with which the encoder is slow.
    kind = type(value)
    if kind is int:
        return str(value)
    if kind is bool:
        return "true" if value else "false"
    if kind is str:
        return _write(value)
    if isinstance(value, Mapping):
        items = [(key, item) for key, item in value.items() if item is not None]
        if not items:
            return "{}"
        inside, outside = "\n" + "\t" * (depth + 1), "\n" + "\t" * depth
        parts = []
        for number, (key, item) in enumerate(items):
            comma = "," if number else ""
            if isinstance(key, int):  # fastjson breaks the line only before string keys
                parts.append(f"{comma}{key}:{_pretty(item, depth + 1)}")
            else:
                parts.append(f"{comma}{inside}{_write(key)}:{_pretty(item, depth + 1)}")
        return "{" + "".join(parts) + outside + "}"
    if isinstance(value, list | tuple):
        return "[" + ",".join(_pretty(item, depth + 1) for item in value) + "]"
    return _write(value)
