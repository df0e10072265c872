"""Check sums of bodies, written into the heads of a slice's units.

Mirrors: UtilAll.crc32 as MessageExtEncoder applies it. Lab 01 checks one by hand.

    unit   head (CRC at 8) | body                 crc32(body) & 7FFFFFFF

Left out: empty bodies; the platform does not send any.
"""

from __future__ import annotations

import zlib

import numpy as np

from mqlab.data.traffic.draws import Array
from mqlab.data.traffic.writing.message_shapes import BODY_CRC_AT, HEAD_SIZE


def write_body_sums(buffer: Array, places: Array, body_sizes: Array) -> Array:
    """Compute and write the check sum of each unit, given its place in the buffer; returns the sums (>i4)."""
    view = memoryview(buffer.data)
    crc32 = zlib.crc32
    starts = places + HEAD_SIZE
    bounds = zip(starts.tolist(), (starts + body_sizes).tolist(), strict=True)
    sums = np.array([crc32(view[start:end]) & 0x7FFFFFFF for start, end in bounds], ">i4")
    windows = np.ndarray((len(buffer) - 3,), "V4", buffer.data, strides=(1,))
    windows[places + BODY_CRC_AT] = sums.view("V4")
    return sums
