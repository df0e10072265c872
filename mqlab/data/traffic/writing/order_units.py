"""Order messages and copies of failed ones as units of a slice; the bytes are those of MessageExtEncoder.

Slice              ──▶ sent         topic orders
copies that are due ──▶ given_back   schedule topic, retry topics, dead letter topics
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mqlab.data.traffic.clients import Clients
from mqlab.data.traffic.draws import Array
from mqlab.data.traffic.model import ARTICLES, ORDERS, TAGS
from mqlab.data.traffic.writing.columns.byte_templates import Stretch
from mqlab.data.traffic.writing.columns.text_columns import hexadecimal
from mqlab.data.traffic.writing.message_shapes import HEAD_SIZE, RETRIED, SCHEDULED, retry_class
from mqlab.data.traffic.writing.offsets_and_truth import Outcomes
from mqlab.data.traffic.writing.order_bodies import OrderBodies, offset_ids
from mqlab.data.traffic.writing.pending_rows import resolve
from mqlab.data.traffic.writing.slice_messages import Slice
from mqlab.data.traffic.writing.store_state import WrittenStore
from mqlab.data.traffic.writing.unit_kind import LENGTHS_SIZE, MARK_BYTE, Laid, UnitKind
from mqlab.rocketmq.wire.host import encode_host
from mqlab.rocketmq.wire.java_hash import tags_code

TAGS_CODES = np.array([tags_code(tag) for tag in TAGS], np.int64)


@dataclass(slots=True)
class OrderMessages(UnitKind):
    """Messages about orders, sent or given back. ``reconsume`` and ``queue_ids`` are the values in their heads."""

    units: OrderUnits
    endings: Stretch
    ending_class: Array
    order: Array
    kind: Array
    customer: Array
    sender: Array
    counter: Array
    born_ms: Array
    made_ms: Array
    queue_ids: Array
    reconsume: Array
    origin: Array | None = None

    def resolve(self, physical_offsets: Array) -> None:
        """Give each copy the physical offset of the message that failed."""
        if self.origin is not None:
            resolve(self.origin.view([("origin", self.origin.dtype)]), "origin", physical_offsets)

    def put(self, buffer: Array, laid: Laid) -> None:
        """Write the units, stretch by stretch."""
        if len(self.order):
            self.units.put(buffer, laid, self)


class OrderUnits:
    """Turns rows into order messages."""

    def __init__(self, state: WrittenStore, bodies: OrderBodies, outcomes: Outcomes) -> None:
        self._state, self._bodies, self._outcomes = state, bodies, outcomes
        self._host = encode_host(Clients.broker_host(state.broker))

    def sent(self, messages: Slice) -> UnitKind:
        """The order messages of a slice."""
        endings = self._bodies.shapes.endings
        ending_sizes = endings.sizes[messages.kind]
        return OrderMessages(
            messages.stored_ms,
            HEAD_SIZE + messages.body_sizes + ending_sizes,
            messages.queue_id,
            TAGS_CODES[messages.kind],
            messages.body_sizes,
            ending_sizes - LENGTHS_SIZE - len(ORDERS),
            self,
            endings,
            messages.kind,
            messages.order,
            messages.kind,
            messages.customer,
            messages.sender,
            messages.counter,
            messages.born_ms,
            messages.made_ms,
            messages.queue_id,
            reconsume=np.zeros(len(messages.order), np.int64),
        )

    def given_back(self, copies: Array) -> UnitKind:
        """Copies of failed messages: in the schedule topic, in retry topics, in dead letter topics."""
        state, shapes = self._state, self._bodies.shapes
        column = {name: copies[name].astype(np.int64) for name in copies.dtype.names or ()}
        what, group, tries, kind = (column[name] for name in ("what", "group", "tries", "kind"))
        customer = state.orders.customers(column["order"])
        body_sizes = self._bodies.sizes(column["order"], kind, customer)
        ending_class = retry_class(what, group, tries, kind)
        ending_sizes = shapes.retry_endings.sizes[ending_class]
        # The first retry waits for level 3. The queues of the schedule topic are numbered from level 1.
        level_queue = 2 + tries
        self._outcomes.came_back(level_queue[what == RETRIED])
        queues = np.select(
            [what == SCHEDULED, what == RETRIED],
            [state.numbers.schedule + level_queue, state.numbers.retry + group],
            state.numbers.dead + group,
        )
        property_sizes = ending_sizes - shapes.retry_topic_sizes[ending_class]
        # The queue of a scheduled message holds the due time where others hold the hash of the tag.
        tags_codes = np.where(what == SCHEDULED, column["due_ms"], TAGS_CODES[kind])
        return OrderMessages(
            column["time_ms"],
            HEAD_SIZE + body_sizes + ending_sizes,
            queues,
            tags_codes,
            body_sizes,
            property_sizes,
            self,
            shapes.retry_endings,
            ending_class,
            column["order"],
            kind,
            customer,
            column["sender"],
            column["counter"],
            column["born_ms"],
            column["made_ms"],
            np.where(what == SCHEDULED, level_queue, 0),
            tries + 1,
            column["origin"],
        )

    def put(self, buffer: Array, laid: Laid, rows: OrderMessages) -> None:
        """Write order messages into the buffer."""
        clients, bodies = self._state.clients, self._bodies
        # 1. All columns that any slot of the stretches may name.
        bits, person, content = bodies.classes(rows.order, rows.customer)
        columns = {
            "total_size": rows.sizes,
            "body_crc": np.zeros(len(rows.sizes), np.int64),
            "queue_id": rows.queue_ids,
            "queue_offset": laid.queue_offset,
            "physical_offset": laid.physical_offset,
            "born_timestamp": rows.born_ms,
            "born_host": clients.hosts[rows.sender],
            "store_timestamp": rows.stored_ms,
            "reconsume_times": rows.reconsume,
            "body_length": rows.body_sizes,
            "order": bodies.texts.order(rows.order),
            "customer": bodies.texts.customer(rows.customer),
            "unique": clients.ids(rows.sender, rows.made_ms, rows.counter),
            "byte3": np.repeat(MARK_BYTE, len(rows.sizes)),
            **bodies.texts.content(bits, rows.made_ms, ARTICLES),
        }
        if rows.origin is not None:
            columns["origin"] = offset_ids(self._host, rows.origin, hexadecimal(rows.origin, 16))
        # 2. The four stretches of each message, one after the other: each begins where the one before it ends.
        shapes = bodies.shapes
        position = laid.at
        shapes.beginnings.put(buffer, position, rows.kind, columns)
        position = position + shapes.beginnings.sizes[rows.kind]
        shapes.people.put(buffer, position, person, columns)
        position = position + shapes.people.sizes[person]
        shapes.contents.put(buffer, position, content, columns)
        rows.endings.put(buffer, position + shapes.contents.sizes[content], rows.ending_class, columns)
