"""The check sum a unit may carry as its own last property, over everything before it.

Mirrors: MessageConst.PROPERTY_CRC32, MessageDecoder.createCrc32; written by brokers with enabledAppendPropCRC. Lab 01.

    ... properties ... 0x02 | __CRC32# 0x01 4936222670 0x02        the last 20 bytes of the unit
                                            └ 762226394, lowest digit first, filled up with zeros to ten digits

Unlike the body's check sum it covers the header and the properties too: queue offset, times, hosts, topic.
Left out: verifying on every read (forceVerifyPropCRC); ``is_right`` is called where it is needed.
"""

from __future__ import annotations

from mqlab.rocketmq.wire.java_hash import crc32
from mqlab.rocketmq.wire.layout import Buffer
from mqlab.rocketmq.wire.property_names import CRC32, NAME_VALUE_SEPARATOR, PROPERTY_SEPARATOR

_DIGITS = 10
_NAME = (CRC32 + NAME_VALUE_SEPARATOR).encode("ascii")
_END = PROPERTY_SEPARATOR.encode("ascii")
SIZE = len(_NAME) + _DIGITS + len(_END)


def with_room(properties: bytes) -> bytes:
    """Encoded properties followed by the check sum's property, its digits still zero.

    >>> with_room(b"TAGS\\x01TagA")
    b'TAGS\\x01TagA\\x02__CRC32#\\x010000000000\\x02'
    """
    missing_end = _END if properties and not properties.endswith(_END) else b""
    return properties + missing_end + _NAME + b"0" * _DIGITS + _END


def seal(unit: bytearray) -> None:
    """Write the check sum into a unit whose properties were made by ``with_room``; the last thing to change in it."""
    unit[-_DIGITS - len(_END) : -len(_END)] = _digits(unit)


def is_right(unit: Buffer) -> bool | None:
    """Whether a unit fits the check sum it carries; None when it carries none."""
    end = bytes(unit[-SIZE:])
    if len(end) < SIZE or not end.startswith(_NAME) or not end.endswith(_END):
        return None
    return end[len(_NAME) : -len(_END)] == _digits(unit)


def _digits(unit: Buffer) -> bytes:
    value = crc32(memoryview(unit)[:-SIZE])
    return str(value)[::-1].ljust(_DIGITS, "0").encode("ascii")
