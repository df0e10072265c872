"""Two members of one group with different tags: what each gets in both settings of the client.

Mirrors: ConsumerGroupInfo.updateSubscription.
"""

from __future__ import annotations

from typing import Any

import pytest

from mqlab.rocketmq.wire import record
from mqlab.rocketmq.wire.bodies import SubscriptionData
from mqlab.rocketmq.wire.codes import ResponseCode
from mqlab.rocketmq.wire.java_hash import string_hash
from tests.rocketmq.broker.world import BareClient, World


def tag(text: str, version: int) -> SubscriptionData:
    return SubscriptionData("orders", text, [text], [string_hash(text)], version)


@pytest.fixture
def members(world: World) -> tuple[BareClient, BareClient]:
    """A wants TagA (version 100), B wants TagB (version 200); each queue holds one message of either tag."""
    a, b = world.client("a"), world.client("b")
    for queue_id in range(4):
        for name in ("TagA", "TagB"):
            a.put("orders", f"{name} {queue_id}".encode(), queue_id=queue_id, TAGS=name)
    a.heartbeat("group", tag("TagA", 100))
    b.heartbeat("group", tag("TagB", 200))
    return a, b


def pulled(client: BareClient, wanted: str, queue_ids: tuple[int, ...], **more: Any) -> list[str]:
    """What a client hands to its listener: the broker's answer, filtered again by exact tag text."""
    texts = []
    for queue_id in queue_ids:
        answer = client.pull("group", "orders", queue_id=queue_id, **{"sysFlag": 0, **more})
        client.world.run_for(5)
        found = record.decode_all(answer.result().body or b"")
        texts += [one.body.decode() for one in found if one.property_map["TAGS"] == wanted]
    return texts


def test_by_default_the_older_subscription_gets_nothing(members: tuple[BareClient, BareClient]) -> None:
    a, b = members
    assert pulled(a, "TagA", (0, 1), subVersion=100) == []
    assert pulled(b, "TagB", (2, 3), subVersion=200) == ["TagB 2", "TagB 3"]


def test_with_the_expression_in_the_pull_each_gets_its_own_tag_of_its_own_queues(
    members: tuple[BareClient, BareClient],
) -> None:
    a, b = members
    assert pulled(a, "TagA", (0, 1), sysFlag=4, subscription="TagA", subVersion=100) == ["TagA 0", "TagA 1"]
    assert pulled(b, "TagB", (2, 3), sysFlag=4, subscription="TagB", subVersion=200) == ["TagB 2", "TagB 3"]


def test_a_member_whose_heartbeat_is_still_on_its_way_is_not_latest(members: tuple[BareClient, BareClient]) -> None:
    a, _ = members
    answer = a.pull("group", "orders", sysFlag=0, subVersion=300)
    a.world.run_for(5)
    assert answer.result().code == ResponseCode.SUBSCRIPTION_NOT_LATEST
    a.heartbeat("group", tag("TagA", 300))
    assert pulled(a, "TagA", (0,), subVersion=300) == ["TagA 0"]


def test_different_topics_in_one_group_take_turns_in_being_unknown(members: tuple[BareClient, BareClient]) -> None:
    a, b = members
    a.put("payments")
    b.heartbeat("group", SubscriptionData("payments", sub_version=400))
    answer = a.pull("group", "orders", sysFlag=0, subVersion=100)
    a.world.run_for(5)
    assert answer.result().code == ResponseCode.SUBSCRIPTION_NOT_EXIST


def test_retries_ignore_tags(world: World, members: tuple[BareClient, BareClient]) -> None:
    a, b = members
    b.heartbeat("group", tag("TagB", 200), SubscriptionData("%RETRY%group", sub_version=200))
    failed = world.messages("orders", 0)[0]
    a.ask(36, offset=failed.physical_offset, group="group", delayLevel=1, maxReconsumeTimes=16)
    world.run_for(1_500)
    answer = b.pull("group", "%RETRY%group", sysFlag=0, subVersion=200)
    world.run_for(5)
    assert [one.body for one in record.decode_all(answer.result().body or b"")] == [b"TagA 0"]
