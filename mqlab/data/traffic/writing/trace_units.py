"""Trace messages as units of a slice: entries gathered by client, ten per message.

Mirrors: AsyncTraceDispatcher: ten entries make a message.

    entries by (client, time) ─▶ ten at a time ─▶ a message, stored 2 ms after its last entry
      size = head + entries + topic + properties with the keys of the entries

A client with few messages would wait 500 ms at most for ten entries; the clients here wait until they have ten, or the
slice ends, so that a day of few messages has the same share of trace messages as one of many.

Left out: the limit of 118,000 bytes, which ten entries do not reach.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mqlab.data.traffic.draws import Array
from mqlab.data.traffic.model import TAGS
from mqlab.data.traffic.writing.columns.text_columns import digits, hexadecimal, moments
from mqlab.data.traffic.writing.message_shapes import HEAD_SIZE
from mqlab.data.traffic.writing.order_bodies import offset_ids
from mqlab.data.traffic.writing.pending_rows import resolve, taken
from mqlab.data.traffic.writing.slice_messages import Slice
from mqlab.data.traffic.writing.store_state import WrittenStore
from mqlab.data.traffic.writing.trace_shapes import (
    AFTER,
    KEYED_FIRST,
    PUB,
    TOPIC_SIZE,
    TraceShapes,
    entry_class,
)
from mqlab.data.traffic.writing.unit_kind import MARK_BYTE, Laid, UnitKind
from mqlab.rocketmq.client.sending.trace import BATCH_NUM
from mqlab.rocketmq.wire.host import encode_host

_ROW_BITS, _TIME_BITS = 22, 32


@dataclass(slots=True)
class TraceMessages(UnitKind):
    """Trace messages. ``starts``: the row in ``entries`` of each message's first entry, and the end."""

    units: TraceUnits
    entries: Array
    customers: Array
    entry_classes: Array
    key_classes: Array
    starts: Array
    born_ms: Array

    def resolve(self, physical_offsets: Array) -> None:
        """Entries of senders name the physical offsets of their messages."""
        resolve(self.entries, "physical_offset", physical_offsets)

    def first(self, count: int) -> TraceMessages:
        """The messages stored first, without the others."""
        return self.chosen(np.sort(np.argsort(self.stored_ms, kind="stable")[: max(0, count)]))

    def outside(self, start_ms: int, end_ms: int) -> TraceMessages:
        """The messages that are not stored in a stretch of time."""
        return self.chosen(np.flatnonzero((self.stored_ms < start_ms) | (self.stored_ms >= end_ms)))

    def chosen(self, chosen: Array) -> TraceMessages:
        """Some of the messages, by ascending row."""
        lengths = np.diff(self.starts)
        kept = np.zeros(len(lengths), bool)
        kept[chosen] = True
        rows = np.repeat(kept, lengths)
        return TraceMessages(
            self.stored_ms[chosen],
            self.sizes[chosen],
            self.queues[chosen],
            self.tags_codes[chosen],
            self.body_sizes[chosen],
            self.property_sizes[chosen],
            self.units,
            self.entries[rows],
            self.customers[rows],
            self.entry_classes[rows],
            self.key_classes[rows],
            np.concatenate(([0], np.cumsum(lengths[chosen]))),
            self.born_ms[chosen],
        )

    def put(self, buffer: Array, laid: Laid) -> None:
        """Write the messages."""
        if len(self.sizes):
            self.units.put(buffer, laid, self)


