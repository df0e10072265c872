"""Orders and their events: who orders what, and which event of which order happens in a slice of the day.

    order n of a broker   its draws ──▶ customer, amount, articles, fate: paid or cancelled, shipped, refunded, and when
    slice [a, b)          the day is cut by order numbers. An event follows its order's creation by a number of orders,
                          so it is looked for among the orders that far back; earlier slices need not be remembered

    lag of an event = a share of the day's orders + a jitter

Left out: events that would come after the day.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mqlab.data.traffic.day import OrdersDay
from mqlab.data.traffic.draws import Array, Draws, Zipf, below
from mqlab.data.traffic.model import CANCELLED, CREATED, PAID, PEOPLE, PRODUCER_OF, REFUNDED, SHIPPED, TrafficModel
from mqlab.data.traffic.trouble.incident import Incident

FATE, LOOKS, CUSTOMER, HOT, SENDER, MOMENT = range(1, 7)
_PER_10_000 = 10_000
_CANCELLED_OF_100, _SHIPPED_OF_256, _REFUNDED_OF_256 = 12, 243, 15
_HOT_OF_100 = 35
FIRST_ORDER = 731_100_000_000


@dataclass(frozen=True, slots=True)
class FollowingEvent:
    """One way in which an event follows: its tag, and how many ten-thousandths of the day's orders later."""

    kind: int
    share: int
    choice: int  # which of the kind's ways


LAGS = (
    FollowingEvent(CREATED, 0, 0),
    FollowingEvent(PAID, 20, 0),
    FollowingEvent(PAID, 100, 1),
    FollowingEvent(PAID, 400, 2),
    FollowingEvent(CANCELLED, 300, 0),
    FollowingEvent(SHIPPED, 800, 0),
    FollowingEvent(SHIPPED, 1400, 1),
    FollowingEvent(REFUNDED, 2600, 0),
)


@dataclass(frozen=True, slots=True)
class Events:
    """Events of orders by time, one row each: ``order`` counts from 0 at its broker, ``kind`` is the tag's number."""

    order: Array
    kind: Array
    born_ms: Array

    def __len__(self) -> int:
        return len(self.order)


class Orders:
    """All orders of one broker of a run."""

    def __init__(self, model: TrafficModel, day: OrdersDay, draws: Draws, incidents: tuple[Incident, ...]) -> None:
        self.day = day
        self.draws = draws
        self._model = model
        self._zipf = Zipf(model.customers)
        self._jitter = max(1, min(8192, day.orders // 200))
        self._hot = [
            (
                day.orders_before(i.start_ms - day.start_ms),
                day.orders_before(i.end_ms - day.start_ms),
                i.customer or 0,
                i.percent or _HOT_OF_100,
            )
            for i in incidents
            if i.kind in ("hot_key", "load_test")
        ]

    def events(self, first: int, after_last: int) -> Events:
        """The events between the creation of order ``first`` and the creation of ``after_last``."""
        followers = [self._followers(lag, first, after_last) for lag in LAGS]
        ticks = np.concatenate([tick for tick, _ in followers])
        order = np.concatenate([orders for _, orders in followers])
        kind = np.repeat(np.array([lag.kind for lag in LAGS], np.int64), [len(tick) for tick, _ in followers])
        born_ms = self.day.time_ms(ticks, self.draws.bits(MOMENT, order * 8 + kind))
        # Events of one millisecond are in the order of their kinds.
        by_time = np.argsort(born_ms * 8 + kind, kind="stable")
        return Events(order[by_time], kind[by_time], born_ms[by_time])

    def _followers(self, lag: FollowingEvent, first: int, after_last: int) -> tuple[Array, Array]:
        """(place in the day, order) of each order that has its event of this way in the slice."""
        if lag.kind == CREATED:
            orders = np.arange(first, after_last)
            return orders, orders
        distance = max(1, self.day.orders * lag.share // _PER_10_000)
        orders = np.arange(max(0, first - distance - self._jitter + 1), max(0, after_last - distance))
        # The distance varies from order to order, by the jitter, or all events would come in the order of creation.
        bits = self.draws.bits(FATE, orders)
        ticks = orders + distance + below(bits, 48, 16, self._jitter)
        in_slice = (ticks >= first) & (ticks < after_last) & self._fated(lag, bits)
        return ticks[in_slice], orders[in_slice]

    @staticmethod
    def _fated(lag: FollowingEvent, bits: Array) -> Array:
        """Whether an order with these bits has an event that follows in this way."""
        has_event: Array = below(bits, 0, 16, 100) < _CANCELLED_OF_100
        if lag.kind == CANCELLED:
            return has_event
        has_event = ~has_event
        if lag.kind == PAID:
            # Other bits than for the decision above: the two must be independent.
            way = below(bits, 16, 8, 10)
            has_event &= np.where(way < 6, 0, np.where(way < 9, 1, 2)) == lag.choice
            return has_event
        has_event &= below(bits, 24, 8, 256) < _SHIPPED_OF_256
        if lag.kind == SHIPPED:
            has_event &= below(bits, 32, 8, 2) == lag.choice
        else:
            has_event &= below(bits, 40, 8, 256) < _REFUNDED_OF_256
        return has_event

    def customers(self, order: Array) -> Array:
        """Rank of each order's customer; 0 orders most."""
        customer = self._zipf.ranks(self.draws.bits(CUSTOMER, order))
        for first, after_last, hot, percent in self._hot:
            inside = (order >= first) & (order < after_last)
            if inside.any():
                customer[inside & (self.draws.below(HOT, order, 100) < percent)] = hot
        return customer

    def looks(self, order: Array) -> Array:
        """64 bits that decide amount and articles."""
        return self.draws.bits(LOOKS, order)

    def senders(self, events_order: Array, kind: Array) -> Array:
        """The producer process that sends an event; each producer has two."""
        producer = np.array(PRODUCER_OF, np.int64)[kind]
        return producer * 2 + (self.draws.bits(SENDER, events_order * 8 + kind) & np.uint64(1)).astype(np.int64)

    def queues(self, customer: Array) -> Array:
        """The queue a customer's messages go to, chosen by hash."""
        queues: Array = (customer * 7919 + 13) % 65_521 % self._model.queues
        return queues

    def is_test(self, customer: Array) -> Array:
        """Whether it is the account of a load test, which comes after the last customer."""
        tests: Array = customer == self._model.customers
        return tests

    def people(self, customer: Array) -> Array:
        """The entry of PEOPLE that a customer is; the account of a load test comes after the last one."""
        return np.where(self.is_test(customer), len(PEOPLE), customer % len(PEOPLE))
