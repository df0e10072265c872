"""Tells brokers who lives in this client instance: heartbeats, and a goodbye when a group leaves.

Mirrors: sendHeartbeatToAllBroker, sendHeartbeatToBroker and unregisterClient of MQClientInstance.

    every 30 s, and when something changed     HEART_BEAT to every broker (to slaves only when a consumer lives here)
    first request over a new channel           HEART_BEAT to that broker, then a rebalance
    a group leaves                             UNREGISTER_CLIENT to every broker

Only one heartbeat is under way at a time; a second one is skipped, as under RocketMQ's lock.
"""

from __future__ import annotations

from mqlab.errors import MqlabError
from mqlab.rocketmq.client.instance.background import background
from mqlab.rocketmq.client.instance.cluster_access import ClusterAccess
from mqlab.rocketmq.client.instance.members import Members, RegisteredProducer
from mqlab.rocketmq.client.instance.rebalance_timer import RebalanceTimer
from mqlab.rocketmq.promises import Flow, flow
from mqlab.rocketmq.wire.bodies import HeartbeatData
from mqlab.rocketmq.wire.names import MASTER_ID


class ClientMembership:
    """Heartbeats and goodbyes of one client instance."""

    def __init__(self, cluster: ClusterAccess, members: Members, rebalance_timer: RebalanceTimer) -> None:
        self._cluster = cluster
        self._members = members
        self._rebalance_timer = rebalance_timer
        self._under_way = False
        cluster.channel_used.subscribe(self._channel_used)

    def register_producer(self, producer: RegisteredProducer) -> None:
        """Let a producer live here; brokers hear of it with the next heartbeat. ClientError for a second of a group."""
        self._members.add_producer(producer)

    @flow
    def unregister_producer(self, group: str) -> Flow[None]:
        """Tell every broker that a producer group has left this client."""
        self._members.producers.pop(group, None)
        yield self._unregister(producer_group=group)

    @flow
    def unregister_consumer(self, group: str) -> Flow[None]:
        """Tell every broker that a consumer group has left this client."""
        self._members.consumers.pop(group, None)
        yield self._unregister(consumer_group=group)

    @flow
    def _unregister(self, **group: str) -> Flow[None]:
        cluster, timeout_ms = self._cluster, self._cluster.config.mq_client_api_timeout
        for _, _, address in cluster.routes.all_addresses():
            try:
                yield cluster.calls.unregister(address, cluster.client_id, timeout_ms, **group)
            except MqlabError as error:  # the broker finds out by itself: the connection closes
                cluster.ports.note("unregister.failed", address=address, error=error.text)

    def tick(self) -> None:
        """What the heartbeat timer does: forget brokers that no route names, then send to the rest."""
        self._cluster.routes.forget_offline_brokers()
        background(self._cluster.ports, self.heartbeat_all(), "heartbeat")

    @flow
    def heartbeat_all(self) -> Flow[bool]:
        """Send to every broker. False when there are no members, no broker is known, or a heartbeat is under way."""
        routes = self._cluster.routes
        if self._under_way:
            self._cluster.ports.note("heartbeat.skipped", client=self._cluster.client_id)
            return False
        if self._members.is_empty or not routes.broker_addr_table:
            return False
        self._under_way = True
        data = self._members.heartbeat_data(self._cluster.client_id)
        for name, broker_id, address in routes.all_addresses():
            yield self._send(name, broker_id, address, data)
        self._under_way = False
        return True

    def _channel_used(self, address: str) -> None:
        background(self._cluster.ports, self._heartbeat_to(address), "heartbeat")

    @flow
    def _heartbeat_to(self, address: str) -> Flow[None]:
        """A new channel: tell the broker behind it who lives here; it may then notify us, so rebalance, too."""
        for name, broker_id, known_address in self._cluster.routes.all_addresses():
            if known_address == address and (yield self._heartbeat_one(name, broker_id, address)):
                self._rebalance_timer.wake()

    @flow
    def _heartbeat_one(self, broker_name: str, broker_id: int, address: str) -> Flow[bool]:
        """Send to one broker; False when that failed, or when another heartbeat is under way."""
        if self._under_way or self._members.is_empty:
            return False
        self._under_way = True
        data = self._members.heartbeat_data(self._cluster.client_id)
        succeeded: bool = yield self._send(broker_name, broker_id, address, data)
        self._under_way = False
        return succeeded

    @flow
    def _send(self, broker_name: str, broker_id: int, address: str, data: HeartbeatData) -> Flow[bool]:
        cluster = self._cluster
        if not self._members.consumers and broker_id != MASTER_ID:  # a slave has no use for producers
            return False
        try:
            yield cluster.calls.heartbeat(address, data, cluster.config.mq_client_api_timeout)
        except MqlabError as error:
            cluster.ports.note("heartbeat.failed", broker=broker_name, address=address, error=error.text)
            return False
        return True

    def __repr__(self) -> str:
        return f"<ClientMembership of {self._cluster.client_id}: {self._members!r}>"
