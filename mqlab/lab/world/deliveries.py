"""Every delivery to a listener as a row, written while the world runs and kept when the journal is bounded.

Mirrors: the consumer part of RocketMQ's message trace, without its gaps.

    msg_id  topic  message_queue  queue_offset  client  started_ms  ended_ms  status  reconsume_times
    a popped message has leased_until_ms  acked_ms  revived_ms as well
    and the absences: FILTERED_BY_CLIENT  RESULT_DISCARDED; mqlab.lab.world.absences has FILTERED_BY_BROKER  NOT_PULLED

A program that pulls by hand has no listener: its messages are POLLED, and what it did with them is not known.
Left out: deliveries of other worlds (a store opened with ``stores=`` starts with none).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from mqlab.lab.runtime.journal import StepRecord
from mqlab.lab.world.leases import LeasesOfRows
from mqlab.rocketmq.wire.message import MessageQueue

if TYPE_CHECKING:
    from mqlab.lab.views.group_subscriptions import Wish

RUNNING = "RUNNING"
POLLED = "POLLED"
FILTERED_BY_CLIENT = "FILTERED_BY_CLIENT"
RESULT_DISCARDED = "RESULT_DISCARDED"


@dataclass(slots=True)
class Delivery:
    """One delivery of one message to one listener; times in ms, ``ended_ms`` None while it runs or if its node ended.

    A message that no listener got has no times.
    """

    group: str
    msg_id: str
    topic: str
    message_queue: MessageQueue
    queue_offset: int
    client: str
    started_ms: int | None
    ended_ms: int | None
    status: str
    reconsume_times: int
    error: str | None = None
    leased_until_ms: int | None = None
    """When the lease of a popped message ends, by the last change of its invisible time."""
    acked_ms: int | None = None
    """When its broker took an acknowledgement that counts."""
    revived_ms: int | None = None
    """When its broker stored it again, because its lease was over."""


class DeliveryBook:
    """Follows the changes of the journal and keeps the deliveries of all groups in the order of their beginning."""

    def __init__(self) -> None:
        self._rows: list[Delivery] = []
        self._open: dict[tuple[str, int], list[Delivery]] = {}
        self._last_returned: dict[str, list[Delivery]] = {}
        self._leases = LeasesOfRows()
        self.wishes: dict[str, dict[str, list[Wish]]] = {}
        """group -> topic -> all subscriptions that brokers received, in order"""
        self.broadcasting: set[str] = set()

    def listeners(self) -> dict[str, Callable[[StepRecord, dict[str, Any]], None]]:
        """Kind of change -> what notes it here; a world calls these for each change of that kind."""
        return {
            "listener.started": self._started,
            "listener.returned": self._returned,
            "message.filtered": lambda record, values: self._at_once(record, values, FILTERED_BY_CLIENT),
            "message.polled": lambda record, values: self._at_once(record, values, POLLED),
            "subscription.changed": self._subscribed,
            "result.discarded": self._discarded,
            **self._leases.listeners(),
        }

    def of(self, group: str) -> list[Delivery]:
        """The rows of one group."""
        return [row for row in self._rows if row.group == group]

    def of_message(self, msg_id: str) -> list[Delivery]:
        """The rows of one message, of all groups."""
        return [row for row in self._rows if row.msg_id == msg_id]

    def _discarded(self, record: StepRecord, values: dict[str, Any]) -> None:
        """The result counts for nothing; this is reported in the same step as what the listener returned."""
        for row in self._last_returned.get(record.node, ()):
            row.status = RESULT_DISCARDED

    def _subscribed(self, record: StepRecord, values: dict[str, Any]) -> None:
        from mqlab.lab.views.group_subscriptions import is_broadcasting, wishes_of

        group = values["group"]
        for topic, wish in wishes_of(record, values).items():
            wishes = self.wishes.setdefault(group, {}).setdefault(topic, [])
            if wish not in wishes:
                wishes.append(wish)
        if is_broadcasting(record, group):
            self.broadcasting.add(group)

    def _started(self, record: StepRecord, values: dict[str, Any]) -> None:
        rows = [self._row(record, values, message, RUNNING) for message in values["messages"]]
        self._open[record.node, values["batch"]] = rows
        self._rows.extend(rows)

    def _returned(self, record: StepRecord, values: dict[str, Any]) -> None:
        rows = self._last_returned[record.node] = self._open.pop((record.node, values["batch"]), [])
        for row in rows:
            row.ended_ms = record.now_ms
            row.status = values["status"]
            row.error = values.get("error")

    def _at_once(self, record: StepRecord, values: dict[str, Any], status: str) -> None:
        for message in values["messages"]:
            row = self._row(record, values, message, status)
            row.ended_ms = record.now_ms
            self._rows.append(row)

    def _row(self, record: StepRecord, values: dict[str, Any], message: dict[str, Any], status: str) -> Delivery:
        row = Delivery(
            group=values["group"],
            msg_id=message["msg_id"],
            topic=message["topic"],
            message_queue=message["message_queue"],
            queue_offset=message["queue_offset"],
            client=values.get("client", record.node),
            started_ms=record.now_ms,
            ended_ms=None,
            status=status,
            reconsume_times=message["reconsume_times"],
        )
        if self._leases.newest:
            self._leases.add(row)
        return row
