"""Stores that mqlab wrote, opened by RocketMQ's DefaultMessageStore; what it appends, opened by mqlab; and back again.

Every store is copied: one copy mqlab opens, one the real store lists, one it appends to and mqlab opens afterwards.
"""

from __future__ import annotations

import json
import shutil
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from mqlab.rocketmq.machine.files import RealFiles
from mqlab.rocketmq.store import MessageStore, config_texts
from mqlab.rocketmq.store.config_files import ConfigFile
from mqlab.rocketmq.wire import properties as property_text
from mqlab.rocketmq.wire.names import SCHEDULE_TOPIC
from mqlab.rocketmq.wire.record import Record
from mqlab.rocketmq.wire.record import encode as encode_unit
from tests.interop.java_store import JavaStore

pytestmark = pytest.mark.interop

SIZES = {
    "mapped_file_size_commit_log": 16384,
    "mapped_file_size_consume_queue": 400,
    "max_hash_slot_num": 50,
    "max_index_num": 150,
}
WORDS = ",".join(str(size) for size in SIZES.values())
TAGS = ("paid", "оплачен", "已付款", "😀", None)
LONG_TOPIC = "%RETRY%" + "group" * 30  # more than 127: the V2 layout
APPENDED = 25


def record(number: int, topic: str | None = None, queue_id: int | None = None) -> Record:
    """Message ``number`` of a mixed crowd: three topics, IPv6 hosts, delays, several scripts, all lengths."""
    chosen = topic or (LONG_TOPIC if number % 11 == 10 else SCHEDULE_TOPIC if number % 13 == 12 else f"t{number % 3}")
    properties = {"KEYS": f"k{number % 7} n{number}", "UNIQ_KEY": f"7F0000{number:08d}", "颜色": f"红 {number}"}
    tags = TAGS[number % len(TAGS)]
    if tags is not None:
        properties["TAGS"] = tags
    if chosen == SCHEDULE_TOPIC:
        properties["DELAY"] = str(number % 18 + 1)
    hosts = ("2001:db8::7", "fe80::1") if number % 5 == 4 else ("10.1.2.3", "127.0.0.1")
    return Record(
        chosen,
        f"body тело 正文 😀 {number} ".encode() * (number % 9),
        queue_id=number % 2 if queue_id is None else queue_id,
        flag=number,
        born_timestamp=1700000000000 + number,
        born_host=(hosts[0], 54321),
        store_host=(hosts[1], 20911),
        reconsume_times=number % 4,
        properties=property_text.encode(properties),
    )


def fill(store: MessageStore, count: int, first: int = 0) -> None:
    for number in range(first, first + count):
        assert store.put(record(number)).status == "PUT_OK"
    batch = [record(first + count + number, "batch", 3) for number in range(5)]
    assert store.put_batch(batch).status == "PUT_OK"


def open_store(directory: Path) -> MessageStore:
    return MessageStore.open(str(directory), **SIZES)


def clean(directory: Path) -> None:
    with open_store(directory) as store:
        fill(store, 400)


def empty(directory: Path) -> None:
    open_store(directory).shutdown()


def crashed(directory: Path) -> None:
    with open_store(directory.with_name("alive")) as store:
        fill(store, 150)
        shutil.copytree(directory.with_name("alive"), directory)
    shutil.rmtree(directory.with_name("alive"))
    assert (directory / "abort").exists()


def torn(directory: Path) -> None:
    """Crashed, and half of the last unit is not on the disk."""
    crashed(directory)
    last = max(path for path in (directory / "commitlog").iterdir() if path.read_bytes().strip(b"\0"))
    data = last.read_bytes()
    end = len(data.rstrip(b"\0"))
    last.write_bytes(data[: end - 60] + bytes(len(data) - end + 60))


def recovered(directory: Path) -> None:
    torn(directory)
    with open_store(directory) as store:
        assert not store.recovery_report.clean_exit
        fill(store, 20, first=1000)


def beheaded(directory: Path) -> None:
    """The two oldest log files are gone and all queues with them: rebuilt, they begin with pre-blank units."""
    clean(directory)
    for name in sorted(path.name for path in (directory / "commitlog").iterdir())[:2]:
        (directory / "commitlog" / name).unlink()
    shutil.rmtree(directory / "consumequeue")
    with open_store(directory) as store:
        assert store.min_physical_offset == 2 * 16384


def without_a_topic(directory: Path) -> None:
    clean(directory)
    with open_store(directory) as store:
        assert store.delete_topic("t1")
        fill(store, 30, first=2000)


