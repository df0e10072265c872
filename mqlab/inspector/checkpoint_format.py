"""The layout of the ``checkpoint`` file: five numbers that say how far each part of a store is known to be on disk.

Mirrors: the layout of org.apache.rocketmq.store.StoreCheckpoint. Lab 01 opens it with a hex dump.

    byte  0  physic_msg_timestamp       store time of the last message flushed in the commit log
          8  logics_msg_timestamp       store time of the last unit dispatched to a consume queue
         16  index_msg_timestamp        last store time in the newest index file that became full and was flushed
         24  master_flushed_offset      replication
         32  confirm_physical_offset    start of the last unit the last recovery accepted
         40  zeros up to 4096

Left out: writing, which is in mqlab.store.checkpoint.
"""

from __future__ import annotations

import struct

SIZE = 4096
LAYOUT = struct.Struct(">5q")
FIELDS = (
    "physic_msg_timestamp",
    "logics_msg_timestamp",
    "index_msg_timestamp",
    "master_flushed_offset",
    "confirm_physical_offset",
)


def decode(data: bytes | memoryview) -> dict[str, int]:
    """The numbers of a checkpoint file's bytes by name; missing bytes count as zeros.

    >>> decode(bytes(16) + (1699990000000).to_bytes(8, "big"))["index_msg_timestamp"]
    1699990000000
    """
    return dict(zip(FIELDS, LAYOUT.unpack(bytes(data[: LAYOUT.size]).ljust(LAYOUT.size, b"\0")), strict=True))
