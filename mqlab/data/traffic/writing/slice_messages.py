"""The order messages of one slice, and the results of their deliveries: trace entries and copies of failed messages.

    events ──▶ customer, queue, sender, stored_ms (never falling), counter of its UNIQ_KEY
      pubs     one entry per answer          subs     two entries per delivery (one if the listener never returns)
      copies   schedule and retry copies of a failed delivery, or its dead letter

Left out: physical offsets, which are known only when the slice is laid out: see pending_rows.unresolved.
"""

from __future__ import annotations

import numpy as np

from mqlab.data.traffic.deliveries import Deliveries, Parked
from mqlab.data.traffic.draws import Array
from mqlab.data.traffic.orders import Events
from mqlab.data.traffic.trouble.sent_again import repeated, with_repeats
from mqlab.data.traffic.writing.message_shapes import DEAD, RETRIED, SCHEDULED
from mqlab.data.traffic.writing.order_bodies import OrderBodies
from mqlab.data.traffic.writing.pending_rows import COPY, ENTRY, unresolved
from mqlab.data.traffic.writing.store_state import WrittenStore
from mqlab.data.traffic.writing.trace_shapes import AFTER, BEFORE, PUB

_COUNTERS = 1 << 16


class Slice:
    """Order messages of one slice, one row per message, by store time; times are ms since the epoch."""

    def __init__(self, events: Events, start_ms: int, end_ms: int, state: WrittenStore, bodies: OrderBodies) -> None:
        self._state = state
        self.start_ms, self.end_ms = start_ms, end_ms
        # 1. What is sent, some of it twice; a message keeps its id when it is sent again.
        sent, first = with_repeats(events, state.orders.senders(events.order, events.kind), end_ms, state)
        made_ms, counter = events.born_ms, (state.order_events + np.arange(len(events))) % _COUNTERS
        state.order_events += len(events)
        self.order, self.kind, self.sent_ms, self.counter = sent.order, sent.kind, sent.born_ms, counter[first]
        self.sender = state.orders.senders(self.order, self.kind)
        self.repeats, self.is_answered = repeated(first)
        # 2. Clocks of senders are in heads, ids and bodies; the broker's own decides the order of the log.
        self.born_ms = state.clients.clock_ms(self.sender, self.sent_ms)
        self.made_ms = state.clients.clock_ms(self.sender, made_ms[first])
        stored_ms = self.sent_ms + 1 + self.sent_ms % 3
        self.stored_ms = np.minimum(np.maximum.accumulate(stored_ms), end_ms)
        # 3. The customer, and so the queue.
        self.customer = state.orders.customers(self.order)
        self.queue_id = state.orders.queues(self.customer)
        self.body_sizes = bodies.sizes(self.order, self.kind, self.customer)

    def pubs(self) -> Array:
        """The trace entries that the senders write: one for each answer."""
        rows = np.flatnonzero(self.is_answered)
        entries = self._entries(rows)
        entries["time_ms"] = self.stored_ms[rows] + 1
        entries["physical_offset"] = unresolved(rows)
        entries["client"], entries["what"] = self.sender[rows], PUB
        entries["cost_ms"] = np.clip(self.stored_ms[rows] - self.sent_ms[rows] + 1, 1, 9)
        entries["body"] = self.body_sizes[rows]
        return entries

    def subs(self, deliveries: Deliveries) -> list[Array]:
        """The trace entries that the receivers write: before their listener is called, and after it returned."""
        state = self._state
        request = (state.requests + np.arange(len(deliveries))) % _COUNTERS
        state.requests += len(deliveries)
        before = self._entries(deliveries.row)
        before["time_ms"], before["what"], before["request"] = deliveries.start_ms, BEFORE, request
        before["client"] = deliveries.client
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
        for name in ("order", "made_ms", "counter", "sender", "kind"):
            entries[name] = getattr(self, name)[rows]
        return entries

    def _copies(self, parked: Parked) -> Array:
        copies = np.zeros(len(parked.row), COPY)
        for name in ("order", "made_ms", "born_ms", "counter", "sender", "kind"):
            copies[name] = getattr(self, name)[parked.row]
        copies["origin"] = unresolved(parked.row)
        copies["due_ms"], copies["group"], copies["tries"] = parked.due_ms, parked.group, parked.tries
        return copies
