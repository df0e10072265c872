"""Transactions at scale: for each paid order an invoice, which is stored as a half message first.

Mirrors: TransactionMQProducer.sendMessageInTransaction of two processes, and their answers; see half_queue.

    paid ─▶ half message   RMQ_SYS_TRANS_HALF_TOPIC      TRAN_MSG, PGROUP, REAL_TOPIC, REAL_QID, __transactionId__
         ─▶ commit         invoices, 4 queues            the same properties; the physical offset of the half message
         ─▶ op message     RMQ_SYS_TRANS_OP_HALF_TOPIC   12,13,17,

    {"invoice":"731100000042","customer":"C00001234","at":1731290000123}

    of 1024 invoices   968 are committed and 24 rolled back by their process at once
                       32 get no answer: the broker asks for them one to three times; a quarter is rolled back then

Left out: a trace, and failures of the group that reads the invoices.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass

import numpy as np

from mqlab.data.traffic.clients import INVOICE_SERVICE, Clients
from mqlab.data.traffic.draws import Array, below
from mqlab.data.traffic.model import INSTANCES, INVOICE_QUEUES, INVOICES, INVOICING, PAID
from mqlab.data.traffic.writing.beside_orders.half_queue import HALF, ROW, HalfQueue, OpMessage
from mqlab.data.traffic.writing.beside_orders.order_columns import columns_of
from mqlab.data.traffic.writing.columns.byte_templates import Stretch, TemplateShape, slot
from mqlab.data.traffic.writing.message_shapes import HEAD, HEAD_SIZE, common, ending, head_bytes, order_keys
from mqlab.data.traffic.writing.slice_messages import Slice
from mqlab.data.traffic.writing.store_state import WrittenStore
from mqlab.data.traffic.writing.unit_kind import LENGTHS_SIZE, Laid, UnitKind
from mqlab.rocketmq.broker.transactions import REMOVE_TAG
from mqlab.rocketmq.wire import properties, sys_flag
from mqlab.rocketmq.wire import property_names as p
from mqlab.rocketmq.wire import record as units
from mqlab.rocketmq.wire.java_hash import tags_code
from mqlab.rocketmq.wire.names import HALF_TOPIC, OP_HALF_TOPIC
from mqlab.rocketmq.wire.record import Record
from mqlab.rocketmq.wire.record_layout import SYS_FLAG_AT, fixed_offset

TAG = "issued"
MOST_CHECKS = 3
_PURPOSE = 8  # of the draws
_AFTER_PAID_MS = 120  # the process reads the paid message, and makes the invoice
_TOPICS = (HALF_TOPIC, INVOICES)
_OP_PROPERTIES = properties.encode({p.WAIT: "true", p.TAGS: REMOVE_TAG})
_HEAD = HEAD | {"half_place": (">i8", fixed_offset("prepared_transaction_offset"))}


@dataclass(slots=True)
class InvoiceMessages(UnitKind):
    """Half messages and invoices: one row of ROW each."""

    units: Invoices
    rows: Array

    def put(self, buffer: Array, laid: Laid) -> None:
        """Write the units."""
        if len(self.rows):
            self.units.put(buffer, laid, self)


@dataclass(slots=True)
class OpMessages(UnitKind):
    """Op messages; their bodies differ in length, so each is encoded by itself."""

    records: list[Record]

    def put(self, buffer: Array, laid: Laid) -> None:
        """Write the units."""
        places = zip(self.records, laid.at.tolist(), laid.physical_offset, laid.queue_offset, strict=True)
        for record, position, physical_offset, queue_offset in places:
            record.physical_offset, record.queue_offset = int(physical_offset), int(queue_offset)
            unit = units.encode(record)
            buffer[position : position + len(unit)] = np.frombuffer(unit, np.uint8)


class Invoices:
    """Makes the invoices of a store, slice by slice."""

    def __init__(self, state: WrittenStore) -> None:
        self._state = state
        self.queue = HalfQueue(state.day.start_ms)
        self._places = np.empty(0, np.int64)  # physical offset of each half message
        starts = [head_bytes(state.broker), _committed(head_bytes(state.broker))]
        self._stretch = Stretch(
            [
                TemplateShape(_body() + ending(topic, _properties(state.asked.model.cluster, checks)), start, _HEAD)
                for topic, start in zip(_TOPICS, starts, strict=True)
                for checks in range(MOST_CHECKS + 1)
            ]
        )
        self._body_size = TemplateShape(_body()).size

    def messages(self, messages: Slice, until_ms: int, *, is_last: bool) -> tuple[UnitKind, UnitKind]:
        """What is stored in a slice: half messages and invoices; op messages."""
        rows, ops = self.queue.stored(self._sent(messages), until_ms, stops=is_last)
        what, count = rows["what"].astype(np.int64), len(rows)
        sizes = self._stretch.sizes[self._classes(rows)]
        numbers = self._state.numbers
        queues = np.where(what == HALF, numbers.first_of(HALF_TOPIC), numbers.first_of(INVOICES) + rows["queue_id"])
        topic_sizes = np.array([len(topic) for topic in _TOPICS])[what]
        both = InvoiceMessages(
            rows["time_ms"].copy(),
            sizes,
            queues,
            np.full(count, tags_code(TAG)),
            np.full(count, self._body_size),
            sizes - HEAD_SIZE - self._body_size - LENGTHS_SIZE - topic_sizes,
            self,
            rows,
        )
        return both, self._op_messages(ops)

    def _sent(self, messages: Slice) -> Array:
        """One for each order that the slice has a paid message of, with its fate."""
        chosen = np.flatnonzero((messages.kind == PAID) & messages.is_answered)
        rows = np.zeros(len(chosen), ROW)
        for name in ("order", "counter"):
            rows[name] = getattr(messages, name)[chosen]
        bits = self._state.orders.draws.bits(_PURPOSE, messages.order[chosen])
        # 1. The sender, the time and the queue.
        rows["sender"] = INVOICE_SERVICE + below(bits, 0, 1, INSTANCES)
        rows["made_ms"] = messages.stored_ms[chosen] + _AFTER_PAID_MS + below(bits, 1, 8, 200)
        rows["time_ms"] = rows["made_ms"] + 1 + below(bits, 9, 2, 3)
        rows["queue_id"] = messages.customer[chosen] % INVOICE_QUEUES
        # 2. What becomes of it: 32 of 1024 are not answered at first, 24 are rolled back at once.
        dice = below(bits, 16, 16, 1024)
        rows["answer_ms"] = 4 + below(bits, 32, 8, 60)
        rows["answered_at"] = np.where(dice < 32, 1 + below(bits, 40, 8, MOST_CHECKS), 0)
        rows["commits"] = np.where(dice < 32, below(bits, 48, 8, 4) > 0, dice >= 32 + 24)
        return rows

    def _op_messages(self, ops: list[OpMessage]) -> OpMessages:
        host = Clients.broker_host(self._state.broker)
        records = [
            Record(
                OP_HALF_TOPIC,
                op.body,
                born_timestamp=op.time_ms,
                born_host=host,
                store_timestamp=op.time_ms,
                store_host=host,
                properties=_OP_PROPERTIES,
            )
            for op in ops
        ]
        return OpMessages(
            np.array([op.time_ms for op in ops], np.int64),
            np.array([len(units.encode(record)) for record in records], np.int64),
            np.full(len(ops), self._state.numbers.first_of(OP_HALF_TOPIC)),
            np.full(len(ops), tags_code(REMOVE_TAG)),
            np.array([len(record.body) for record in records], np.int64),
            np.full(len(ops), len(_OP_PROPERTIES)),
            records,
        )

    @staticmethod
    def _classes(rows: Array) -> Array:
        classes: Array = rows["what"].astype(np.int64) * (MOST_CHECKS + 1) + rows["checks"]
        return classes

    def put(self, buffer: Array, laid: Laid, kind: InvoiceMessages) -> None:
        """Write half messages and invoices into the buffer."""
        state, rows = self._state, kind.rows
        is_half = rows["what"] == HALF
        # An invoice names the place of its half message, which may be in this slice.
        self._places = np.concatenate([self._places, laid.physical_offset[is_half]])
        columns = columns_of(state, kind, laid, rows) | {
            "queue_id": np.where(is_half, 0, rows["queue_id"].astype(np.int64)),
            "half_place": np.where(is_half, 0, self._places[rows["half"]]),
        }
        self._stretch.put(buffer, laid.at, self._classes(rows), columns)

    def __repr__(self) -> str:
        return f"<Invoices: {self.queue}>"


def _committed(start: bytes) -> bytes:
    head = bytearray(start)
    struct.pack_into(">i", head, SYS_FLAG_AT, sys_flag.TRANSACTION_COMMIT)
    return bytes(head)


def _body() -> bytes:
    order, customer = slot("order", 12), slot("customer", 8)
    return f'{{"invoice":"{order}","customer":"C{customer}","at":{slot("at", 13)}}}'.encode()


def _properties(cluster: str, checks: int) -> dict[str, str]:
    """As the broker stores them in the half topic after so many checks; a committed message keeps them."""
    sent = {p.KEYS: order_keys(), p.TAGS: TAG, **common(cluster), p.TRAN_MSG: "true", p.PGROUP: INVOICING}
    half = {p.REAL_TOPIC: INVOICES, p.REAL_QID: slot("real_queue", 1), p.TRANSACTION_ID: slot("unique", 32)}
    return sent | half | ({p.TRANSACTION_CHECK_TIMES: str(checks)} if checks else {})
