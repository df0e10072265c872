"""What the front is and remembers, for its parts.

Mirrors: the fields of DefaultMessagingProcessor and ProxyConfig, as far as local mode reads them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from mqlab.cluster.grpc.clients import GrpcClients
from mqlab.cluster.grpc.codes import Code, MessageType, StatusError
from mqlab.cluster.grpc.local_brokers import LocalBrokers
from mqlab.cluster.grpc.messages import milliseconds_of
from mqlab.rocketmq.ports import Ports
from mqlab.rocketmq.wire import names

MESSAGE_TYPE = "message.type"
MIXED = "MIXED"
LONGEST_INVISIBLE_MS = 43_200_000


@dataclass(frozen=True, slots=True)
class FrontConfig:
    """``port``: where clients reach the front, at the address of the broker that they are sent to.

    ``as_in_5_3_3``: leases are never renewed, a changed receipt handle acknowledges nothing, and a receive that comes
    before the settings of its client fails, as in the release.
    """

    port: int
    name_servers: tuple[str, ...] = ()
    as_in_5_3_3: bool = False


@dataclass(slots=True, eq=False)
class FrontState:
    """What every part is handed. ``ahead_ms``: tells how far a test has put the brokers' time ahead of the clients'."""

    ports: Ports
    config: FrontConfig
    brokers: LocalBrokers
    clients: GrpcClients
    ahead_ms: Callable[[], int] = lambda: 0

    def now_ms(self) -> int:
        """The time of the brokers."""
        return self.ports.clock.now_ms()

    def type_of(self, topic: str) -> str:
        """The kind of messages that a topic takes: NORMAL …, MIXED; UNSPECIFIED for a topic that no broker has."""
        holders = self.brokers.with_topic(topic)
        return holders[0][1].attributes.get(MESSAGE_TYPE, MessageType.NORMAL.name) if holders else "UNSPECIFIED"


def checked_topic(topic: str) -> str:
    """A topic that clients may name. StatusError for another. Mirrors GrpcValidator.validateTopic."""
    problem = names.topic_problem(topic)
    if problem is not None:
        raise StatusError(Code.ILLEGAL_TOPIC, problem)
    if names.is_system_topic(topic):
        raise StatusError(Code.ILLEGAL_TOPIC, "cannot access system topic")
    return topic


def checked_group(group: str) -> str:
    """A consumer group that clients may name. StatusError for another. Mirrors validateConsumerGroup."""
    problem = names.group_problem(group)
    if problem is not None:
        raise StatusError(Code.ILLEGAL_CONSUMER_GROUP, problem)
    if group.startswith(names.SYSTEM_GROUP_PREFIX):
        raise StatusError(Code.ILLEGAL_CONSUMER_GROUP, "cannot use system consumer group")
    return group


def checked_invisible_ms(duration: Any, shortest_ms: int = 0) -> int:
    """An invisible time in its limits, ms. StatusError for another. Mirrors GrpcValidator.validateInvisibleTime."""
    invisible_ms = milliseconds_of(duration)
    if shortest_ms <= invisible_ms <= LONGEST_INVISIBLE_MS:
        return invisible_ms
    limit = f"small. min is {shortest_ms}" if invisible_ms < shortest_ms else f"large. max is {LONGEST_INVISIBLE_MS}"
    raise StatusError(Code.ILLEGAL_INVISIBLE_TIME, f"the invisibleTime is too {limit}")
