"""The leases of every message of a popping group, as brokers noted them in a journal. Used by verify.

No tool of RocketMQ keeps it; check points and acks are deleted with their files.

    message.popped, invisible_time_changed     a lease begins, up to ``until_ms``
    message.acked                              it ends well, if it still runs
    message.revived                            it ended without an ack: its message is in a retry topic now
    the revive group's offset passes its CK    the broker is done with the lease, whatever became of its message

Orderly pops have no check points: their leases end with an ack or with the time.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from mqlab.lab.views.histories.message_deliveries import (
    ACKED,
    CHANGED,
    REVIVED,
    RUNS,
    SETTLED,
    LeaseTaken,
    MessageHistory,
    Place,
)
from mqlab.rocketmq.wire.message import MessageQueue
from mqlab.rocketmq.wire.names import REVIVE_LOG_PREFIX
from mqlab.rocketmq.wire.pop import CK_TAG, ORDERLY_REVIVE_QUEUE, offsets_of, real_topic

if TYPE_CHECKING:
    from mqlab.lab.runtime.journal import StepRecord


class LeaseHistory:
    """Follows the leases of one group. ``by_place``: the messages where they were stored first."""

    def __init__(self, group: str, by_place: Mapping[Place, MessageHistory]) -> None:
        self._group = group
        self._by_place = by_place
        self._revived: dict[Place, MessageHistory] = {}  # where copies of messages are, in retry topics
        self._leases: dict[tuple[Place, int], tuple[MessageHistory, LeaseTaken]] = {}
        # A check point is known by the place at which its pop began to read, and by its pop time.
        self._of_point: dict[tuple[Place, int], list[tuple[MessageHistory, LeaseTaken]]] = {}
        self._points: dict[MessageQueue, dict[int, tuple[Place, int]]] = {}  # those in the revive topic

    def find(self, position: Place) -> MessageHistory | None:
        """The message that is, or that has a copy, at a place."""
        return self._by_place.get(position) or self._revived.get(position)

    def popped(self, record: StepRecord, values: dict[str, Any]) -> None:
        """Several leases begin; those of one queue have one check point."""
        until_ms, is_orderly = values["pop_time"] + values["invisible_time"], _is_orderly(values)
        starts = offsets_of(values["starts"])
        for (kind, queue_id), offsets in offsets_of(values["offsets"]).items():
            queue = MessageQueue(real_topic(values["topic"], self._group, kind), record.node, queue_id)
            point = (queue, starts[kind, queue_id][0]), values["pop_time"]
            for offset in offsets:
                message = self.find((queue, offset))
                if message is not None:
                    lease = LeaseTaken(values["pop_time"], until_ms, record, is_orderly=is_orderly)
                    if not is_orderly and message.leased_twice is None and _overlaps(message, lease):
                        message.leased_twice = record
                    self._begins(message, (queue, offset), point, lease)

    def _begins(self, message: MessageHistory, position: Place, point: tuple[Place, int], lease: LeaseTaken) -> None:
        if (position, lease.pop_time) not in self._leases:
            self._leases[position, lease.pop_time] = message, lease
            self._of_point.setdefault(point, []).append((message, lease))
            message.leases.append(lease)
            message.add_step(lease.taken)

    def check_point(self, record: StepRecord, values: dict[str, Any]) -> None:
        """The record of a lease is stored. That of a single message may be of a lease that no pop begins.

        Its invisible time was changed, or it could not be stored in its retry topic.
        """
        first = MessageQueue(values["topic"], record.node, values["queue_id"]), values["start_offset"]
        message = self.find(first)
        if values["stored"] and values["count"] == 1 and message is not None and message.leases:
            lease = LeaseTaken(values["pop_time"], values["revive_time"], record)
            self._begins(message, first, (first, values["pop_time"]), lease)

    def acked(
        self, record: StepRecord, values: dict[str, Any]
    ) -> tuple[MessageHistory, LeaseTaken | None] | tuple[None, None]:
        """A message was acknowledged: it, and the lease; an ack after the end has no effect."""
        message, lease = self._of(record, values)
        if message is None:
            return None, None
        message.add_step(record)
        if lease is not None and not values["late"]:
            lease.ended(ACKED, record)
        return message, lease

    def changed(self, record: StepRecord, values: dict[str, Any]) -> None:
        """A message got another lease; an orderly one is the same, and longer."""
        message, lease = self._of(record, values)
        if message is None or lease is None:
            return
        message.add_step(record)
        if lease.is_orderly:
            lease.until_ms = values["visible_ms"]
        else:
            lease.ended(CHANGED, record)
            if message.leases[-1] is lease:  # the check point of the new one was not noted
                message.leases.append(LeaseTaken(values["new_pop_time"], values["visible_ms"], record))

    def revived(self, record: StepRecord, values: dict[str, Any]) -> None:
        """A copy of a message was stored in a retry topic."""
        position = MessageQueue(values["popped_from"], record.node, values["popped_queue"]), values["popped_offset"]
        message = self.find(position)
        if message is None:
            return
        copy = MessageQueue(values["topic"], record.node, values["queue_id"]), values["queue_offset"]
        self._revived[copy] = message
        message.add_step(record)
        known = self._leases.get((position, values["pop_time"]))
        if known is not None:
            known[1].ended(REVIVED, record)

    def _of(self, record: StepRecord, values: dict[str, Any]) -> tuple[MessageHistory | None, LeaseTaken | None]:
        queue = MessageQueue(values["topic"], record.node, values["queue_id"])
        position = queue, values["queue_offset"]
        known = self._leases.get((position, values["pop_time"]))
        return known if known is not None else (self.find(position), None)

    def stored(self, record: StepRecord, values: dict[str, Any]) -> None:
        """A check point is in the revive topic: its id says what it is about."""
        topic, queue_id, start, group, pop_time, *_, tag = values["msg_id"].split("@")
        if tag == CK_TAG and group == self._group:
            revive_queue = MessageQueue(values["topic"], record.node, values["queue_id"])
            first = MessageQueue(topic, record.node, int(queue_id)), int(start)
            self._points.setdefault(revive_queue, {})[values["queue_offset"]] = first, int(pop_time)

    def settled(self, record: StepRecord, values: dict[str, Any]) -> None:
        """The broker has come past some check points: what is neither acknowledged nor revived is gone."""
        points = self._points.get(MessageQueue(values["topic"], record.node, values["queue_id"]), {})
        for offset in [offset for offset in points if offset <= values["queue_offset"]]:
            for message, lease in self._of_point.pop(points.pop(offset), ()):
                lease.ended(SETTLED, record)
                message.add_step(record)


def is_revive_topic(topic: str) -> bool:
    """Whether check points and acks come to this topic."""
    return topic.startswith(REVIVE_LOG_PREFIX)


def _is_orderly(values: Mapping[str, Any]) -> bool:
    return bool(values["revive_queue"] == ORDERLY_REVIVE_QUEUE)


def _overlaps(message: MessageHistory, lease: LeaseTaken) -> bool:
    """Whether a lease begins while another one of its message runs, perhaps ended by its broker before its time."""
    return any(
        before.how in (RUNS, REVIVED) and before.pop_time < lease.pop_time < before.until_ms
        for before in message.leases
    )
