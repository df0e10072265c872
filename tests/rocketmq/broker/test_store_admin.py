"""Cleaning by hand over the wire: unused topics, expired queues, old log files."""

from __future__ import annotations

import dataclasses
from pathlib import Path

from mqlab.rocketmq.wire.codes import ResponseCode
from tests.rocketmq.broker.world import SMALL_STORE, BareClient, World

HOUR = 3_600_000


def test_queues_of_topics_nobody_knows_are_deleted(world: World, client: BareClient) -> None:
    for topic in ("orders", "forgotten"):
        client.put(topic)
    world.run_for(5)
    world.broker.topics.delete("forgotten")
    assert client.ask(316).code == ResponseCode.SUCCESS
    assert "forgotten" not in world.broker.store.topics() and "orders" in world.broker.store.topics()


def test_old_log_files_go_when_asked_and_their_queues_too(tmp_path: Path) -> None:
    world = World(tmp_path, store=dataclasses.replace(SMALL_STORE, delete_when="99", file_reserved_time=1))
    client = world.client()
    client.put("first", b"x" * 1000)
    for _ in range(400):
        client.put("orders", b"x" * 1000)
    world.run_for(2 * HOUR)
    assert world.broker.store.min_physical_offset == 0
    assert client.ask(329).code == ResponseCode.SUCCESS
    world.run_for(60_000)
    assert world.broker.store.min_physical_offset > 0
    assert client.ask(306).code == ResponseCode.SUCCESS
    assert "first" not in world.broker.store.topics()
    assert client.ask(31, topic="orders", queueId=0).ext_fields["offset"] != "0"
