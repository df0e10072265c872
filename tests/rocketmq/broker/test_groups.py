"""The group table: predefined groups, groups made by use, the file."""

from __future__ import annotations

import json

import pytest

from mqlab.errors import CorruptionError
from mqlab.rocketmq.broker.tables.groups import GroupTable
from mqlab.rocketmq.wire.bodies import SubscriptionData, SubscriptionGroupConfig
from mqlab.rocketmq.wire.codes import RequestCode, ResponseCode
from tests.rocketmq.broker.world import BareClient, World


def test_predefined_groups_and_groups_made_by_use() -> None:
    changes = []
    groups = GroupTable(lambda: 7)
    groups.changed.subscribe(lambda: changes.append(1))
    assert len(groups) == 8 and "CID_RMQ_SYS_TRANS" in groups
    made = groups.find("billing")
    assert made is not None and (made.retry_queue_nums, made.retry_max_times) == (1, 16)
    assert groups.find("billing") is made and len(changes) == 1


@pytest.mark.parametrize("name", ["", "  ", "оплата", "a b", "x" * 256])
def test_a_group_that_may_not_be_called_so_is_not_made(name: str) -> None:
    assert GroupTable(lambda: 7).find(name) is None


@pytest.mark.parametrize("name", ["", "a b", "a/b", "x" * 256])
def test_an_operator_may_give_a_group_any_name(world: World, client: BareClient, name: str) -> None:
    """UPDATE_AND_CREATE_SUBSCRIPTIONGROUP checks no name, as 5.3.3; the queue of a retry topic is another matter."""
    body = json.dumps({"groupName": name, "retryMaxTimes": 3}).encode()
    assert client.ask(RequestCode.UPDATE_AND_CREATE_SUBSCRIPTIONGROUP, body).code == ResponseCode.SUCCESS
    asked = client.ask(RequestCode.GET_SUBSCRIPTIONGROUP_CONFIG, group=name)
    assert json.loads(asked.body or b"")["retryMaxTimes"] == 3


def test_a_group_without_a_name_is_refused_in_words_of_the_wire(world: World, client: BareClient) -> None:
    answer = client.ask(RequestCode.UPDATE_AND_CREATE_SUBSCRIPTIONGROUP, b'{"retryMaxTimes":3}')
    assert answer.code == ResponseCode.SYSTEM_ERROR
    assert "groupName" in (answer.remark or "") and "__init__" not in (answer.remark or "")


def test_a_message_of_a_group_whose_name_no_directory_can_have_is_refused(world: World, client: BareClient) -> None:
    """RocketMQ makes directories in another place (docs/differences.md)."""
    client.ask(RequestCode.UPDATE_AND_CREATE_SUBSCRIPTIONGROUP, b'{"groupName":"../x"}')
    client.heartbeat("../x", SubscriptionData("orders", sub_version=1))
    client.put("orders", b"one")
    world.run_for(100)
    answer = client.ask(
        RequestCode.CONSUMER_SEND_MSG_BACK, offset=0, group="../x", delayLevel=-1, originTopic="orders", originMsgId="m"
    )
    assert answer.code == ResponseCode.SYSTEM_ERROR
    assert world.messages("orders")[0].body == b"one"


def test_without_auto_creation_only_known_groups_are_found() -> None:
    groups = GroupTable(lambda: 7, auto_create=False)
    assert groups.find("billing") is None and groups.find("TOOLS_CONSUMER") is not None
    groups.update(SubscriptionGroupConfig("billing", retry_max_times=3))
    assert groups.find("billing").retry_max_times == 3  # type: ignore[union-attr]


def test_the_file_comes_back_as_it_was() -> None:
    groups = GroupTable(lambda: 7)
    groups.update(SubscriptionGroupConfig("billing", consume_enable=False))
    groups.forbidden = {"billing": {"orders": 4}}
    again = GroupTable(lambda: 9)
    again.decode(groups.encode())
    assert dict(again) == dict(groups) and again.data_version == groups.data_version
    assert again.is_forbidden("billing", "orders", 2) and not again.is_forbidden("billing", "orders", 1)
    assert groups.delete("billing") and not groups.delete("billing")
    assert not groups.is_forbidden("billing", "orders", 2)


@pytest.mark.parametrize("text", ["{", "7", '{"subscriptionGroupTable":[]}', '{"subscriptionGroupTable":{"a":1}}'])
def test_a_damaged_file_is_said_to_be_one(text: str) -> None:
    with pytest.raises(CorruptionError):
        GroupTable(lambda: 7).decode(text)
