"""Delayed messages at scale: for each order a reminder that waits for half an hour in the schedule topic.

Mirrors: DefaultMQProducer.send with setDelayTimeLevel(16), and ScheduleMessageService; only their outcome.

    created ─▶ reminder, DELAY 16     SCHEDULE_TOPIC_XXXX queue 15    in its consume queue the due time, no tag
            ─▶ 30 minutes, to the next look of the schedule
            ─▶ the same message       reminders, 4 queues             the group cancelling reads them

    {"order":"731100000042","customer":"C00001234","waits_ms":1800000,"at":1731290000123}

What is not due by the end of the day is still in the schedule topic. Left out: a trace, and failures of the group.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mqlab.data.traffic.deliveries import DELAYS_MS, POLL_MS
from mqlab.data.traffic.draws import Array
from mqlab.data.traffic.model import CREATED, REMINDER_QUEUES, REMINDERS
from mqlab.data.traffic.writing.beside_orders.order_columns import columns_of
from mqlab.data.traffic.writing.columns.byte_templates import Stretch, TemplateShape, slot
from mqlab.data.traffic.writing.message_shapes import HEAD, HEAD_SIZE, common, ending, head_bytes, order_keys
from mqlab.data.traffic.writing.offsets_and_truth import Outcomes
from mqlab.data.traffic.writing.pending_rows import TimedRows
from mqlab.data.traffic.writing.slice_messages import Slice
from mqlab.data.traffic.writing.store_state import WrittenStore
from mqlab.data.traffic.writing.unit_kind import LENGTHS_SIZE, Laid, UnitKind
from mqlab.rocketmq.wire import property_names as p
from mqlab.rocketmq.wire.java_hash import tags_code
from mqlab.rocketmq.wire.names import SCHEDULE_TOPIC

LEVEL = 16  # 30 minutes
TAG = "unpaid"
WAITING, DELIVERED = range(2)
ROW = np.dtype(
    [
        ("time_ms", "i8"),
        ("due_ms", "i8"),
        ("order", "i8"),
        ("made_ms", "i8"),
        ("counter", "u2"),
        ("sender", "u1"),
        ("queue_id", "u1"),
        ("what", "u1"),
    ]
)
_TOPICS = (SCHEDULE_TOPIC, REMINDERS)


@dataclass(slots=True)
class ReminderMessages(UnitKind):
    """Reminders, waiting or delivered: one row of ROW each."""

    units: Reminders
    rows: Array

    def put(self, buffer: Array, laid: Laid) -> None:
        """Write the units."""
        if len(self.rows):
            self.units.put(buffer, laid, self)


class Reminders:
    """Makes the reminders of a store, slice by slice."""

    def __init__(self, state: WrittenStore, outcomes: Outcomes) -> None:
        self._state, self._outcomes = state, outcomes
        self._pending = TimedRows(ROW)
        start = head_bytes(state.broker)
        endings = [ending(topic, _properties(state.asked.model.cluster)) for topic in _TOPICS]
        self._stretch = Stretch([TemplateShape(_body() + ending, start, HEAD) for ending in endings])
        self._body_size = TemplateShape(_body()).size

    def messages(self, messages: Slice, until_ms: int) -> ReminderMessages:
        """The reminders that are stored in a slice: new ones, and those whose time has come."""
        waiting = self._sent(messages)
        delivered = waiting.copy()
        delivered["what"] = DELIVERED
        delivered["time_ms"] = -(-waiting["due_ms"] // POLL_MS) * POLL_MS  # the schedule looks ten times a second
        rows = self._pending.due([waiting, delivered], until_ms)
        rows = rows[np.lexsort((rows["due_ms"], rows["time_ms"]))]
        what = rows["what"].astype(np.int64)
        count, sizes = len(rows), self._stretch.sizes[what]
        self._outcomes.came_back(np.full(int(what.sum()), LEVEL - 1))
        numbers = self._state.numbers
        queues = np.where(what == WAITING, numbers.schedule + LEVEL - 1, numbers.first_of(REMINDERS) + rows["queue_id"])
        topic_sizes = np.array([len(topic) for topic in _TOPICS])[what]
        return ReminderMessages(
            rows["time_ms"].copy(),
            sizes,
            queues,
            np.where(what == WAITING, rows["due_ms"], tags_code(TAG)),
            np.full(count, self._body_size),
            sizes - HEAD_SIZE - self._body_size - LENGTHS_SIZE - topic_sizes,
            self,
            rows,
        )

    def _sent(self, messages: Slice) -> Array:
        """One for each order that the slice creates, sent when the answer to it is there."""
        chosen = np.flatnonzero((messages.kind == CREATED) & messages.is_answered)
        rows = np.zeros(len(chosen), ROW)
        for name in ("order", "counter", "sender"):
            rows[name] = getattr(messages, name)[chosen]
        sent_ms = messages.stored_ms[chosen] + 1
        # The counter is that of the order's message: the time makes the id another one.
        rows["made_ms"] = self._state.clients.clock_ms(messages.sender[chosen], sent_ms)
        rows["time_ms"] = sent_ms + 1
        rows["due_ms"] = rows["time_ms"] + DELAYS_MS[LEVEL]
        rows["queue_id"] = messages.customer[chosen] % REMINDER_QUEUES
        return rows

    def put(self, buffer: Array, laid: Laid, kind: ReminderMessages) -> None:
        """Write reminders into the buffer."""
        state, rows = self._state, kind.rows
        queue_id, what = rows["queue_id"].astype(np.int64), rows["what"].astype(np.int64)
        columns = columns_of(state, kind, laid, rows) | {"queue_id": np.where(what == WAITING, LEVEL - 1, queue_id)}
        self._stretch.put(buffer, laid.at, what, columns)

    def __repr__(self) -> str:
        return f"<Reminders: {len(self._pending)} waiting>"


def _body() -> bytes:
    order, customer = slot("order", 12), slot("customer", 8)
    waits_ms = DELAYS_MS[LEVEL]
    return f'{{"order":"{order}","customer":"C{customer}","waits_ms":{waits_ms},"at":{slot("at", 13)}}}'.encode()


def _properties(cluster: str) -> dict[str, str]:
    """As the broker stores them in the schedule topic; a delivered message keeps them."""
    sent = {p.KEYS: order_keys(), p.TAGS: TAG, **common(cluster)}
    return sent | {p.DELAY: str(LEVEL), p.REAL_TOPIC: REMINDERS, p.REAL_QID: slot("real_queue", 1)}
