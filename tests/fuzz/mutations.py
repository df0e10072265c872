"""Bytes made from samples by a script: hypothesis, a random generator and a coverage-guided fuzzer all write scripts.

    script   ff rest…                  the rest as it is: bytes that no sample led to
             which, then for each step: what, where (two bytes), more
    steps    cut · flip · set · copy · drop · zeros · an edge of 32 or of 64 bits

The same script gives the same bytes, so that what broke a reader can be written down as a test.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

RAW = 0xFF
STEP = 4
EDGES = (0, 1, -1, 2, 127, 128, 255, 256, 32_767, 65_535, 2**31 - 1, -(2**31), 2**63 - 1, -(2**63), 10**12, -2)


def from_script(samples: Sequence[bytes], script: bytes) -> bytes:
    """The bytes that a script makes of one of the samples."""
    if not script:
        return b""
    if script[0] == RAW or not samples:
        return script[1:]
    data = bytearray(samples[script[0] % len(samples)])
    for start in range(1, len(script) - STEP + 1, STEP):
        what, high, low, more = script[start : start + STEP]
        place = (high << 8 | low) % (len(data) + 1)
        data = _STEPS[what % len(_STEPS)](data, place, more)
    return bytes(data)


def _cut(data: bytearray, at: int, more: int) -> bytearray:
    return data[:at]


def _flip(data: bytearray, at: int, more: int) -> bytearray:
    if at < len(data):
        data[at] ^= 1 << (more % 8)
    return data


def _set(data: bytearray, at: int, more: int) -> bytearray:
    if at < len(data):
        data[at] = more
    return data


def _copy(data: bytearray, at: int, more: int) -> bytearray:
    return data[:at] + data[at : at + more] + data[at:]


def _drop(data: bytearray, at: int, more: int) -> bytearray:
    return data[:at] + data[at + 1 + more % 16 :]


def _zeros(data: bytearray, at: int, more: int) -> bytearray:
    count = min(more, len(data) - at)
    data[at : at + count] = bytes(count)
    return data


def _edge(size: int) -> Callable[[bytearray, int, int], bytearray]:
    def step(data: bytearray, at: int, more: int) -> bytearray:
        number = EDGES[more % len(EDGES)] & ((1 << 8 * size) - 1)
        if at + size <= len(data):
            data[at : at + size] = number.to_bytes(size, "big")
        return data

    return step


def _digits(data: bytearray, at: int, more: int) -> bytearray:
    """A number of a text instead of the byte there."""
    return data[:at] + str(EDGES[more % len(EDGES)]).encode() + data[at + 1 :]


_STEPS = (_cut, _flip, _set, _copy, _drop, _zeros, _edge(4), _edge(8), _edge(2), _digits)
