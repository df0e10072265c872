"""The layout of the ``checkpoint`` file: five numbers that say how far each part of a store is known to be on disk.

Mirrors: the layout of org.apache.rocketmq.store.StoreCheckpoint. Lab 01 opens it with a hex dump.

    byte  0  physic_msg_timestamp       store time of the last message flushed in the commit log
          8  logics_msg_timestamp       store time of the last unit dispatched to a consume queue
         16  index_msg_timestamp        last store time in the newest index file that became full and was flushed
         24  master_flushed_offset      replication
         32  confirm_physical_offset    start of the last unit the last recovery accepted
         40  zeros up to 4096

Left out: writing, which is in mqlab.rocketmq.store.checkpoint.
"""

from __future__ import annotations

from mqlab.rocketmq.wire.layout import Field, FieldSpec, number_fields, number_struct

SIZE = 4096
SPECS = (
    FieldSpec("physic_msg_timestamp", "i64", "store time of the last message flushed in the commit log"),
    FieldSpec("logics_msg_timestamp", "i64", "store time of the last unit dispatched to a consume queue"),
    FieldSpec("index_msg_timestamp", "i64", "last store time in the newest index file that is full and flushed"),
    FieldSpec("master_flushed_offset", "i64", "replication: how far the master's log is flushed"),
    FieldSpec("confirm_physical_offset", "i64", "start of the last unit that the last recovery accepted"),
)
LAYOUT = number_struct(SPECS)
FIELDS = tuple(spec.name for spec in SPECS)


def field_map(data: bytes | memoryview) -> list[Field]:
    """The five numbers of a checkpoint file's bytes as fields; missing bytes count as zeros."""
    return number_fields(SPECS, bytes(data[: LAYOUT.size]).ljust(LAYOUT.size, b"\0"))


def decode(data: bytes | memoryview) -> dict[str, int]:
    """The numbers of a checkpoint file's bytes by name; missing bytes count as zeros.

    >>> decode(bytes(16) + (1699990000000).to_bytes(8, "big"))["index_msg_timestamp"]
    1699990000000
    """
    return dict(zip(FIELDS, LAYOUT.unpack(bytes(data[: LAYOUT.size]).ljust(LAYOUT.size, b"\0")), strict=True))
