"""Without Spark: the same rows in pandas, polars and DuckDB, several stores as one, batch by batch."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb
import polars
import pytest

from mqlab.data import arrow
from mqlab.errors import CorruptionError, UsageError
from tests.data.arrow.logs import some_records, write_log

STORES = ["clean", "killed"]


@pytest.fixture
def cluster(real_store: Callable[[str], Path]) -> Path:
    """A folder with two stores of a real broker."""
    return {real_store(name).parent for name in STORES}.pop()


@pytest.fixture
def counts(expected: Callable[[str], dict[str, Any]]) -> Counter[tuple[str, str, int]]:
    """Messages by store, topic and queue as RocketMQ lists them."""
    return Counter((name, m["topic"], m["queueId"]) for name in STORES for m in expected(name)["messages"])


def test_pandas(cluster: Path, counts: Counter[Any]) -> None:
    frame = arrow.read_table(cluster, ["broker_name", "topic", "queue_id"]).to_pandas()
    assert frame.groupby(["broker_name", "topic", "queue_id"]).size().to_dict() == counts


def test_polars(cluster: Path, counts: Counter[Any]) -> None:
    frame = polars.from_arrow(arrow.read_table(cluster))
    assert isinstance(frame, polars.DataFrame)
    counted = frame.group_by("broker_name", "topic", "queue_id").len()
    assert {tuple(row[:3]): row[3] for row in counted.rows()} == counts
    assert frame.height == sum(counts.values())


def test_duckdb_over_a_stream_of_batches(cluster: Path, counts: Counter[Any]) -> None:
    log = arrow.read_batches(cluster, ["broker_name", "topic", "queue_id"])
    rows = duckdb.sql("SELECT broker_name, topic, queue_id, count(*) FROM log GROUP BY ALL").fetchall()
    assert {row[:3]: row[3] for row in rows} == counts
    assert log.schema.names == ["broker_name", "topic", "queue_id"]


def test_properties_and_times_in_duckdb(tmp_path: Path) -> None:
    written = write_log(tmp_path / "b", some_records(40))
    log = arrow.read_table(tmp_path / "b", ["properties", "store_timestamp", "body"])
    rows = duckdb.sql(
        "SELECT properties['KEYS'], epoch_ms(store_timestamp), body FROM log ORDER BY store_timestamp"
    ).fetchall()
    assert log.num_rows == 40
    assert rows == [(r.property_map["KEYS"], r.store_timestamp, r.body) for r in written]


def test_batches_are_made_when_they_are_asked_for(tmp_path: Path) -> None:
    """Damage in the second file is met there; what is wrong with the question is told at once."""
    written = write_log(tmp_path / "b", some_records(60))
    second = next(r for r in written if r.physical_offset >= 4096)
    path = tmp_path / "b" / "commitlog" / f"{4096:020}"
    damaged = bytearray(path.read_bytes())
    damaged[second.physical_offset - 4096 + 5] ^= 1
    path.write_bytes(damaged)
    reader = arrow.read_batches(tmp_path / "b", ["topic"])
    assert reader.read_next_batch().num_rows == sum(r.physical_offset < 4096 for r in written)
    with pytest.raises(CorruptionError, match=f"{4096:020} at offset {second.physical_offset + 4}"):
        reader.read_next_batch()
    with pytest.raises(UsageError, match="'boddy'"):
        arrow.read_batches(tmp_path / "b", ["boddy"])
