"""A generated day, opened by RocketMQ's DefaultMessageStore: the same messages, queues, times and keys as ours."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from mqlab.data.traffic import write
from mqlab.rocketmq.store import MessageStore
from mqlab.rocketmq.wire.record import encode
from tests.interop.java_store import JavaStore

pytestmark = pytest.mark.interop

SIZES = {
    "mapped_file_size_commit_log": 1 << 18,
    "mapped_file_size_consume_queue": 2_000,
    "max_hash_slot_num": 500,
    "max_index_num": 6_000,
}
MODEL = {
    "commit_log_bytes": 1 << 18,
    "consume_queue_bytes": 2_000,
    "hash_slot_num": 500,
    "index_num": 6_000,
    "index": True,
}
APPENDED = 20


@pytest.fixture(scope="module")
def day(tmp_path_factory: pytest.TempPathFactory, java_store: JavaStore) -> Path:
    """broker-a and broker-b as generated; NAME-listed, NAME-appended and their answers in .json files."""
    root = tmp_path_factory.mktemp("traffic") / "day"
    write(root, messages=2_400, brokers=2, seed=11, **MODEL)
    words = ",".join(str(size) for size in SIZES.values())
    commands: list[list[object]] = []
    for name in ("broker-a", "broker-b"):
        for verb, more in (("list", []), ("append", [APPENDED])):
            copy = root / f"{name}-{verb}"
            shutil.copytree(root / name, copy)
            commands.append([verb, copy, root / f"{name}-{verb}.json", words, *more])
    java_store.run(*commands)
    return root


def answers(day: Path, name: str) -> Any:
    return json.loads((day / f"{name}.json").read_text("utf-8"))


@pytest.mark.parametrize("name", ["broker-a", "broker-b"])
def test_the_real_store_serves_what_was_generated(day: Path, name: str) -> None:
    told = answers(day, f"{name}-list")
    assert len(told["messages"]) == 1_200
    with MessageStore.open(str(day / name), **SIZES) as store:
        assert told["recoveredPhysicalOffset"] == told["maxPhysicalOffset"] == store.max_physical_offset
        for physical_offset, topic, queue_id, queue_offset, stored_ms, unit in told["messages"]:
            found = store.message_at(physical_offset)
            assert found is not None
            assert (found.topic, found.queue_id, found.queue_offset) == (topic, queue_id, queue_offset)
            assert (found.store_timestamp, encode(found).hex()) == (stored_ms, unit)
        queues = [queue for queue in told["queues"] if queue[3]]
        assert sum(high - low for _, _, low, high, _ in queues) == 1_200
        for topic, queue_id, low, high, units in queues:
            assert (store.min_offset(topic, queue_id), store.max_offset(topic, queue_id)) == (low, high)
            assert [list(store.consume_queue_unit(topic, queue_id, at) or ()) for at in range(low, high)] == units
        for topic, queue_id, time_ms, lower, upper in told["timeLookups"]:
            ours = [store.search_offset(topic, queue_id, time_ms, side) for side in ("lower", "upper")]
            assert ours == [lower, upper]
        assert told["keyLookups"]
        for topic, key, offsets in told["keyLookups"]:
            assert [record.physical_offset for record in store.query(topic, key, 64).records] == offsets
            assert offsets, (topic, key)


@pytest.mark.parametrize("name", ["broker-a", "broker-b"])
def test_the_real_store_goes_on_where_the_day_ended(day: Path, name: str) -> None:
    before, after = answers(day, f"{name}-list"), answers(day, f"{name}-append")
    added = [row for row in after["messages"] if row[1] == "appended"]
    assert len(added) == APPENDED
    assert after["messages"][: len(before["messages"])] == before["messages"]
    assert min(row[0] for row in added) >= before["maxPhysicalOffset"]
