"""What name servers know of masters and slaves.

Mirrors: RouteInfoManager.
"""

from __future__ import annotations

from mqlab import Lab
from tests.lab.scenarios.stories import moments, quiet_lab, send
from tests.lab.scenarios.world.replicas import MASTER, SLAVE, fill, log_bytes, pair


def addresses(lab: Lab, server: str = "nameserver-1", topic: str = "orders") -> dict[int, str] | None:
    """Broker id -> node of broker-a in a topic's route, None without a route."""
    route = lab.name_server(server).routes.route(topic)
    if route is None:
        return None
    names = {f"{lab.world.nodes[name].ip}:10911": name for name in lab.handles}
    [data] = [data for data in route.broker_datas if data.broker_name == MASTER]
    return {broker_id: names[address] for broker_id, address in data.broker_addrs.items()}


def permissions(lab: Lab, topic: str = "orders") -> list[tuple[int, int]]:
    route = lab.name_server().routes.route(topic)
    return [(data.write_queue_nums, data.perm) for data in route.queue_datas]


def test_one_name_two_addresses_one_row_of_queues() -> None:
    lab = pair()
    lab.create_topic("orders", write_queue_nums=3)
    assert addresses(lab) == {0: MASTER, 1: SLAVE}
    assert permissions(lab) == [(3, 6)]


def test_a_slaves_topics_count_only_without_a_master() -> None:
    lab = pair()
    lab.create_topic("orders", write_queue_nums=3)
    lab.run_for("2m")  # the slave has registered with its own table by now
    slave = lab.broker(SLAVE)
    slave.on_its_node(lambda: slave.node.topics.delete("orders"))
    lab.run_for("35s")
    assert permissions(lab) == [(3, 6)]


def test_when_the_master_is_gone_the_slave_stays_with_all_permissions() -> None:
    lab = pair()
    lab.create_topic("orders", write_queue_nums=3)
    lab.run_for("65s")
    lab.kill(MASTER)
    lab.run_for("1s")
    assert addresses(lab) == {1: SLAVE}
    lab.run_for("5m")
    assert addresses(lab) == {1: SLAVE} and permissions(lab) == [(3, 6)]
    lab.kill(SLAVE)
    lab.run_for("1s")
    assert addresses(lab) is None


def test_a_master_without_power_stays_in_the_route_for_two_minutes() -> None:
    lab = pair()
    lab.create_topic("orders")
    lab.power_off(MASTER)
    lab.run_for("85s")
    assert addresses(lab) == {0: MASTER, 1: SLAVE}
    lab.run_for("45s")
    assert addresses(lab) == {1: SLAVE}


def test_the_master_comes_back_into_the_route_at_once() -> None:
    lab = pair()
    lab.create_topic("orders")
    lab.kill(MASTER)
    lab.run_for("40s")
    lab.start(MASTER)
    lab.run_for("50ms")
    assert addresses(lab) == {0: MASTER, 1: SLAVE}


def test_a_slave_that_starts_before_its_master_is_linked_after_its_next_registration() -> None:
    lab = pair()
    fill(lab, 4)
    lab.kill(SLAVE)
    lab.kill(MASTER)
    lab.start(SLAVE)
    started_ms = lab.now_ms - lab.began_ms
    lab.run_for("12s")
    assert lab.broker(SLAVE).replication.client.master_address is None
    lab.start(MASTER)
    lab.run_for("40s")
    [*_, known] = moments(lab, "ha.master_known")
    [*_, linked] = moments(lab, "ha.connected")
    assert started_ms + 40_000 <= known <= started_ms + 40_010  # 0, 10, 40 s: the first answer that names a master
    assert known <= linked <= known + 5_010
    fill(lab, 4)
    assert log_bytes(lab, SLAVE) == log_bytes(lab, MASTER)


def test_a_fixed_address_is_never_changed() -> None:
    lab = quiet_lab(seed=5, replicas=1, replica={"ha_master_address": "10.0.0.2:10912"})
    assert lab.broker(MASTER).ha_address == "10.0.0.2:10912"
    lab.run_for("2m")
    assert moments(lab, "ha.master_known") == [moments(lab, "ha.master_known")[0]]
    assert lab.broker(SLAVE).replication.client.master_address == "10.0.0.2:10912"


def test_a_restarted_name_server_hears_the_slave_before_the_master() -> None:
    lab = pair(name_servers=2)
    lab.create_topic("orders")
    lab.run_for("80s")
    lab.kill("nameserver-2")
    lab.kill(MASTER)  # its registrations move to another moment than the slave's
    lab.run_for("12s")
    lab.start(MASTER)
    lab.run_for("15s")
    lab.start("nameserver-2")
    seen = []
    for _ in range(400):
        lab.run_for("100ms")
        found = addresses(lab, "nameserver-2")
        if found is not None and (not seen or seen[-1] != found):
            seen.append(found)
    assert seen[-1] == {0: MASTER, 1: SLAVE} and len(seen) == 2
    assert seen[0] in ({1: SLAVE}, {0: MASTER})


def test_a_name_server_that_does_not_know_the_master_stops_the_copying_of_tables_but_not_the_log() -> None:
    lab = pair(name_servers=2)
    lab.create_topic("orders")
    lab.run_for("1s")
    slave = lab.broker(SLAVE)
    known = slave.replication.client.master_address
    slave.on_its_node(lambda: slave.node.replication.registered(None, None))  # the first answer of a round came from it
    assert slave.replication.synchronize.master_address is None
    assert slave.replication.client.master_address == known
    lab.run_for("31s")
    assert slave.replication.synchronize.master_address == lab.broker(MASTER).address


def test_both_name_servers_know_every_slave() -> None:
    lab = pair(name_servers=2, brokers=2)
    lab.create_topic("orders")
    send(lab.producer("shop"), "заказ")
    for server in ("nameserver-1", "nameserver-2"):
        brokers = lab.name_server(server).routes.brokers
        assert {name: sorted(data.broker_addrs) for name, data in brokers.items()} == {
            "broker-a": [0, 1],
            "broker-b": [0, 1],
        }
