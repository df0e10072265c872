"""The history of every message in a journal, as one group saw it: where it was stored, who received it, the results.

Mirrors: the history that an operator reconstructs from broker logs, message trace and consumer offsets. Used by verify.

    journal ─▶ GroupHistory ─▶ MessageHistory of every message      mqlab.lab.views.histories.message_deliveries

Left out: messages stored before the journal began, or in steps that were dropped from it.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

from mqlab.errors import CorruptionError
from mqlab.lab.views.group_subscriptions import Wish, is_broadcasting, wishes_of
from mqlab.lab.views.histories.lease_history import LeaseHistory, is_revive_topic
from mqlab.lab.views.histories.message_deliveries import (
    ACKNOWLEDGED,
    NOT_ACKED,
    POLLED,
    DeliveryCall,
    MessageHistory,
    MessageReader,
    Place,
)
from mqlab.rocketmq.wire import batch, names, properties, property_names
from mqlab.rocketmq.wire.codes import RequestCode
from mqlab.rocketmq.wire.message import MessageQueue
from mqlab.rocketmq.wire.pop import REVIVE_GROUP

if TYPE_CHECKING:
    from mqlab.lab.runtime.journal import StepRecord


class GroupHistory:
    """Reads a journal once. ``messages`` as they were stored; ``subscriptions``: topic, client, wishes.

    ``pulled_by_hand``: queues of topics without a subscription (assigned, or pulled one by one); of such a topic
    only these concern the group.
    ``wishes``: the subscriptions from before the journal begins, by topic.
    """

    def __init__(
        self,
        journal: Iterable[StepRecord],
        group: str,
        *,
        wishes: Mapping[str, Iterable[Wish]] | None = None,
        broadcasting: bool | None = None,
    ) -> None:
        self.group = group
        self.messages: list[MessageHistory] = []
        self.subscriptions: dict[str, dict[str, list[Wish]]] = {
            topic: {"": list(said)} for topic, said in (wishes or {}).items()
        }
        self.pulled_by_hand: dict[MessageQueue, None] = {}
        self.broadcasting = bool(broadcasting)
        self.dropped: int = getattr(journal, "dropped", 0)  # steps that the journal has dropped
        self._finds_out_broadcasting = broadcasting is None
        self.members: dict[tuple[str, str], bool] = {}  # (broker, client) -> online
        self.stored_before = 0  # deliveries of messages that the journal does not see stored
        self.ends: list[StepRecord] = []  # where a node's life ended
        self.ended: dict[str, StepRecord] = {}  # node -> where its last life ended; absent when none has
        self.last: StepRecord | None = None
        self._properties_of_id: dict[str, str | bytes] = {}  # a delayed message is stored later without them
        self._by_id: dict[str, list[MessageHistory]] = {}
        self._by_offset_id: dict[str, MessageHistory] = {}  # messages of a batch have one unique id
        self._by_place: dict[Place, MessageHistory] = {}
        self._waiting: dict[MessageQueue, dict[int, MessageHistory]] = {}  # not passed yet, by ascending offset
        self._retries: dict[MessageQueue, dict[int, MessageHistory]] = {}  # copies not passed yet
        self._local: dict[tuple[str, MessageQueue], tuple[list[int], list[StepRecord]]] = {}  # members' own offsets
        self._open: dict[tuple[str, int], list[tuple[MessageHistory, DeliveryCall]]] = {}
        self._leases = LeaseHistory(group, self._by_place)
        for record in journal:
            self.last = record
            for kind, values in record.changes:
                if kind in _HANDLERS:
                    _HANDLERS[kind](self, record, values)

    def concerns(self, message: MessageHistory) -> bool:
        """Whether the group reads the message's queue."""
        queue = message.place[0]
        said = self.subscriptions.get(queue.topic)
        return said is not None and (bool(said) or queue in self.pulled_by_hand)

    def has_members(self) -> bool:
        """Whether a member is online at the journal's end."""
        return any(self.members.values())

    def readers(self, message: MessageHistory) -> list[MessageReader]:
        """The group as one, or each member that pulled over the message when every member is to get it."""
        if not self.broadcasting:
            covered = next(iter(message.covered.values()), None)
            return [MessageReader("", message.deliveries, covered, message.passed)]
        clients = dict.fromkeys([*message.covered, *(delivery.client for delivery in message.deliveries)])
        return [
            MessageReader(
                client,
                [delivery for delivery in message.deliveries if delivery.client == client],
                message.covered.get(client),
                self._passed_by(client, message.place),
            )
            for client in clients
        ]

    def _passed_by(self, client: str, position: Place) -> StepRecord | None:
        offsets, records = self._local.get((client, position[0]), ([], []))
        first = bisect_right(offsets, position[1])
        return records[first] if first < len(records) else None

    def _stored(self, record: StepRecord, values: dict[str, Any]) -> None:
        topic, count = values["topic"], values.get("count", 1)
        msg_id = values.get("msg_id") or ""
        brought = _brought_properties(record, count)
        if count == 1 and brought:
            self._properties_of_id.setdefault(msg_id, brought[0])
        for message in self._by_id.get(msg_id, []):
            message.add_step(record)
        queue = MessageQueue(topic, record.node, values["queue_id"])
        if topic == names.retry_topic(self.group):
            self._stored_for_retry(record, queue, values["queue_offset"], msg_id)
        elif is_revive_topic(topic):
            self._leases.stored(record, values)
        if names.is_system_topic(topic) or topic.startswith((names.RETRY_PREFIX, names.DLQ_PREFIX)):
            return
        for index in range(count):
            offset = values["queue_offset"] + index
            known = brought[index] if index < len(brought) else self._properties_of_id.get(msg_id)
            own_id = msg_id if count == 1 else properties.decode(known or "").get(property_names.UNIQ_KEY, "")
            self._new(record, (queue, offset), own_id or f"{topic} {record.node} {queue.queue_id} {offset}", known)

    def _new(self, record: StepRecord, position: Place, msg_id: str, known: str | bytes | None) -> None:
        queue, offset = position
        waiting = self._waiting.setdefault(queue, {})
        # A log that ended early is written again from there: older messages at these places are gone.
        gone = offset
        while (queue, gone) in self._by_place:  # the log ended before them: a power cut took its unsynced end
            before = self._by_place.pop((queue, gone))
            waiting.pop(gone, None)
            before.overwritten = record
            before.add_step(record)
            gone += 1
        message = MessageHistory(msg_id, position, record, known)
        message.add_step(record)
        self.messages.append(message)
        self._by_id.setdefault(msg_id, []).append(message)
        self._by_place[position] = waiting[offset] = message

    def _stored_for_retry(self, record: StepRecord, queue: MessageQueue, offset: int, msg_id: str) -> None:
        copies = self._by_id.get(msg_id, [])
        waiting = [
            copy for copy in copies if copy.sent_back and (not copy.retry or copy.retry.step < copy.sent_back.step)
        ]
        waiting.sort(key=lambda copy: copy.sent_back.step if copy.sent_back else 0)
        for message in (waiting or copies)[:1]:  # of a batch: the one that has waited longest
            message.retry, message.retry_passed = record, None
            self._retries.setdefault(queue, {})[offset] = message

    def _sent(self, record: StepRecord, values: dict[str, Any]) -> None:
        message = self._by_place.get((values["message_queue"], values["queue_offset"]))
        # The answer to a half message names its real queue, and an offset of the queue of halves.
        if message is not None and message.brought is not None and message.msg_id not in (values["msg_id"] or ""):
            message = None
        if message is not None:
            message.acknowledged = message.acknowledged or values["send_status"] == "SEND_OK"
            message.add_step(record)
        elif values["send_status"] is None:  # no answer: only the id shows what it stored, if anything
            for copy in self._by_id.get(values["msg_id"], [])[-1:]:
                copy.add_step(record)

    def _pulled(self, record: StepRecord, values: dict[str, Any]) -> None:
        if values["group"] != self.group:
            return
        queue = values["queue"]
        if not queue.topic.startswith(names.RETRY_PREFIX) and not self.subscriptions.setdefault(queue.topic, {}):
            self.pulled_by_hand[queue] = None  # or the subscription is in dropped steps
        for offset in range(values["from_offset"], values["next_offset"]):
            message = self._by_place.get((queue, offset))
            if message is not None:
                message.covered.setdefault(record.node, record)
                message.add_step(record)

    def _find(self, note: Mapping[str, Any]) -> MessageHistory | None:
        """The message that a note is about: by its place, for a retry by the original's offset id, or by its id."""
        message = self._leases.find((note["message_queue"], note["queue_offset"]))
        if message is None:
            copies = self._copies(note)
            return copies[0] if copies else None
        self._by_offset_id[note["offset_msg_id"]] = message
        if message.msg_id != note["msg_id"] and message.msg_id not in note["msg_id"]:
            message.msg_id = note["msg_id"]  # one of a batch: its id is known now
            self._by_id.setdefault(message.msg_id, []).append(message)
        return message

    def _copies(self, values: Mapping[str, Any]) -> list[MessageHistory]:
        """The message that a note is about, or all with its unique id when the note does not distinguish them."""
        position = values.get("message_queue"), values.get("queue_offset")
        message = self._by_place.get(position) or self._by_offset_id.get(values.get("origin_msg_id") or "")  # type: ignore[arg-type]
        return [message] if message is not None else self._by_id.get(values.get("msg_id") or "", [])

    def _started(self, record: StepRecord, values: dict[str, Any]) -> None:
        if values["group"] != self.group:
            return
        opened = []
        for note in values["messages"]:
            message = self._find(note)
            if message is not None:
                delivery = DeliveryCall(values["client"], record, note["message_queue"])
                message.deliveries.append(delivery)
                message.add_step(record)
                opened.append((message, delivery))
            else:
                self.stored_before += 1
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
        for note in values["messages"]:
            message = self._find(note)
            if message is not None:
                status = NOT_ACKED if message.leases else POLLED
                polled = DeliveryCall(values["client"], record, values["queue"], record, status)
                message.deliveries.append(polled)
                message.add_step(record)
            else:
                self.stored_before += 1

    def _back(self, record: StepRecord, values: dict[str, Any]) -> None:
        if values["group"] == self.group and "delay_level" in values and values.get("error") is None:
            for message in self._copies(values):
                message.sent_back = record
                message.add_step(record)

    def _dead(self, record: StepRecord, values: dict[str, Any]) -> None:
        if values["group"] == self.group:
            for message in self._copies(values):
                message.dead = record
                message.add_step(record)

    def _acked(self, record: StepRecord, values: dict[str, Any]) -> None:
        if values["group"] == self.group:
            message, lease = self._leases.acked(record, values)
            calls = [call for call in message.deliveries if call.status == NOT_ACKED] if message else []
            since = lease.taken.step if lease is not None else 0
            for call in [call for call in calls if call.started.step >= since][:1] or calls[-1:]:
                call.status, call.ended = ACKNOWLEDGED, record

    def _given_up(self, record: StepRecord, values: dict[str, Any]) -> None:
        if values.get("group") == self.group:
            for message in self._copies(values):
                message.given_up = record
                message.add_step(record)

    def _leased(self, record: StepRecord, values: dict[str, Any], handle: Any) -> None:
        if values["group"] == self.group:
            handle(self._leases, record, values)

    def _committed(self, record: StepRecord, values: dict[str, Any]) -> None:
        if values["group"] == REVIVE_GROUP:
            self._leases.settled(record, values)
        if values["group"] != self.group:
            return
        queue = MessageQueue(values["topic"], record.node, values["queue_id"])
        for message in _taken_below(self._waiting.get(queue), values["queue_offset"]):
            message.passed = record
            message.add_step(record)
        for message in _taken_below(self._retries.get(queue), values["queue_offset"]):
            message.retry_passed = record

    def _updated(self, record: StepRecord, values: dict[str, Any]) -> None:
        if values["group"] == self.group:
            offsets, records = self._local.setdefault((record.node, values["queue"]), ([], []))
            # Only growing offsets are kept, so that a bisection finds the first one past a message.
            if not offsets or values["commit_offset"] > offsets[-1]:
                offsets.append(values["commit_offset"])
                records.append(record)

    def _reset(self, record: StepRecord, values: dict[str, Any]) -> None:
        self._committed(record, values)
        queue = MessageQueue(values["topic"], record.node, values["queue_id"])
        if values["group"] == self.group:
            for message in self.messages:
                if message.place[0] == queue and message.place[1] >= values["queue_offset"] and message.passed:
                    message.add_step(record)

    def _subscribed(self, record: StepRecord, values: dict[str, Any]) -> None:
        if values["group"] != self.group:
            return
        for topic, wish in wishes_of(record, values).items():
            said = self.subscriptions.setdefault(topic, {}).setdefault(values["client"], [])
            if wish not in said:
                said.append(wish)
        if self._finds_out_broadcasting:
            self.broadcasting = self.broadcasting or is_broadcasting(record, self.group)

    def _joined(self, record: StepRecord, values: dict[str, Any]) -> None:
        if values["group"] == self.group:
            self.members[record.node, values["client"]] = True

    def _left(self, record: StepRecord, values: dict[str, Any]) -> None:
        if values["group"] == self.group:
            self.members[record.node, values["client"]] = False

    def _node_ended(self, record: StepRecord, values: dict[str, Any]) -> None:
        self.ended[record.node] = record
        self.ends.append(record)
        for call in [call for call in self._open if call[0] == record.node]:
            for message, _ in self._open.pop(call):  # after a restart a client counts its batches from the start
                message.add_step(record)


