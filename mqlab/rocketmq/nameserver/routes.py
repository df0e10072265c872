"""Which broker serves which queues: the tables of one name server and the rules that change them.

Mirrors: RouteInfoManager.

    topics      orders      broker-a  ->  4 read, 4 write, perm 6
    brokers     broker-a    DefaultCluster, {0: 10.0.0.2:10911, 1: 10.0.0.3:10911}
    clusters    DefaultCluster  ->  broker-a, broker-b
    live        DefaultCluster, 10.0.0.2:10911  ->  heard 12:00:30, expires after 120 s, topic version 7, its channel

    a registration changes topics only if its version is new, or the topic or the broker was unknown
    a topic deleted at a broker stays here (unless delete_topic_with_broker_registration)

Left out: acting masters, zones, filter servers, static topics.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from mqlab.rocketmq.remoting.endpoint import Channel
from mqlab.rocketmq.wire.bodies import (
    PERM_READ,
    PERM_WRITE,
    BrokerData,
    DataVersion,
    QueueData,
    TopicConfig,
    TopicRouteData,
)
from mqlab.rocketmq.wire.names import MASTER_ID

UNIT_FLAG, UNIT_SUB_FLAG = 1, 2  # TopicSysFlag

Address = tuple[str, str]  # cluster, "ip:port"


@dataclass(slots=True)
class LiveBroker:
    """One registered broker process. Mirrors BrokerLiveInfo."""

    last_update_ms: int
    timeout_ms: int
    data_version: DataVersion
    channel: Channel | None
    ha_server_address: str

    @property
    def expires_ms(self) -> int:
        """The last moment at which the broker counts as alive."""
        return self.last_update_ms + self.timeout_ms


@dataclass(frozen=True, slots=True)
class BrokerRegistration:
    """The content of one REGISTER_BROKER. ``timeout_ms`` None: the default."""

    cluster: str
    address: str
    broker_name: str
    broker_id: int
    ha_server_address: str
    topics: Mapping[str, TopicConfig]
    data_version: DataVersion
    timeout_ms: int | None = None
    channel: Channel | None = None


@dataclass(frozen=True, slots=True)
class Registered:
    """The answer to a slave: where its master is. Mirrors RegisterBrokerResult."""

    master_address: str | None = None
    ha_server_address: str | None = None


class RouteTable:
    """The tables of one name server; every change is noted. Mirrors RouteInfoManager."""

    def __init__(
        self,
        now_ms: Callable[[], int],
        *,
        default_timeout_ms: int = 120_000,
        delete_topics: bool = False,
        note: Callable[..., None] = lambda *_, **__: None,
    ) -> None:
        self._now_ms = now_ms
        self.default_timeout_ms = default_timeout_ms
        self.delete_topics = delete_topics
        self._note = note
        self.topics: dict[str, dict[str, QueueData]] = {}
        self.brokers: dict[str, BrokerData] = {}
        self.clusters: dict[str, list[str]] = {}
        self.live: dict[Address, LiveBroker] = {}

    def register(self, registration: BrokerRegistration) -> Registered | None:
        """Use a registration. None if it is refused: an unknown broker that registers a single topic."""
        r = registration
        names = self.clusters.setdefault(r.cluster, [])
        if r.broker_name not in names:
            names.append(r.broker_name)
        # 1. The addresses of this broker name. A broker that comes back with another id leaves its old one.
        current = self.brokers.get(r.broker_name)
        addresses = dict(current.broker_addrs) if current is not None else {}
        addresses = {
            broker_id: address
            for broker_id, address in addresses.items()
            if address != r.address or broker_id == r.broker_id
        }
        if self._outranked(r, addresses.get(r.broker_id)):
            self.live.pop((r.cluster, r.address), None)
            return Registered()
        if r.broker_id not in addresses and len(r.topics) == 1:
            if current is None:
                self._forget_name(r.cluster, r.broker_name)
            return None
        # 2. Accepted: its address, its topics (those of the master, or of the smallest id), and its time to live.
        is_first = not addresses.get(r.broker_id)
        addresses[r.broker_id] = r.address
        self.brokers[r.broker_name] = BrokerData(cluster=r.cluster, broker_name=r.broker_name, broker_addrs=addresses)
        if r.broker_id == MASTER_ID or r.broker_id == min(addresses):
            self._take_topics(r, is_first)
        self.live[r.cluster, r.address] = LiveBroker(
            self._now_ms(), r.timeout_ms or self.default_timeout_ms, r.data_version, r.channel, r.ha_server_address
        )
        if is_first:
            self._note(
                "broker.registered",
                broker=r.broker_name,
                broker_id=r.broker_id,
                address=r.address,
                topics=len(r.topics),
            )
        return self._master_of(r, addresses)

    def _outranked(self, r: BrokerRegistration, old_address: str | None) -> bool:
        """True if the same broker id is alive at another address with a newer state (controller mode)."""
        if old_address is None or old_address == r.address:
            return False
        old = self.live.get((r.cluster, old_address))
        return old is not None and old.data_version.state_version > r.data_version.state_version

    def _take_topics(self, r: BrokerRegistration, is_first: bool) -> None:
        # 1. Has anything changed since the last registration? The version shows it.
        before = self.live.get((r.cluster, r.address))
        is_new = is_first or before is None or before.data_version != r.data_version
        # 2. Topics that the broker no longer has stay, unless the setting removes them.
        if self.delete_topics:
            for topic in [name for name, queues in self.topics.items() if r.broker_name in queues]:
                if topic not in r.topics:
                    self._drop_queues(topic, r.broker_name)
        # 3. New and changed queues. An unchanged version only adds topics that are unknown here.
        for name, config in r.topics.items():
            queues = self.topics.setdefault(name, {})
            if not is_new and r.broker_name in queues:
                continue
            queue_data = config.queue_data(r.broker_name)
            if queues.get(r.broker_name) == queue_data:
                continue
            queues[r.broker_name] = queue_data
            if not is_first:
                self._note(
                    "route.changed",
                    topic=name,
                    broker=r.broker_name,
                    read_queue_nums=queue_data.read_queue_nums,
                    write_queue_nums=queue_data.write_queue_nums,
                    perm=queue_data.perm,
                )

    def _master_of(self, r: BrokerRegistration, addresses: Mapping[int, str]) -> Registered:
        master = addresses.get(MASTER_ID)
        live = self.live.get((r.cluster, master)) if master is not None else None
        if r.broker_id == MASTER_ID or live is None:
            return Registered()
        return Registered(master, live.ha_server_address)

    def unregister(self, cluster: str, address: str, broker_name: str, why: str = "unregistered") -> None:
        """Remove a broker; the last one of a name also loses its queues. Mirrors unRegisterBroker."""
        self.live.pop((cluster, address), None)
        current = self.brokers.get(broker_name)
        if current is None:
            return
        addresses = {broker_id: other for broker_id, other in current.broker_addrs.items() if other != address}
        if len(addresses) == len(current.broker_addrs):
            return
        # The last broker of a name takes its queues along; until then slaves still serve them.
        self._note("broker.unregistered", broker=broker_name, address=address, why=why)
        if addresses:
            self.brokers[broker_name] = dataclasses.replace(current, broker_addrs=addresses)
            return
        del self.brokers[broker_name]
        self._forget_name(cluster, broker_name)
        for topic in list(self.topics):
            self._drop_queues(topic, broker_name)

    def channel_closed(self, channel: Channel) -> None:
        """Remove the broker that registered over this channel, at once."""
        for (cluster, address), live in list(self.live.items()):
            if live.channel is channel:
                self._unregister_address(cluster, address, "channel closed")

    def expire(self) -> list[Channel]:
        """Remove brokers that did not register in time; returns their channels, which are to be closed."""
        now_ms = self._now_ms()
        closed = []
        for (cluster, address), live in list(self.live.items()):
            if live.expires_ms < now_ms:
                if live.channel is not None:
                    closed.append(live.channel)
                self._unregister_address(cluster, address, "expired")
        return closed

    def next_expiry_ms(self) -> int | None:
        """The first moment at which a broker counts as dead, if no broker registers again; None without brokers."""
        return min((live.expires_ms + 1 for live in self.live.values()), default=None)

    def _unregister_address(self, cluster: str, address: str, why: str) -> None:
        # The same address may be registered under more than one name.
        for name, broker in list(self.brokers.items()):
            if broker.cluster == cluster and address in broker.broker_addrs.values():
                self.unregister(cluster, address, name, why)
        self.live.pop((cluster, address), None)

    def _forget_name(self, cluster: str, broker_name: str) -> None:
        names = self.clusters.get(cluster, [])
        if broker_name in names:
            names.remove(broker_name)
        if not names:
            self.clusters.pop(cluster, None)

    def _drop_queues(self, topic: str, broker_name: str) -> None:
        queues = self.topics[topic]
        if queues.pop(broker_name, None) is not None:
            self._note("route.changed", topic=topic, broker=broker_name, perm=None)
        if not queues:
            del self.topics[topic]

    def route(self, topic: str) -> TopicRouteData | None:
        """What a client needs to find the queues of a topic, None if no broker has it. Mirrors pickupTopicRouteData."""
        queues = self.topics.get(topic)
        if not queues:
            return None
        brokers = [self.brokers[name] for name in queues if name in self.brokers]
        if not brokers:
            return None
        return TopicRouteData(queue_datas=list(queues.values()), broker_datas=brokers)

    def broker_names(self) -> list[str]:
        """The brokers known now."""
        return list(self.brokers)

    def queue_data(self, topic: str, broker_name: str) -> QueueData | None:
        """The queues of a topic on one broker, None if it has none."""
        return self.topics.get(topic, {}).get(broker_name)

    def topics_of_cluster(self, cluster: str) -> list[str]:
        """The topics that a broker of the cluster serves."""
        names = self.clusters.get(cluster, [])
        return [topic for topic, queues in self.topics.items() if any(name in queues for name in names)]

    def topics_flagged(self, *, unit: bool | None = None, unit_sub: bool | None = None) -> list[str]:
        """Topics by two bits of their system flag: those of a unit, and those that a unit's consumers subscribe to.

        The first broker that serves a topic decides. Mirrors getUnitTopics and similar methods.
        """
        flags = {topic: next(iter(queues.values())).topic_sys_flag for topic, queues in self.topics.items() if queues}
        return [
            topic
            for topic, flag in flags.items()
            if unit in (None, bool(flag & UNIT_FLAG)) and unit_sub in (None, bool(flag & UNIT_SUB_FLAG))
        ]

    def data_version(self, cluster: str, address: str) -> DataVersion | None:
        """The topic version a broker registered last."""
        live = self.live.get((cluster, address))
        return None if live is None else live.data_version

    def register_topic(self, topic: str, queue_datas: Iterable[QueueData]) -> None:
        """Add queues of registered brokers; changes nothing if one of them is not registered. Mirrors registerTopic."""
        fresh = list(queue_datas)
        if fresh and all(data.broker_name in self.brokers for data in fresh):
            self.topics.setdefault(topic, {}).update({data.broker_name: data for data in fresh})
            self._note("route.changed", topic=topic, brokers=[data.broker_name for data in fresh])

    def delete_topic(self, topic: str, cluster: str | None = None) -> None:
        """Remove a topic, everywhere or in one cluster. Mirrors deleteTopic."""
        for name in list(self.topics.get(topic, {})):
            if cluster is None or name in self.clusters.get(cluster, []):
                self._drop_queues(topic, name)

    def wipe_write_perm(self, broker_name: str) -> int:
        """Take away write permission on all queues of a broker; returns the number of topics.

        Mirrors wipeWritePermOfBroker.
        """
        return self._set_perm(broker_name, lambda perm: perm & ~PERM_WRITE)

    def add_write_perm(self, broker_name: str) -> int:
        """Give read and write permission on all queues of a broker; returns the number of topics.

        Mirrors addWritePermOfBroker.
        """
        return self._set_perm(broker_name, lambda perm: PERM_READ | PERM_WRITE)

    def _set_perm(self, broker_name: str, change: Callable[[int], int]) -> int:
        topic_count = 0
        for topic, queues in self.topics.items():
            current = queues.get(broker_name)
            if current is not None:
                queues[broker_name] = dataclasses.replace(current, perm=change(current.perm))
                topic_count += 1
                self._note("route.changed", topic=topic, broker=broker_name, perm=queues[broker_name].perm)
        return topic_count

    def __repr__(self) -> str:
        return f"<RouteTable: {len(self.topics)} topics on {len(self.live)} brokers>"
