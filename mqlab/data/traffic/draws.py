"""Random numbers computed from their purpose: draw(purpose, number) gives the same value on every machine.

    key of a broker   seed, broker number ──mix──▶ 64 bits
    a draw            key, purpose, number of the order ──mix──▶ 64 bits; no state, so any slice of a day can be made
                      alone, and the order of the draws does not matter
    a sealed day      seal, broker, purpose ──BLAKE2──▶ key; key, number ──SipHash-2-4──▶ 64 bits
    Zipf              a table of 65,536 rows cut by the weights 1/1, 1/2, 1/3 ...; a row names one customer or a few

Whole numbers only: floating point differs between processors in the last bit, and a seed must give the same bytes.
splitmix64 runs backwards as well: what a draw led to gives away the seed and with it all other draws.
SipHash does not, so the days of a class are made with it (see mqlab.data.traffic.trouble.capstone).
Left out: randomness of a better quality than splitmix64's where there is nothing to hide.
"""

from __future__ import annotations

import hashlib
from typing import Any

import numpy as np

Array = np.ndarray[Any, np.dtype[Any]]

_STEP = 0x9E3779B97F4A7C15
_FIRST, _SECOND = np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB)
_MASK = (1 << 64) - 1
_ROWS = 1 << 16
_SIP_INITIAL = (0x736F6D6570736575, 0x646F72616E646F6D, 0x6C7967656E657261, 0x7465646279746573)
_AT_ONCE = 1 << 15  # numbers that are hashed together, so that the columns stay in the processor's cache
_FEW = 12  # up to so many numbers, Python's own arithmetic is faster than numpy's calls


def mix(numbers: Array) -> Array:
    """splitmix64's finish: 64 bits in, 64 scattered bits out."""
    mixed = (numbers ^ (numbers >> np.uint64(30))) * _FIRST
    mixed = (mixed ^ (mixed >> np.uint64(27))) * _SECOND
    scattered: Array = mixed ^ (mixed >> np.uint64(31))
    return scattered


class Draws:
    """The random numbers of one seed and one broker.

    >>> int(Draws(7, 0).bits(1, np.arange(3))[2]) == int(Draws(7, 0).bits(1, np.array([2]))[0])
    True
    """

    def __init__(self, seed: int, broker: int) -> None:
        start = np.array([seed & _MASK, (seed >> 64) & _MASK, broker], np.uint64)
        key = 0
        for part in start.tolist():
            key = int(mix(np.array([(key + _STEP + part) & _MASK], np.uint64))[0])
        self._key = key

    def bits(self, purpose: int, numbers: Array) -> Array:
        """64 random bits for each number (int64, any sign)."""
        key = mix(np.array([(self._key + purpose * _STEP) & _MASK], np.uint64))[0]
        return mix(numbers.astype(np.uint64) * np.uint64(_STEP) + key)

    def below(self, purpose: int, numbers: Array, limit: int) -> Array:
        """A number from 0 to ``limit - 1`` (limit below 2**31) for each, int64."""
        return below(self.bits(purpose, numbers), 0, 32, limit)

    def one(self, purpose: int, limit: int) -> int:
        """One number below ``limit``."""
        return int(self.below(purpose, np.zeros(1, np.int64), limit)[0])

    def __repr__(self) -> str:
        return f"<Draws {self._key:016x}>"


class SealedDraws(Draws):
    """The random numbers of one seal (16 to 64 secret bytes) and one broker."""

    def __init__(self, seal: bytes, broker: int) -> None:
        self._seal, self._broker = seal, broker
        self._keys: dict[int, tuple[int, int]] = {}

    def bits(self, purpose: int, numbers: Array) -> Array:
        """64 random bits for each number (int64, any sign)."""
        if purpose not in self._keys:
            label = f"{self._broker} {purpose}".encode()
            key = hashlib.blake2b(label, key=self._seal, digest_size=16).digest()
            self._keys[purpose] = int.from_bytes(key[:8], "little"), int.from_bytes(key[8:], "little")
        hashed = np.empty(len(numbers), np.uint64)
        for first in range(0, len(numbers), _AT_ONCE):
            hashed[first : first + _AT_ONCE] = siphash(numbers[first : first + _AT_ONCE], *self._keys[purpose])
        return hashed

    def __repr__(self) -> str:
        return "<SealedDraws>"


def draws_of(seed: int, seal: bytes, broker: int) -> Draws:
    """The random numbers of a broker: of the seal if there is one, else of the seed."""
    return SealedDraws(seal, broker) if seal else Draws(seed, broker)


