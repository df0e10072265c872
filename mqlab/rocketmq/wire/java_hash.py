"""Hashes of strings as Java computes them, and the order of the keys in a Java HashMap.

Mirrors: String.hashCode and compareTo, HashMap, UtilAll.crc32, IndexFile.indexKeyHashMethod. Lab 01.

    text  "TagA"        ->  UTF-16 units 84 97 103 65  ->  ((84*31 + 97)*31 + 103)*31 + 65, cut to 32 bits, signed
    tags  "TagA"        ->  the same number, stored in a consume queue unit for the tag filter
    key   "orders#k1"   ->  absolute value (0 for the one number that has none); modulo the slots of an index file
    body  bytes         ->  CRC-32 with its highest bit cleared

Left out: the trees Java puts into crowded HashMap buckets (their order is the same for a few names).
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Collection, Iterable
from functools import lru_cache

_SHORT = 64


def utf16_units(text: str) -> bytes | tuple[int, ...]:
    """The 16-bit units Java counts and hashes: one for a letter, two for an emoji.

    >>> utf16_units("😀")
    (55357, 56832)
    """
    if text.isascii():
        return text.encode("ascii")
    data = text.encode("utf-16-le", "surrogatepass")
    return struct.unpack(f"<{len(data) // 2}H", data)


def string_hash(text: str) -> int:
    """String.hashCode: ``31 * hash + unit`` over the UTF-16 units, a signed 32-bit number.

    >>> string_hash("TagA"), string_hash("你好"), string_hash("polygenelubricants")
    (2598919, 652829, -2147483648)
    """
    value = 0
    if len(text) <= _SHORT:
        for unit in utf16_units(text):  # Python's numbers do not overflow: one cut at the end is enough
            value = 31 * value + unit
        value &= 0xFFFFFFFF
    else:
        for unit in utf16_units(text):
            value = (31 * value + unit) & 0xFFFFFFFF
    return value - 0x100000000 if value & 0x80000000 else value


@lru_cache(maxsize=4096)
def tags_code(tags: str | None) -> int:
    """What a consume queue unit holds for a message's tags: the hash of the tags as one string, 0 without tags.

    Mirrors MessageExtBrokerInner.tagsString2tagsCode.

    >>> tags_code("Aa") == tags_code("BB") == 2112, tags_code(None), tags_code("")
    (True, 0, 0)
    """
    return string_hash(tags) if tags else 0


def index_key_hash(full_key: str) -> int:
    """The number an index entry holds for ``topic#key``: never negative. Mirrors IndexFile.indexKeyHashMethod.

    >>> index_key_hash("TopicTest#key-1"), index_key_hash("订单#🚀"), index_key_hash("polygenelubricants")
    (204089217, 710218637, 0)
    """
    value = abs(string_hash(full_key))
    return 0 if value == 0x80000000 else value


def hash_map_order(names: Iterable[str], capacity: int = 16) -> list[str]:
    """The order in which a java.util.HashMap of this ``capacity`` returns these keys, put in this order.

    Buckets ascending, first put first inside a bucket; the table doubles when more than three quarters full.

    >>> hash_map_order(["TAGS", "KEYS", "WAIT", "UNIQ_KEY", "color"])
    ['color', 'KEYS', 'UNIQ_KEY', 'WAIT', 'TAGS']
    """
    return list(_hash_map_order(tuple(names), capacity))


@lru_cache(maxsize=1024)
def _hash_map_order(names: tuple[str, ...], capacity: int) -> tuple[str, ...]:
    unique = dict.fromkeys(names)
    size = 1
    while size < capacity or len(unique) > size * 3 // 4:
        size *= 2

    def bucket(name: str) -> int:
        value = string_hash(name) & 0xFFFFFFFF
        return (value ^ value >> 16) & (size - 1)

    return tuple(sorted(unique, key=bucket))


def joined_surrogates(text: str) -> str:
    """A text in which two escapes may have made the halves of one character: Java's strings join them.

    >>> joined_surrogates("\\ud83d\\ude00")
    '😀'
    """
    if not any("\ud800" <= letter <= "\udfff" for letter in text):
        return text
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "surrogatepass")


def utf16_key(text: str) -> bytes:
    """A sort key that orders strings as String.compareTo does: by UTF-16 unit, so an emoji comes before U+FF01.

    >>> sorted(["！", "😀", "a"], key=utf16_key)
    ['a', '😀', '！']
    """
    return text.encode("utf-16-be", "surrogatepass")


def sorted_as_java(texts: Collection[str]) -> list[str]:
    """The strings in the order of Collections.sort; pure ASCII needs no sort key.

    >>> sorted_as_java(["b-2", "b-10"]), sorted_as_java(["！", "😀"])
    (['b-10', 'b-2'], ['😀', '！'])
    """
    return sorted(texts, key=None if all(map(str.isascii, texts)) else utf16_key)


def crc32(body: bytes | bytearray | memoryview) -> int:
    """The check sum of a body, 31 bits; 0 for an empty one. Mirrors UtilAll.crc32.

    >>> hex(crc32(b"Hello RocketMQ"))
    '0x69c865ed'
    """
    return zlib.crc32(body) & 0x7FFFFFFF
