"""Two name servers that never talk to each other: failover, partition, and routes that disagree."""

from __future__ import annotations

import pytest

from mqlab import Lab, Message
from mqlab.errors import MqlabError
from tests.lab.scenarios.stories import Seen, member, owned, quiet_lab

SERVERS = ("nameserver-1", "nameserver-2")


def used_server(lab: Lab, client: str) -> str:
    """The name server a client is connected to."""
    chosen = lab.handles[client].node.client.cluster.name_servers.chosen
    return next(name for name in SERVERS if chosen and lab.name_server(name).address == chosen)


def other(server: str) -> str:
    return SERVERS[1 - SERVERS.index(server)]


def test_a_client_sticks_to_one_and_takes_the_next_when_it_dies() -> None:
    lab = quiet_lab(seed=31, name_servers=2)
    for topic in ("orders", "payments"):
        lab.create_topic(topic)
    producer = lab.producer("shop")
    producer.send(Message("orders", "заказ".encode()))
    first = used_server(lab, "shop-1")
    lab.run_for("2m")
    assert used_server(lab, "shop-1") == first
    lab.kill(first)
    lab.run_for("1s")
    assert producer.send(Message("payments", "支付".encode())).send_status == "SEND_OK"  # a topic it never asked about
    assert used_server(lab, "shop-1") == other(first)


def test_known_routes_outlive_all_name_servers() -> None:
    lab = quiet_lab(seed=32, name_servers=2)
    lab.create_topic("orders")
    lab.create_topic("payments")
    producer = lab.producer("shop")
    producer.send(Message("orders", b"1"))
    for server in SERVERS:
        lab.kill(server)
    lab.run_for("5m")
    assert producer.send(Message("orders", b"2")).send_status == "SEND_OK"
    with pytest.raises(MqlabError):
        producer.send(Message("payments", b"3"))


def test_a_restarted_name_server_is_empty_until_the_brokers_next_registration() -> None:
    lab = quiet_lab(seed=33, name_servers=2)
    lab.create_topic("orders")
    lab.kill("nameserver-2")
    lab.start("nameserver-2")
    assert lab.name_server("nameserver-2").routes.route("orders") is None
    assert lab.name_server("nameserver-1").routes.route("orders") is not None
    lab.run_for("31s")
    assert lab.name_server("nameserver-2").routes.route("orders") is not None


def test_a_partition_from_one_name_server_makes_routes_that_disagree() -> None:
    lab = quiet_lab(seed=34, name_servers=2, brokers=2)
    lab.create_topic("orders", read_queue_nums=2, write_queue_nums=2)
    lab.partition("broker-b", "nameserver-2")
    lab.run_for("3m")  # silent for more than 120 s: nameserver-2 lets broker-b go
    seen = {name: lab.name_server(name).routes.route("orders") for name in SERVERS}
    brokers = {name: sorted(data.broker_name for data in route.queue_datas) for name, route in seen.items()}
    assert brokers == {"nameserver-1": ["broker-a", "broker-b"], "nameserver-2": ["broker-a"]}
    used = set()
    for number in range(8):  # whom a producer sends to depends on whom it asked
        producer = lab.producer("shop", name=f"shop-{number}")
        sent = {producer.send(Message("orders", b"x")).message_queue.broker_name for _ in range(8)}
        assert sent == set(brokers[used_server(lab, f"shop-{number}")])
        used.add(used_server(lab, f"shop-{number}"))
    assert used == set(SERVERS)
    lab.heal()
    lab.run_for("35s")
    assert {data.broker_name for data in lab.name_server("nameserver-2").routes.route("orders").queue_datas} == {
        "broker-a",
        "broker-b",
    }


def test_members_that_see_different_routes_own_queues_twice_or_not_at_all() -> None:
    lab = quiet_lab(seed=35, name_servers=2, brokers=2)
    lab.create_topic("orders", read_queue_nums=2, write_queue_nums=2)
    lab.partition("broker-b", "nameserver-2")
    lab.run_for("3m")
    members = [member(lab, "billing", name=f"billing-{number}") for number in range(2)]
    for _ in range(8):  # until the two happen to ask different name servers
        lab.run_for("30s")
        if len({used_server(lab, each.name) for each in members}) == 2:
            break
        lab.kill(members[1])
        lab.start(members[1])
    assert len({used_server(lab, each.name) for each in members}) == 2
    lab.run_for("1m")
    claimed = [queue for each in members for queue in each.message_queues if queue.topic == "orders"]
    every = {(broker, number) for broker in ("broker-a", "broker-b") for number in range(2)}
    once = {(queue.broker_name, queue.queue_id) for queue in claimed}
    assert len(claimed) != len(once) or once != every
    lab.heal()
    lab.run_for("2m")
    healed = [
        (queue.broker_name, queue.queue_id)
        for each in members
        for queue in each.message_queues
        if queue.topic == "orders"
    ]
    assert sorted(healed) == sorted(every)
    assert sum(len(owned(each)) for each in members) == 4


def test_consumption_goes_on_when_the_name_server_in_use_is_cut_off() -> None:
    lab = quiet_lab(seed=36, name_servers=2)
    lab.create_topic("orders")
    seen = Seen(lab)
    consumer = member(lab, "billing", seen)
    producer = lab.producer("shop")
    lab.run_for("5s")
    lab.partition(consumer.name, used_server(lab, consumer.name))
    for number in range(10):
        producer.send(Message("orders", f"заказ {number}".encode()))
    lab.run_for("2m")
    assert sorted(seen.bodies) == sorted(f"заказ {number}" for number in range(10))
    assert lab.verify("billing").is_clean
