"""Large bodies are sent compressed; the broker stores them as they come.

Mirrors: CompressorFactory with ZlibCompressor, Lz4Compressor, ZstdCompressor. mqlab.rocketmq.wire.message decodes.

    body >= 4096 bytes ─▶ sysFlag bit 0 and its type: ZLIB 0x300, LZ4 0x100, ZSTD 0x200

As in RocketMQ the result is sent even if it is larger than the body, which it is for bodies of random bytes.
"""

from __future__ import annotations

import zlib

from mqlab.extras import need
from mqlab.rocketmq.wire import sys_flag

TYPE_BITS = {
    "ZLIB": sys_flag.COMPRESSION_ZLIB,
    "LZ4": sys_flag.COMPRESSION_LZ4,
    "ZSTD": sys_flag.COMPRESSION_ZSTD,
}


def compress(body: bytes, kind: str, level: int) -> bytes:
    """The compressed body. ``kind``: ZLIB, LZ4 (frame format) or ZSTD; ``level`` as the library takes it."""
    if kind != "ZLIB":
        need("cluster")
    if kind == "LZ4":
        import lz4.frame

        return bytes(lz4.frame.compress(body))
    if kind == "ZSTD":
        import zstandard

        return zstandard.ZstdCompressor(level=level).compress(body)
    return zlib.compress(body, level)


def compressed_if_long(body: bytes, threshold: int, kind: str, level: int) -> tuple[bytes, int]:
    """The body to send and the bits for sysFlag: compressed if it has at least ``threshold`` bytes.

    >>> compressed_if_long(b"x" * 5000, 4096, "ZLIB", 5)[1] == 0x301, compressed_if_long(b"x", 4096, "ZLIB", 5)
    (True, (b'x', 0))
    """
    if len(body) < threshold:
        return body, 0
    return compress(body, kind, level), sys_flag.COMPRESSED | TYPE_BITS[kind]
