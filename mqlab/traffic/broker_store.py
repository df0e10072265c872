"""Writes one broker's store slice by slice: the units of each slice are sorted into the log, laid out and written.

Mirrors: the contents of a broker's disk after the day, not the way in which a broker writes them.

    slice of 4,096 orders ─▶ order events ─▶ deliveries ─▶ copies of failed ones, trace entries   (some: later slices)
                          ─▶ trace messages of ten entries each
                          ─▶ stock messages, to fill the share that was asked for
       all units by time ─▶ places ─▶ bytes ─▶ commit log, queues, index

Nothing here depends on another broker, so each store can be written alone, on its own core or machine.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from mqlab.errors import StoreError
from mqlab.traffic.closing_files import BrokerSummary, finish_store
from mqlab.traffic.deliveries import Fixed, Stored
from mqlab.traffic.draws import Array
from mqlab.traffic.incidents import MAX_SPAN
from mqlab.traffic.model import CREATED, PAID, TAGS, TRACED, Asked
from mqlab.traffic.offsets_and_truth import Outcomes
from mqlab.traffic.order_bodies import OrderBodies
from mqlab.traffic.slice_layout import SliceLayout
from mqlab.traffic.slice_messages import Slice
from mqlab.traffic.store_state import open_state

SLICE_ORDERS = 4_096


class BrokerStore:
    """Writes the store of one broker into ``directory``, which must be empty."""

    def __init__(self, asked: Asked, broker: int, directory: str) -> None:
        self._state = state = open_state(asked, broker, directory)
        self._bodies = OrderBodies(state.orders, state.texts, broker, asked.model.cluster)
        self._outcomes = Outcomes(state)
        self._layout = SliceLayout(state, self._bodies, self._outcomes)

    def write(self, progress: Callable[[int], object] = lambda units: None) -> BrokerSummary:
        """Write the whole store; ``progress`` is called with the number of units of each slice."""
        state = self._state
        first, order_count = 0, state.day.orders
        while first < order_count:
            after_last = min(order_count, first + SLICE_ORDERS)
            written_before = state.written
            self._write_slice(first, after_last, is_last=after_last == order_count)
            progress(state.written - written_before)
            first = after_last
        state.log.close()
        state.queues.close()
        if state.written != state.message_count:
            raise StoreError(f"{state.written} messages were written instead of {state.message_count}")
        return finish_store(state, self._outcomes)

    def _write_slice(self, first: int, after_last: int, *, is_last: bool) -> None:
        state = self._state
        day = state.day
        # 1. The order messages of the slice, with their queues and queue offsets.
        start_ms = day.start_ms if first == 0 else int(day.time_ms(np.array([first]))[0])
        end_ms = day.end_ms if is_last else int(day.time_ms(np.array([after_last]))[0])
        messages = Slice(state.orders.events(first, after_last), start_ms, end_ms, state, self._bodies)
        offsets = state.queues.offsets(messages.queue_id)
        stored = Stored(
            messages.order, messages.kind, messages.queue_id, offsets, messages.stored_ms,
            state.orders.is_test(messages.customer),
        )  # fmt: skip
        # 2. An incident's message has to be chosen before the deliveries, because it changes how they end.
        self._single_out(stored)
        # 3. Each group's deliveries, round after round, and what they leave behind: trace entries and copies.
        copies: list[Array] = []
        entries = [messages.pubs()]
        for number, group in enumerate(TRACED):
            reads = np.array([tag in group.tags for tag in TAGS])
            first_tries, missed = state.consumers.first_tries(number, group, stored, reads, state.fixed)
            rounds = list(state.consumers.rounds(first_tries, stored, state.fixed))
            self._outcomes.harm.note(number, rounds, missed, messages)
            for deliveries, parked in rounds:
                entries += messages.subs(deliveries)
                self._outcomes.note(deliveries, parked, stored)
                if parked is not None:
                    copies += messages.copies(parked)
        # 4. The slice gets its share of the units asked for; stock messages fill it up.
        target = state.message_count if is_last else state.message_count * after_last // day.orders
        self._layout.write(messages, copies, entries, target - state.written, is_last=is_last)

    def _single_out(self, stored: Stored) -> None:
        """Choose the messages that incidents are about, in the first slice that has suitable ones."""
        state = self._state
        for incident in state.incidents:
            fits = (stored.stored_ms >= incident.start_ms) & ((stored.kind == CREATED) | (stored.kind == PAID))
            fixed = state.fixed
            if incident.kind == "poison_message" and fixed.poison < 0:
                for row in np.flatnonzero(fits)[:1].tolist():
                    poison = int(stored.order[row]) * 8 + int(stored.kind[row])
                    state.fixed = Fixed(poison, fixed.stuck_queue, fixed.stuck_offset, fixed.stuck_after)
            if incident.kind == "stuck_message" and fixed.stuck_queue < 0:
                for row in np.flatnonzero(fits & (stored.queue_id == incident.queue_id))[:1].tolist():
                    queue, offset = int(stored.queue_id[row]), int(stored.queue_offset[row])
                    state.fixed = Fixed(fixed.poison, queue, offset, offset + MAX_SPAN)

    def __repr__(self) -> str:
        state = self._state
        return f"<BrokerStore {state.broker_name}: {state.written} of {state.message_count} messages>"
