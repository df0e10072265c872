"""Several messages in one send request: the body of SEND_BATCH_MESSAGE.

Mirrors: MessageDecoder.encodeMessages and decodeMessages; the broker makes one stored unit of each item.

    i32 item size | i32 0 magic | i32 0 crc | i32 flag | i32 body length, body | i16 properties length, properties
    the size counts itself; topic, queue, sysFlag and born time are given once, in the request's header
"""

from __future__ import annotations

import struct
from collections.abc import Iterable
from typing import NamedTuple

from mqlab.errors import CorruptionError, UsageError

_HEAD = struct.Struct(">iiiii")
_I16 = struct.Struct(">h")
_SMALLEST = _HEAD.size + _I16.size


class BatchItem(NamedTuple):
    """One message of a batch; ``properties`` are the encoded bytes."""

    flag: int
    body: bytes
    properties: bytes


def encode(items: Iterable[BatchItem]) -> bytes:
    """The body of a batch request. Raises UsageError for an item that does not fit its fields.

    >>> encode([BatchItem(0, b"hi", b"")]).hex()
    '000000180000000000000000000000000000000268690000'
    """
    parts = []
    for flag, body, properties in items:
        size = _SMALLEST + len(body) + len(properties)
        try:
            parts += [_HEAD.pack(size, 0, 0, flag, len(body)), body, _I16.pack(len(properties)), properties]
        except struct.error as error:
            raise UsageError(
                f"a batch item does not fit: flag {flag}, {len(body)} bytes of body, {len(properties)} of properties",
                hint="a flag has 32 bits, properties at most 32,767 bytes",
            ) from error
    return b"".join(parts)


def decode(data: bytes) -> list[BatchItem]:
    """The items of a batch request's body. Raises CorruptionError when a length does not fit."""
    items = []
    position, end = 0, len(data)
    while position < end:
        if position + _SMALLEST > end:
            raise _wrong(position, f"at least {_SMALLEST} bytes", end - position)
        # 1. The fixed fields, and whether the lengths they give lie inside the item.
        size, _, _, flag, body_length = _HEAD.unpack_from(data, position)
        body_at = position + _HEAD.size
        body_end, following = body_at + body_length, position + size
        properties_at = body_end + _I16.size
        if body_length < 0 or size < _SMALLEST or following > end or properties_at > following:
            raise _wrong(position, f"an item within {end - position} bytes", f"size {size}, body length {body_length}")
        # 2. The properties must end exactly where the item's own size says.
        (properties_length,) = _I16.unpack_from(data, body_end)
        if properties_length < 0 or properties_at + properties_length != following:
            raise _wrong(
                position, f"properties that end the item of {size} bytes", f"{properties_length} bytes of them"
            )
        items.append(BatchItem(flag, data[body_at:body_end], data[properties_at:following]))
        position = following
    return items


def _wrong(at: int, expected: object, found: object) -> CorruptionError:
    return CorruptionError("a batch request's body", offset=at, expected=expected, found=found)
