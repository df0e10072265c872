"""One broker's store, made slice by slice: the units of each slice sorted into the log, laid out, written.

Mirrors: what a broker's disk holds after the day, not how it came there. Labs 10 to 13 read it.

    slice of 4,096 orders ─▶ order events ─▶ deliveries ─▶ copies of failed ones, trace entries   (later: carried over)
                          ─▶ trace messages of ten entries
                          ─▶ stock messages, as many as are missing to the share asked for
       all units by time ─▶ places ─▶ bytes ─▶ commit log, queues, index

Left out: anything that depends on another broker: each can be made alone, on its own core or machine.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from mqlab.errors import StoreError
from mqlab.traffic.clients import Clients
from mqlab.traffic.closing_files import finish_store
from mqlab.traffic.day import Day
from mqlab.traffic.deliveries import Consumers, Fixed, Stored
from mqlab.traffic.draws import Array, Draws, below
from mqlab.traffic.incidents import MAX_SPAN, Incident, bursts, incidents_of
from mqlab.traffic.log_files import Log, Queues
from mqlab.traffic.model import CREATED, ORDERS, PAID, STOCK, TAGS, TRACED, Asked
from mqlab.traffic.offsets_and_truth import Outcomes
from mqlab.traffic.orders import Orders
from mqlab.traffic.pending_rows import COPY, ENTRY, Pool
from mqlab.traffic.slice_layout import SliceUnits
from mqlab.traffic.slice_messages import Slice
from mqlab.traffic.store_index import StoreIndex
from mqlab.wire.names import SCHEDULE_TOPIC, TRACE_TOPIC, dlq_topic, retry_topic

SLICE_ORDERS = 4_096
_UNITS_OF_40_ORDERS = 196  # with all that follows, stock included: chosen so that a sixth of it is stock
_LEVELS = 18


@dataclass(frozen=True, slots=True)
class BrokerSummary:
    """What one broker's store holds: messages by topic, bytes of the log, and the fingerprint of its units."""

    name: str
    messages: int
    topics: dict[str, int]
    log_bytes: int
    first_ms: int
    last_ms: int
    fingerprint: str
    truth: list[dict[str, Any]]


@dataclass(frozen=True, slots=True)
class QueueNumbers:
    """The queues of a store, numbered: orders, stock, trace, schedule levels, retry and dead letter topics."""

    orders: int
    stock: int

    @property
    def trace(self) -> int:
        return self.orders + self.stock

    @property
    def schedule(self) -> int:
        return self.trace + 1

    @property
    def retry(self) -> int:
        return self.schedule + _LEVELS

    @property
    def dead(self) -> int:
        return self.retry + len(TRACED)

    def places(self) -> list[tuple[str, int]]:
        """(topic, queue id) by number."""
        return [
            *((ORDERS, queue) for queue in range(self.orders)),
            *((STOCK, queue) for queue in range(self.stock)),
            (TRACE_TOPIC, 0),
            *((SCHEDULE_TOPIC, level) for level in range(_LEVELS)),
            *((retry_topic(group.name), 0) for group in TRACED),
            *((dlq_topic(group.name), 0) for group in TRACED),
        ]


