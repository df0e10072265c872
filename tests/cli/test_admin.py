"""`mqlab admin` on a Lab's directory and on a store that no broker ever had; nothing in them changes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from mqlab import CONSUME_SUCCESS, Lab, Message
from mqlab.cli import main
from mqlab.cli.admin_verbs import VERBS
from mqlab.durations import moment_ms
from mqlab.rocketmq.store import MessageStore


@pytest.fixture(scope="module")
def kept(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[Any]]:
    """A Lab's directory: two brokers, ten orders, of which group billing read all, and one more behind."""
    directory = tmp_path_factory.mktemp("run")
    with Lab(seed=3, brokers=2, directory=directory) as lab:
        lab.create_topic("orders", read_queue_nums=2, write_queue_nums=2)
        producer = lab.producer("shop")
        results = []
        for i in range(10):
            results.append(producer.send(Message("orders", f"заказ 订单 {i} 💳".encode(), keys=f"order-{i}")))
        consumer = lab.push_consumer("billing")
        consumer.subscribe("orders", "*")
        consumer.on_messages(lambda _, __: CONSUME_SUCCESS)
        consumer.start()
        lab.run_for("20s")
        consumer.shutdown()
        results.append(producer.send(Message("orders", b"late", keys="late")))
        lab.run_for("2s")
    return directory, results


def run(verb: str, directory: Path, *options: object) -> Result:
    return CliRunner().invoke(main, ["admin", verb, str(directory), *map(str, options)])


def value(verb: str, directory: Path, *options: object) -> Any:
    answer = run(verb, directory, *options, "--json")
    assert answer.exit_code == 0, answer.stderr
    return json.loads(answer.stdout)


def test_questions_to_a_labs_directory(kept: tuple[Path, list[Any]]) -> None:
    directory, results = kept
    before = {path: path.read_bytes() for path in directory.rglob("*") if path.is_file()}
    assert [row["broker"] for row in value("clusterList", directory)] == ["broker-a", "broker-b"]
    assert {"topic": "orders", "kind": "NORMAL"} in value("topicList", directory)
    queues = value("topicStatus", directory, "-t", "orders")
    assert sum(row["max_offset"] for row in queues) == 11
    progress = value("consumerProgress", directory, "-g", "billing")
    assert sum(row["lag"] for row in progress["queues"]) == 1
    (found,) = value("queryMsgByKey", directory, "-t", "orders", "-k", "order-7")
    assert found["body"] == "заказ 订单 7 💳"
    (track,) = value("messageTrack", directory, "-t", "orders", "-i", results[-1].msg_id)
    assert (track["group"], track["track_type"], track["online"]) == ("billing", "NOT_CONSUME_YET", False)
    assert [row["type"] for row in value("queryMsgTraceById", directory, "-i", results[2].msg_id)] == [
        "Pub",
        "SubBefore",
        "SubAfter",
    ]
    assert value("topicConfig", directory, "-t", "orders")["read_queue_nums"] == 2
    assert value("getConsumerConfig", directory, "-g", "billing")["group_name"] == "billing"
    assert run("getConsumerConfig", directory, "-g", "typo").exit_code == 2
    spans = value("consumeTimeSpan", directory, "-t", "orders", "-g", "billing")
    assert len(spans) == 4 and sum(span["delay_ms"] > 0 for span in spans) == 1
    plan = value("resetOffsetByTime", directory, "-t", "orders", "-g", "billing", "-s", 0)
    assert sum(row["again"] for row in plan["queues"]) == 10 and plan["applied"] is False
    plan = value("skipAccumulatedMessage", directory, "-t", "orders", "-g", "billing")
    assert sum(row["skipped"] for row in plan["queues"]) == 1
    assert {path: path.read_bytes() for path in directory.rglob("*") if path.is_file()} == before


def test_a_store_without_a_brokers_configuration(tmp_path: Path) -> None:
    with MessageStore.open(str(tmp_path / "store"), mapped_file_size_commit_log=65536) as store:
        for number in range(5):
            store.put(Message("orders", f"{number}".encode(), keys=f"key-{number}"), queue_id=number % 3)
    assert len(value("topicStatus", tmp_path / "store", "-t", "orders")) == 3
    assert [row["body"] for row in value("printMsg", tmp_path / "store", "-t", "orders")] == ["0", "1", "2", "3", "4"]
    text = run("topicRoute", tmp_path / "store", "-t", "orders").stdout
    assert text.startswith("route of orders\nbroker") and "broker-a" in text


def test_a_topic_that_no_broker_takes_does_not_stop_the_others(tmp_path: Path) -> None:
    with MessageStore.open(str(tmp_path / "store"), mapped_file_size_commit_log=65536) as store:
        for topic in ("orders", "заказы"):
            store.put(Message(topic, "заказ".encode()))
    answer = run("printMsg", tmp_path / "store", "-t", "orders")
    assert answer.exit_code == 0 and "заказ" in answer.stdout
    assert "topic 'заказы' of" in answer.stderr and "is left out" in answer.stderr
    assert "illegal characters" in answer.stderr