def siphash(numbers: Array, first_key: int, second_key: int) -> Array:
    """SipHash-2-4 of each number, taken as 8 bytes in little-endian order.

    >>> key = 0x0706050403020100, 0x0F0E0D0C0B0A0908
    >>> f"{siphash(np.array([0x0706050403020100]), *key)[0]:x}"
    '93f5f5799a932462'
    """
    words = numbers.astype(np.uint64)
    begin = tuple(key ^ start for key, start in zip((first_key, second_key) * 2, _SIP_INITIAL, strict=True))
    if len(words) <= _FEW:
        return np.array([_siphash_one(word, *begin) for word in words.tolist()], np.uint64)
    v0, v1, v2, v3 = (np.full(len(words), value, np.uint64) for value in begin)
    # The last block holds only the length, 8 bytes, in its highest byte.
    for block in (words, np.uint64(8 << 56)):
        v3 ^= block
        for _ in range(2):
            _sip_round(v0, v1, v2, v3)
        v0 ^= block
    v2 ^= np.uint64(0xFF)
    for _ in range(4):
        _sip_round(v0, v1, v2, v3)
    hashed: Array = v0 ^ v1 ^ v2 ^ v3
    return hashed


def _sip_round(v0: Array, v1: Array, v2: Array, v3: Array) -> None:
    """One round, in place."""
    for sum_of, turned, by in ((v0, v1, 13), (v2, v3, 16)):
        sum_of += turned
        _turn(turned, by)
        turned ^= sum_of
    _turn(v0, 32)
    for sum_of, turned, by in ((v0, v3, 21), (v2, v1, 17)):
        sum_of += turned
        _turn(turned, by)
        turned ^= sum_of
    _turn(v2, 32)


def _turn(values: Array, by: int) -> None:
    """Rotate to the left, in place."""
    high = values >> np.uint64(64 - by)
    values <<= np.uint64(by)
    values |= high


def _siphash_one(word: int, v0: int, v1: int, v2: int, v3: int) -> int:
    """``siphash`` of one number; ``v0`` to ``v3``: the state before it."""
    for block, rounds, then in ((word, 2, 0), (8 << 56, 2, 0xFF), (0, 4, 0)):
        v3 ^= block
        for _ in range(rounds):
            v0, v2 = (v0 + v1) & _MASK, (v2 + v3) & _MASK
            v1, v3 = (v1 << 13 & _MASK | v1 >> 51) ^ v0, (v3 << 16 & _MASK | v3 >> 48) ^ v2
            v0 = v0 << 32 & _MASK | v0 >> 32
            v0, v2 = (v0 + v3) & _MASK, (v2 + v1) & _MASK
            v3, v1 = (v3 << 21 & _MASK | v3 >> 43) ^ v0, (v1 << 17 & _MASK | v1 >> 47) ^ v2
            v2 = v2 << 32 & _MASK | v2 >> 32
        v0 ^= block
        v2 ^= then
    return v0 ^ v1 ^ v2 ^ v3


def below(bits: Array, shift: int, width: int, limit: int) -> Array:
    """A number from 0 to ``limit - 1`` out of ``width`` of the bits, from ``shift`` on; int64."""
    taken = (bits >> np.uint64(shift)) & np.uint64((1 << width) - 1)
    return ((taken * np.uint64(limit)) >> np.uint64(width)).astype(np.int64)


class Zipf:
    """Ranks 0 to ``count - 1``, rank r about 1 / (r + 1) as often as rank 0.

    >>> ranks = Zipf(1000).ranks(Draws(1, 0).bits(0, np.arange(10_000)))
    >>> int(ranks.min()), bool((ranks == 0).mean() > 0.1), bool(ranks.max() > 800)
    (0, True, True)
    """

    def __init__(self, count: int) -> None:
        edges = np.cumsum(10**12 // np.arange(1, count + 1, dtype=np.int64))
        total = int(edges[-1])
        cuts = (
            total * np.arange(_ROWS + 1, dtype=np.int64) // _ROWS
        )  # below 2**63 for any count: total grows as log(count)
        first = np.searchsorted(edges, cuts, side="right")
        self._first = first[:-1].astype(np.int64)
        self._many = np.maximum(1, np.minimum(first[1:], count) - self._first).astype(np.int64)

    def ranks(self, bits: Array) -> Array:
        """A rank for each 64 random bits (the lower 32 are used)."""
        rows = (bits & np.uint64(_ROWS - 1)).astype(np.int64)
        within = ((bits >> np.uint64(16)) & np.uint64(0xFFFF)).astype(np.int64)
        scattered: Array = self._first[rows] + (within * self._many[rows] >> 16)
        return scattered
