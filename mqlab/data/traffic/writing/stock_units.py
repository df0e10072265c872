"""Stock messages as units of a slice: the levels of the warehouses, spread over the slice's time.

Their number is whatever is missing from the share of units that was asked for, so that a run has an exact size.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mqlab.data.traffic.clients import WAREHOUSE
from mqlab.data.traffic.draws import Array, below
from mqlab.data.traffic.model import ARTICLES, STOCK, WAREHOUSES
from mqlab.data.traffic.writing.message_shapes import HEAD_SIZE, stock_ending_size, stock_stretch
from mqlab.data.traffic.writing.order_bodies import OrderTexts
from mqlab.data.traffic.writing.store_state import WrittenStore
from mqlab.data.traffic.writing.unit_kind import LENGTHS_SIZE, MARK_BYTE, Laid, UnitKind

_PURPOSE = 7  # of the draws
_COUNTERS = 1 << 16


@dataclass(slots=True)
class StockMessages(UnitKind):
    """Levels of the warehouses; ``place`` is the warehouse, ``numbers`` count the stock messages of the store."""

    units: StockUnits
    place: Array
    bits: Array
    numbers: Array

    def put(self, buffer: Array, laid: Laid) -> None:
        """Write the units."""
        if len(self.place):
            self.units.put(buffer, laid, self)


class StockUnits:
    """Makes stock messages."""

    def __init__(self, state: WrittenStore) -> None:
        self._state = state
        cluster = state.asked.model.cluster
        self._stretch = stock_stretch(state.broker, cluster)
        self._ending = stock_ending_size(cluster)
        self._count = 0

    def messages(self, count: int, start_ms: int, end_ms: int) -> UnitKind:
        """``count`` messages, spread from ``start_ms`` to ``end_ms``."""
        state = self._state
        numbers = np.arange(self._count, self._count + count)
        self._count += count
        bits = state.orders.draws.bits(_PURPOSE, numbers)
        spread = max(1, end_ms - start_ms)
        times = start_ms + (np.arange(count) * 2 + 1) * spread // max(1, 2 * count)
        times = np.minimum(times + below(bits, 48, 8, 3), end_ms)
        warehouse = below(bits, 0, 8, len(WAREHOUSES))
        sizes = self._stretch.sizes[warehouse]
        queues = state.numbers.orders + below(bits, 8, 8, state.numbers.stock)
        property_size = self._ending - LENGTHS_SIZE - len(STOCK)
        return StockMessages(
            times,
            sizes,
            queues,
            np.zeros(count, np.int64),
            sizes - HEAD_SIZE - self._ending,
            np.full(count, property_size),
            self,
            warehouse,
            bits,
            numbers,
        )

    def put(self, buffer: Array, laid: Laid, rows: StockMessages) -> None:
        """Write stock messages into the buffer."""
        state, count = self._state, len(rows.place)
        born_ms = rows.stored_ms - 1
        client = np.full(count, WAREHOUSE)
        content = OrderTexts.content(rows.bits, born_ms, ARTICLES)
        columns = {
            "total_size": rows.sizes,
            "body_crc": np.zeros(count, np.int64),
            "queue_id": rows.queues - state.numbers.orders,
            "queue_offset": laid.queue_offset,
            "physical_offset": laid.physical_offset,
            "born_timestamp": born_ms,
            "born_host": state.clients.hosts[client],
            "store_timestamp": rows.stored_ms,
            "reconsume_times": np.zeros(count, np.int64),
            "body_length": rows.body_sizes,
            "unique": state.clients.ids(client, born_ms, rows.numbers % _COUNTERS),
            "left": content["whole4"],
            "byte3": np.repeat(MARK_BYTE, count),
            **content,
        }
        self._stretch.put(buffer, laid.at, rows.place, columns)
