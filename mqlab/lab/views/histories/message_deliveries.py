"""One message of a topic that a group reads: where it was stored, who received it, what ended each delivery.

Mirrors: nothing; RocketMQ keeps parts of it in logs, traces and offsets. GroupHistory (.message_history) fills them.

    MessageHistory   msg_id  place (queue, offset)  properties  deliveries (client, started, ended, status)
      LeaseTaken     of a message that was popped: until when, and what ended it
      Reader         who should get it: the group, or each member when broadcasting
                     covered: its pull or pop went over it      passed: its offset went over it
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from mqlab.rocketmq.wire import properties
from mqlab.rocketmq.wire.message import MessageQueue

if TYPE_CHECKING:
    from mqlab.lab.runtime.journal import StepRecord

POLLED = "POLLED"  # taken by a program that pulls by hand: it does not report when it has finished
NOT_ACKED, ACKNOWLEDGED = "NOT_ACKED", "ACKNOWLEDGED"  # taken on lease: an acknowledgement reports that it has finished
GOOD = ("CONSUME_SUCCESS", "SUCCESS", "COMMIT", POLLED, ACKNOWLEDGED)
Place = tuple[MessageQueue, int]
RUNS, ACKED, CHANGED, REVIVED, SETTLED = "runs", "acked", "changed", "revived", "settled"


@dataclass(slots=True)
class LeaseTaken:
    """One lease of one message. ``how``: what ended it, in step ``end``; times are those of its broker's clock."""

    pop_time: int
    until_ms: int
    taken: StepRecord
    end: StepRecord | None = None
    how: str = RUNS
    is_orderly: bool = False

    def ended(self, how: str, record: StepRecord) -> None:
        """Note what ended it; the first end counts."""
        if self.how == RUNS:
            self.how, self.end = how, record


@dataclass(slots=True)
class DeliveryCall:
    """One call of a listener with one message. ``status`` None: it did not return."""

    client: str
    started: StepRecord
    queue: MessageQueue
    ended: StepRecord | None = None
    status: str | None = None

    @property
    def is_good(self) -> bool:
        return self.status in GOOD


@dataclass(slots=True)
class MessageReader:
    """One that should get a message: the whole group (``client`` empty) or a member; and its deliveries.

    ``good``: the successful deliveries, by when they ended.
    """

    client: str
    deliveries: list[DeliveryCall]
    covered: StepRecord | None
    passed: StepRecord | None
    good: list[DeliveryCall] = field(init=False)

    def __post_init__(self) -> None:
        self.good = [delivery for delivery in self.deliveries if delivery.status in GOOD]
        if len(self.good) > 1:
            self.good.sort(key=lambda delivery: delivery.ended.step if delivery.ended else 0)


@dataclass(slots=True)
class MessageHistory:
    """One message of a topic that the group reads. ``steps``: every record that concerns it, in order.

    ``brought``: its properties as its send request brought them; None: the journal does not have them. ``retry``: where
    its newest copy for a retry was stored.
    """

    msg_id: str
    place: Place
    stored: StepRecord
    brought: str | bytes | None
    steps: list[StepRecord] = field(default_factory=list)
    deliveries: list[DeliveryCall] = field(default_factory=list)
    covered: dict[str, StepRecord] = field(default_factory=dict)  # client -> its first pull that went over it
    passed: StepRecord | None = None
    overwritten: StepRecord | None = None
    sent_back: StepRecord | None = None  # the last time
    retry: StepRecord | None = None
    retry_passed: StepRecord | None = None
    dead: StepRecord | None = None
    acknowledged: bool = False
    leases: list[LeaseTaken] = field(default_factory=list)  # of a popping group, in order
    leased_twice: StepRecord | None = None  # the first pop that gave it out while another lease ran
    given_up: StepRecord | None = None  # a popping member acknowledged it without success

    @property
    def properties(self) -> Mapping[str, str] | None:
        """Its properties by name."""
        return None if self.brought is None else properties.decode(self.brought)

    def add_step(self, record: StepRecord) -> None:
        """Remember a record once."""
        if not self.steps or self.steps[-1] is not record:
            self.steps.append(record)
