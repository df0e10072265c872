"""What a client knows of topics and brokers: the routes that the name server sent, and which address to use for what.

Mirrors: topicRouteTable and brokerAddrTable of MQClientInstance with their find methods, and
topicRouteData2TopicPublishInfo, topicRouteData2TopicSubscribeInfo.

    topic_route_table     orders -> TopicRouteData(queue_datas, broker_datas)
    broker_addr_table     broker-a -> {0: "10.0.0.2:10911", 1: "10.0.0.5:10911"}      0 is the master

    to write                  the master, or no broker
    to read                   the id last suggested, else the next id, else any that is left

Left out: static topics (logical queues).
"""

from __future__ import annotations

from mqlab.rocketmq.wire.bodies import PERM_WRITE, TopicRouteData
from mqlab.rocketmq.wire.java_hash import utf16_key
from mqlab.rocketmq.wire.java_numbers import parse_int
from mqlab.rocketmq.wire.message import MessageQueue
from mqlab.rocketmq.wire.names import MASTER_ID


class Routes:
    """The two tables and the look-ups on them. Addresses are "ip:port"."""

    def __init__(self) -> None:
        self.topic_route_table: dict[str, TopicRouteData] = {}
        self.broker_addr_table: dict[str, dict[int, str]] = {}

    def learn(self, topic: str, route: TopicRouteData) -> bool:
        """Remember a route; True when it differs from the one remembered before."""
        if self.topic_route_table.get(topic) == route:
            return False
        for broker in route.broker_datas:
            self.broker_addr_table[broker.broker_name] = dict(sorted(broker.broker_addrs.items()))
        self.topic_route_table[topic] = route
        return True

    def forget_offline_brokers(self) -> None:
        """Drop addresses that no route names any more (cleanOfflineBroker, before each heartbeat)."""
        alive = {
            address
            for route in self.topic_route_table.values()
            for broker in route.broker_datas
            for address in broker.broker_addrs.values()
        }
        for name, addresses in list(self.broker_addr_table.items()):
            left = {broker_id: address for broker_id, address in addresses.items() if address in alive}
            if left:
                self.broker_addr_table[name] = left
            else:
                del self.broker_addr_table[name]

    def all_addresses(self) -> list[tuple[str, int, str]]:
        """Every known broker address as (broker_name, broker_id, address)."""
        return [
            (name, broker_id, address)
            for name, addresses in self.broker_addr_table.items()
            for broker_id, address in addresses.items()
        ]

    def master_address(self, broker_name: str) -> str | None:
        """Where to write; None when no route names the broker's master. Mirrors findBrokerAddressInPublish."""
        addresses = self.broker_addr_table.get(broker_name)
        return None if addresses is None else addresses.get(MASTER_ID)

    def broker_address_in_subscribe(
        self, broker_name: str, broker_id: int = MASTER_ID, *, only_this_broker: bool = False
    ) -> str | None:
        """Where to read: the id, else the next id, else any. Mirrors findBrokerAddressInSubscribe."""
        addresses = self.broker_addr_table.get(broker_name)
        if not addresses:
            return None
        address = addresses.get(broker_id)
        if address is None and broker_id != MASTER_ID:
            address = addresses.get(broker_id + 1)
        if address is None and not only_this_broker:
            address = next(iter(addresses.values()))
        return address

    def is_slave(self, broker_name: str, address: str) -> bool:
        """True when this is not the master's address."""
        return self.master_address(broker_name) != address

    def addresses_of_topic(self, topic: str) -> list[str]:
        """One address per broker of a topic: its master, else any. Mirrors BrokerData.selectBrokerAddr."""
        route = self.topic_route_table.get(topic)
        if route is None:
            return []
        addresses = []
        for broker in route.broker_datas:
            if broker.broker_addrs:
                first = broker.broker_addrs[min(broker.broker_addrs)]
                addresses.append(broker.broker_addrs.get(MASTER_ID, first))
        return addresses

    def __repr__(self) -> str:
        return f"<Routes {len(self.topic_route_table)} topics, {len(self.broker_addr_table)} brokers>"


def publish_queues(topic: str, route: TopicRouteData) -> list[MessageQueue]:
    """The queues a producer may write to: brokers by name, only with write permission and a master.

    A topic with an order configuration ("broker-a:4;broker-b:4") offers exactly those queues.
    """
    if route.order_topic_conf:
        queues = []
        for part in route.order_topic_conf.split(";"):
            broker_name, _, count = part.partition(":")
            queues += [MessageQueue(topic, broker_name, number) for number in range(parse_int(count))]
        return queues
    with_master = {broker.broker_name for broker in route.broker_datas if MASTER_ID in broker.broker_addrs}
    return [
        MessageQueue(topic, data.broker_name, number)
        for data in sorted(route.queue_datas, key=lambda data: utf16_key(data.broker_name))
        if data.perm & PERM_WRITE and data.broker_name in with_master
        for number in range(data.write_queue_nums)
    ]
