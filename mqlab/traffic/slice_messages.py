"""The order messages of one slice, and the results of their deliveries: trace entries and copies of failed messages.

    events ──▶ customer, queue, sender, stored_ms (never falling), counter of its UNIQ_KEY
      pubs     one entry per message         subs     two entries per delivery (one if the listener never returns)
      copies   schedule and retry copies of a failed delivery, or its dead letter

Left out: physical offsets, which are known only when the slice is laid out: see pending_rows.unresolved.
"""

from __future__ import annotations

import numpy as np

from mqlab.traffic.clients import consumer
from mqlab.traffic.deliveries import Deliveries, Parked
from mqlab.traffic.draws import Array
from mqlab.traffic.message_shapes import DEAD, RETRIED, SCHEDULED
from mqlab.traffic.order_bodies import OrderBodies
from mqlab.traffic.orders import Events
from mqlab.traffic.pending_rows import COPY, ENTRY, unresolved
from mqlab.traffic.store_state import StoreState
from mqlab.traffic.trace_shapes import AFTER, BEFORE, PUB

_COUNTERS = 1 << 16


class Slice:
    """Order messages of one slice, one row per message, by store time; times are ms since the epoch."""

    def __init__(self, events: Events, start_ms: int, end_ms: int, state: StoreState, bodies: OrderBodies) -> None:
        self._state = state
        self.start_ms, self.end_ms = start_ms, end_ms
        self.order, self.kind, self.born_ms = events.order, events.kind, events.born_ms
        self.customer = state.orders.customers(self.order)
        self.queue_id = state.orders.queues(self.customer)
        self.sender = state.orders.senders(self.order, self.kind)
        stored_ms = self.born_ms + 1 + self.born_ms % 3
        self.stored_ms = np.minimum(np.maximum.accumulate(stored_ms), end_ms)
        self.counter = (state.order_events + np.arange(len(events))) % _COUNTERS
        self.body_sizes = bodies.sizes(self.order, self.kind, self.customer)
        state.order_events += len(events)

    def pubs(self) -> Array:
        """The trace entries that the senders write."""
        entries = self._entries(np.arange(len(self.order)))
        entries["time_ms"] = self.stored_ms + 1
        entries["physical_offset"] = unresolved(np.arange(len(self.order)))
        entries["client"], entries["what"] = self.sender, PUB
        entries["cost_ms"] = np.clip(self.stored_ms - self.born_ms + 1, 1, 9)
        entries["body"] = self.body_sizes
        return entries

    def subs(self, deliveries: Deliveries) -> list[Array]:
        """The trace entries that the receivers write: before their listener is called, and after it returned."""
        state = self._state
        request = (state.requests + np.arange(len(deliveries))) % _COUNTERS
        state.requests += len(deliveries)
        before = self._entries(deliveries.row)
        before["time_ms"], before["what"], before["request"] = deliveries.start_ms, BEFORE, request
        before["client"] = consumer(deliveries.client)
        before["group"], before["tries"] = deliveries.group, deliveries.tries
        # A call that never returned does not have a second entry.
        after = before.copy()
        after["time_ms"], after["what"], after["code"] = deliveries.end_ms, AFTER, deliveries.code
        after["cost_ms"] = deliveries.end_ms - deliveries.start_ms
        return [before, after if deliveries.returned.all() else after[deliveries.returned]]

    def copies(self, parked: Parked) -> list[Array]:
        """The copies that failed deliveries leave in the log."""
        first_copies = self._copies(parked)
        first_copies["time_ms"] = parked.stored_ms
        first_copies["what"] = np.where(parked.level == 0, DEAD, SCHEDULED)
        # A copy that waits in the schedule topic is followed by one in the retry topic when it is due.
        retry_copies = first_copies[parked.level > 0]
        retry_copies["time_ms"], retry_copies["what"] = retry_copies["due_ms"], RETRIED
        return [first_copies, retry_copies]

    def _entries(self, rows: Array) -> Array:
        entries = np.zeros(len(rows), ENTRY)
        for name in ("order", "born_ms", "counter", "sender", "kind"):
            entries[name] = getattr(self, name)[rows]
        return entries

    def _copies(self, parked: Parked) -> Array:
        copies = np.zeros(len(parked.row), COPY)
        for name in ("order", "born_ms", "counter", "sender", "kind"):
            copies[name] = getattr(self, name)[parked.row]
        copies["origin"] = unresolved(parked.row)
        copies["due_ms"], copies["group"], copies["tries"] = parked.due_ms, parked.group, parked.tries
        return copies
