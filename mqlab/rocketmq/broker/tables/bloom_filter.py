"""Which bits of a message's bitmap belong to a group's SQL filter: the numbers that consumerFilter.json records.

Mirrors: BloomFilter and BloomFilterData with Guava's murmur3_128.

    error rate 20 %, 32 groups  ->  3 hashes, 112 bits      "G1#TopicTest" -> [106, 23, 102]

Left out: the bitmaps themselves (enableCalcFilterBitMap is off by default, the extended index is not built).
"""

from __future__ import annotations

import math
from functools import lru_cache

_MASK = (1 << 64) - 1
_C1, _C2 = 0x87C37B91114253D5, 0x4CF5AD432745937F


def hash_count(error_rate: int) -> int:
    """How many bits a group sets, from the error rate in per cent. Mirrors BloomFilter's k."""
    return math.ceil(math.log(error_rate / 100) / math.log(0.5))


def bit_count(error_rate: int, groups: int) -> int:
    """How long a bitmap is, rounded up to whole bytes. Mirrors BloomFilter's m.

    >>> hash_count(20), bit_count(20, 32)
    (3, 112)
    """
    bits = math.ceil(groups * math.log2(1 / (error_rate / 100)) * math.log2(math.e))
    return -(-bits // 8) * 8


def bit_positions(name: str, *, hashes: int = 3, bits: int = 112) -> list[int]:
    """The positions of ``group#topic``. Mirrors BloomFilter.calcBitPositions.

    >>> bit_positions("G1#TopicTest"), bit_positions("g-sql#sql")
    ([106, 23, 102], [18, 67, 107])
    """
    low = murmur3_128_low(name.encode("utf-8"))
    first, second = _signed32(low), _signed32(low >> 32)
    positions = []
    for i in range(1, hashes + 1):
        combined = _signed32(first + i * second)
        positions.append((~combined if combined < 0 else combined) % bits)
    return positions


@lru_cache(maxsize=256)
def murmur3_128_low(data: bytes) -> int:
    """The low 64 bits of MurmurHash3 x64 128 with seed 0."""
    h1 = h2 = 0
    whole = len(data) // 16 * 16
    for start in range(0, whole, 16):
        h1 = _rotate(h1 ^ _mix1(int.from_bytes(data[start : start + 8], "little")), 27)
        h1 = ((h1 + h2) * 5 + 0x52DCE729) & _MASK
        h2 = _rotate(h2 ^ _mix2(int.from_bytes(data[start + 8 : start + 16], "little")), 31)
        h2 = ((h2 + h1) * 5 + 0x38495AB5) & _MASK
    tail = data[whole:]
    if len(tail) > 8:
        h2 ^= _mix2(int.from_bytes(tail[8:], "little"))
    if tail:
        h1 ^= _mix1(int.from_bytes(tail[:8], "little"))
    h1, h2 = h1 ^ len(data), h2 ^ len(data)
    h1 = (h1 + h2) & _MASK
    h2 = (h2 + h1) & _MASK
    h1, h2 = _final(h1), _final(h2)
    return (h1 + h2) & _MASK


def _mix1(block: int) -> int:
    return _rotate(block * _C1 & _MASK, 31) * _C2 & _MASK


def _mix2(block: int) -> int:
    return _rotate(block * _C2 & _MASK, 33) * _C1 & _MASK


def _rotate(value: int, by: int) -> int:
    return (value << by | value >> (64 - by)) & _MASK


def _final(value: int) -> int:
    value = (value ^ value >> 33) * 0xFF51AFD7ED558CCD & _MASK
    value = (value ^ value >> 33) * 0xC4CEB9FE1A85EC53 & _MASK
    return value ^ value >> 33


def _signed32(value: int) -> int:
    value &= 0xFFFFFFFF
    return value - (1 << 32) if value >> 31 else value