MAKERS: dict[str, Callable[[Path], None]] = {
    maker.__name__: maker for maker in (clean, empty, crashed, torn, recovered, beheaded, without_a_topic)
}


@pytest.fixture(scope="module")
def stores(tmp_path_factory: pytest.TempPathFactory, java_store: JavaStore) -> Path:
    """NAME/ours, NAME/listed + listed.json, NAME/appended + appended.json, for each maker; one Java process for all."""
    root = tmp_path_factory.mktemp("stores")
    commands: list[list[object]] = []
    for name, make in MAKERS.items():
        make(root / name / "ours")
        for copy in ("listed", "appended"):
            shutil.copytree(root / name / "ours", root / name / copy)
        commands.append(["list", root / name / "listed", root / name / "listed.json", WORDS])
        commands.append(["append", root / name / "appended", root / name / "appended.json", WORDS, APPENDED])
    commands.append(["list", root / "torn" / "appended", root / "torn" / "reopened.json", WORDS])
    java_store.run(*commands)
    return root


def read(path: Path) -> Any:
    return json.loads(path.read_text("utf-8"))


def check(directory: Path, answers: dict[str, Any], *, doubled_keys: bool = False) -> int:
    """Open a store and hold every answer of the real one against ours; returns the end of the log."""
    with open_store(directory) as store:
        rows = []
        for piece_offset, *_ in answers["messages"]:
            found = store.message_at(piece_offset)
            assert found is not None
            unit = encode_unit(found).hex()
            rows.append([piece_offset, found.topic, found.queue_id, found.queue_offset, found.store_timestamp, unit])
        assert rows == answers["messages"]
        assert store.min_physical_offset == answers["minPhysicalOffset"]  # -1 for an empty log, in both
        assert store.max_physical_offset == answers["maxPhysicalOffset"]
        queues = [queue for queue in answers["queues"] if queue[3]]
        assert {(topic, queue_id) for topic, queue_id, *_ in queues} == {
            (topic, queue_id) for topic, ids in store.topics().items() for queue_id in ids
        }
        for topic, queue_id, low, high, units in queues:
            assert (store.min_offset(topic, queue_id), store.max_offset(topic, queue_id)) == (low, high)
            ours = [store.consume_queue_unit(topic, queue_id, at) for at in range(low, high)]
            assert [list(unit) if unit else None for unit in ours] == units
        for topic, queue_id, time_ms, lower, upper in answers["timeLookups"]:
            found_offsets = [store.search_offset(topic, queue_id, time_ms, side) for side in ("lower", "upper")]
            assert found_offsets == [lower, upper], (topic, queue_id, time_ms)
        for topic, key, offsets in answers["keyLookups"]:
            ours_found = [record.physical_offset for record in store.query(topic, key, 64).records]
            if doubled_keys:  # after a crash one message may be indexed twice
                ours_found, offsets = sorted(set(ours_found)), sorted(set(offsets))
            assert ours_found == offsets, (topic, key)
        return store.max_physical_offset


@pytest.mark.parametrize("name", MAKERS)
def test_the_real_store_sees_what_we_see(stores, name):
    check(stores / name / "ours", read(stores / name / "listed.json"), doubled_keys=name in ("crashed", "torn"))


@pytest.mark.parametrize("name", MAKERS)
def test_what_the_real_store_left_behind_is_the_same_to_us(stores, name):
    check(stores / name / "listed", read(stores / name / "listed.json"))


@pytest.mark.parametrize("name", MAKERS)
def test_what_the_real_store_appended_is_there(stores, name):
    answers = read(stores / name / "appended.json")
    appended = [row for row in answers["messages"] if row[1] == "appended"]
    assert len(appended) == APPENDED
    assert len(answers["messages"]) == len(read(stores / name / "listed.json")["messages"]) + APPENDED
    check(stores / name / "appended", answers)


def test_a_cut_queue_unit_that_the_real_store_counts_again_stays_cut_here(stores):
    """Its crash recovery cuts the torn message's queue unit in memory only; once the log has grown, it is back."""
    ends = [
        {(topic, queue_id): end for topic, queue_id, _, end, _ in read(stores / "torn" / answer)["queues"]}
        for answer in ("appended.json", "reopened.json")
    ]
    assert (ends[0]["batch", 3], ends[1]["batch", 3]) == (4, 5)
    with open_store(stores / "torn" / "appended") as store:
        assert store.max_offset("batch", 3) == 4


