"""A message's properties as one string: in a frame, and at the end of a stored unit.

Mirrors: MessageDecoder.messageProperties2String and string2messageProperties. Lab 01.

    KEYS 0x01 k1 k2 0x02 TAGS 0x01 TagA 0x02          the last 0x02 is absent from clients 4.9.1 to 5.1.4: both are read

    ab 0x02            no 0x01: not a property           0x01 v 0x02   no name: vanishes
    a 0x01 0x02        no value: written, but vanishes   a 0x01 b 0x01 c   the value is "b 0x01 c"

``encode`` keeps the order, ``encode_as_java`` gives them Java's.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache

from mqlab.errors import UsageError
from mqlab.rocketmq.wire.java_hash import hash_map_order
from mqlab.rocketmq.wire.property_names import KEYS, NAME_VALUE_SEPARATOR, PROPERTY_SEPARATOR, TAGS

PARSED_MAP_CAPACITY = 128  # string2messageProperties makes a HashMap of this size


def to_text(properties: Mapping[str, str]) -> str:
    """The properties as the text of a send request's header, in the order given; None values are left out."""
    return "".join([f"{name}\x01{value}\x02" for name, value in properties.items() if value is not None])


def check_sendable(properties: Mapping[str, object]) -> None:
    """Raise UsageError for a property that would arrive changed, as another one, or not at all.

    RocketMQ's clients send such properties without a word. An empty tag or key counts as none.
    """
    for name, value in properties.items():
        text = value if type(value) is str or isinstance(value, str) else ""
        if not (name and type(name) is str and (text or (text == value and name in (TAGS, KEYS)))):
            raise UsageError(
                f"property {name!r}: {value!r} cannot be sent",
                hint="give a name and a value that are not null or blank; a value is a string",
            )
        if NAME_VALUE_SEPARATOR in name or PROPERTY_SEPARATOR in name or PROPERTY_SEPARATOR in text:
            raise UsageError(f"property {name!r}: {value!r} holds a byte 1 or 2, which separate properties")


def encode(properties: Mapping[str, str]) -> bytes:
    """The properties as they are stored, UTF-8.

    >>> encode({"TAGS": "TagA"})
    b'TAGS\\x01TagA\\x02'
    """
    return to_text(properties).encode("utf-8", "replace")


def encode_as_java(property_map: Mapping[str, str], capacity: int = PARSED_MAP_CAPACITY) -> bytes:
    """Properties in the order of Java's HashMap, so that the stored bytes equal those of a real broker.

    >>> encode_as_java({"TAGS": "a", "KEYS": "k"})
    b'TAGS\\x01a\\x02KEYS\\x01k\\x02'
    """
    names = hash_map_order(property_map, capacity)
    return "".join([f"{name}\x01{property_map[name]}\x02" for name in names]).encode("utf-8", "replace")


def decode(data: bytes | bytearray | memoryview | str) -> dict[str, str]:
    """The properties in stored order. Never fails: what is not a property is skipped, bad UTF-8 becomes U+FFFD.

    >>> decode(b"TAGS\\x01TagA\\x02KEYS\\x01k1 k2")
    {'TAGS': 'TagA', 'KEYS': 'k1 k2'}
    """
    return _parsed(data) if isinstance(data, str) else _decoded(bytes(data)).copy()


@lru_cache(maxsize=4096)
def _decoded(data: bytes) -> dict[str, str]:
    """Filter and client both read a unit's properties; equal bytes are decoded once."""
    return _parsed(str(data, "utf-8", "replace"))


def _parsed(text: str) -> dict[str, str]:
    properties = {}
    for segment in text.split(PROPERTY_SEPARATOR):
        name, _, value = segment.partition(NAME_VALUE_SEPARATOR)
        if name and value:
            properties[name] = value
    return properties


def value_of(data: bytes, name: bytes) -> str | None:
    """One property of those that ``decode`` would return; the index needs two of seven and does not wait for the rest.

    >>> value_of(b"TAGS\x01TagA\x02KEYS\x01k1 k2\x02", b"KEYS")
    'k1 k2'
    """
    _, separator, rest = (b"\x02" + data).rpartition(b"\x02" + name + b"\x01")
    if not separator:
        return None
    value = rest.partition(b"\x02")[0]
    # An empty value is not a property: an earlier one of the same name counts.
    return str(value, "utf-8", "replace") if value else _decoded(data).get(name.decode("ascii"))
