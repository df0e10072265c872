"""Consumer offsets: commits, resets that wait, pull positions, the file's exact text.

Mirrors: ConsumerOffsetManager.
"""

from __future__ import annotations

import pytest

from mqlab.errors import CorruptionError
from mqlab.rocketmq.broker.tables.offsets import ConsumerOffsetTable


def test_commits_overwrite_and_may_go_back() -> None:
    changes, told = [], []
    table = ConsumerOffsetTable(
        lambda: 7,
        note=lambda kind, **v: told.append((v["before"], v["queue_offset"])),
    )
    table.changed.subscribe(lambda: changes.append(1))
    for offset in (5, 5, 3):
        table.commit("billing", "订单", 0, offset)
    assert table.query("billing", "订单", 0) == 3 and dict(table["订单@billing"]) == {0: 3}
    assert table.query("billing", "订单", 1) == -1 and table.query("other", "订单", 0) == -1
    assert len(changes) == 2 and told == [(None, 5), (5, 3)]


def test_the_version_advances_every_so_many_commits() -> None:
    table = ConsumerOffsetTable(lambda: 7, version_step=3)
    counters = []
    for offset in range(7):
        table.commit("billing", "orders", 0, offset)
        counters.append(table.data_version.counter)
    assert counters == [0, 0, 1, 1, 1, 2, 2]


def test_a_reset_outranks_the_stored_offset_until_it_is_taken() -> None:
    table = ConsumerOffsetTable(lambda: 7)
    table.commit("billing", "orders", 0, 18)
    table.assign_reset("billing", "orders", 0, 10)
    assert table.query("billing", "orders", 0) == 10 and table.has_reset("billing", "orders", 0)
    table.commit("billing", "orders", 0, 18)
    assert table.query("billing", "orders", 0) == 10
    assert table.take_reset("billing", "orders", 0) == 10
    assert table.take_reset("billing", "orders", 0) is None and not table.has_reset("billing", "orders", 0)
    assert table.query("billing", "orders", 0) == 18
    table.assign_reset("billing", "orders", 0, -1)
    table.assign_reset("billing", "orders", -1, 5)
    assert not table.has_reset("billing", "orders", 0) and table.query("billing", "orders", 0) == 18


def test_the_old_way_ignores_waiting_resets() -> None:
    table = ConsumerOffsetTable(lambda: 7, use_server_side_reset=False)
    table.reset_offset_table["orders@billing"] = {0: 4}
    table.commit("billing", "orders", 0, 9)
    assert table.query("billing", "orders", 0) == 9


def test_pull_positions_fall_back_to_stored_offsets() -> None:
    table = ConsumerOffsetTable(lambda: 7)
    assert table.query_pull("billing", "orders", 0) == -1
    table.commit("billing", "orders", 0, 5)
    assert table.query_pull("billing", "orders", 0) == 5
    table.pulled("billing", "orders", 0, 37)
    assert table.query_pull("billing", "orders", 0) == 37


def test_who_has_offsets_where() -> None:
    table = ConsumerOffsetTable(lambda: 7)
    table.commit("billing", "orders", 0, 1)
    table.commit("billing", "%RETRY%billing", 0, 2)
    table.commit("audit", "orders", 0, 3)
    table.commit("all@broadcast", "orders", 0, 4)
    assert table.topics_of("billing") == ["orders", "%RETRY%billing"]
    assert table.groups_of("orders") == ["billing", "audit"]
    table.clone("billing", "copy", "orders")
    assert table.query("copy", "orders", 0) == 1
    table.remove_group("billing")
    assert table.topics_of("billing") == []
    table.remove_topic("orders")
    assert table.groups_of("orders") == [] and table.query("all@broadcast", "orders", 0) == 4


def test_the_file_is_what_fastjson_writes() -> None:
    table = ConsumerOffsetTable(lambda: 1_700_000_000_000)
    table.commit("g1", "TopicTest", 0, 5)
    table.commit("g1", "TopicTest", 3, 7)
    table.commit("g1", "%RETRY%g1", 0, 51)
    assert table.encode() == (
        '{\n\t"dataVersion":{\n\t\t"counter":0,\n\t\t"stateVersion":0,\n\t\t"timestamp":1700000000000\n\t},\n'
        '\t"groupTopicMap":{\n\t\t"g1":["TopicTest","%RETRY%g1"]\n\t},\n'
        '\t"offsetTable":{\n\t\t"TopicTest@g1":{0:5,3:7\n\t\t},\n\t\t"%RETRY%g1@g1":{0:51\n\t\t}\n\t}\n}'
    )
    again = ConsumerOffsetTable(lambda: 9)
    again.decode(table.encode())
    assert again.offset_table == table.offset_table and again.data_version == table.data_version


@pytest.mark.parametrize(
    "text", ["{", "[1]", '{"offsetTable":{"a@b":[1]}}', '{"offsetTable":{"a@b":{"x":1}}}', '{"offsetTable":7}']
)
def test_a_damaged_file_is_said_to_be_one_and_changes_nothing(text: str) -> None:
    table = ConsumerOffsetTable(lambda: 7)
    table.commit("billing", "orders", 0, 5)
    with pytest.raises(CorruptionError):
        table.decode(text)
    assert table.query("billing", "orders", 0) == 5
