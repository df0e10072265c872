"""JSON as fastjson writes and reads it: integer keys without quotes, objects as keys, tabs.

Mirrors: com.alibaba.fastjson as RocketMQ 5.3 uses it for config files and admin bodies. Lab 00 opens such a file.

    {"offsetTable":{"orders@billing":{0:5,3:7}}}          not standard JSON: Python's json refuses it
    {{"brokerName":"broker-a","queueId":0,"topic":"t"}:5}  an object as key; here its text becomes the key

Left out: comments, single quotes, NaN and whatever else RocketMQ's files never contain.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

_SPACE = re.compile(r"[ \t\r\n]*")
_INTEGER_KEY = re.compile(r"-?\d+")
_load_standard = json.JSONDecoder().decode
_scan_value = json.JSONDecoder().raw_decode
_write = json.JSONEncoder(ensure_ascii=False, separators=(",", ":")).encode
_MAX_DEPTH = 200


def to_json(value: Any) -> bytes:
    """Standard JSON, compact, UTF-8: what mqlab itself puts on the wire (integer keys become strings)."""
    return _write(value).encode("utf-8", "replace")


def loads(text: str | bytes) -> Any:
    """The value in a JSON text; integer keys become int, object keys the compact JSON text of the object.

    Raises ValueError with the position for anything that is not JSON in this wider sense.

    >>> loads('{"offsetTable":{"orders@billing":{0:5,3:7}}}')
    {'offsetTable': {'orders@billing': {0: 5, 3: 7}}}
    >>> loads('{{"queueId":0,"topic":"t"}:5}')
    {'{"queueId":0,"topic":"t"}': 5}
    """
    if isinstance(text, bytes):
        text = text.decode("utf-8", "replace")
    try:
        return _load_standard(text)  # many times faster than the parser below, and nearly always enough
    except (ValueError, RecursionError):
        pass
    try:
        value, end = _value(text, _skip(text, 0), 0)
    except json.JSONDecodeError:
        raise
    except (IndexError, RecursionError) as error:
        raise ValueError(f"the text ends inside a value (length {len(text)})") from error
    end = _skip(text, end)
    if end != len(text):
        raise ValueError(f"something follows the value at position {end}: {text[end : end + 20]!r}")
    return value


def _value(text: str, at: int, depth: int) -> tuple[Any, int]:
    if depth > _MAX_DEPTH:
        raise ValueError(f"nested deeper than {_MAX_DEPTH} at position {at}")
    if text[at] == "{":
        return _object(text, _skip(text, at + 1), depth)
    if text[at] == "[":
        return _array(text, _skip(text, at + 1), depth)
    return _scan_value(text, at)


def _object(text: str, at: int, depth: int) -> tuple[dict[Any, Any], int]:
    values: dict[Any, Any] = {}
    while text[at] != "}":
        key, at = _key(text, at, depth)
        at = _skip(text, at)
        if text[at] != ":":
            raise ValueError(f"expected ':' at position {at}, found {text[at]!r}")
        values[key], at = _value(text, _skip(text, at + 1), depth + 1)
        at = _after_item(text, at, "}")
    return values, at + 1


def _key(text: str, at: int, depth: int) -> tuple[Any, int]:
    if text[at] == "{":
        value, end = _object(text, _skip(text, at + 1), depth + 1)
        return _write(value), end
    # Queue ids and delay levels: fastjson writes integer keys without quotes.
    integer = _INTEGER_KEY.match(text, at)
    if integer:
        return int(integer[0]), integer.end()
    if text[at] != '"':
        raise ValueError(f"expected a key at position {at}, found {text[at]!r}")
    return _scan_value(text, at)


def _array(text: str, at: int, depth: int) -> tuple[list[Any], int]:
    values: list[Any] = []
    while text[at] != "]":
        value, at = _value(text, at, depth + 1)
        values.append(value)
        at = _after_item(text, at, "]")
    return values, at + 1


def _after_item(text: str, at: int, closing: str) -> int:
    at = _skip(text, at)
    if text[at] == ",":
        return _skip(text, at + 1)
    if text[at] != closing:
        raise ValueError(f"expected ',' or {closing!r} at position {at}, found {text[at]!r}")
    return at


def _skip(text: str, at: int) -> int:
    space = _SPACE.match(text, at)
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
