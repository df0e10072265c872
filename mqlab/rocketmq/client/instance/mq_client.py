"""One client instance: the producers and consumers of one process, and what they share.

Mirrors: MQClientInstance (and RebalanceService).

    members          who lives here: producers and consumers by group
    cluster          connections, routes, requests                  members ─▶ cluster ─▶ membership, route poll
    membership       heartbeats to all brokers
    timers           client.heartbeat      30 s, first after 1.13 s
                     client.route_poll     30 s, first at once
                     client.offset_persist 5 s, first after 10 s         only with consumers
                     rebalance.timer       20 s after the last run (1 s when not balanced, never sooner than 1 s)

Left out: heartbeat V2, address servers, and one thread per job (a node runs one step at a time).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

from mqlab.rocketmq.client.instance.callbacks import BrokerCallbacks
from mqlab.rocketmq.client.instance.client_id import build_client_id
from mqlab.rocketmq.client.instance.cluster_access import ClusterAccess
from mqlab.rocketmq.client.instance.members import Members, RegisteredConsumer, RegisteredProducer
from mqlab.rocketmq.client.instance.membership import ClientMembership
from mqlab.rocketmq.client.instance.rebalance_timer import RebalanceTimer
from mqlab.rocketmq.client.instance.route_poll import RoutePoll
from mqlab.rocketmq.client.instance.statistics import ConsumerStatistics
from mqlab.rocketmq.client.instance.timers import Periodic
from mqlab.rocketmq.client.sending.sender import Sender
from mqlab.rocketmq.client.settings import ClientConfig, ProducerConfig
from mqlab.rocketmq.ports import Ports
from mqlab.rocketmq.promises import Flow, Promise, flow

T = TypeVar("T")

FIRST_ROUTE_POLL_MS = 0  # RocketMQ: 10, but its start-up takes longer, so that the first poll is before the heartbeat
#                          that makes a new group's retry topic; here a start takes no time but that of its frames
START_TAKES_MS = 130  # from making the rebalance service to arming the timers, as measured with a Java client; with 0
#                       the first rebalance and the first heartbeat would meet in one ms, and the heartbeat that tells
#                       the new subscription version would be skipped every time instead of rarely
FIRST_HEARTBEAT_MS = 1_000 + START_TAKES_MS
FIRST_PERSIST_MS = 10_000
INNER_PRODUCER_GROUP = "CLIENT_INNER_PRODUCER"
STREAM_MARKS = {"ReqT": "0"}  # in every request of a pull client: 0 stands for "stream"


class MQClient:
    """One client instance; ``stream`` marks those of pull consumers. ``client_id``: see client_id.py.

    ``inner_sender`` sends on behalf of consumers: messages that a broker did not take back.
    """

    def __init__(
        self, ports: Ports, name_servers: Sequence[str], config: ClientConfig | None = None, *, stream: bool = False
    ) -> None:
        self.ports = ports
        self.config = config or ClientConfig()
        self.client_id = build_client_id(ports, self.config, stream=stream)
        self.is_running = False
        self.started_ms: int | None = None
        clock = ports.clock
        # 1. Tables: who lives here, and what is counted.
        self.members = Members()
        self.statistics = ConsumerStatistics(clock)
        # 2. Services, bottom up.
        self.rebalance_timer = RebalanceTimer(clock, self.members.rebalance)
        handlers = BrokerCallbacks(ports, self.members, self.rebalance_timer).handlers()
        self.cluster = ClusterAccess(
            ports, name_servers, self.client_id, self.config, self.members, handlers, STREAM_MARKS if stream else {}
        )
        self.membership = ClientMembership(self.cluster, self.members, self.rebalance_timer)
        self.inner_sender = Sender(self.cluster, INNER_PRODUCER_GROUP, ProducerConfig())
        self.membership.register_producer(self.inner_sender)
        # 3. Timers. The first two run as long as the client does, the last one once there is a consumer.
        route_poll = RoutePoll(self.cluster, self.members)
        self._timers = (
            (
                Periodic(clock, "client.route_poll", self.config.poll_name_server_interval, route_poll.tick),
                FIRST_ROUTE_POLL_MS,
            ),
            (
                Periodic(clock, "client.heartbeat", self.config.heartbeat_broker_interval, self.membership.tick),
                FIRST_HEARTBEAT_MS,
            ),
        )
        self._persist_timer = Periodic(
            clock, "client.offset_persist", self.config.persist_consumer_offset_interval, self.members.persist_offsets
        )

    def start(self) -> None:
        """Arm the timers; calling it again does nothing."""
        if self.is_running:
            return
        self.is_running = True
        self.started_ms = self.ports.clock.now_ms()
        for timer, first_ms in self._timers:
            timer.start(first_ms)

    @flow
    def shutdown(self) -> Flow[None]:
        """Stop the timers and close the connections, unless a producer or consumer still lives here."""
        others = [group for group in self.members.producers if group != INNER_PRODUCER_GROUP]
        if self.members.consumers or others or not self.is_running:
            return
        self.is_running = False
        for timer, _ in self._timers:
            timer.stop()
        self._persist_timer.stop()
        self.rebalance_timer.stop()
        yield self.membership.unregister_producer(INNER_PRODUCER_GROUP)
        self.cluster.remoting.close()

    def register_producer(self, producer: RegisteredProducer) -> None:
        """Let a producer live here. ClientError when its group has one already."""
        self.membership.register_producer(producer)

    def register_consumer(self, consumer: RegisteredConsumer) -> None:
        """Let a consumer live here. ClientError when its group has one already."""
        self.members.add_consumer(consumer)
        self._persist_timer.start(FIRST_PERSIST_MS)
        self.rebalance_timer.start()

    def call(self, start: Callable[[], Promise[T]]) -> T:
        """Run a flow on this node and block the caller until it is over."""
        return self.ports.workers.call(start)

    def __repr__(self) -> str:
        state = "running" if self.is_running else "not running"
        return f"<MQClient {self.client_id} {state}: {self.members!r}>"