class BrokerStore:
    """Writes the store of one broker into ``directory``, which must not exist."""

    def __init__(self, asked: Asked, broker: int, directory: str) -> None:
        model = asked.model
        self.asked, self.broker, self.directory = asked, broker, directory
        self.incidents: tuple[Incident, ...] = tuple(i for i in incidents_of(asked) if i.concerns(broker))
        self.wanted = asked.messages_of(broker)
        draws = Draws(asked.seed, broker)
        orders = max(1, self.wanted * 40 // _UNITS_OF_40_ORDERS)
        self.day = Day(model.start_ms, orders, bursts(self.incidents, model.start_ms))
        self.orders = Orders(model, self.day, draws, self.incidents)
        self.consumers = Consumers(model, draws, self.incidents)
        self.clients = Clients(broker, model.start_ms)
        self.numbers = QueueNumbers(model.queues, model.stock_queues)
        self.queues = Queues(directory, self.numbers.places(), model.consume_queue_bytes)
        self.log = Log(directory, model.commit_log_bytes)
        self.index = StoreIndex(directory, model, self.numbers.places()) if model.index else None
        self.entries, self.copies = Pool(ENTRY), Pool(COPY)
        self.outcomes = Outcomes(self)
        self.units = SliceUnits(self)
        self.fixed = Fixed()
        self.written = self.events = self.requests = self.traces = self.stocked = 0

    def write(self, progress: Callable[[int], object] = lambda units: None) -> BrokerSummary:
        """Make the whole store; ``progress`` is told of each slice's units."""
        first, orders = 0, self.day.orders
        while first < orders:
            after_last = min(orders, first + SLICE_ORDERS)
            before = self.written
            self._write_slice(first, after_last, is_last=after_last == orders)
            progress(self.written - before)
            first = after_last
        self.log.close()
        self.queues.close()
        if self.written != self.wanted:
            raise StoreError(f"{self.written} messages were made instead of {self.wanted}")
        return finish_store(self)

    def _write_slice(self, first: int, after_last: int, *, is_last: bool) -> None:
        start_ms = self.day.start_ms if first == 0 else int(self.day.time_ms(np.array([first]))[0])
        end_ms = self.day.end_ms if is_last else int(self.day.time_ms(np.array([after_last]))[0])
        made = Slice(self.orders.events(first, after_last), start_ms, end_ms, self)
        stored = Stored(made.order, made.kind, made.queue_id, self.queues.offsets(made.queue_id), made.stored_ms)
        self._single_out(stored)
        copies: list[Array] = []
        entries = [made.pubs()]
        for number, group in enumerate(TRACED):
            reads = np.array([tag in group.tags for tag in TAGS])
            tried = self.consumers.first_tries(number, group, stored, reads, self.fixed)
            for deliveries, parked in self.consumers.rounds(tried, stored, self.fixed):
                entries += made.subs(deliveries)
                self.outcomes.note(deliveries, parked, stored, made)
                if parked is not None:
                    copies += made.copies(parked)
        target = self.wanted if is_last else self.wanted * after_last // self.day.orders
        self.units.write(made, copies, entries, target - self.written, is_last=is_last)

    def _single_out(self, stored: Stored) -> None:
        """Choose the messages that incidents are about, in the first slice that has any that fit."""
        for incident in self.incidents:
            wanted = (stored.stored_ms >= incident.start_ms) & ((stored.kind == CREATED) | (stored.kind == PAID))
            if incident.kind == "poison_message" and self.fixed.poison < 0:
                for row in np.flatnonzero(wanted)[:1].tolist():
                    poison = int(stored.order[row]) * 8 + int(stored.kind[row])
                    self.fixed = Fixed(poison, *_stuck(self.fixed))
            if incident.kind == "stuck_message" and self.fixed.stuck_queue < 0:
                for row in np.flatnonzero(wanted & (stored.queue_id == incident.queue_id))[:1].tolist():
                    queue, offset = int(stored.queue_id[row]), int(stored.queue_offset[row])
                    self.fixed = Fixed(self.fixed.poison, queue, offset, offset + MAX_SPAN)

    def stock_rows(self, count: int, start_ms: int, end_ms: int) -> tuple[Array, Array]:
        """(bits, times) of ``count`` stock messages, spread over a slice."""
        numbers = np.arange(self.stocked, self.stocked + count)
        self.stocked += count
        bits = self.orders.draws.bits(7, numbers)
        spread = max(1, end_ms - start_ms)
        times = start_ms + (np.arange(count) * 2 + 1) * spread // max(1, 2 * count)
        return bits, np.minimum(times + below(bits, 48, 8, 3), end_ms)

    def __repr__(self) -> str:
        return f"<BrokerStore {self.asked.broker_name(self.broker)}: {self.written} of {self.wanted} messages>"


def _stuck(fixed: Fixed) -> tuple[int, int, int]:
    return fixed.stuck_queue, fixed.stuck_offset, fixed.stuck_after
