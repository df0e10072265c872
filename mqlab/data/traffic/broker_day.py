"""One broker's day, slice by slice: what is sent, and what becomes of it in each traced group.

Mirrors: nothing is written here; see broker_store for the disk, and trouble/truth for the harm of incidents.

    slice of 4,096 orders ─▶ order messages ─▶ queues ─▶ first deliveries ─▶ rounds of tries
                                                      └▶ what a group is never given
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from mqlab.data.traffic.deliveries import Deliveries, DeliveryColumns, Fixed, Missed, Parked
from mqlab.data.traffic.model import CREATED, PAID, TAGS, TRACED
from mqlab.data.traffic.trouble.incidents import MAX_SPAN
from mqlab.data.traffic.writing.order_bodies import OrderBodies
from mqlab.data.traffic.writing.slice_messages import Slice
from mqlab.data.traffic.writing.store_state import WrittenStore

SLICE_ORDERS = 4_096
Rounds = list[tuple[Deliveries, Parked | None]]


@dataclass(frozen=True, slots=True)
class DaySlice:
    """The messages of some orders, and for each traced group all deliveries and what it missed.

    ``after_last``: the number of the order with which the next slice begins.
    """

    after_last: int
    is_last: bool
    messages: Slice
    stored: DeliveryColumns
    groups: tuple[tuple[Rounds, Missed], ...]


class BrokerDay:
    """The slices of a broker's day. The caller must count a slice's messages in ``state.queues`` before the next."""

    def __init__(self, state: WrittenStore, bodies: OrderBodies) -> None:
        self._state, self._bodies = state, bodies

    def slices(self) -> Iterator[DaySlice]:
        """All slices, in their order."""
        first, order_count = 0, self._state.day.orders
        while first < order_count:
            after_last = min(order_count, first + SLICE_ORDERS)
            yield self._slice(first, after_last, is_last=after_last == order_count)
            first = after_last

    def _slice(self, first: int, after_last: int, *, is_last: bool) -> DaySlice:
        state = self._state
        day = state.day
        # 1. The order messages of the slice, with their queues and queue offsets.
        start_ms = day.start_ms if first == 0 else int(day.time_ms(np.array([first]))[0])
        end_ms = day.end_ms if is_last else int(day.time_ms(np.array([after_last]))[0])
        messages = Slice(state.orders.events(first, after_last), start_ms, end_ms, state, self._bodies)
        offsets = state.queues.offsets(messages.queue_id)
        stored = DeliveryColumns(
            messages.order,
            messages.kind,
            messages.queue_id,
            offsets,
            messages.stored_ms,
            state.orders.is_test(messages.customer),
        )
        # 2. An incident's message has to be chosen before the deliveries, because it changes how they end.
        self._single_out(stored)
        # 3. Each group's deliveries, round after round.
        groups: list[tuple[Rounds, Missed]] = []
        for number, group in enumerate(TRACED):
            reads = np.array([tag in group.tags for tag in TAGS])
            first_tries, missed = state.consumers.first_tries(number, group, stored, reads, state.fixed)
            groups.append((list(state.consumers.rounds(first_tries, stored, state.fixed)), missed))
        return DaySlice(after_last, is_last, messages, stored, tuple(groups))

    def _single_out(self, stored: DeliveryColumns) -> None:
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
        return f"<BrokerDay of {self._state.day.orders} orders at {self._state.broker_name}>"
