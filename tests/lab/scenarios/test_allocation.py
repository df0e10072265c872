"""Who gets which queue, as members of whole groups find out for themselves.

Mirrors: AllocateMessageQueueStrategy and its classes.
"""

from __future__ import annotations

from typing import Any

import pytest

from mqlab import Lab, MessageQueue
from mqlab.rocketmq.client.allocate import strategy
from mqlab.rocketmq.wire.bodies import ConsumerData, HeartbeatData, SubscriptionData
from tests.lab.scenarios.stories import Seen, Tool, changes, member, owned, quiet_lab, send

SETTLED = "5s"


def settled_group(size: int, queues: int, **settings: Any) -> tuple[Lab, list[Any]]:
    """A group whose members have all seen each other."""
    lab = quiet_lab()
    lab.create_topic("orders", read_queue_nums=queues, write_queue_nums=queues)
    members = [member(lab, "billing", name=f"billing-{n + 1}", **settings) for n in range(size)]
    lab.run_for(SETTLED)
    return lab, members


@pytest.mark.parametrize(
    ("queues", "size", "averagely", "by_circle"),
    [
        (8, 3, [[0, 1, 2], [3, 4, 5], [6, 7]], [[0, 3, 6], [1, 4, 7], [2, 5]]),
        (10, 4, [[0, 1, 2], [3, 4, 5], [6, 7], [8, 9]], [[0, 4, 8], [1, 5, 9], [2, 6], [3, 7]]),
        (3, 5, [[0], [1], [2], [], []], [[0], [1], [2], [], []]),
    ],
)
def test_averagely_and_by_circle(
    queues: int, size: int, averagely: list[list[int]], by_circle: list[list[int]]
) -> None:
    for name, expected in (("AVG", averagely), ("AVG_BY_CIRCLE", by_circle)):
        _, members = settled_group(size, queues, allocate_message_queue_strategy=name)
        assert [owned(each) for each in members] == expected, name


def test_members_without_a_queue_wait_for_one() -> None:
    lab, members = settled_group(3, 2)
    assert [owned(each) for each in members] == [[0], [1], []]
    members[0].shutdown()
    lab.run_for(SETTLED)
    assert [owned(each) for each in members] == [[], [0], [1]]


def test_queues_are_in_text_order_of_their_brokers_and_number_order_in_them() -> None:
    lab = quiet_lab(brokers=["broker-a", "broker-2", "broker-10"])
    lab.create_topic("orders", read_queue_nums=11, write_queue_nums=11)
    first, second = (member(lab, "billing", name=f"billing-{n}") for n in (1, 2))
    lab.run_for(SETTLED)
    mine = [queue for queue in first.message_queues if queue.topic == "orders"]
    assert [str(queue.broker_name) for queue in mine] == ["broker-10"] * 11 + ["broker-2"] * 6
    assert [queue.queue_id for queue in mine] == [*range(11), *range(6)]
    assert len([queue for queue in second.message_queues if queue.topic == "orders"]) == 16


def test_members_are_in_text_order_of_their_client_ids() -> None:
    """10.0.0.10 comes before 10.0.0.3: the first member of the list need not be the oldest."""
    _, members = settled_group(8, 8)
    ids = {each.client_id: owned(each) for each in members}
    assert next(iter(ids)).startswith("10.0.0.3@")
    assert [owners for _, owners in sorted(ids.items())] == [[number] for number in range(8)]
    assert owned(members[0]) == [1] and members[7].client_id.startswith("10.0.0.10@")
    assert owned(members[7]) == [0]


def test_an_unknown_second_process_with_the_same_client_id_leaves_queues_to_nobody() -> None:
    lab, members = settled_group(2, 8)
    twin = HeartbeatData(
        members[0].client_id,
        consumer_data_set=[ConsumerData("billing", subscription_data_set=[SubscriptionData("orders", "*")])],
    )
    tool = Tool(lab)
    assert tool.ask(34, twin.to_json()).code == 0
    lab.run_for(SETTLED)
    assert tool.members("billing") == sorted([members[0].client_id] * 2 + [members[1].client_id])
    assert [owned(each) for each in members] == [[0, 1, 2], [6, 7]]  # and the twin believes it has 0, 1, 2 too


def test_consistent_hash_moves_only_what_it_must_and_balances_badly() -> None:
    for name in ("AVG", "AVG_BY_CIRCLE", "CONSISTENT_HASH"):
        lab, members = settled_group(3, 8, allocate_message_queue_strategy=name)
        before = {number: each.name for each in members for number in owned(each)}
        assert sorted(before) == list(range(8))
        members.append(member(lab, "billing", name="billing-4", allocate_message_queue_strategy=name))
        lab.run_for(SETTLED)
        after = {number: each.name for each in members for number in owned(each)}
        moved = [number for number in range(8) if before[number] != after[number]]
        if name == "CONSISTENT_HASH":
            assert {after[number] for number in moved} == {"billing-4"}
            continue
        assert len(moved) == 5


