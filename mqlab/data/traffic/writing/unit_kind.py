"""Units of one kind in a slice: their sizes are known first, their bytes are written when the slice has its places.

    UnitKind   stored_ms, sizes, queues, tags codes ... of each unit         known before the slice is laid out
      .resolve(physical offsets of the slice's order messages)                ORIGIN_MESSAGE_ID, offsetMsgId
      .put(buffer, Laid)                                                      bytes, in the layout of MessageExtEncoder

Kinds: order_units (sent and given back), trace_units, stock_units, and those in beside_orders.
"""

from __future__ import annotations

from dataclasses import dataclass

from mqlab.data.traffic.draws import Array
from mqlab.data.traffic.writing.columns.text_columns import pool

MARK_BYTE = pool([b"\x03"])
LENGTHS_SIZE = 3  # lengths of topic (1 byte) and properties (2), which a unit's ending contains


@dataclass(frozen=True, slots=True)
class Laid:
    """Places of units: in the slice's buffer, in the log, in their queues."""

    at: Array
    physical_offset: Array
    queue_offset: Array


@dataclass(slots=True)
class UnitKind:
    """Units of one kind, one row per unit. Subclasses write the bytes; this ``resolve`` does nothing."""

    stored_ms: Array
    sizes: Array
    queues: Array  # queue numbers
    tags_codes: Array
    body_sizes: Array
    property_sizes: Array

    def resolve(self, physical_offsets: Array) -> None:
        """Called when the order messages of this slice have their places."""

    def put(self, buffer: Array, laid: Laid) -> None:
        """Write the units."""
        raise NotImplementedError
