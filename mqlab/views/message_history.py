"""What a journal tells of every message, as one group saw it: where it was stored, who got it, how that ended.

Mirrors: what an operator pieces together from broker logs, message trace and consumer offsets. Used by verify.

    MessageHistory   msg_id  places (queue, offset)  tags  deliveries (client, started, ended, status)
                     covered: a pull went over it      passed: the group's stored offset went over it

Left out: what happened before the journal began, or was dropped from it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from mqlab.wire import names, properties, property_names
from mqlab.wire.message import MessageQueue

if TYPE_CHECKING:
    from mqlab.runtime.journal import StepRecord

GOOD = ("CONSUME_SUCCESS", "SUCCESS", "COMMIT", "POLLED")
Place = tuple[MessageQueue, int]


@dataclass(slots=True)
class Delivery:
    """One call of a listener with one message. ``status`` None: it did not come back."""

    client: str
    started: StepRecord
    queue: MessageQueue
    ended: StepRecord | None = None
    status: str | None = None

    @property
    def is_good(self) -> bool:
        return self.status in GOOD


@dataclass(slots=True)
class MessageHistory:
    """One message of a topic that the group reads. ``steps``: every record that has to do with it, in order."""

    msg_id: str
    place: Place
    stored: StepRecord
    tags: str | None
    knows_tags: bool
    steps: list[StepRecord] = field(default_factory=list)
    deliveries: list[Delivery] = field(default_factory=list)
    covered: StepRecord | None = None
    passed: StepRecord | None = None
    overwritten: StepRecord | None = None
    sent_back: StepRecord | None = None
    dead: StepRecord | None = None
    acknowledged: bool = False

    def add_step(self, record: StepRecord) -> None:
        """Remember a record once."""
        if not self.steps or self.steps[-1] is not record:
            self.steps.append(record)

    @property
    def good(self) -> list[Delivery]:
        """Its successful deliveries, by when they ended."""
        return sorted((d for d in self.deliveries if d.is_good), key=lambda d: d.ended.step if d.ended else 0)


class GroupHistory:
    """Reads a journal once. ``messages`` as they were stored; ``subscriptions``: topic, client, expressions."""

    def __init__(self, journal: Iterable[StepRecord], group: str) -> None:
        self.group = group
        self.messages: list[MessageHistory] = []
        self.subscriptions: dict[str, dict[str, list[str]]] = {}
        self.members: dict[tuple[str, str], bool] = {}  # (broker, client) -> online
        self.ended: dict[str, StepRecord] = {}  # node -> where its last life ended; absent when it lives
        self.last: StepRecord | None = None
        self._tags_of_id: dict[str, str | None] = {}  # delayed and half messages come to their topic without a frame
        self._by_id: dict[str, list[MessageHistory]] = {}
        self._by_place: dict[Place, MessageHistory] = {}
        self._waiting: dict[MessageQueue, dict[int, MessageHistory]] = {}  # not passed yet
        self._uncovered: dict[MessageQueue, dict[int, MessageHistory]] = {}
        self._open: dict[tuple[str, int], list[tuple[MessageHistory, Delivery]]] = {}
        for record in journal:
            self.last = record
            for change in record.changes:
                handle = _HANDLERS.get(change.kind)
                if handle is not None:
                    handle(self, record, change.values)

    def has_members(self) -> bool:
        """Whether somebody is online at the journal's end."""
        return any(self.members.values())

    # storing -------------------------------------------------------------------------------------------------------

    def _stored(self, record: StepRecord, values: dict[str, Any]) -> None:
        topic, count = values["topic"], values.get("count", 1)
        msg_id = values.get("msg_id") or ""
        copies = self._by_id.get(msg_id, [])
        if count == 1 and _brings_properties(record):
            self._tags_of_id.setdefault(msg_id, _tags(record))
        for message in copies:
            message.add_step(record)
        if names.is_system_topic(topic) or topic.startswith((names.RETRY_PREFIX, names.DLQ_PREFIX)):
            return
        queue = MessageQueue(topic, record.node, values["queue_id"])
        for offset in range(values["queue_offset"], values["queue_offset"] + count):
            own_id = msg_id if count == 1 else ""
            self._new(record, (queue, offset), own_id or f"{topic} {record.node} {queue.queue_id} {offset}")

    def _new(self, record: StepRecord, place: Place, msg_id: str) -> None:
        queue, offset = place
        gone = offset
        while (queue, gone) in self._by_place:  # the log ends before them: a power cut took its unsynced end
            before = self._by_place.pop((queue, gone))
            before.overwritten = record
            before.add_step(record)
            gone += 1
        knows_tags = msg_id in self._tags_of_id
        message = MessageHistory(msg_id, place, record, self._tags_of_id.get(msg_id), knows_tags)
        message.add_step(record)
        self.messages.append(message)
        self._by_id.setdefault(msg_id, []).append(message)
        self._by_place[place] = message
        self._waiting.setdefault(queue, {})[offset] = message
        self._uncovered.setdefault(queue, {})[offset] = message

    def _sent(self, record: StepRecord, values: dict[str, Any]) -> None:
        if values.get("send_status") == "SEND_OK":
            message = self._by_place.get((values["message_queue"], values["queue_offset"]))
            if message is not None:
                message.acknowledged = True
                message.add_step(record)

    # reading -------------------------------------------------------------------------------------------------------

    def _pulled(self, record: StepRecord, values: dict[str, Any]) -> None:
        waiting = self._uncovered.get(values["queue"])
        if values["group"] != self.group or not waiting:
            return
        for offset in range(values["from_offset"], values["next_offset"]):
            message = waiting.pop(offset, None)
            if message is not None:
                message.covered = record
                message.add_step(record)

    def _find(self, note: Mapping[str, Any]) -> MessageHistory | None:
        """The message a note speaks of: by its place, for a retry by its id."""
        message = self._by_place.get((note["message_queue"], note["queue_offset"]))
        if message is None:
            copies = self._by_id.get(note["msg_id"])
            return copies[0] if copies else None
        if message.msg_id != note["msg_id"] and message.msg_id not in note["msg_id"]:
            message.msg_id = note["msg_id"]  # one of a batch: its id is known now
            self._by_id.setdefault(message.msg_id, []).append(message)
        return message

    def _started(self, record: StepRecord, values: dict[str, Any]) -> None:
        if values["group"] != self.group:
            return
        opened = []
        for note in values["messages"]:
            message = self._find(note)
            if message is not None:
                delivery = Delivery(values["client"], record, note["message_queue"])
                message.deliveries.append(delivery)
                message.add_step(record)
                opened.append((message, delivery))
        self._open[record.node, values["batch"]] = opened

    def _returned(self, record: StepRecord, values: dict[str, Any]) -> None:
        if values["group"] != self.group:
            return
        for message, delivery in self._open.pop((record.node, values["batch"]), []):
            delivery.ended, delivery.status = record, str(values["status"])
            message.add_step(record)

    def _polled(self, record: StepRecord, values: dict[str, Any]) -> None:
        if values.get("group") != self.group:
            return
        for offset in values["queue_offsets"]:
            message = self._by_place.get((values["queue"], offset))
            if message is not None:
                polled = Delivery(record.node, record, values["queue"], record, "POLLED")
                message.deliveries.append(polled)
                message.add_step(record)

    def _back(self, record: StepRecord, values: dict[str, Any]) -> None:
        if values["group"] == self.group and "delay_level" in values and values.get("error") is None:
            for message in self._by_id.get(values["msg_id"], []):
                message.sent_back = message.sent_back or record
                message.add_step(record)

    def _dead(self, record: StepRecord, values: dict[str, Any]) -> None:
        if values["group"] == self.group:
            for message in self._by_id.get(values["msg_id"], []):
                message.dead = record
                message.add_step(record)

    def _committed(self, record: StepRecord, values: dict[str, Any]) -> None:
        queue = MessageQueue(values["topic"], record.node, values["queue_id"])
        waiting = self._waiting.get(queue)
        if values["group"] != self.group or not waiting:
            return
        for offset in [offset for offset in waiting if offset < values["queue_offset"]]:
            message = waiting.pop(offset)
            message.passed = record
            message.add_step(record)

    def _reset(self, record: StepRecord, values: dict[str, Any]) -> None:
        self._committed(record, values)
        queue = MessageQueue(values["topic"], record.node, values["queue_id"])
        if values["group"] == self.group:
            for message in self.messages:
                if message.place[0] == queue and message.place[1] >= values["queue_offset"] and message.passed:
                    message.add_step(record)

    # members -------------------------------------------------------------------------------------------------------

    def _subscribed(self, record: StepRecord, values: dict[str, Any]) -> None:
        if values["group"] != self.group:
            return
        for topic, expression in values["subscriptions"].items():
            said = self.subscriptions.setdefault(topic, {}).setdefault(values["client"], [])
            if expression not in said:
                said.append(expression)

    def _joined(self, record: StepRecord, values: dict[str, Any]) -> None:
        if values["group"] == self.group:
            self.members[record.node, values["client"]] = True

    def _left(self, record: StepRecord, values: dict[str, Any]) -> None:
        if values["group"] == self.group:
            self.members[record.node, values["client"]] = False

    def _node_ended(self, record: StepRecord, values: dict[str, Any]) -> None:
        self.ended[record.node] = record
        for batch in [batch for batch in self._open if batch[0] == record.node]:
            for message, _ in self._open.pop(batch):  # a new life counts its batches anew
                message.add_step(record)


_HANDLERS = {
    "message.stored": GroupHistory._stored,
    "message.sent": GroupHistory._sent,
    "message.pulled": GroupHistory._pulled,
    "message.polled": GroupHistory._polled,
    "listener.started": GroupHistory._started,
    "listener.returned": GroupHistory._returned,
    "message.sent_back": GroupHistory._back,
    "message.dead": GroupHistory._dead,
    "offset.committed": GroupHistory._committed,
    "offset.reset": GroupHistory._reset,
    "subscription.changed": GroupHistory._subscribed,
    "member.joined": GroupHistory._joined,
    "member.left": GroupHistory._left,
    "fault.killed": GroupHistory._node_ended,
    "fault.powered_off": GroupHistory._node_ended,
}


def _brings_properties(record: StepRecord) -> bool:
    return record.about is not None and ("i" in record.about.ext_fields or "properties" in record.about.ext_fields)


def _tags(record: StepRecord) -> str | None:
    """The tags of the message that a send request brought."""
    fields = record.about.ext_fields
    return properties.decode(fields.get("i") or fields.get("properties") or "").get(property_names.TAGS)