def test_consistent_hash_without_virtual_nodes_gives_nobody_anything() -> None:
    _, members = settled_group(2, 4, allocate_message_queue_strategy=strategy("CONSISTENT_HASH", virtual_node_cnt=0))
    assert [owned(each) for each in members] == [[], []]


ROOMS = {"brokers": ["room1@broker-a", "room2@broker-b", "broker-c"]}


def test_machine_room_looks_at_the_names_of_brokers_only() -> None:
    lab = quiet_lab(**ROOMS)
    lab.create_topic("orders", read_queue_nums=4, write_queue_nums=4)
    chosen = {"allocate_message_queue_strategy": strategy("MACHINE_ROOM", consumeridcs=["room1"])}
    members = [member(lab, "billing", name=f"billing-{n}", **chosen) for n in (1, 2, 3)]
    lab.run_for(SETTLED)
    brokers = {queue.broker_name for each in members for queue in each.message_queues if queue.topic == "orders"}
    assert brokers == {"room1@broker-a"}
    assert [owned(each) for each in members] == [[0, 3], [1], [2]]  # the remainder comes from the tail


class ByNameOfNode:
    """broker "room1@…" and client "…@room1-…"."""

    def broker_deploy_in(self, queue: MessageQueue) -> str:
        return queue.broker_name.split("@")[0]

    def consumer_deploy_in(self, client_id: str) -> str:
        return client_id.split("@")[1].split("-")[0]


def test_nearby_reads_its_own_room_and_a_share_of_rooms_without_members() -> None:
    lab = quiet_lab(brokers=["room1@a", "room2@b", "room3@c"])
    lab.create_topic("orders", read_queue_nums=4, write_queue_nums=4)
    chosen = {
        "allocate_message_queue_strategy": strategy(
            "MACHINE_ROOM_NEARBY", inner="AVG", machine_room_resolver=ByNameOfNode()
        )
    }
    names = ["room1-x", "room1-y", "room2-x"]
    members = [member(lab, "billing", name=name, **chosen) for name in names]
    lab.run_for(SETTLED)

    def rooms(consumer: Any) -> list[str]:
        queues = [queue for queue in consumer.message_queues if queue.topic == "orders"]
        return [f"{queue.broker_name[4]}:{queue.queue_id}" for queue in queues]

    assert rooms(members[0]) == ["1:0", "1:1", "3:0", "3:1"]
    assert rooms(members[1]) == ["1:2", "1:3", "3:2"]
    assert rooms(members[2]) == ["2:0", "2:1", "2:2", "2:3", "3:3"]


def test_config_gives_the_configured_queues_and_so_no_retries() -> None:
    lab = quiet_lab()
    lab.create_topic("orders")
    listener = Seen(lab, "RECONSUME_LATER", "CONSUME_SUCCESS")
    only = strategy("CONFIG", message_queue_list=[MessageQueue("orders", "broker-a", 2)])
    consumer = member(lab, "billing", listener, allocate_message_queue_strategy=only)
    producer = lab.producer("shop")
    lab.run_for(SETTLED)
    send(producer, "q1", queue=1)
    send(producer, "q2", queue=2)
    lab.run_for("60s")
    assert owned(consumer) == [2] and len(consumer.message_queues) == 1
    assert listener.bodies == ["q2"]
    assert lab.broker().store.max_offset("%RETRY%billing", 0) == 1  # its retry is there, and no member reads it


class EvenAndOdd:
    """A learner's own strategy: even numbers to the first member, odd ones to the second."""

    name = "EVEN_AND_ODD"

    def allocate(self, group: str, client_id: str, queues: list[MessageQueue], client_ids: list[str]) -> Any:
        assert queues == sorted(queues) and client_ids == sorted(client_ids)
        return [queue for queue in queues if queue.queue_id % len(client_ids) == client_ids.index(client_id)]


def test_a_strategy_of_ones_own() -> None:
    _, members = settled_group(2, 6, allocate_message_queue_strategy=EvenAndOdd())
    assert [owned(each) for each in members] == [[0, 2, 4], [1, 3, 5]]


def test_members_with_different_strategies_own_queues_twice_and_not_at_all() -> None:
    lab = quiet_lab()
    lab.create_topic("orders", read_queue_nums=4, write_queue_nums=4)
    first = member(lab, "billing", allocate_message_queue_strategy="AVG")
    second = member(lab, "billing", name="billing-2", allocate_message_queue_strategy="AVG_BY_CIRCLE")
    lab.run_for("30s")
    assert (owned(first), owned(second)) == ([0, 1], [1, 3])
    assert changes(lab, "rebalance.done", client="billing-2")[-1]["balanced"]  # nobody notices