def test_ids_of_a_store_that_stood_elsewhere(tmp_path: Path) -> None:
    with MessageStore.open(str(tmp_path / "store"), mapped_file_size_commit_log=65536) as store:
        stored = [store.put(Message("orders", f"订单 {n}".encode())) for n in range(3)]
    (found,) = value("queryMsgById", tmp_path / "store", "-i", stored[1].offset_msg_id)
    assert found["body"] == "订单 1" and found["offset_msg_id"] == stored[1].offset_msg_id
    nowhere = f"0A0000090000{stored[1].offset_msg_id[12:]}"
    refused = run("queryMsgById", tmp_path / "store", "-i", nowhere)
    assert refused.exit_code == 2 and "10.0.0.9:10911, which does not exist" in refused.stderr


def test_times_are_written_as_mqadmin_and_the_tables_write_them(kept: tuple[Path, list[Any]]) -> None:
    directory, _ = kept
    rows = value("printMsg", directory, "-t", "orders")
    shown = "2026-01-01 00:00:{:06.3f}"
    middle = shown.format((rows[4]["store_timestamp"] - moment_ms("2026-01-01")) / 1000)
    again = value("printMsg", directory, "-t", "orders", "--from", middle, "--to", rows[6]["store_timestamp"])
    assert [row["body"] for row in again] == [row["body"] for row in rows[4:7]]
    plan = value("resetOffsetByTime", directory, "-t", "orders", "-g", "billing", "-s", "2026-01-01#00:00:00:000")
    assert sum(row["again"] for row in plan["queues"]) == 10
    assert run("printMsg", directory, "-t", "orders", "--from", "soon").exit_code == 2


def test_one_message_is_told_whole(kept: tuple[Path, list[Any]]) -> None:
    directory, results = kept
    place = results[3].message_queue
    asked = ("-t", "orders", "-b", place.broker_name, "-q", place.queue_id, "-o", results[3].queue_offset)
    (found,) = value("queryMsgByOffset", directory, *asked)
    assert found == value("queryMsgById", directory, "-i", results[3].offset_msg_id)[0]
    assert (found["properties"]["KEYS"], found["properties"]["UNIQ_KEY"]) == ("order-3", results[3].msg_id)
    assert found["born_host"].startswith("10.0.0.") and found["store_size"] > 100
    text = run("queryMsgByOffset", directory, *asked).stdout
    assert "property UNIQ_KEY" in text and "заказ 订单 3 💳" in text and "store_host" in text


def test_settings_are_a_line_each(kept: tuple[Path, list[Any]]) -> None:
    text = run("getConsumerConfig", kept[0], "-g", "billing").stdout
    assert "\ngroup_name " in text and max(map(len, text.splitlines())) < 80


def test_every_row_is_printed(tmp_path: Path) -> None:
    with Lab(seed=1, directory=tmp_path) as lab:
        lab.create_topic("wide", read_queue_nums=64, write_queue_nums=64)
        lab.producer("shop").send(Message("wide", b"one"))
    shown = run("topicStatus", tmp_path, "-t", "wide").stdout
    assert "to_pandas" not in shown
    assert len([line for line in shown.splitlines() if line.startswith("wide")]) == 64


def test_wrong_questions(kept: tuple[Path, list[Any]], tmp_path: Path) -> None:
    directory, _ = kept
    answer = run("topicList", tmp_path)
    assert answer.exit_code == 2 and "neither a store nor a Lab's directory" in answer.stderr
    assert run("topicRoute", directory).exit_code == 2
    assert run("resetOffsetByTime", directory, "-t", "orders", "-g", "billing", "-s", "soon").exit_code == 2
    for verb, options in (
        ("consumerProgress", ("-g", "typo")),
        ("deadLetters", ("-g", "typo")),
        ("printMsg", ("-t", "typo")),
        ("queryMsgByKey", ("-t", "typo", "-k", "late")),
        ("queryMsgByUniqueKey", ("-t", "typo", "-i", "x")),
    ):
        refused = run(verb, directory, *options)
        assert refused.exit_code == 1 and "typo" in refused.stderr and refused.stdout == "", verb
    unique = run("queryMsgById", directory, "-i", kept[1][0].msg_id)
    assert unique.exit_code == 2 and "is not an offset id" in unique.stderr and "queryMsgByUniqueKey" in unique.stderr
    refused = run("topicRoute", directory, "-t", "nothing")
    assert refused.exit_code == 1 and "No topic route info" in refused.stderr and refused.stdout == ""


@pytest.mark.parametrize("verb", VERBS)
def test_every_verb_helps_with_an_example(verb: str) -> None:
    answer = CliRunner().invoke(main, ["admin", verb, "--help"])
    assert answer.exit_code == 0
    assert f"mqlab admin {verb} run" in " ".join(answer.output.split())
