"""The floor of a broadcasting group: the smallest pull position of its members, committed every 5 s."""

from __future__ import annotations

from pathlib import Path

import pytest

from mqlab.rocketmq.wire.bodies import SubscriptionData
from tests.rocketmq.broker.world import BareClient, World


@pytest.fixture
def stored(world: World, client: BareClient) -> BareClient:
    for _ in range(20):
        client.put("tags")
    return client


def join(client: BareClient, **more: object) -> None:
    values = {"message_model": "BROADCASTING", **more}
    client.heartbeat("news", SubscriptionData("tags"), **values)


def pull(client: BareClient, offset: int) -> None:
    client.pull("news", "tags", offset, sysFlag=0)
    client.world.run_for(5)


def floor(world: World) -> int:
    return world.broker.offset_table.query("news@broadcast", "tags", 0)


def test_the_smallest_position_is_committed_within_5_s(world: World, stored: BareClient) -> None:
    second = world.client("client-2")
    join(stored)
    join(second)
    pull(stored, 15)
    pull(second, 7)
    assert floor(world) == -1
    world.run_for(5_000)
    assert floor(world) == 7
    pull(second, 12)
    pull(second, 3)
    world.run_for(5_000)
    assert floor(world) == 12
    assert world.broker.offset_table.topics_of("news@broadcast") == []
    assert not [event for event in world.sim.upcoming(50) if event.kind == "offset.broadcast"]


def test_a_member_that_left_counts_for_two_more_minutes(world: World, stored: BareClient) -> None:
    second = world.client("client-2")
    join(stored)
    join(second)
    pull(stored, 15)
    pull(second, 7)
    second.remoting.close()
    for _ in range(4):
        world.run_for(28_000)
        join(stored)
    assert floor(world) == 7
    world.run_for(20_000)
    assert floor(world) == 15


def test_others_leave_no_floor(world: World, stored: BareClient) -> None:
    join(stored, message_model="CLUSTERING")
    pull(stored, 5)
    stored.pull("unheard-of", "tags", 5, sysFlag=4, subscription="*")
    world.run_for(10_000)
    assert floor(world) == -1


def test_it_can_be_switched_off(tmp_path: Path) -> None:
    world = World(tmp_path, enable_broadcast_offset_store=False)
    client = world.client()
    client.put("tags")
    join(client)
    pull(client, 0)
    world.run_for(10_000)
    assert floor(world) == -1
