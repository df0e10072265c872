"""Several name servers that never talk to each other: which one is asked, what differing ones do.

Mirrors: NettyRemotingClient.getAndCreateNameserverChannel, BrokerOuterAPI.registerBrokerAll.
"""

from __future__ import annotations

from typing import Any

import pytest

from mqlab import Lab, Message
from mqlab.errors import MqlabError, PartlyDone
from mqlab.rocketmq.wire.codes import RequestCode
from tests.lab.scenarios.stories import Seen, frames, member, quiet_lab

A, B = "nameserver-1", "nameserver-2"


def used(lab: Lab, client: str) -> str:
    """The name server that a client has chosen."""
    chosen = lab.handles[client].node.client.cluster.name_servers.chosen
    return next(name for name in (A, B) if lab.name_server(name).address == chosen)


def two_servers(brokers: int = 1, **settings: Any) -> Lab:
    lab = quiet_lab(name_servers=2, brokers=brokers, **settings)
    lab.create_topic("orders", read_queue_nums=2, write_queue_nums=2)
    return lab


def listed(lab: Lab) -> list[str]:
    """The brokers that nameserver-1 names for the topic."""
    return sorted(data.broker_name for data in lab.name_server(A).routes.route("orders").queue_datas)


def forgetful(lab: Lab) -> Lab:
    """nameserver-2 restarts and hears of no broker: it is cut off from all of them."""
    for broker in ("broker-a", "broker-b"):
        if broker in lab.handles:
            lab.partition(broker, B)
    lab.kill(B)
    lab.start(B)
    assert lab.name_server(B).routes.route("orders") is None
    return lab


def three_sends(lab: Lab, name: str) -> list[str]:
    """What a fresh producer's first three sends end with: SEND_OK or the error's text."""
    producer = lab.producer("shop", name=name)
    told = []
    for _ in range(3):
        try:
            told.append(producer.send(Message("orders", "заказ 订单".encode())).send_status)
        except MqlabError as error:
            told.append(str(error))
    return told


def test_one_that_knows_no_broker_is_believed_for_ever() -> None:
    """[R] B (running, knows no broker); A: half of the clients send, the other half never recovers while B lives."""
    lab = forgetful(two_servers(seed=51))
    found = {f"shop-{number}": three_sends(lab, f"shop-{number}") for number in range(6)}
    asked = {name: used(lab, name) for name in found}
    assert set(asked.values()) == {A, B}  # the seed sees to it that both are chosen
    for name, told in found.items():
        if asked[name] == A:
            assert told == ["SEND_OK"] * 3
        else:
            assert all("No route info of this topic" in text for text in told)
    unlucky = next(name for name in found if asked[name] == B)
    lab.run_for("10m")
    assert used(lab, unlucky) == B
    with pytest.raises(MqlabError, match="No route info of this topic"):
        lab.handles[unlucky].send(Message("orders", b"x"))


def test_a_dead_one_costs_the_first_send() -> None:
    """[R] dead; A: half of the clients fail once and then send, half send at once."""
    lab = two_servers(seed=52)
    lab.kill(B)
    found = [three_sends(lab, f"shop-{number}") for number in range(6)]
    assert all(told[1:] == ["SEND_OK", "SEND_OK"] for told in found)
    first = {told[0] == "SEND_OK" for told in found}
    assert first == {True, False}
    assert all("connect" in told[0] for told in found if told[0] != "SEND_OK")


def test_two_dead_ones_fail_every_send_at_once() -> None:
    lab = two_servers(seed=53)
    lab.kill(A)
    lab.kill(B)
    began_ms = lab.now_ms
    assert all("connect" in told for told in three_sends(lab, "shop-1"))
    assert lab.now_ms - began_ms <= 30


def test_the_one_in_use_dies_and_nobody_notices() -> None:
    """[R] A; A2, A2 killed while in use: the closed connection is seen, the next call goes to A."""
    lab = two_servers(seed=54)
    for topic in ("one", "two", "three"):
        lab.create_topic(topic)
    producer = lab.producer("shop")
    producer.send(Message("orders", b"x"))
    first = used(lab, "shop-1")
    lab.run_for("2m")
    assert used(lab, "shop-1") == first  # one at a time, for the life of the connection
    lab.kill(first)
    lab.run_for("1s")
    assert [producer.send(Message(topic, b"x")).send_status for topic in ("one", "two", "three")] == ["SEND_OK"] * 3


def test_cached_routes_outlive_all_name_servers() -> None:
    lab = two_servers(seed=55)
    producer = lab.producer("shop")
    producer.send(Message("orders", b"x"))
    lab.kill(A)
    lab.kill(B)
    lab.run_for("10m")
    assert producer.send(Message("orders", b"x")).send_status == "SEND_OK"
    with pytest.raises(MqlabError):
        producer.send(Message("never-asked", b"x"))


def test_brokers_register_at_every_one_and_one_that_is_down_harms_nobody() -> None:
    lab = two_servers(seed=56)
    assert all(lab.name_server(name).routes.route("orders") is not None for name in (A, B))
    lab.kill(B)
    lab.create_topic("payments")
    assert lab.name_server(A).routes.route("payments") is not None
    lab.start(B)
    assert lab.name_server(B).routes.route("payments") is None  # its state was in memory
    lab.run_for("31s")  # each broker's own tick
    assert lab.name_server(B).routes.route("payments") is not None


