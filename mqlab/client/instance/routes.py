"""What a client knows of topics and brokers: routes as the name server told them, and which address to use for what.

Mirrors: topicRouteTable and brokerAddrTable of MQClientInstance with their find methods. Lab 02.

    topic_route_table     orders -> TopicRouteData(queue_datas, broker_datas)
    broker_addr_table     broker-a -> {0: "10.0.0.2:10911", 1: "10.0.0.5:10911"}      0 is the master

    to write                  the master, or nobody
    to read                   the id last suggested, else the next id, else any that is left
Left out: static topics (logical queues).
"""

from __future__ import annotations

from mqlab.client.sending.queue_selection import MASTER_ID
from mqlab.wire.bodies import TopicRouteData


class Routes:
    """The two tables and the look-ups on them. Addresses are "ip:port"."""

    def __init__(self) -> None:
        self.topic_route_table: dict[str, TopicRouteData] = {}
        self.broker_addr_table: dict[str, dict[int, str]] = {}

    def learn(self, topic: str, route: TopicRouteData) -> bool:
        """Take in a route; True when it differs from what was known."""
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
        """Where to write. Mirrors findBrokerAddressInPublish."""
        return self.broker_addr_table.get(broker_name, {}).get(MASTER_ID)

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
