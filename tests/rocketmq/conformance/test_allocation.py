"""Allocation strategies against the answers of RocketMQ's own classes."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from mqlab.rocketmq.client.allocate import AllocateStrategy, strategy
from mqlab.rocketmq.wire.message import MessageQueue

CASES = json.loads(gzip.decompress((Path(__file__).parent / "fixtures" / "allocation.json.gz").read_bytes()))
BROKERS = ("east@broker-a", "west@broker-b", "east@broker-c", "west@broker-d")


class Rooms:
    """As the fixture's README says."""

    def broker_deploy_in(self, queue: MessageQueue) -> str:
        return queue.broker_name.split("@")[0]

    def consumer_deploy_in(self, client_id: str) -> str:
        return next((room for room in ("east", "west") if client_id.startswith(f"{room}-")), "south")


def chosen(name: str, case: dict[str, Any]) -> AllocateStrategy:
    options: dict[str, dict[str, Any]] = {
        "CONSISTENT_HASH": {"virtual_node_cnt": case["virtualNodes"]},
        "MACHINE_ROOM": {"consumeridcs": case["machineRoomConsumerIdcs"]},
        "MACHINE_ROOM_NEARBY": {"inner": "AVG", "machine_room_resolver": Rooms()},
    }
    return strategy(name, **options.get(name, {}))


@pytest.mark.parametrize("number", range(len(CASES)))
def test_same_owners_as_rocketmq(number: int) -> None:
    case = CASES[number]
    queues = sorted(
        MessageQueue(case["topic"], broker, queue_id)
        for broker in BROKERS[: case["brokers"]]
        for queue_id in range(case["queuesPerBroker"])
    )
    for name, answers in case["answers"].items():
        for client_id, expected in answers.items():
            mine = chosen(name, case).allocate(case["group"], client_id, queues, case["clientIds"])
            assert [f"{queue.broker_name}/{queue.queue_id}" for queue in mine] == expected, (name, client_id)
