"""Who tells whom where a topic lives, how long a dead broker is still offered, more and fewer queues.

Mirrors: RouteInfoManager, MQClientInstance.updateTopicRouteInfoFromNameServer.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import pytest

from mqlab import Lab, Message
from mqlab.errors import ClientError, RemotingError
from mqlab.rocketmq.client.sending.queue_selection import select_by_hash
from mqlab.rocketmq.wire import java_json
from tests.lab.scenarios.stories import Seen, Tool, frames, member, owned, quiet_lab, row, send, send_many, total_lag

REGISTER, UNREGISTER, ROUTE = 103, 104, 105


def brokers_of(lab: Lab, topic: str = "orders", server: str = "nameserver-1") -> list[str]:
    """The brokers that a name server offers for a topic."""
    route = lab.name_server(server).routes.route(topic)
    return [] if route is None else [data.broker_name for data in route.queue_datas]


def until(lab: Lab, holds: Callable[[], bool]) -> int:
    began_ms = lab.now_ms
    lab.run_until(holds, limit="10m")
    return lab.now_ms - began_ms


def test_a_broker_registers_with_every_name_server_and_again_every_thirty_seconds() -> None:
    lab = quiet_lab(name_servers=2)
    lab.run_for("2m")
    for server in ("nameserver-1", "nameserver-2"):
        times = [one.now_ms for one in frames(lab, REGISTER, server)]
        assert [later - earlier for earlier, later in itertools.pairwise(times)] == [10_000, 30_000, 30_000, 30_000]


def test_a_new_topic_is_told_at_once_and_alone() -> None:
    lab = quiet_lab()
    lab.run_for("15s")
    before = len(frames(lab, REGISTER))
    lab.create_topic("orders")
    told = frames(lab, REGISTER)[before:]
    assert len(told) == 1
    table = java_json.loads(told[0].about.body.decode())["topicConfigSerializeWrapper"]["topicConfigTable"]
    assert list(table) == ["orders"]


def a_kill(lab: Lab) -> None:
    lab.kill("broker-b")


def a_power_cut(lab: Lab) -> None:
    lab.power_off("broker-b")


def a_shutdown(lab: Lab) -> None:
    lab.broker("broker-b").shutdown()


@pytest.mark.parametrize(
    ("goes", "least_ms", "most_ms"),
    [(a_shutdown, 0, 10), (a_kill, 0, 10), (a_power_cut, 90_000, 125_000)],
)
def test_how_long_a_gone_broker_stays_in_the_routes(goes: Callable[[Lab], None], least_ms: int, most_ms: int) -> None:
    lab = quiet_lab(brokers=2)
    lab.create_topic("orders")
    lab.run_for("25s")
    goes(lab)
    assert least_ms <= until(lab, lambda: brokers_of(lab) == ["broker-a"]) <= most_ms


def test_clients_learn_with_their_next_poll_and_use_what_they_know_until_then() -> None:
    lab = quiet_lab(brokers=2)
    lab.create_topic("orders", read_queue_nums=2, write_queue_nums=2)
    producer = lab.producer("shop")
    queues = lambda: len(producer.sender.topic_publish_info["orders"].queues)  # noqa: E731
    send(producer, "x")
    lab.run_for("1s")
    lab.kill("broker-b")
    lab.run_for("1s")
    assert brokers_of(lab) == ["broker-a"] and queues() == 4
    assert until(lab, lambda: queues() == 2) <= 30_100


def test_without_any_name_server_clients_go_on_with_what_they_know() -> None:
    lab = quiet_lab()
    lab.create_topic("orders")
    seen = Seen(lab)
    member(lab, "billing", seen)
    producer = lab.producer("shop")
    lab.run_for("5s")
    send(producer, "before")
    lab.kill("nameserver-1")
    lab.run_for("5m")
    send(producer, "after")
    lab.run_for("5s")
    assert seen.bodies == ["before", "after"]
    with pytest.raises(RemotingError):
        send(producer, "x", topic="unknown")


def test_name_servers_do_not_talk_to_each_other() -> None:
    lab = quiet_lab(name_servers=2)
    lab.create_topic("orders")
    lab.run_for("11s")
    lab.partition("broker-a", "nameserver-2")
    lab.broker().create_topic(_topic("refunds"))
    lab.run_for("5s")
    assert brokers_of(lab, "refunds") == ["broker-a"]
    assert brokers_of(lab, "refunds", "nameserver-2") == []
    lab.run_for("150s")
    assert brokers_of(lab, "orders", "nameserver-2") == []  # it has not heard of the broker for two minutes
    lab.heal()
    lab.run_for("40s")
    assert brokers_of(lab, "refunds", "nameserver-2") == ["broker-a"]


def _topic(name: str, **counts: int) -> Any:
    from mqlab.rocketmq.wire.bodies import TopicConfig

    return TopicConfig(name, **{"read_queue_nums": 4, "write_queue_nums": 4, **counts})


def test_a_topic_deleted_at_its_broker_stays_in_the_routes() -> None:
    lab = quiet_lab()
    lab.create_topic("orders")
    tool = Tool(lab)
    assert tool.ask(215, topic="orders").code == 0
    lab.run_for("45s")
    assert "orders" not in lab.broker().topics and brokers_of(lab) == ["broker-a"]
    assert tool.ask(216, to="10.0.0.1:9876", topic="orders").code == 0
    assert brokers_of(lab) == []


def test_an_unknown_topic_has_no_route() -> None:
    lab = quiet_lab()
    answer = Tool(lab).ask(ROUTE, to="10.0.0.1:9876", topic="nothing")
    assert answer.code == 17


@pytest.mark.parametrize(
    ("perm", "written", "read"), [(6, True, True), (4, False, True), (2, True, False), (7, True, True)]
)
def test_what_a_topics_permissions_allow(perm: int, written: bool, read: bool) -> None:
    lab = quiet_lab()
    lab.create_topic("orders", read_queue_nums=1, write_queue_nums=1)
    producer = lab.producer("shop")
    send(producer, "first")
    lab.create_topic("orders", read_queue_nums=1, write_queue_nums=1, perm=perm)
    lab.run_for("31s")
    if written:
        send(producer, "second")
    else:
        with pytest.raises(ClientError, match="No route info"):
            send(producer, "second")
    seen = Seen(lab)
    consumer = member(lab, "billing", seen)
    lab.run_for("10s")
    assert bool(owned(consumer)) == read == bool(seen.bodies)


def test_wiping_a_brokers_write_permission_drains_it() -> None:
    lab = quiet_lab(brokers=2)
    lab.create_topic("orders", read_queue_nums=2, write_queue_nums=2)
    seen = Seen(lab)
    member(lab, "billing", seen)
    producer = lab.producer("shop")
    send(producer, *"abcdefgh")
    answer = Tool(lab).ask(205, to="10.0.0.1:9876", brokerName="broker-b")
    assert int(answer.ext_fields["wipeTopicCount"]) >= 1
    lab.run_for("31s")
    results = send(producer, *"ijklmnop")
    assert {result.message_queue.broker_name for result in results} == {"broker-a"}
    lab.run_for("10s")
    assert sorted(seen.bodies) == list("abcdefghijklmnop")


def test_sixteen_queues_become_eight_without_a_loss() -> None:
    """Write 8 and read 16; wait for the producers' route poll and until all groups have drained 8..15; then read 8."""
    lab = quiet_lab()
    lab.create_topic("orders", read_queue_nums=16, write_queue_nums=16)
    seen = {group: Seen(lab) for group in ("billing", "audit")}
    for group, listener in seen.items():
        member(lab, group, listener)
    producer = lab.producer("shop")
    traffic = lab.traffic(producer, rates=[("0s", 4)], message=lambda n: Message("orders", str(n).encode()))
    lab.run_for("20s")
    lab.create_topic("orders", read_queue_nums=16, write_queue_nums=8)
    lab.run_for("35s")
    ends = [lab.broker().store.max_offset("orders", queue) for queue in range(8, 16)]
    lab.run_for("20s")
    assert [lab.broker().store.max_offset("orders", queue) for queue in range(8, 16)] == ends
    assert all(row(lab, group, queue).lag == 0 for group in seen for queue in range(8, 16))
    lab.create_topic("orders", read_queue_nums=8, write_queue_nums=8)
    lab.run_for("60s")
    traffic.stop()
    lab.run_for("5s")
    for listener in seen.values():
        assert sorted(map(int, listener.bodies)) == list(range(traffic.sent))


