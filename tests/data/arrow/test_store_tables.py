"""Bounds, lag and config files as rows: what the real store lists, and errors with paths for damaged files."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from mqlab.data.arrow.store_tables import TABLES, read_store_table
from mqlab.errors import CorruptionError, UsageError
from mqlab.rocketmq.store import MessageStore
from mqlab.rocketmq.store.reading.config_backups import BackupWarning
from mqlab.rocketmq.wire.message import Message

Rows = list[dict[str, Any]]


def rows_of(directory: Path, table: str) -> Rows:
    return list(read_store_table(directory, table).to_pylist())


@pytest.mark.parametrize("name", ["clean", "killed", "edges", "edges-killed"])
def test_bounds_of_the_real_brokers_queues(
    real_store: Callable[[str], Path], expected: Callable[[str], dict[str, Any]], name: str
) -> None:
    rows = {(row["topic"], row["queue_id"]): row for row in rows_of(real_store(name), "bounds")}
    for queue in expected(name)["queues"]:
        if queue["maxOffset"] == 0:
            continue  # the real store makes a queue when it is asked for one
        row, units = rows.pop((queue["topic"], queue["queueId"])), queue["units"]
        assert (row["min_offset"], row["max_offset"]) == (queue["minOffset"], queue["maxOffset"])
        assert (row["min_physical_offset"], row["max_physical_offset"]) == (units[0][0], units[-1][0] + units[-1][1])
        assert row["broker_name"] == name
    assert not rows


def test_offsets_and_lag_of_the_real_broker(
    real_store: Callable[[str], Path], expected: Callable[[str], dict[str, Any]]
) -> None:
    offsets = rows_of(real_store("killed"), "offsets")
    second = {"group": "g-orders", "topic": "orders", "queue_id": 2, "consumer_offset": 16}
    assert {"broker_name": "killed", **second} in offsets
    broadcast = [row for row in offsets if row["group"] == "g-broadcast@broadcast"]
    assert [(row["topic"], row["queue_id"], row["consumer_offset"]) for row in broadcast] == [
        ("tags", 0, 15),
        ("tags", 1, 15),
    ]
    ends = {(queue["topic"], queue["queueId"]): queue["maxOffset"] for queue in expected("killed")["queues"]}
    lag = rows_of(real_store("killed"), "lag")
    assert [{name: row[name] for name in offsets[0]} for row in lag] == offsets
    for row in lag:
        assert row["broker_offset"] == ends.get((row["topic"], row["queue_id"]), 0)
        assert row["lag"] == row["broker_offset"] - row["consumer_offset"]
    assert sum(row["lag"] for row in lag if row["topic"] == "flow") > 2000  # sent after the last consumer had stopped


def test_topics_groups_delays_and_filters_of_the_real_broker(real_store: Callable[[str], Path]) -> None:
    clean = real_store("clean")
    topics = {row["topic"]: row for row in rows_of(clean, "topics")}
    assert (topics["orders"]["write_queue_nums"], topics["orders"]["perm"], topics["orders"]["order"]) == (4, 6, False)
    assert topics["SCHEDULE_TOPIC_XXXX"]["topic_filter_type"] == "SINGLE_TAG"
    groups = {row["group"]: row for row in rows_of(clean, "groups")}
    assert groups["g-orders"]["consume_enable"] is True
    assert groups["g-orders"]["retry_queue_nums"] == 1
    assert [(row["delay_level"], row["queue_id"], row["delivered_offset"]) for row in rows_of(clean, "delays")] == [
        (1, 0, 1),
        (2, 1, 1),
        (3, 2, 4),
        (4, 3, 3),
    ]
    (filtered,) = rows_of(clean, "filters")
    assert (filtered["group"], filtered["topic"], filtered["expression_type"]) == ("g-sql", "sql", "SQL92")
    assert filtered["expression"] == "a BETWEEN 2 AND 8 AND name <> 'bob'"
    assert round(filtered["dead_time"].timestamp() * 1000) == 1795219336065


def test_several_stores_and_stores_without_config(tmp_path: Path) -> None:
    for name in ("broker-a", "broker-b"):
        with MessageStore.open(str(tmp_path / name)) as store:
            store.put(Message("заказы-订单", b"x"))
        config = tmp_path / name / "config"
        config.mkdir()
        (config / "consumerOffset.json").write_text('{"offsetTable":{"заказы-订单@учёт":{0:1},"gone@учёт":{3:9}}}')
    lag = [(r["broker_name"], r["topic"], r["broker_offset"], r["lag"]) for r in rows_of(tmp_path, "lag")]
    both = [("заказы-订单", 1, 0), ("gone", 0, -9)]
    assert lag == [(broker, *row) for broker in ("broker-a", "broker-b") for row in both]
    for table in ("topics", "groups", "delays", "filters"):
        assert read_store_table(tmp_path, table).schema.equals(TABLES[table].schema)
        assert rows_of(tmp_path, table) == []


@pytest.mark.parametrize(
    ("file", "table", "text"),
    [
        ("consumerOffset.json", "offsets", '{"offsetTable":{"a@b":{0:"many"}}}'),
        ("consumerOffset.json", "lag", '{"offsetTable":{"a@b":7}}'),
        ("consumerOffset.json", "offsets", '{"offsetTable":{"a@b":{0:99999999999999999999}}}'),
        ("delayOffset.json", "delays", '{"offsetTable":[1,2]}'),
        ("topics.json", "topics", '{"topicConfigTable":{"orders":{"perm":"six"}}}'),
        ("topics.json", "topics", '{"topicConfigTable":{"orders":5}}'),
        ("topics.json", "topics", '{"topicConf'),
        ("subscriptionGroup.json", "groups", "[1]"),
        ("consumerFilter.json", "filters", '{"filterDataByTopic":{"sql":{"groupFilterData":{"g":5}}}}'),
        ("consumerFilter.json", "filters", '{"filterDataByTopic":{"sql":{"groupFilterData":{"g":{"bornTime":"x"}}}}}'),
    ],
)
def test_a_damaged_file_is_an_error_with_its_place(tmp_path: Path, file: str, table: str, text: str) -> None:
    (tmp_path / "b" / "commitlog").mkdir(parents=True)
    (tmp_path / "b" / "config").mkdir()
    (tmp_path / "b" / "config" / file).write_text(text)
    with pytest.raises(CorruptionError, match=str(tmp_path / "b")):
        read_store_table(tmp_path, table)
    before = {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
    assert before == {tmp_path / "b" / "config" / file: text.encode()}


def test_a_backup_takes_the_place_of_a_damaged_file(real_store: Callable[[str], Path]) -> None:
    config = real_store("clean") / "config"
    wanted = rows_of(real_store("clean"), "topics")
    (config / "topics.json.bak").write_bytes((config / "topics.json").read_bytes())
    (config / "topics.json").write_text('{"topicConfigTable":{"ord')
    with pytest.warns(BackupWarning, match=r"config/topics\.json\.bak is taken"):
        assert rows_of(real_store("clean"), "topics") == wanted


def test_a_wrong_table_is_answered_with_the_right_ones(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"'topic'[\s\S]*bounds, lag, topics, groups, offsets, delays, filters"):
        read_store_table(tmp_path, "topic")
