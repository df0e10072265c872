"""The group table: predefined groups, groups made by use, the file."""

from __future__ import annotations

import pytest

from mqlab.errors import CorruptionError
from mqlab.rocketmq.broker.tables.groups import GroupTable
from mqlab.rocketmq.wire.bodies import SubscriptionGroupConfig


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