def test_cutting_both_numbers_at_once_leaves_messages_unread() -> None:
    lab = quiet_lab()
    lab.create_topic("orders", read_queue_nums=4, write_queue_nums=4)
    producer = lab.producer("shop")
    for queue in range(4):
        send(producer, str(queue), queue=queue)
    lab.create_topic("orders", read_queue_nums=2, write_queue_nums=2)
    seen = Seen(lab)
    member(lab, "billing", seen)
    lab.run_for("60s")
    assert sorted(seen.bodies) == ["0", "1"] and total_lag(lab, "billing") == 0
    assert lab.broker().store.max_offset("orders", 3) == 1


def test_eight_queues_become_sixteen_and_new_ones_are_read_up_to_fifty_seconds_later() -> None:
    lab = quiet_lab()
    lab.create_topic("orders", read_queue_nums=2, write_queue_nums=2)
    seen = Seen(lab)
    consumer = member(lab, "billing", seen)
    lab.run_for("42s")
    lab.create_topic("orders", read_queue_nums=4, write_queue_nums=4)
    fresh = lab.producer("shop")
    for queue in range(4):
        send(fresh, str(queue), queue=queue)
    lab.run_for("1s")
    assert sorted(seen.bodies) == ["0", "1"]
    assert until(lab, lambda: owned(consumer) == [0, 1, 2, 3]) <= 50_000
    lab.run_for("5s")
    assert sorted(seen.bodies) == ["0", "1", "2", "3"]  # new queues begin at 0: their first message is young


