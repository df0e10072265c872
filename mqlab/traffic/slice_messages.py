"""The rows of one slice: order messages with their columns, and what their deliveries leave to be told and stored.

Mirrors: nothing in RocketMQ. No lab.

    events ──▶ customer, queue, sender, stored_ms (never falling), counter of its UNIQ_KEY
      pubs     one entry a message          subs     two entries a delivery (one if the listener never returns)
      copies   schedule and retry copies of a failed delivery, or its dead letter

Left out: physical offsets, which are known only when the slice is laid out: see carried.unresolved.
"""

from __future__ import annotations

from itertools import count
from math import isqrt
from typing import TYPE_CHECKING

import numpy as np

from mqlab.traffic.clients import consumer
from mqlab.traffic.deliveries import Deliveries, Parked
from mqlab.traffic.draws import Array, below
from mqlab.traffic.message_shapes import DEAD, RETRIED, SCHEDULED
from mqlab.traffic.model import Asked
from mqlab.traffic.orders import FIRST_ORDER, Events
from mqlab.traffic.pending_rows import COPY, ENTRY, unresolved
from mqlab.traffic.text_columns import digits, joined, moments, pool, table
from mqlab.traffic.trace_shapes import AFTER, BEFORE, PUB

if TYPE_CHECKING:
    from mqlab.traffic.broker_store import BrokerStore

_CENTS, _ONE_DIGIT = table(2), table(1)
_COUNTERS = 1 << 16
_FACTOR = (1 << 31) - 1  # prime and larger than any other here, so that no two ranks meet


class Slice:
    """Order messages of one slice, a row each, by store time; times are ms since the epoch."""

    def __init__(self, events: Events, start_ms: int, end_ms: int, store: BrokerStore) -> None:
        self._store = store
        self.start_ms, self.end_ms = start_ms, end_ms
        self.order, self.kind, self.born_ms = events.order, events.kind, events.born_ms
        self.customer = store.orders.customers(self.order)
        self.queue_id = store.orders.queues(self.customer)
        self.sender = store.orders.senders(self.order, self.kind)
        stored_ms = self.born_ms + 1 + self.born_ms % 3
        self.stored_ms = np.minimum(np.maximum.accumulate(stored_ms), end_ms)
        self.counter = (store.events + np.arange(len(events))) % _COUNTERS
        self.body_sizes = store.units.body_sizes(self.order, self.kind, self.customer)
        store.events += len(events)

    def pubs(self) -> Array:
        """What the senders tell."""
        entries = self._told(np.arange(len(self.order)))
        entries["time_ms"] = self.stored_ms + 1
        entries["physical_offset"] = unresolved(np.arange(len(self.order)))
        entries["client"], entries["what"] = self.sender, PUB
        entries["cost_ms"] = np.clip(self.stored_ms - self.born_ms + 1, 1, 9)
        entries["body"] = self.body_sizes
        return entries

    def subs(self, made: Deliveries) -> list[Array]:
        """What the receivers tell: before their listener is called, and after it came back."""
        store = self._store
        request = (store.requests + np.arange(len(made))) % _COUNTERS
        store.requests += len(made)
        before = self._told(made.row)
        before["time_ms"], before["what"], before["request"] = made.start_ms, BEFORE, request
        before["client"], before["group"], before["tries"] = consumer(made.client), made.group, made.tries
        after = before.copy()
        after["time_ms"], after["what"], after["code"] = made.end_ms, AFTER, made.code
        after["cost_ms"] = made.end_ms - made.start_ms
        return [before, after[made.returned]] if not made.returned.all() else [before, after]

    def copies(self, parked: Parked) -> list[Array]:
        """What failed deliveries leave in the log."""
        given_back = self._copy(parked)
        given_back["time_ms"] = parked.stored_ms
        given_back["what"] = np.where(parked.level == 0, DEAD, SCHEDULED)
        again = given_back[parked.level > 0]
        again["time_ms"], again["what"] = again["due_ms"], RETRIED
        return [given_back, again]

    def _told(self, rows: Array) -> Array:
        entries = np.zeros(len(rows), ENTRY)
        for name in ("order", "born_ms", "counter", "sender", "kind"):
            entries[name] = getattr(self, name)[rows]
        return entries

    def _copy(self, parked: Parked) -> Array:
        copies = np.zeros(len(parked.row), COPY)
        for name in ("order", "born_ms", "counter", "sender", "kind"):
            copies[name] = getattr(self, name)[parked.row]
        copies["origin"] = unresolved(parked.row)
        copies["due_ms"], copies["group"], copies["tries"] = parked.due_ms, parked.group, parked.tries
        return copies


class OrderTexts:
    """The texts in order messages; orders and customers are numbered across all brokers of a run.

    A customer's number says nothing of the rank: ranks are multiplied modulo a prime.
    """

    def __init__(self, asked: Asked, broker: int) -> None:
        self._brokers, self._broker = asked.brokers, broker
        self._prime = next(n for n in count(asked.model.customers) if all(n % d for d in range(2, isqrt(n) + 1)))

    def order(self, orders: Array) -> Array:
        """Order numbers, 12 digits."""
        return digits(FIRST_ORDER + orders * self._brokers + self._broker, 12)

    def customer(self, customers: Array) -> Array:
        """Customer numbers, 8 digits."""
        scattered = (customers * _FACTOR + 31_337) % self._prime
        return digits(scattered * self._brokers + self._broker, 8)

    @staticmethod
    def content_class(bits: Array) -> tuple[Array, Array]:
        """(digits of the amount before the point, less two; articles, less one) of orders with these bits."""
        dice, more = below(bits, 0, 8, 10), below(bits, 8, 8, 10)
        return (dice >= 5).astype(np.int64) + (dice >= 9), (more >= 6).astype(np.int64) + (more >= 9)

    @staticmethod
    def content(bits: Array, born_ms: Array, articles: int) -> dict[str, Array]:
        """Columns for amount, articles and time."""
        whole = digits(1_000 + below(bits, 16, 12, 9_000), 4)
        letters = whole.view(np.uint8).reshape(-1, 4)
        columns = {
            "whole4": whole,
            "whole3": np.ascontiguousarray(letters[:, :3]).view("V3")[:, 0],
            "whole2": np.ascontiguousarray(letters[:, :2]).view("V2")[:, 0],
            "cents": _CENTS[below(bits, 28, 8, 100)],
            "at": moments(born_ms),
        }
        for number in range(3):
            columns[f"article{number}"] = digits(below(bits, 36 + 8 * number, 12, articles), 4)
            columns[f"quantity{number}"] = _ONE_DIGIT[1 + below(bits, 60 - number, 4, 3)]
        return columns


def offset_ids(host: bytes, physical_offsets: Array, hexadecimal: Array) -> Array:
    """Offset message ids, 32 letters: the broker's address and the place."""
    prefix = pool([host.hex().upper().encode()])
    return joined(np.repeat(prefix, len(physical_offsets)), hexadecimal)
