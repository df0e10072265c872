"""client_ip: what a client calls itself, and two processes that call themselves the same."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

from mqlab import CONSUME_SUCCESS, SUCCESS, Lab, Message, play
from mqlab.errors import UsageError

ONE_ID = {"client_ip": "10.0.0.3", "instance_name": "billing"}


def member(lab: Lab, name: str, *, orderly: bool = False, **settings: Any) -> Any:
    consumer = lab.push_consumer("billing", name=name, **settings)
    consumer.subscribe("orders", "*")
    if orderly:
        consumer.on_messages_orderly(lambda messages, context: SUCCESS)
    else:
        consumer.on_messages(lambda messages, context: CONSUME_SUCCESS)
    consumer.start()
    return consumer


def owned(consumer: Any) -> list[int]:
    return [queue.queue_id for queue in consumer.message_queues if queue.topic == "orders"]


def test_the_id_is_made_of_the_settings_and_of_the_machine_where_they_are_missing() -> None:
    def story(lab: Lab) -> None:
        plain = lab.push_consumer("billing", name="plain")
        assert plain.client_id == f"{lab.world.nodes['plain'].ip}@plain"
        assert lab.push_consumer("billing", name="both", **ONE_ID).client_id == "10.0.0.3@billing"
        assert lab.push_consumer("billing", name="ip", client_ip="172.17.0.2").client_id == "172.17.0.2@ip"
        assert lab.producer("shop", client_ip="10.9.9.9").client_id == "10.9.9.9@shop-1"
        assert lab.pull_consumer("audit", client_ip="10.9.9.9").client_id.startswith("10.9.9.9@audit-1")

    play(story, seed=1)


@pytest.mark.parametrize("wrong", ["", "  ", 7])
def test_an_id_without_an_address_is_refused(wrong: Any) -> None:
    with pytest.raises(UsageError, match=r"client_ip=.* cannot be a part of a client id"):
        Lab(seed=1).push_consumer("billing", client_ip=wrong)


def test_it_is_what_a_member_reports_and_not_where_its_connection_comes_from() -> None:
    lab = Lab(seed=1)
    lab.create_topic("orders", read_queue_nums=4, write_queue_nums=4)
    consumer = member(lab, "far", client_ip="172.17.0.2")
    lab.run_for("5s")
    (shown,) = lab.admin.examine_consumer_connection_info("billing").connections
    assert shown.client_id == consumer.client_id == "172.17.0.2@far"
    assert shown.client_addr.partition(":")[0] == lab.world.nodes["far"].ip
    running = lab.admin.get_consumer_running_info("billing", consumer.client_id)
    assert running.properties["clientIP"] == "172.17.0.2" and "clientIp" not in running.properties


@pytest.mark.parametrize("orderly", [False, True])
def test_two_processes_with_one_id_read_the_same_queues_and_leave_others_to_nobody(orderly: bool) -> None:
    """As a real broker and two Java processes did; the lock of orderly consumption is an id's, so both have it."""
    lab = Lab(seed=1, brokers=2)
    lab.create_topic("orders", read_queue_nums=8, write_queue_nums=8, brokers=["broker-a"])
    twins = [member(lab, name, orderly=orderly, **ONE_ID) for name in ("one", "two")]
    other = member(lab, "three", orderly=orderly)
    lab.run_for("45s")
    assert [owned(each) for each in (*twins, other)] == [[0, 1, 2], [0, 1, 2], [6, 7]]
    shop = lab.producer("shop")
    for _ in range(16):
        shop.send(Message("orders", b"x"))
    lab.run_for("10s")
    rows = lab.deliveries("billing", absences=False)
    assert Counter(row.client for row in rows) == {"one": 6, "two": 6, "three": 4}
    assert len({row.msg_id for row in rows}) == 10
    # mqadmin lists the id twice, each time with the address of its connection.
    members = lab.admin.examine_consumer_connection_info("billing").connections
    assert [each.client_id for each in members].count("10.0.0.3@billing") == 2
    assert len({each.client_addr for each in members}) == 3


def test_when_one_of_the_two_leaves_everything_has_an_owner_again() -> None:
    lab = Lab(seed=1)
    lab.create_topic("orders", read_queue_nums=8, write_queue_nums=8)
    twins = [member(lab, name, **ONE_ID) for name in ("one", "two")]
    other = member(lab, "three")
    lab.run_for("45s")
    twins[1].shutdown()
    lab.run_for("25s")
    assert [owned(twins[0]), owned(other)] == [[0, 1, 2, 3], [4, 5, 6, 7]]