def test_reads_ask_one_and_writes_of_values_ask_all_and_tell_which_is_down() -> None:
    lab = two_servers(seed=57)
    lab.admin.put_kv_config("ORDER_TOPIC_CONFIG", "orders", "broker-a:2")
    assert [lab.name_server(name).kv_config.get("ORDER_TOPIC_CONFIG", "orders") for name in (A, B)] == [
        "broker-a:2"
    ] * 2
    before = len(frames(lab, RequestCode.GET_ROUTEINFO_BY_TOPIC))
    lab.admin.examine_topic_route_info("orders")
    assert len(frames(lab, RequestCode.GET_ROUTEINFO_BY_TOPIC)) == before + 1
    lab.kill(A)
    with pytest.raises(PartlyDone, match="1 of 2 steps were done"):  # docs/differences.md: every step is tried
        lab.admin.put_kv_config("ORDER_TOPIC_CONFIG", "orders", "broker-a:4")
    assert lab.name_server(B).kv_config.get("ORDER_TOPIC_CONFIG", "orders") == "broker-a:4"


def test_wiping_the_permission_asks_each_on_its_own() -> None:
    lab = two_servers(seed=58, brokers=2)
    lab.admin.cluster_list()
    lab.kill(A)
    with pytest.raises(PartlyDone) as told:
        lab.admin.wipe_write_perm("broker-b")
    assert lab.name_server(B).address in str(told.value)
    perms = {data.broker_name: data.perm for data in lab.name_server(B).routes.route("orders").queue_datas}
    assert perms == {"broker-a": 6, "broker-b": 4}


def test_members_with_different_views_own_queues_twice_or_not_at_all() -> None:
    """On paper: who sees both brokers divides [a0 a1 b0 b1], who sees broker-a alone divides [a0 a1] and heartbeats to
    broker-a alone. So the first takes half of four when it asks broker-a who else there is, all four when it asks
    broker-b; the second takes its half of two: some queue has two owners, or some none, or both.
    """
    lab = quiet_lab(seed=59, name_servers=2, brokers=2)
    lab.create_topic("orders", read_queue_nums=2, write_queue_nums=2)
    lab.partition("broker-b", B)
    lab.run_for("3m")
    members = [member(lab, "billing", name=f"billing-{number}") for number in (1, 2)]
    for _ in range(20):
        lab.run_for("40s")
        if {used(lab, each.name) for each in members} == {A, B}:
            break
        lab.kill(members[1])
        lab.start(members[1])
    views = {each.name: used(lab, each.name) for each in members}
    shares = {
        each.name: sorted((q.broker_name[-1], q.queue_id) for q in each.message_queues if q.topic == "orders")
        for each in members
    }
    whole, half = [("a", 0), ("a", 1), ("b", 0), ("b", 1)], [("a", 0), ("a", 1)]
    sees_all = next(name for name in views if views[name] == A)
    sees_half = next(name for name in views if views[name] == B)
    mine, other = (slice(0, 2), slice(1, 2)) if sees_all == "billing-1" else (slice(2, 4), slice(0, 1))
    assert shares[sees_all] in (whole, whole[mine])
    assert shares[sees_half] == half[other]
    union = [*shares["billing-1"], *shares["billing-2"]]
    assert len(set(union)) < len(union) or set(union) != set(whole)
    lab.heal()
    lab.run_for("2m")
    healed = [(q.broker_name[-1], q.queue_id) for each in members for q in each.message_queues if q.topic == "orders"]
    assert sorted(healed) == whole


def test_a_dead_broker_that_is_still_listed_costs_retries_only() -> None:
    lab = quiet_lab(seed=60, name_servers=2, brokers=2)
    lab.create_topic("orders", read_queue_nums=2, write_queue_nums=2)
    for server in (A, B):
        lab.partition("broker-b", server)
    lab.kill("broker-b")  # the name servers do not hear that the connection closed
    producer = lab.producer("shop")
    results = [producer.send(Message("orders", b"x")) for _ in range(8)]
    assert {result.message_queue.broker_name for result in results} == {"broker-a"}
    assert listed(lab) == ["broker-a", "broker-b"]
    lab.run_for("130s")
    assert listed(lab) == ["broker-a"]


def test_an_order_configuration_written_to_one_makes_ordered_routes_differ() -> None:
    lab = two_servers(seed=61, name_server={"order_message_enable": True})
    lab.kill(B)
    server = lab.name_server(A)
    lab.admin.ask(
        server.address, RequestCode.PUT_KV_CONFIG, namespace="ORDER_TOPIC_CONFIG", key="orders", value="broker-a:1"
    )
    lab.start(B)
    lab.run_for("31s")
    routes = {name: lab.admin.ask(lab.name_server(name).address, 105, topic="orders").body or b"" for name in (A, B)}
    assert b'"orderTopicConf":"broker-a:1"' in routes[A] and b"broker-a:1" not in routes[B]


def test_consumption_goes_on_when_the_one_in_use_is_cut_off() -> None:
    lab = two_servers(seed=62)
    seen = Seen(lab)
    consumer = member(lab, "billing", seen)
    producer = lab.producer("shop")
    lab.run_for("5s")
    lab.partition(consumer.name, used(lab, consumer.name))
    for number in range(10):
        producer.send(Message("orders", f"付款 {number}".encode()))
    lab.run_for("2m")
    assert sorted(seen.bodies) == sorted(f"付款 {number}" for number in range(10)) and lab.verify("billing").is_clean
