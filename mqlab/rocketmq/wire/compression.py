"""Compressed bodies, as clients send them and brokers keep them.

Mirrors: Compressor of org.apache.rocketmq.common.compression.

    sys_flag bit 0 set, bits 8-10:  0x300 or none ZLIB (zlib stream)   0x100 LZ4 (frame format)   0x200 ZSTD

Left out: choosing a level; batches, which are never compressed.
"""

from __future__ import annotations

import zlib

from mqlab.errors import CorruptionError
from mqlab.extras import install
from mqlab.rocketmq.wire.sys_flag import COMPRESSION_MASK, compression_name


def decompressed_body(body: bytes, sys_flag: int) -> bytes:
    """The body as it was before compression. Raises CorruptionError for damaged bytes and an unknown type."""
    kind = compression_name(sys_flag)
    try:
        if kind == "ZLIB":
            return zlib.decompress(body)
        if kind == "LZ4":
            # Imported here: most programs never meet this type, and the library is optional.
            import lz4.frame

            return bytes(lz4.frame.decompress(body))
        if kind == "ZSTD":
            import zstandard

            reader = zstandard.ZstdDecompressor().decompressobj()
            whole = reader.decompress(body)
            # The library returns what it has when the data ends early: ask whether the frame is complete.
            if not reader.eof:
                raise ValueError("the data ends inside a frame")
            return whole
    except ImportError as missing:
        raise CorruptionError(
            f"a body is compressed with {kind}, which this Python cannot read", hint=install("cluster")
        ) from missing
    except Exception as error:  # each library has its own errors; all mean the same here
        raise CorruptionError(
            f"a {kind} body does not decompress", expected=f"{kind} data", found=str(error)
        ) from error
    raise CorruptionError(
        "a body's compression type is unknown", expected="0x100, 0x200, 0x300", found=hex(sys_flag & COMPRESSION_MASK)
    )
