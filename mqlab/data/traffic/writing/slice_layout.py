"""Lays out the units of a slice: puts all kinds in order of time, gives them places, and writes them as bytes.

Mirrors: the append path of CommitLog and its dispatch, many units at a time.

    order messages | copies of failed ones | reminders, invoices | trace messages | stock messages
       └───────────────── store time, size ─────────────────┘──▶ one order ──▶ places in the log, offsets in queues
       each kind lays its stretches into the slice's buffer ──▶ body check sums ──▶ log, queues, index

Left out: flushing in between; a store gets its name only when it is finished.
"""

from __future__ import annotations

import numpy as np

from mqlab.data.traffic.draws import Array
from mqlab.data.traffic.writing.beside_orders.invoices import Invoices
from mqlab.data.traffic.writing.beside_orders.reminders import Reminders
from mqlab.data.traffic.writing.columns.body_crcs import write_body_sums
from mqlab.data.traffic.writing.offsets_and_truth import Outcomes
from mqlab.data.traffic.writing.order_bodies import OrderBodies
from mqlab.data.traffic.writing.order_units import OrderUnits
from mqlab.data.traffic.writing.pending_rows import taken
from mqlab.data.traffic.writing.slice_messages import Slice
from mqlab.data.traffic.writing.stock_units import StockUnits
from mqlab.data.traffic.writing.store_state import WrittenStore
from mqlab.data.traffic.writing.trace_units import TraceUnits
from mqlab.data.traffic.writing.unit_kind import Laid, UnitKind

_ROW_BITS = 22


class SliceLayout:
    """Lays out the slices of one store."""

    def __init__(self, state: WrittenStore, bodies: OrderBodies, outcomes: Outcomes) -> None:
        self._state = state
        self._outcomes = outcomes
        self._orders = OrderUnits(state, bodies, outcomes)
        self._stock = StockUnits(state)
        self._traces = TraceUnits(state)
        self._reminders = Reminders(state, outcomes) if state.asked.model.reminders else None
        self._invoices = Invoices(state) if state.asked.model.invoices else None
        outcomes.half_queue = self._invoices.queue if self._invoices is not None else None
        self._buffer = np.empty(1 << 20, np.uint8)

    def write(self, messages: Slice, copies: list[Array], entries: list[Array], room: int, *, is_last: bool) -> None:
        """Write everything stored in a slice; stock messages fill it up to ``room`` units altogether."""
        state = self._state
        until_ms = messages.end_ms - 1 if is_last else messages.end_ms
        due_copies = state.pending_copies.due(copies, until_ms)
        due_copies = taken(due_copies, np.argsort(due_copies["time_ms"], kind="stable"))
        due_entries = state.pending_entries.due(entries, until_ms)
        kinds: list[UnitKind] = [self._orders.sent(messages), self._orders.given_back(due_copies)]
        traces = self._traces.messages(due_entries, messages)
        for incident in state.incidents:
            if incident.kind == "trace_gap":
                traces = traces.outside(incident.start_ms, incident.end_ms)
        if self._reminders is not None:
            kinds.append(self._reminders.messages(messages, until_ms))
        if self._invoices is not None:
            kinds += self._invoices.messages(messages, until_ms, is_last=is_last)
        spare = room - sum(len(kind.stored_ms) for kind in kinds) - len(traces.stored_ms)
        if is_last and spare < 0:
            # The store must hold exactly what was asked for. Clients may still hold trace messages at the end of a day.
            traces = traces.first(len(traces.stored_ms) + spare)
        kinds += [traces, self._stock.messages(max(0, spare), messages.start_ms, messages.end_ms)]
        self._lay_out(messages, kinds)

    def _lay_out(self, messages: Slice, kinds: list[UnitKind]) -> None:
        state = self._state
        # 1. One order for the units of all kinds: by store time, then by row. One sort of 64-bit keys does both.
        stored_ms = np.concatenate([kind.stored_ms for kind in kinds])
        assert len(stored_ms) < 1 << _ROW_BITS, "a slice has more units than its sort keys can number"
        rows = np.arange(len(stored_ms))
        keys = np.sort((stored_ms - messages.start_ms) << _ROW_BITS | rows)
        in_order = keys & ((1 << _ROW_BITS) - 1)
        place_of = np.empty(len(rows), np.int64)
        place_of[in_order] = rows
        # 2. Places in the log and offsets in the queues follow from the order.
        sizes = np.concatenate([kind.sizes for kind in kinds])[in_order]
        queues = np.concatenate([kind.queues for kind in kinds])[in_order]
        places, blanks = state.log.places(sizes)
        queue_offsets = state.queues.offsets(queues)
        start = state.log.end
        buffer = self._room(int(places[-1] + sizes[-1]) - start)
        # 3. Each kind writes its bytes. Order messages come first, because the others name their physical offsets.
        first = 0
        for number, kind in enumerate(kinds):
            own_places = place_of[first : first + len(kind.stored_ms)]
            first += len(kind.stored_ms)
            if number == 0:
                self._resolve(messages, kinds, places[own_places])
            laid = Laid(places[own_places] - start, places[own_places], queue_offsets[own_places])
            kind.put(buffer, laid)
        # 4. Check sums need the bytes of the bodies; log, queues and index need the check sums.
        body_sizes = np.concatenate([kind.body_sizes for kind in kinds])[in_order]
        sums = write_body_sums(buffer, places - start, body_sizes)
        state.log.append(buffer, blanks)
        tags_codes = np.concatenate([kind.tags_codes for kind in kinds])[in_order]
        state.queues.append(queues, places, sizes, tags_codes)
        times = stored_ms[in_order]
        state.queues.also(sums)
        state.queues.also(times)
        if state.index is not None:
            property_sizes = np.concatenate([kind.property_sizes for kind in kinds])[in_order]
            state.index.add(buffer, start, places, sizes, property_sizes, queues, times)
        state.written += len(rows)
        self._outcomes.slice_ended(int(times[0]), int(times[-1]))

    def _resolve(self, messages: Slice, kinds: list[UnitKind], physical_offsets: Array) -> None:
        """Hand the physical offsets of the slice's order messages to everything that names them."""
        for kind in kinds:
            kind.resolve(physical_offsets)
        self._state.pending_copies.resolve("origin", physical_offsets)
        self._state.pending_entries.resolve("physical_offset", physical_offsets)
        self._outcomes.placed(messages, physical_offsets)

    def _room(self, size: int) -> Array:
        if len(self._buffer) < size:
            self._buffer = np.empty(size + size // 4, np.uint8)
        return self._buffer[:size]
