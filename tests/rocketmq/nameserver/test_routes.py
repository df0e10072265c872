"""The route tables: registrations, versions, several ids of one name, expiry, permissions.

Mirrors: RouteInfoManager.
"""

from __future__ import annotations

from typing import Any

from mqlab.rocketmq.nameserver.routes import BrokerRegistration, Registered, RouteTable
from mqlab.rocketmq.wire.bodies import BrokerData, DataVersion, QueueData, TopicConfig


class Routes:
    """A route table with a clock of its own."""

    def __init__(self, **settings: Any) -> None:
        self.now_ms = 0
        self.told: list[tuple[str, dict[str, Any]]] = []
        self.table = RouteTable(
            lambda: self.now_ms, note=lambda kind, **values: self.told.append((kind, values)), **settings
        )

    def register(self, *topics: TopicConfig, version: int = 0, **more: Any) -> Registered | None:
        values = {
            "cluster": "DefaultCluster",
            "address": "10.0.0.2:10911",
            "broker_name": "broker-a",
            "broker_id": 0,
            "ha_server_address": "10.0.0.2:10912",
            "data_version": DataVersion(version),
            **more,
        }
        return self.table.register(BrokerRegistration(topics={topic.topic_name: topic for topic in topics}, **values))


ORDERS, PAYMENTS = TopicConfig("orders", 4, 4), TopicConfig("订单", 8, 2, perm=4)


def test_a_registered_topic_has_a_route() -> None:
    routes = Routes()
    assert routes.register(ORDERS, PAYMENTS) == Registered()
    route = routes.table.route("订单")
    assert route is not None
    assert route.queue_datas == [QueueData("broker-a", 8, 2, 4, 0)]
    assert route.broker_datas == [BrokerData("DefaultCluster", "broker-a", {0: "10.0.0.2:10911"})]
    assert routes.table.route("unknown") is None
    assert routes.table.topics_of_cluster("DefaultCluster") == ["orders", "订单"]
    assert routes.table.topics_of_cluster("other") == []


def test_topics_change_only_with_the_version() -> None:
    routes = Routes()
    routes.register(ORDERS, PAYMENTS, version=1)
    routes.register(TopicConfig("orders", 8, 8), PAYMENTS, version=1)
    assert routes.table.queue_data("orders", "broker-a") == QueueData("broker-a", 4, 4, 6, 0)
    routes.register(TopicConfig("orders", 8, 8), PAYMENTS, version=2)
    assert routes.table.queue_data("orders", "broker-a") == QueueData("broker-a", 8, 8, 6, 0)
    routes.register(TopicConfig("orders", 9, 9), TopicConfig("new", 1, 1), version=2)
    assert routes.table.queue_data("orders", "broker-a").read_queue_nums == 8  # type: ignore[union-attr]
    assert routes.table.queue_data("new", "broker-a") is not None
    assert [kind for kind, _ in routes.told] == ["broker.registered", "route.changed", "route.changed"]


def test_one_topic_alone_from_an_unknown_broker_is_refused() -> None:
    routes = Routes()
    assert routes.register(ORDERS) is None
    assert routes.table.broker_names() == [] and routes.table.clusters == {}
    routes.register(ORDERS, PAYMENTS)
    assert routes.register(TopicConfig("new", 1, 1), version=1) == Registered()


def test_a_topic_deleted_at_the_broker_stays_unless_told_otherwise() -> None:
    kept, dropped = Routes(), Routes(delete_topics=True)
    for routes in (kept, dropped):
        routes.register(ORDERS, PAYMENTS, TopicConfig("x", 1, 1))
        routes.register(ORDERS, PAYMENTS, version=1)
    assert kept.table.route("x") is not None and dropped.table.route("x") is None


