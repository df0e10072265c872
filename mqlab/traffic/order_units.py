"""Units of one kind in a slice: order messages, copies of failed ones, stock messages; sized first, then written.

Mirrors: nothing in RocketMQ; the bytes are those of MessageExtEncoder. No lab.

    UnitKind   stored_ms, sizes, queues, tags codes ... of each unit         known before the slice is laid out
      .resolve(physical offsets of the slice's order messages)                ORIGIN_MESSAGE_ID, offsetMsgId
      .put(buffer, Laid)                                                      bytes

Left out: trace messages; see trace_messages.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from mqlab.traffic.byte_templates import Stretch
from mqlab.traffic.clients import WAREHOUSE, Clients
from mqlab.traffic.draws import Array, below
from mqlab.traffic.message_shapes import (
    HEAD_SIZE,
    RETRIED,
    SCHEDULED,
    OrderShapes,
    retry_class,
    stock_ending_size,
    stock_stretch,
)
from mqlab.traffic.model import ARTICLES, TAGS, WAREHOUSES
from mqlab.traffic.orders import people
from mqlab.traffic.pending_rows import resolve
from mqlab.traffic.slice_messages import OrderTexts, Slice, offset_ids
from mqlab.traffic.text_columns import hexadecimal, pool
from mqlab.wire.host import encode_host
from mqlab.wire.java_hash import tags_code

if TYPE_CHECKING:
    from mqlab.traffic.broker_store import BrokerStore

TAGS_CODES = np.array([tags_code(tag) for tag in TAGS], np.int64)
MARK_BYTE = pool([b"\x03"])
_TOPIC_SIZE_AT_END = 3  # lengths of topic (1 byte) and properties (2)


@dataclass(frozen=True, slots=True)
class Laid:
    """Where units stand: in the slice's buffer, in the log, in their queues."""

    at: Array
    physical_offset: Array
    queue_offset: Array


@dataclass(slots=True)
class UnitKind:
    """Units of one kind, a row each; nothing needs resolving and there are no bytes: kinds bring their own."""

    stored_ms: Array
    sizes: Array
    queues: Array  # queue numbers
    tags_codes: Array
    body_sizes: Array
    property_sizes: Array

    def resolve(self, physical_offsets: Array) -> None:
        """The order messages of this slice have their places."""

    def put(self, buffer: Array, laid: Laid) -> None:
        """Write the units."""
        raise NotImplementedError


@dataclass(slots=True)
class OrderMessages(UnitKind):
    """Messages about orders, sent or given back. ``reconsume`` and ``queue_ids`` are what their heads say."""

    units: OrderUnits
    endings: Stretch
    ending_class: Array
    order: Array
    kind: Array
    customer: Array
    sender: Array
    counter: Array
    born_ms: Array
    queue_ids: Array
    reconsume: Array
    origin: Array | None = None

    def resolve(self, physical_offsets: Array) -> None:
        """Copies name the message that failed first."""
        if self.origin is not None:
            resolve_column(self.origin, physical_offsets)

    def put(self, buffer: Array, laid: Laid) -> None:
        """Write the units, stretch by stretch."""
        if len(self.order):
            self.units.put(buffer, laid, self)


def resolve_column(values: Array, physical_offsets: Array) -> None:
    """In place, for one column; see carried.resolve."""
    resolve(values.view([("column", values.dtype)]), "column", physical_offsets)


