"""The stream's reader follows RocketMQ's own store while that appends: each message once, in order, none torn."""

from __future__ import annotations

from collections import defaultdict
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadMaxBytes

from mqlab.data.arrow import read_table
from mqlab.data.spark.options import parse
from mqlab.data.spark.stream import RocketMQStreamReader
from tests.interop.java_store import JavaStore

pytestmark = pytest.mark.interop

SIZES = "1048576,20000,500,6000"
COUNT = 60_000
NAMES = ["physical_offset", "queue_id", "queue_offset", "keys", "body"]


@pytest.mark.parametrize("limit", [ReadAllAvailable(), ReadMaxBytes(100_000)], ids=["all there is", "100 kB a batch"])
def test_a_store_that_is_being_appended_to(
    java_store: JavaStore, tmp_path: Path, limit: ReadAllAvailable | ReadMaxBytes
) -> None:
    (tmp_path / "broker-a" / "commitlog").mkdir(parents=True)
    reader = RocketMQStreamReader(parse({"path": str(tmp_path)}), NAMES)
    next_offsets: dict[int, int] = defaultdict(int)
    keys, bodies, batches = set(), set(), 0
    at = reader.initialOffset()
    with ThreadPoolExecutor(1) as pool:
        writing = pool.submit(java_store.ask, "bench", tmp_path / "broker-a", SIZES, COUNT)
        while True:
            ended = writing.done()
            end = reader.latestOffset(at, limit)
            if end == at and ended:
                break
            for task in reader.partitions(at, end):
                for batch in reader.read(task):
                    for row in batch.to_pylist():
                        assert row["queue_offset"] == next_offsets[row["queue_id"]]
                        next_offsets[row["queue_id"]] += 1
                        keys.add(row["keys"])
                        bodies.add(row["body"])
            batches += end != at
            at = end
        writing.result()
    assert sum(next_offsets.values()) == len(keys) == COUNT
    assert bodies == {b"x" * 256}
    assert batches > 3
    assert read_table(tmp_path, ["keys"]).num_rows == COUNT