def test_master_and_slave_share_a_name() -> None:
    routes = Routes()
    slave = {"address": "10.0.0.3:10911", "broker_id": 1}
    assert routes.register(ORDERS, PAYMENTS, **slave) == Registered()
    assert routes.table.route("orders").broker_datas[0].broker_addrs == {1: "10.0.0.3:10911"}  # type: ignore[union-attr]
    routes.register(TopicConfig("orders", 8, 8), PAYMENTS)
    assert routes.register(ORDERS, PAYMENTS, version=9, **slave) == Registered("10.0.0.2:10911", "10.0.0.2:10912")
    assert routes.table.queue_data("orders", "broker-a").read_queue_nums == 8  # type: ignore[union-attr]
    routes.table.unregister("DefaultCluster", "10.0.0.2:10911", "broker-a")
    assert routes.table.route("orders").broker_datas[0].broker_addrs == {1: "10.0.0.3:10911"}  # type: ignore[union-attr]
    routes.table.unregister("DefaultCluster", "10.0.0.3:10911", "broker-a")
    assert routes.table.route("orders") is None and routes.table.clusters == {} and routes.table.live == {}


def test_the_same_address_under_another_id_and_the_same_id_at_another_address() -> None:
    routes = Routes()
    routes.register(ORDERS, PAYMENTS, broker_id=1)
    routes.register(ORDERS, PAYMENTS, broker_id=0)
    assert routes.table.brokers["broker-a"].broker_addrs == {0: "10.0.0.2:10911"}
    routes.register(ORDERS, PAYMENTS, address="10.0.0.9:10911")
    assert routes.table.brokers["broker-a"].broker_addrs == {0: "10.0.0.9:10911"}


def test_a_newer_state_at_another_address_is_not_replaced() -> None:
    routes = Routes()
    routes.register(ORDERS, PAYMENTS, data_version=DataVersion(0, 5))
    routes.register(ORDERS, PAYMENTS, address="10.0.0.9:10911", data_version=DataVersion(9, 4))
    assert routes.table.brokers["broker-a"].broker_addrs == {0: "10.0.0.2:10911"}


def test_brokers_expire_after_their_own_or_the_default_time() -> None:
    routes = Routes()
    routes.register(ORDERS, PAYMENTS)
    routes.register(ORDERS, PAYMENTS, broker_name="broker-b", address="10.0.0.4:10911", timeout_ms=10_000)
    assert routes.table.next_expiry_ms() == 10_001
    routes.now_ms = 10_000
    assert routes.table.expire() == [] and len(routes.table.live) == 2
    routes.now_ms = 10_001
    routes.table.expire()
    assert routes.table.broker_names() == ["broker-a"] and routes.table.next_expiry_ms() == 120_001
    routes.now_ms = 120_001
    routes.table.expire()
    assert routes.table.topics == {} and routes.table.next_expiry_ms() is None


def test_write_permission_is_wiped_and_given_back() -> None:
    routes = Routes()
    routes.register(ORDERS, PAYMENTS, TopicConfig("TBW102", 8, 8, perm=7))
    assert routes.table.wipe_write_perm("broker-a") == 3 and routes.table.wipe_write_perm("nobody") == 0
    perms = [routes.table.queue_data(topic, "broker-a").perm for topic in ("orders", "订单", "TBW102")]  # type: ignore[union-attr]
    assert perms == [4, 4, 5]
    routes.register(ORDERS, PAYMENTS, TopicConfig("TBW102", 8, 8, perm=7))
    assert routes.table.queue_data("orders", "broker-a").perm == 4  # type: ignore[union-attr]
    assert routes.table.add_write_perm("broker-a") == 3
    perms = [routes.table.queue_data(topic, "broker-a").perm for topic in ("orders", "订单", "TBW102")]  # type: ignore[union-attr]
    assert perms == [6, 6, 6]


def test_topics_by_hand() -> None:
    routes = Routes()
    routes.register(ORDERS, PAYMENTS)
    routes.register(ORDERS, PAYMENTS, cluster="Other", broker_name="broker-z", address="10.0.0.9:10911")
    routes.table.register_topic("made", [QueueData("broker-a", 2, 2, 6), QueueData("unknown", 2, 2, 6)])
    assert routes.table.route("made") is None
    routes.table.register_topic("made", [QueueData("broker-a", 2, 2, 6)])
    assert routes.table.route("made") is not None
    routes.table.delete_topic("orders", "Other")
    assert list(routes.table.topics["orders"]) == ["broker-a"]
    routes.table.delete_topic("orders")
    assert routes.table.route("orders") is None
    routes.table.delete_topic("orders")