class OrderUnits:
    """Makes order messages of rows."""

    def __init__(self, store: BrokerStore) -> None:
        asked = store.asked
        self._store = store
        self.shapes = OrderShapes(store.broker, asked.model.cluster)
        self.texts = OrderTexts(asked, store.broker)
        self.host = encode_host(Clients.broker_host(store.broker))

    def classes(self, order: Array, customer: Array) -> tuple[Array, Array, Array]:
        """(bits of the looks, person, content class) of orders."""
        bits = self._store.orders.looks(order)
        whole, more = self.texts.content_class(bits)
        return bits, people(customer), whole * 3 + more

    def body_sizes(self, order: Array, kind: Array, customer: Array) -> Array:
        """Bytes of bodies."""
        _, person, content = self.classes(order, customer)
        return self.shapes.body_sizes(kind, person, content)

    def sent(self, made: Slice) -> UnitKind:
        """The order messages of a slice."""
        endings = self.shapes.endings
        topic_size = _TOPIC_SIZE_AT_END + len("orders")
        ending_sizes = endings.sizes[made.kind]
        zeros = np.zeros(len(made.order), np.int64)
        return OrderMessages(
            made.stored_ms, HEAD_SIZE + made.body_sizes + ending_sizes, made.queue_id, TAGS_CODES[made.kind],
            made.body_sizes, ending_sizes - topic_size, self, endings, made.kind, made.order, made.kind, made.customer,
            made.sender, made.counter, made.born_ms, made.queue_id, zeros,
        )  # fmt: skip

    def given_back(self, copies: Array) -> UnitKind:
        """Copies of failed messages: in the schedule topic, in retry topics, in dead letter topics."""
        numbers = self._store.numbers
        column = {name: copies[name].astype(np.int64) for name in copies.dtype.names or ()}
        what, group, tries, kind = (column[name] for name in ("what", "group", "tries", "kind"))
        customer = self._store.orders.customers(column["order"])
        body_sizes = self.body_sizes(column["order"], kind, customer)
        ending_class = retry_class(what, group, tries, kind)
        ending_sizes = self.shapes.retry_endings.sizes[ending_class]
        level_queue = 2 + tries
        self._store.outcomes.came_back(level_queue[what == RETRIED])
        queues = np.select(
            [what == SCHEDULED, what == RETRIED],
            [numbers.schedule + level_queue, numbers.retry + group],
            numbers.dead + group,
        )
        property_sizes = ending_sizes - self.shapes.retry_topic_sizes[ending_class]
        return OrderMessages(
            column["time_ms"], HEAD_SIZE + body_sizes + ending_sizes, queues,
            np.where(what == SCHEDULED, column["due_ms"], TAGS_CODES[kind]), body_sizes, property_sizes, self,
            self.shapes.retry_endings, ending_class, column["order"], kind, customer, column["sender"],
            column["counter"], column["born_ms"], np.where(what == SCHEDULED, level_queue, 0), tries + 1,
            column["origin"],
        )  # fmt: skip

    def put(self, buffer: Array, laid: Laid, rows: OrderMessages) -> None:
        """Write order messages into the buffer."""
        clients = self._store.clients
        bits, person, content = self.classes(rows.order, rows.customer)
        columns = {
            "total_size": rows.sizes, "body_crc": np.zeros(len(rows.sizes), np.int64), "queue_id": rows.queue_ids,
            "queue_offset": laid.queue_offset, "physical_offset": laid.physical_offset,
            "born_timestamp": rows.born_ms, "born_host": clients.hosts[rows.sender],
            "store_timestamp": rows.stored_ms, "reconsume_times": rows.reconsume, "body_length": rows.body_sizes,
            "order": self.texts.order(rows.order), "customer": self.texts.customer(rows.customer),
            "unique": clients.ids(rows.sender, rows.born_ms, rows.counter),
            "byte3": np.repeat(MARK_BYTE, len(rows.sizes)),
            **self.texts.content(bits, rows.born_ms, ARTICLES),
        }  # fmt: skip
        if rows.origin is not None:
            columns["origin"] = offset_ids(self.host, rows.origin, hexadecimal(rows.origin, 16))
        shapes = self.shapes
        at = laid.at
        shapes.beginnings.put(buffer, at, rows.kind, columns)
        at = at + shapes.beginnings.sizes[rows.kind]
        shapes.people.put(buffer, at, person, columns)
        at = at + shapes.people.sizes[person]
        shapes.contents.put(buffer, at, content, columns)
        rows.endings.put(buffer, at + shapes.contents.sizes[content], rows.ending_class, columns)


@dataclass(slots=True)
class StockMessages(UnitKind):
    """Levels of the warehouses."""

    units: StockUnits
    place: Array
    bits: Array

    def put(self, buffer: Array, laid: Laid) -> None:
        """Write the units."""
        if len(self.place):
            self.units.put(buffer, laid, self)


class StockUnits:
    """Makes stock messages."""

    def __init__(self, store: BrokerStore) -> None:
        self._store = store
        cluster = store.asked.model.cluster
        self._stretch = stock_stretch(store.broker, cluster)
        self._ending = stock_ending_size(cluster)
        self._sent = 0

    def messages(self, count: int, made: Slice) -> UnitKind:
        """``count`` messages, spread over the slice."""
        store = self._store
        bits, times = store.stock_rows(count, made.start_ms, made.end_ms)
        place = below(bits, 0, 8, len(WAREHOUSES))
        sizes = self._stretch.sizes[place]
        queues = store.numbers.orders + below(bits, 8, 8, store.numbers.stock)
        zeros = np.zeros(count, np.int64)
        property_size = self._ending - _TOPIC_SIZE_AT_END - len("stock")
        return StockMessages(
            times, sizes, queues, zeros, sizes - HEAD_SIZE - self._ending, np.full(count, property_size), self, place,
            bits,
        )  # fmt: skip

    def put(self, buffer: Array, laid: Laid, rows: StockMessages) -> None:
        """Write stock messages into the buffer."""
        store, count = self._store, len(rows.place)
        born_ms = rows.stored_ms - 1
        client = np.full(count, WAREHOUSE)
        counter = (self._sent + np.arange(count)) % (1 << 16)
        self._sent += count
        content = OrderTexts.content(rows.bits, born_ms, ARTICLES)
        columns = {
            "total_size": rows.sizes, "body_crc": np.zeros(count, np.int64),
            "queue_id": rows.queues - store.numbers.orders,
            "queue_offset": laid.queue_offset, "physical_offset": laid.physical_offset, "born_timestamp": born_ms,
            "born_host": store.clients.hosts[client], "store_timestamp": rows.stored_ms,
            "reconsume_times": np.zeros(count, np.int64), "body_length": rows.body_sizes,
            "unique": store.clients.ids(client, born_ms, counter), "left": content["whole4"],
            "byte3": np.repeat(MARK_BYTE, count), **content,
        }  # fmt: skip
        self._stretch.put(buffer, laid.at, rows.place, columns)