def test_we_append_to_what_it_appended_to_and_it_lists_that(stores, java_store):
    directory = stores / "clean" / "appended"
    with open_store(directory) as store:
        fill(store, 60, first=3000)
        end = store.max_physical_offset
    copy = directory.with_name("again")
    shutil.copytree(directory, copy)
    answers = java_store.ask("list", copy, WORDS)
    assert answers["recoveredPhysicalOffset"] == answers["maxPhysicalOffset"] == end
    check(directory, answers)


def test_its_crash_is_our_recovery(stores, java_store):
    directory = stores / "clean" / "halted"
    shutil.copytree(stores / "clean" / "ours", directory)
    java_store.run(["halt", directory, WORDS, 77])
    assert (directory / "abort").exists()
    copy = directory.with_name("halted-listed")
    shutil.copytree(directory, copy)
    answers = java_store.ask("list", copy, WORDS)
    assert len([row for row in answers["messages"] if row[1] == "appended"]) == 77
    check(directory, answers, doubled_keys=True)


def test_the_broker_reads_and_writes_our_configuration_files(tmp_path, java_store):
    version = {"counter": 3, "stateVersion": 0, "timestamp": 1700000000000}
    group = {
        "attributes": {},
        "brokerId": 0,
        "consumeBroadcastEnable": True,
        "consumeEnable": True,
        "consumeFromMinEnable": True,
        "consumeMessageOrderly": False,
        "consumeTimeoutMinute": 15,
        "groupName": "",
        "groupRetryPolicy": {"type": "CUSTOMIZED"},
        "groupSysFlag": 0,
        "notifyConsumerIdsChangedEnable": True,
        "retryMaxTimes": 16,
        "retryQueueNums": 1,
        "whichBrokerWhenConsumeSlowly": 1,
    }
    topic = {
        "attributes": {"message.type": "NORMAL"},
        "order": False,
        "perm": 6,
        "readQueueNums": 4,
        "topicName": "",
        "topicFilterType": "SINGLE_TAG",
        "topicSysFlag": 0,
        "writeQueueNums": 4,
    }
    now_ms = int(time.time() * 1000)  # a filter dead for more than a day is thrown away
    filter_data = {
        "bloomFilterData": {"bitNum": 216, "bitPos": [71, 62, 152]},
        "bornTime": now_ms - 9000,
        "clientVersion": 1,
        "consumerGroup": "g-sql",
        "dead": True,
        "deadTime": now_ms,
        "expression": "a > 1 AND 城市 = '北京 😀'",
        "expressionType": "SQL92",
        "topic": "orders",
    }
    topics = [f"topic-{number}" for number in range(40)]
    groups = [f"group-{number}" for number in range(40)]
    values: dict[str, dict[str, Any]] = {
        "topics.json": {
            "dataVersion": version,
            "topicConfigTable": {name: {**topic, "topicName": name} for name in topics},
        },
        "subscriptionGroup.json": {
            "dataVersion": version,
            "forbiddenTable": {"group-1": {"topic-1": 1}},
            "subscriptionGroupTable": {name: {**group, "groupName": name} for name in groups},
        },
        "consumerOffset.json": {
            "dataVersion": version,
            "offsetTable": {f"{name}@{of}": {0: 5, 1: 1 << 40, 17: 3} for name, of in zip(topics, groups, strict=True)},
        },
        "delayOffset.json": {"dataVersion": version, "offsetTable": {level: level * 10 for level in range(1, 19)}},
        "consumerFilter.json": {
            "filterDataByTopic": {"orders": {"groupFilterData": {"g-sql": filter_data}, "topic": "orders"}}
        },
    }
    for name, value in values.items():
        ConfigFile(RealFiles(), f"{tmp_path}/{name}").save(config_texts.encode(name, value))
    answers = java_store.ask("configs", tmp_path)
    assert set(answers) == set(values)
    for name, text in answers.items():
        saved = (tmp_path / name).read_text("utf-8")
        written, asked = config_texts.decode(name, text), config_texts.decode(name, saved)
        if name == "consumerOffset.json":  # the real map grew while it was read: another order of names
            assert written["offsetTable"] == asked["offsetTable"] and written["dataVersion"] == asked["dataVersion"]
        elif name == "subscriptionGroup.json":  # the broker's own groups are added
            assert asked["subscriptionGroupTable"].items() <= written["subscriptionGroupTable"].items()
            assert written["forbiddenTable"] == asked["forbiddenTable"]
            assert config_texts.encode(name, written) == text
        else:
            assert text == saved, name