def test_a_late_producer_still_succeeds_while_the_topic_shrinks() -> None:
    lab = quiet_lab()
    lab.create_topic("orders", read_queue_nums=4, write_queue_nums=4)
    producer = lab.producer("shop")
    send(producer, "early", queue=3)
    lab.create_topic("orders", read_queue_nums=4, write_queue_nums=2)
    assert send(producer, "late", queue=3)[0].send_status == "SEND_OK"


def test_an_order_configuration_keeps_keys_where_they_were_even_when_a_broker_dies() -> None:
    lab = quiet_lab(brokers=2, name_server={"order_message_enable": True})
    lab.create_topic("orders", read_queue_nums=2, write_queue_nums=2)
    tool = Tool(lab)
    settings = {"namespace": "ORDER_TOPIC_CONFIG", "key": "orders", "value": "broker-b:2;broker-a:2"}
    tool.ask(100, to="10.0.0.1:9876", **settings)
    producer = lab.producer("shop")
    queues = [(queue.broker_name, queue.queue_id) for queue in producer.fetch_publish_message_queues("orders")]
    assert queues == [("broker-b", 0), ("broker-b", 1), ("broker-a", 0), ("broker-a", 1)]  # as it says, in its order
    lab.kill("broker-b")
    lab.run_for("40s")
    assert len(producer.fetch_publish_message_queues("orders")) == 4
    for key, works in (("order-1", True), ("order-3", False)):  # queues 2 and 0 of the four
        message = Message("orders", key.encode(), keys=key)
        if works:
            assert producer.send(message, selector=select_by_hash, arg=key).send_status == "SEND_OK"
        else:
            with pytest.raises((ClientError, RemotingError)):
                producer.send(message, selector=select_by_hash, arg=key)


def test_messages_of_a_batch_go_where_the_route_says() -> None:
    lab = quiet_lab(brokers=3)
    lab.create_topic("orders", brokers=["broker-b"])
    producer = lab.producer("shop")
    send_many(producer, 50)
    assert brokers_of(lab) == ["broker-b"]
    assert sum(lab.broker("broker-b").store.max_offset("orders", queue) for queue in range(4)) == 50
