"""Columns that the messages next to an order have in common: their heads, and what they say about the order.

Mirrors: MessageExtEncoder, many messages at a time. Each row has made_ms, order, counter, sender and queue_id.

Left out: queue ids and what else differs between kinds; they are added to these columns.
"""

from __future__ import annotations

import numpy as np

from mqlab.data.traffic.draws import Array
from mqlab.data.traffic.writing.columns.text_columns import moments, table
from mqlab.data.traffic.writing.store_state import WrittenStore
from mqlab.data.traffic.writing.unit_kind import MARK_BYTE, Laid, UnitKind


def columns_of(state: WrittenStore, kind: UnitKind, laid: Laid, rows: Array) -> dict[str, Array]:
    """Slot name -> column, for a Stretch; ``kind`` has the sizes and times of the same units."""
    count, sender, made_ms = len(rows), rows["sender"].astype(np.int64), rows["made_ms"]
    return {
        "total_size": kind.sizes,
        "body_crc": np.zeros(count, np.int64),
        "queue_offset": laid.queue_offset,
        "physical_offset": laid.physical_offset,
        "born_timestamp": made_ms,
        "born_host": state.clients.hosts[sender],
        "store_timestamp": kind.stored_ms,
        "reconsume_times": np.zeros(count, np.int64),
        "body_length": kind.body_sizes,
        "unique": state.clients.ids(sender, made_ms, rows["counter"].astype(np.int64)),
        "order": state.texts.order(rows["order"]),
        "customer": state.texts.customer(state.orders.customers(rows["order"])),
        "at": moments(made_ms),
        "real_queue": table(1)[rows["queue_id"].astype(np.int64)],
        "byte3": np.repeat(MARK_BYTE, count),
    }