_HANDLERS: dict[str, Callable[[GroupHistory, StepRecord, dict[str, Any]], None]] = {
    "message.stored": GroupHistory._stored,
    "message.sent": GroupHistory._sent,
    "message.pulled": GroupHistory._pulled,
    "message.polled": GroupHistory._polled,
    "listener.started": GroupHistory._started,
    "listener.returned": GroupHistory._returned,
    "message.sent_back": GroupHistory._back,
    "message.dead": GroupHistory._dead,
    "message.acked": GroupHistory._acked,
    "message.given_up": GroupHistory._given_up,
    "message.popped": partial(GroupHistory._leased, handle=LeaseHistory.popped),
    "message.invisible_time_changed": partial(GroupHistory._leased, handle=LeaseHistory.changed),
    "message.revived": partial(GroupHistory._leased, handle=LeaseHistory.revived),
    "pop.check_point_stored": partial(GroupHistory._leased, handle=LeaseHistory.check_point),
    "offset.committed": GroupHistory._committed,
    "offset.updated": GroupHistory._updated,
    "offset.reset": GroupHistory._reset,
    "subscription.changed": GroupHistory._subscribed,
    "member.joined": GroupHistory._joined,
    "member.left": GroupHistory._left,
    "fault.killed": GroupHistory._node_ended,
    "fault.powered_off": GroupHistory._node_ended,
}


def _taken_below(waiting: dict[int, MessageHistory] | None, offset: int) -> list[MessageHistory]:
    """Take out the messages below an offset; they were put in by ascending offset."""
    taken = []
    while waiting and (first := next(iter(waiting))) < offset:
        taken.append(waiting.pop(first))
    return taken


def _brought_properties(record: StepRecord, count: int) -> list[str | bytes]:
    """The properties of the messages that a send request brought, as it brought them; none for any other step."""
    if record.about is None:
        return []
    fields = record.about.ext_fields
    if count > 1 or record.about.code == RequestCode.SEND_BATCH_MESSAGE:
        try:
            items = batch.decode(record.about.body or b"")
        except CorruptionError:
            return []
        return [item.properties for item in items]
    text = fields.get("i") or fields.get("properties")
    return [text or ""] if "i" in fields or "properties" in fields else []
