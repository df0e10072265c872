"""The units of a slice, of all kinds: put in order of time, given places, and written as bytes.

Mirrors: the append path of CommitLog and its dispatch, many units at a time. No lab.

    order messages | copies of failed ones | trace messages | stock messages
       └──────────────── store time, size ────────────────┘──▶ one order ──▶ places in the log, offsets in queues
       each kind lays its stretches into the slice's buffer ──▶ body check sums ──▶ log, queues, index

Left out: flushing in between; a store that is not finished is never given its name.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from mqlab.traffic.body_crcs import write_body_sums
from mqlab.traffic.draws import Array
from mqlab.traffic.order_units import Laid, OrderUnits, StockUnits, UnitKind
from mqlab.traffic.pending_rows import taken
from mqlab.traffic.slice_messages import OrderTexts
from mqlab.traffic.trace_units import TraceUnits

if TYPE_CHECKING:
    from mqlab.traffic.broker_store import BrokerStore
    from mqlab.traffic.slice_messages import Slice

_ROW_BITS = 22


class SliceUnits:
    """Lays out the slices of one store."""

    def __init__(self, store: BrokerStore) -> None:
        self._store = store
        self._orders = OrderUnits(store)
        self._stock = StockUnits(store)
        self._traces = TraceUnits(store)
        self._buffer = np.empty(1 << 20, np.uint8)

    @property
    def texts(self) -> OrderTexts:
        """How orders and customers are numbered."""
        return self._orders.texts

    def body_sizes(self, order: Array, kind: Array, customer: Array) -> Array:
        """Bytes of the bodies of order messages."""
        return self._orders.body_sizes(order, kind, customer)

    def write(self, made: Slice, copies: list[Array], entries: list[Array], room: int, *, is_last: bool) -> None:
        """Write everything stored in a slice; stock messages make up ``room`` units altogether."""
        store = self._store
        until_ms = made.end_ms - 1 if is_last else made.end_ms
        due = store.copies.due(copies, until_ms)
        due = taken(due, np.argsort(due["time_ms"], kind="stable"))
        told = store.entries.due(entries, until_ms)
        kinds: list[UnitKind] = [self._orders.sent(made), self._orders.given_back(due)]
        traces = self._traces.messages(told, made)
        spare = room - len(made.order) - len(due) - len(traces.stored_ms)
        if is_last and spare < 0:
            traces = traces.first(len(traces.stored_ms) + spare)  # those were still with the clients
        kinds += [traces, self._stock.messages(max(0, spare), made)]
        self._lay_out(made, kinds)

    def _lay_out(self, made: Slice, kinds: list[UnitKind]) -> None:
        store = self._store
        stored_ms = np.concatenate([kind.stored_ms for kind in kinds])
        assert len(stored_ms) < 1 << _ROW_BITS, "a slice of more units than its sort keys can number"
        rows = np.arange(len(stored_ms))
        keys = np.sort((stored_ms - made.start_ms) << _ROW_BITS | rows)
        in_order = keys & ((1 << _ROW_BITS) - 1)
        place_of = np.empty(len(rows), np.int64)
        place_of[in_order] = rows
        sizes = np.concatenate([kind.sizes for kind in kinds])[in_order]
        queues = np.concatenate([kind.queues for kind in kinds])[in_order]
        places, blanks = store.log.places(sizes)
        queue_offsets = store.queues.offsets(queues)
        start = store.log.end
        buffer = self._room(int(places[-1] + sizes[-1]) - start)
        first = 0
        for number, kind in enumerate(kinds):
            mine = place_of[first : first + len(kind.stored_ms)]
            first += len(kind.stored_ms)
            if number == 0:
                for other in kinds:
                    other.resolve(places[mine])
                store.copies.resolve("origin", places[mine])
                store.entries.resolve("physical_offset", places[mine])
                store.outcomes.placed(made, places[mine])
            kind.put(buffer, Laid(places[mine] - start, places[mine], queue_offsets[mine]))
        body_sizes = np.concatenate([kind.body_sizes for kind in kinds])[in_order]
        sums = write_body_sums(buffer, places - start, body_sizes)
        store.log.append(buffer, blanks)
        tags_codes = np.concatenate([kind.tags_codes for kind in kinds])[in_order]
        store.queues.append(queues, places, sizes, tags_codes)
        times = stored_ms[in_order]
        store.queues.also(sums)
        store.queues.also(times)
        if store.index is not None:
            endings = np.concatenate([kind.property_sizes for kind in kinds])[in_order]
            store.index.add(buffer, start, places, sizes, endings, queues, times)
        store.written += len(rows)
        store.outcomes.slice_ended(int(times[0]), int(times[-1]))

    def _room(self, size: int) -> Array:
        if len(self._buffer) < size:
            self._buffer = np.empty(size + size // 4, np.uint8)
        return self._buffer[:size]
