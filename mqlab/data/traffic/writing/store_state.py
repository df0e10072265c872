"""The common state of one broker's store while it is written: the plan, the day, the files, the counters.

open_state(plan, broker, directory)     made once, before the first slice
  plan       the request, and the incidents that can be seen at this broker
  day        orders, consumers, clients, the numbering of orders and customers
  files      commit log, consume queues, key index
  pending    trace entries and copies of failed messages that belong to later slices
"""

from __future__ import annotations

from dataclasses import dataclass, field

from mqlab.data.traffic.clients import Clients
from mqlab.data.traffic.day import OrdersDay
from mqlab.data.traffic.deliveries import Consumers, Fixed
from mqlab.data.traffic.draws import draws_of
from mqlab.data.traffic.model import ORDERS, STOCK, TRACED, Asked, TrafficModel
from mqlab.data.traffic.orders import Orders
from mqlab.data.traffic.trouble.incident import Incident
from mqlab.data.traffic.trouble.incidents import bursts, incidents_of
from mqlab.data.traffic.writing.log_files import Log, QueueFiles
from mqlab.data.traffic.writing.order_bodies import OrderTexts
from mqlab.data.traffic.writing.pending_rows import COPY, ENTRY, TimedRows
from mqlab.data.traffic.writing.store_index import StoreIndex
from mqlab.rocketmq.wire.names import HALF_TOPIC, OP_HALF_TOPIC, SCHEDULE_TOPIC, TRACE_TOPIC, dlq_topic, retry_topic

LEVELS = 18  # of the delay schedule
_UNITS_OF_40_ORDERS = 196  # with all that follows, stock included: chosen so that a sixth of it is stock
_REMINDERS_OF_40_ORDERS = 80  # each waits in the schedule topic first
_INVOICES_OF_40_ORDERS = 109  # half message, invoice, and on a quiet day an op message for each


@dataclass(frozen=True, slots=True)
class QueueNumbers:
    """The queues of a store, numbered: orders, stock, trace, schedule levels, retry, dead letters; then those that
    a day has on request.
    """

    orders: int
    stock: int
    on_request: tuple[tuple[str, int], ...] = ()  # topics and how many queues they have

    @property
    def trace(self) -> int:
        return self.orders + self.stock

    @property
    def schedule(self) -> int:
        return self.trace + 1

    @property
    def retry(self) -> int:
        return self.schedule + LEVELS

    @property
    def dead(self) -> int:
        return self.retry + len(TRACED)

    def first_of(self, topic: str) -> int:
        """The first queue of a topic that a day has on request."""
        number = self.dead + len(TRACED)
        for name, queue_count in self.on_request:
            if name == topic:
                return number
            number += queue_count
        raise KeyError(topic)

    def places(self) -> list[tuple[str, int]]:
        """(topic, queue id) by number."""
        return [
            *((ORDERS, queue) for queue in range(self.orders)),
            *((STOCK, queue) for queue in range(self.stock)),
            (TRACE_TOPIC, 0),
            *((SCHEDULE_TOPIC, level) for level in range(LEVELS)),
            *((retry_topic(group.name), 0) for group in TRACED),
            *((dlq_topic(group.name), 0) for group in TRACED),
            *((topic, queue) for topic, queue_count in self.on_request for queue in range(queue_count)),
        ]


@dataclass(slots=True, eq=False)
class WrittenStore:
    """The state of one store being written. ``index`` is None when no key index was asked for."""

    asked: Asked
    broker: int
    directory: str
    incidents: tuple[Incident, ...]
    message_count: int  # units the finished store holds
    day: OrdersDay
    orders: Orders
    consumers: Consumers
    clients: Clients
    texts: OrderTexts
    numbers: QueueNumbers
    queues: QueueFiles
    log: Log
    index: StoreIndex | None
    pending_entries: TimedRows
    pending_copies: TimedRows
    fixed: Fixed = field(default_factory=Fixed)
    written: int = 0  # units in the log so far
    order_events: int = 0  # order messages so far: the counter in their UNIQ_KEYs
    requests: int = 0  # deliveries so far: the counter in their request ids

    @property
    def broker_name(self) -> str:
        return self.asked.broker_name(self.broker)


def order_count(message_count: int, model: TrafficModel) -> int:
    """How many orders a store has, from the units that an order leads to on average."""
    beside = _REMINDERS_OF_40_ORDERS * model.reminders + _INVOICES_OF_40_ORDERS * model.invoices
    return max(1, message_count * 40 // (_UNITS_OF_40_ORDERS + beside))


def open_state(asked: Asked, broker: int, directory: str) -> WrittenStore:
    """The state at the start of the day, with files open for writing below ``directory``."""
    model = asked.model
    incidents = tuple(incident for incident in incidents_of(asked) if incident.concerns(broker))
    message_count = asked.messages_of(broker)
    draws = draws_of(asked.seed, asked.seal, broker)
    day = OrdersDay(model.start_ms, order_count(message_count, model), bursts(incidents, model.start_ms))
    on_request = model.topics_on_request
    if model.invoices:
        on_request += ((HALF_TOPIC, 1), (OP_HALF_TOPIC, 1))
    numbers = QueueNumbers(model.queues, model.stock_queues, on_request)
    places = numbers.places()
    # Everything that follows is computed from the seed, so a store can be written without the others.
    return WrittenStore(
        asked,
        broker,
        directory,
        incidents,
        message_count,
        day,
        orders=Orders(model, day, draws, incidents),
        consumers=Consumers(model, draws, incidents, day),
        clients=Clients(broker, model.start_ms, incidents),
        texts=OrderTexts(asked, broker),
        numbers=numbers,
        queues=QueueFiles(directory, places, model.consume_queue_bytes),
        log=Log(directory, model.commit_log_bytes),
        index=StoreIndex(directory, model, places) if model.index else None,
        pending_entries=TimedRows(ENTRY),
        pending_copies=TimedRows(COPY),
    )
