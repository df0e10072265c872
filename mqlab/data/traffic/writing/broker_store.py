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

from mqlab.data.traffic.broker_day import BrokerDay, DaySlice
from mqlab.data.traffic.draws import Array
from mqlab.data.traffic.model import Asked
from mqlab.data.traffic.writing.closing_files import BrokerSummary, finish_store
from mqlab.data.traffic.writing.offsets_and_truth import Outcomes
from mqlab.data.traffic.writing.order_bodies import OrderBodies
from mqlab.data.traffic.writing.slice_layout import SliceLayout
from mqlab.data.traffic.writing.store_state import open_state
from mqlab.errors import StoreError


class BrokerStore:
    """Writes the store of one broker into ``directory``, which must be empty."""

    def __init__(self, asked: Asked, broker: int, directory: str) -> None:
        self._state = state = open_state(asked, broker, directory)
        self._bodies = OrderBodies(state.orders, state.texts, broker, asked.model.cluster)
        self._day = BrokerDay(state, self._bodies)
        self._outcomes = Outcomes(state)
        self._layout = SliceLayout(state, self._bodies, self._outcomes)

    def write(self, progress: Callable[[int], object] = lambda units: None) -> BrokerSummary:
        """Write the whole store; ``progress`` is called with the number of units of each slice."""
        state = self._state
        for part in self._day.slices():
            written_before = state.written
            self._write(part)
            progress(state.written - written_before)
        state.log.close()
        state.queues.close()
        if state.written != state.message_count:
            raise StoreError(f"{state.written} messages were written instead of {state.message_count}")
        return finish_store(state, self._outcomes)

    def _write(self, part: DaySlice) -> None:
        """Write a slice: its messages, and what their deliveries leave behind: trace entries and copies."""
        state, messages = self._state, part.messages
        copies: list[Array] = []
        entries = [messages.pubs()]
        for number, (rounds, missed) in enumerate(part.groups):
            self._outcomes.harm.note(number, rounds, missed, messages)
            for deliveries, parked in rounds:
                entries += messages.subs(deliveries)
                self._outcomes.note(deliveries, parked, part.stored)
                if parked is not None:
                    copies += messages.copies(parked)
        # The slice gets its share of the units asked for; stock messages fill it up.
        count = state.message_count
        target = count if part.is_last else count * part.after_last // state.day.orders
        self._layout.write(messages, copies, entries, target - state.written, is_last=part.is_last)

    def __repr__(self) -> str:
        state = self._state
        return f"<BrokerStore {state.broker_name}: {state.written} of {state.message_count} messages>"
