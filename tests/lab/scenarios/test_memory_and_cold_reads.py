"""What counts as in memory, how full a pull's answer gets, and what that costs.

Mirrors: DefaultMessageStore.checkInDiskByCommitOffset and isTheBatchFull.
"""

from __future__ import annotations

from typing import Any

import pytest

from mqlab import Lab, Message, MessageQueue
from mqlab.rocketmq.wire.record import decode_all
from tests.lab.scenarios.stories import BODY, Tool, changes, config, member, quiet_lab, row, send_many

UNIT = 1217  # bytes of every stored unit, as in the real broker's runs
PULL: dict[str, Any] = {
    "consumerGroup": "audit",
    "topic": "orders",
    "queueId": 0,
    "commitOffset": 0,
    "suspendTimeoutMillis": 0,
    "subVersion": 0,
    "subscription": "*",
    "expressionType": "TAG",
    "sysFlag": 4,
}


def filled(count: int, **settings: Any) -> Lab:
    """One queue with so many messages that each take 1217 bytes of the log."""
    lab = quiet_lab(seed=21, **settings)
    lab.create_topic("orders", read_queue_nums=1, write_queue_nums=1)
    producer = lab.producer("shop")
    queue = MessageQueue("orders", "broker-a", 0)
    probe = lab.broker().store.max_physical_offset
    producer.send_batch([Message("orders", b"x")], queue)
    head = lab.broker().store.max_physical_offset - probe - 1
    body = BODY.encode() + b"." * (UNIT - head - len(BODY.encode()))
    for start in range(0, count, 100):
        producer.send_batch([Message("orders", body) for _ in range(min(100, count - start))], queue)
    lab.run_for("1s")
    assert {unit["size"] // unit["count"] for unit in changes(lab, "message.stored", topic="orders")[1:]} == {UNIT}
    return lab


class Puller:
    """Asks broker-a for messages like a consumer, with code 11 and an own expression."""

    def __init__(self, lab: Lab) -> None:
        self.tool = Tool(lab)
        lab.admin.create_and_update_subscription_group_config("audit")

    def taken(self, max_nums: int = 32, offset: int = 1) -> int:
        """How many messages one pull brings."""
        return len(decode_all(self.pull(max_nums, offset).body or b""))

    def pull(self, max_nums: int = 32, offset: int = 1) -> Any:
        return self.tool.ask(11, **PULL, maxMsgNums=max_nums, queueOffset=offset)


def test_the_bound_is_a_share_of_the_machines_memory_or_what_the_lab_says() -> None:
    lab = quiet_lab()
    reader = lab.broker().store.reader
    assert reader.memory_bound == int(24 * (1 << 30) * 0.4) == 10_307_921_510  # 24 GiB: 9.6 GiB count as in memory
    lab.admin.update_broker_config("broker-a", access_message_in_memory_max_ratio=0)
    assert reader.memory_bound == 0
    gigabyte = quiet_lab(memory=int((1 << 30) * 0.4))
    assert gigabyte.broker().store.reader.memory_bound == 429_496_729


@pytest.mark.parametrize(("more_bytes", "taken"), [(0, 32), (-1, 8)])
def test_exactly_the_bound_behind_is_memory_one_byte_more_is_disk(more_bytes: int, taken: int) -> None:
    lab = filled(40, memory=32 * UNIT + more_bytes)  # the ninth that is asked for begins 32 units before the log's end
    assert Puller(lab).taken() == taken


@pytest.mark.parametrize(("memory", "first"), [(None, 0), ("2KB", 41)])
def test_a_new_group_is_told_zero_only_while_message_zero_is_in_memory(memory: str | None, first: int) -> None:
    """Code 14 asks whether message 0 is resident: a young topic is read from its start, an old one from its end."""
    lab = filled(40, memory=memory)
    member(lab, "billing")
    lab.run_for("30s")
    assert len(lab.deliveries("billing", absences=False)) == 41 - first
    assert row(lab, "billing").consumer_offset == 41


@pytest.mark.parametrize(
    ("settings", "max_nums", "taken"),
    [
        ({"access_message_in_memory_max_ratio": 0}, 32, 8),
        ({"access_message_in_memory_max_ratio": 0, "max_transfer_count_on_message_in_disk": 3}, 32, 3),
        ({"access_message_in_memory_max_ratio": 0, "max_transfer_bytes_on_message_in_disk": 3_000}, 32, 2),
        ({"max_transfer_count_on_message_in_memory": 5}, 32, 5),
        ({}, 100, 32),
        ({"max_transfer_count_on_message_in_memory": 64}, 100, 64),
        ({"max_transfer_count_on_message_in_memory": 64, "max_transfer_bytes_on_message_in_memory": 10_000}, 100, 8),
    ],
)
def test_limits_changed_live_fill_answers_as_a_real_broker_does(
    settings: dict[str, int], max_nums: int, taken: int
) -> None:
    lab = filled(120)
    puller = Puller(lab)
    lab.admin.update_broker_config("broker-a", transfer_msg_by_heap=True, **settings)
    answer = puller.pull(max_nums)
    units = decode_all(answer.body)
    assert (len(units), len(answer.body)) == (taken, taken * UNIT)
    assert int(answer.ext_fields["nextBeginOffset"]) == 1 + taken


def test_a_batch_that_begins_cold_goes_on_with_the_limits_of_memory() -> None:
    lab = filled(60, memory=55 * UNIT)  # of messages 1 … 60 the first five are cold
    assert Puller(lab).taken() == 32
    lab = filled(60, memory=40 * UNIT)  # twenty are: the batch ends in the cold
    assert Puller(lab).taken() == 8


def test_a_ratio_of_zero_makes_everything_but_the_logs_end_cold() -> None:
    lab = filled(30)
    puller = Puller(lab)
    assert puller.taken() == 30
    lab.admin.update_broker_config("broker-a", access_message_in_memory_max_ratio=0)
    assert (puller.taken(), puller.taken(offset=25)) == (8, 6)
    assert lab.admin.get_broker_config("broker-a")["accessMessageInMemoryMaxRatio"] == "0"
    store = lab.broker().store
    assert not store.is_resident(store.max_physical_offset - 1) and store.is_resident(store.max_physical_offset)


@pytest.mark.parametrize("name", ["GROUP_GET_FROM_DISK_NUMS", "GROUP_GET_FROM_DISK_SIZE", "BROKER_GET_FROM_DISK_NUMS"])
def test_reads_from_disk_are_counted_nowhere(name: str) -> None:
    lab = filled(20, memory=0)
    puller = Puller(lab)
    assert puller.taken() == 8
    lab.run_for("20s")
    answer = puller.tool.ask(315, statsName=name, statsKey="orders@audit")
    assert (answer.code, answer.remark) == (1, f"The stats <{name}> <orders@audit> not exist")


def test_with_and_without_the_heap_the_same_bytes_travel_and_one_counter_differs() -> None:
    lab = filled(10)
    puller = Puller(lab)
    with_heap = puller.pull().body
    asked: dict[str, Any] = {"statsName": "GROUP_GET_LATENCY", "statsKey": "0@orders@audit"}
    assert puller.tool.ask(315, **asked).code == 0
    lab.admin.update_broker_config("broker-a", transfer_msg_by_heap=False)
    lab.admin.create_and_update_subscription_group_config("other")
    without = puller.tool.ask(11, **{**PULL, "consumerGroup": "other"}, maxMsgNums=32, queueOffset=1)
    assert without.body == with_heap
    assert puller.tool.ask(315, statsName="GROUP_GET_LATENCY", statsKey="0@orders@other").code == 1
    assert puller.tool.ask(315, statsName="GROUP_GET_NUMS", statsKey="orders@other").code == 0


def test_cold_reads_are_the_same_messages_in_more_pulls() -> None:
    found = {}
    for memory in (None, 0):
        lab = quiet_lab(seed=22, memory=memory)
        lab.create_topic("orders", read_queue_nums=1, write_queue_nums=1)
        send_many(lab.producer("shop"), 200, queue=0)
        lab.run_for("1s")
        member(lab, "billing", consume_from_where="CONSUME_FROM_FIRST_OFFSET")
        lab.run_for("30s")
        pulls = [one for one in changes(lab, "message.pulled") if one["queue"].topic == "orders"]
        found[memory] = (len(pulls), sorted(each.queue_offset for each in lab.deliveries("billing")))
        assert config(lab, "consumerOffset.json")["offsetTable"]["orders@billing"] == {0: 200}
    assert found[None][1] == list(range(200)) == sorted(set(found[0][1]) | set(found[None][1]))
    assert (found[None][0], found[0][0]) == (7, 25)