class TraceUnits:
    """Makes trace messages of entries."""

    def __init__(self, state: WrittenStore) -> None:
        self._state = state
        self._shapes = TraceShapes(state.broker, state.asked.model.cluster)
        self._host = encode_host(state.clients.broker_host(state.broker))
        self._sent = 0

    def messages(self, due_entries: Array, messages: Slice) -> TraceMessages:
        """The messages that these entries make, all stored within the slice."""
        entries, starts, message_of = _gathered(due_entries, messages.start_ms)
        classes = entry_class(
            *(entries[name].astype(np.int64) for name in ("what", "kind", "group", "tries", "cost_ms", "code"))
        )
        customers = self._state.orders.customers(entries["order"])
        key_classes = _key_classes(entries, customers, message_of)
        key_classes[starts[:-1]] = KEYED_FIRST
        body_sizes = _sums(self._shapes.entries.sizes[classes], starts)
        property_sizes = _sums(self._shapes.keys.sizes[key_classes], starts) + self._shapes.fixed_properties
        last_ms = entries["time_ms"][starts[1:] - 1]
        count = len(starts) - 1
        return TraceMessages(
            np.minimum(last_ms + 2, messages.end_ms),
            HEAD_SIZE + body_sizes + TOPIC_SIZE + 2 + property_sizes,
            np.full(count, self._state.numbers.trace),
            np.zeros(count, np.int64),
            body_sizes,
            property_sizes,
            self,
            entries,
            customers,
            classes,
            key_classes,
            starts,
            last_ms,
        )

    def put(self, buffer: Array, laid: Laid, rows: TraceMessages) -> None:
        """Write trace messages into the buffer."""
        state, shapes, count = self._state, self._shapes, len(rows.sizes)
        # 1. Head, topic and properties: one of each per message.
        client = rows.entries["client"][rows.starts[:-1]]
        counter = (self._sent + np.arange(count)) % (1 << 16)
        self._sent += count
        born_ms = state.clients.clock_ms(client, rows.born_ms)
        columns = {
            "total_size": rows.sizes,
            "body_crc": np.zeros(count, np.int64),
            "queue_id": np.zeros(count, np.int64),
            "queue_offset": laid.queue_offset,
            "physical_offset": laid.physical_offset,
            "born_timestamp": born_ms,
            "born_host": state.clients.hosts[client],
            "store_timestamp": rows.stored_ms,
            "reconsume_times": np.zeros(count, np.int64),
            "body_length": rows.body_sizes,
            "properties_length": rows.property_sizes,
            "unique": state.clients.ids(client, born_ms, counter),
            "byte3": np.repeat(MARK_BYTE, count),
        }
        only_class = np.zeros(count, np.int64)
        shapes.head.put(buffer, laid.at, only_class, columns)
        topic_at = laid.at + HEAD_SIZE + rows.body_sizes
        shapes.before_keys.put(buffer, topic_at, only_class, columns)
        keys_at = topic_at + shapes.before_keys.sizes[0]
        shapes.after_keys.put(buffer, laid.at + rows.sizes - shapes.after_keys.sizes[0], only_class, columns)
        # 2. Entries are the body, their keys are in the properties: up to ten of each per message.
        texts = self._entry_texts(rows.entries, rows.customers)
        sizes = shapes.entries.sizes[rows.entry_classes]
        shapes.entries.put(buffer, _within(laid.at + HEAD_SIZE, sizes, rows.starts), rows.entry_classes, texts)
        sizes = shapes.keys.sizes[rows.key_classes]
        shapes.keys.put(buffer, _within(keys_at, sizes, rows.starts), rows.key_classes, texts)

    def _entry_texts(self, entries: Array, customers: Array) -> dict[str, Array]:
        state = self._state
        order, client, time_ms = entries["order"], entries["client"], entries["time_ms"]
        cost = digits(entries["cost_ms"].astype(np.int64), 8)
        letters = {width: _tail(cost, width) for width in range(1, 6)}
        offset = np.maximum(entries["physical_offset"], 0)
        is_pub = entries["what"] == PUB
        tries = digits(entries["tries"].astype(np.int64), 4)
        counter = entries["counter"].astype(np.int64)
        # Both entries of a call have one request id, which is made when the call begins.
        begun_ms = time_ms - np.where(entries["what"] == AFTER, entries["cost_ms"], 0)
        # An entry of a sender is written when the answer is there, and has the time at which the message was sent.
        told_ms = time_ms - np.where(is_pub, entries["cost_ms"], 0)
        return {
            "time": moments(state.clients.clock_ms(client, told_ms)),
            "unique": state.clients.ids(entries["sender"], entries["made_ms"], counter),
            "request": state.clients.ids(
                client, state.clients.clock_ms(client, begun_ms), entries["request"].astype(np.int64)
            ),
            "order": state.texts.order(order),
            "customer": state.texts.customer(customers),
            "body3": _tail(digits(entries["body"].astype(np.int64), 4), 3),
            "offset_id": offset_ids(self._host, offset, hexadecimal(offset, 16)),
            "tries1": _tail(tries, 1),
            "tries2": _tail(tries, 2),
            **{f"cost{width}": text for width, text in letters.items()},
        }


def _gathered(due_entries: Array, start_ms: int) -> tuple[Array, Array, Array]:
    """(entries by client and time, first row of each message and one more, message of each entry)."""
    count = len(due_entries)
    assert count < 1 << _ROW_BITS, "a slice has more entries than its sort keys can number"
    # Client, time and row in one 64-bit key: one fast sort instead of a sort by three columns.
    keys = (due_entries["client"].astype(np.int64) << (_TIME_BITS + _ROW_BITS)) | np.arange(count)
    keys |= (due_entries["time_ms"] - start_ms) << _ROW_BITS
    keys.sort()
    entries = taken(due_entries, keys & ((1 << _ROW_BITS) - 1))
    client = entries["client"]
    borders = np.flatnonzero(client[1:] != client[:-1]) + 1
    first_of_client = np.concatenate(([0], borders)) if count else np.zeros(0, np.int64)
    counts = np.diff(np.append(first_of_client, count))
    rank = np.arange(count) - np.repeat(first_of_client, counts)
    begins = rank % BATCH_NUM == 0  # every tenth entry of a client begins a message
    starts = np.append(np.flatnonzero(begins), count)
    return entries, starts, np.cumsum(begins) - 1


def _key_classes(entries: Array, customers: Array, message_of: Array) -> Array:
    """The keys that each entry adds: those that are not in an earlier entry of its message."""
    message = entries["order"] * len(TAGS) + entries["kind"]
    is_repeated = np.zeros((3, len(entries)), bool)  # message id, order, customer
    for back in range(1, min(BATCH_NUM, len(entries))):
        together = message_of[back:] == message_of[:-back]
        for repeated, values in zip(is_repeated, (message, entries["order"], customers), strict=True):
            repeated[back:] |= together & (values[back:] == values[:-back])
    classes: Array = (~is_repeated * np.array([[1], [2], [4]])).sum(axis=0)
    return classes


def _sums(sizes: Array, starts: Array) -> Array:
    ends = np.concatenate(([0], np.cumsum(sizes)))
    summed: Array = ends[starts[1:]] - ends[starts[:-1]]
    return summed


def _within(at: Array, sizes: Array, starts: Array) -> Array:
    """Where each entry begins, given where the first entry of each message begins."""
    ends = np.cumsum(sizes)
    before = ends - sizes
    lengths = np.diff(starts)
    places: Array = before + np.repeat(at - before[starts[:-1]], lengths)
    return places


def _tail(text: Array, width: int) -> Array:
    """The last letters of a text column."""
    size = text.dtype.itemsize
    letters = text.view(np.uint8).reshape(-1, size)[:, size - width :]
    return np.ascontiguousarray(letters).view(f"V{width}")[:, 0]
