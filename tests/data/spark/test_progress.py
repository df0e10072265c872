"""How far a stream is: from reports of its query, and from checkpoint folders as Spark leaves them."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest

from mqlab.data.arrow.reading import read_table
from mqlab.data.spark import progress_of
from mqlab.errors import CorruptionError, UsageError
from mqlab.lab.views.batch_strip import BatchStrip
from mqlab.rocketmq.store import MessageStore
from mqlab.rocketmq.wire.message import Message
from tests.data.arrow.logs import some_records, write_log

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

FIRST_MS = 1_700_000_000_500  # the store time of the first record; each later one is 1 ms younger


@pytest.fixture
def stores(tmp_path: Path) -> Path:
    for name, count in (("broker-a", 60), ("broker-b", 10)):
        write_log(tmp_path / "stores" / name, some_records(count))
    return tmp_path / "stores"


def places(stores: Path, broker: str) -> list[int]:
    """Where the units of a broker begin."""
    return read_table(stores / broker, ["physical_offset"])["physical_offset"].to_pylist()


def checkpoint(folder: Path, batches: list[list[str]], finished: int) -> Path:
    """A checkpoint folder: each batch's offset of each source as JSON, the first so many batches finished."""
    for name in ("offsets", "commits"):
        (folder / name).mkdir(parents=True)
    for number, lines in enumerate(batches):
        (folder / "offsets" / str(number)).write_text("\n".join(["v1", '{"batchWatermarkMs":0}', *lines]))
        (folder / "offsets" / f".{number}.crc").write_bytes(b"crc")
        if number < finished:
            (folder / "commits" / str(number)).write_text('v1\n{"nextBatchWatermarkMs":0}')
    return folder


def row_of(frame: Any, broker: str) -> dict[str, Any]:
    rows = frame[frame.broker_name == broker].astype(object).where(frame.notna(), None).to_dict("records")
    assert len(rows) == 1
    return dict(rows[0])


def test_a_batch_that_was_cut_off_is_not_committed(stores: Path, tmp_path: Path) -> None:
    a = places(stores, "broker-a")
    ends = [[json.dumps({"broker-a": a[20]})], [json.dumps({"broker-a": a[50]})]]
    frame = progress_of(checkpoint(tmp_path / "c", ends, finished=1), stores)
    row = row_of(frame, "broker-a")
    assert (row["batch_id"], row["finished"]) == (1, False)
    assert (row["batch_start"], row["committed"], row["batch_end"]) == (a[20], a[20], a[50])
    assert row["bytes_behind"] == row["confirmed_end"] - a[20]
    assert row["units_behind"] == 40 and row["lost_bytes"] == 0
    assert row["seconds_behind"] == pytest.approx(0.039)  # of the units, 20 was stored at +20 ms and 59 at +59 ms
    assert row["file_end"] > row["confirmed_end"] > a[59]
    # The other broker was not there when the batches began: nothing of it is read.
    other = row_of(frame, "broker-b")
    assert other["committed"] is None and other["batch_end"] is None
    assert other["units_behind"] == 10 and other["seconds_behind"] == pytest.approx(0.059)


def test_a_stream_that_has_read_everything_is_not_behind(stores: Path, tmp_path: Path) -> None:
    frame = progress_of(checkpoint(tmp_path / "start", [['{"broker-a": 0, "broker-b": 0}']], finished=0), stores)
    ends = {row["broker_name"]: row["confirmed_end"] for row in frame.to_dict("records")}
    done = progress_of(checkpoint(tmp_path / "c", [[json.dumps(ends)]], finished=1), stores)
    assert done[["bytes_behind", "units_behind", "seconds_behind"]].to_numpy().tolist() == [[0, 0, 0], [0, 0, 0]]
    assert done.finished.all() and done.batch_start.isna().all()  # where the first batch began is not on disk


def test_ages_are_taken_at_a_moment_that_can_be_given(stores: Path, tmp_path: Path) -> None:
    place = checkpoint(tmp_path / "c", [['{"broker-a": 0, "broker-b": 0}']], finished=1)
    frame = progress_of(place, stores, now_ms=FIRST_MS + 60_000)
    assert frame.seconds_behind.tolist() == [60, 60]
    assert progress_of(place, stores, now_ms=0).seconds_behind.tolist() == [0, 0]


def test_deleted_files_that_were_not_read_are_counted(stores: Path, tmp_path: Path) -> None:
    a = places(stores, "broker-a")
    (stores / "broker-a" / "commitlog" / f"{0:020}").unlink()
    row = row_of(progress_of(checkpoint(tmp_path / "c", [[f'{{"broker-a": {a[5]}}}']], 1), stores), "broker-a")
    assert row["log_start"] == 4096 and row["lost_bytes"] == 4096 - a[5]
    assert row["bytes_behind"] == row["confirmed_end"] - 4096
    assert row["units_behind"] == len([place for place in a if place >= 4096])
    assert "bytes were deleted before they were read" in str(BatchStrip([row]))


def test_a_report_of_a_query_is_a_batch_that_has_finished(stores: Path) -> None:
    a = places(stores, "broker-a")
    source = {"startOffset": {"broker-a": a[3]}, "endOffset": json.dumps({"broker-a": a[9]}), "latestOffset": None}
    report = {"batchId": 4, "sources": [{"startOffset": None, "endOffset": "17"}, source]}
    for given in (report, SimpleNamespace(lastProgress=report)):
        row = row_of(progress_of(given, stores), "broker-a")
        assert (row["batch_id"], row["source"], row["finished"]) == (4, 1, True)
        assert (row["batch_start"], row["committed"], row["batch_end"]) == (a[3], a[9], a[9])
    before_the_first = progress_of(SimpleNamespace(lastProgress=None), stores)
    assert before_the_first.batch_id.isna().all() and before_the_first.units_behind.tolist() == [60, 10]
    assert "no batch has read it" in str(BatchStrip(before_the_first))


def test_a_query_that_reads_stores_twice_has_a_row_for_each_source(stores: Path, tmp_path: Path) -> None:
    lines = ['{"broker-a": 0, "broker-b": 0}', "-", json.dumps({"broker-a": places(stores, "broker-a")[30]})]
    frame = progress_of(checkpoint(tmp_path / "c", [lines], finished=1), stores)
    assert list(zip(frame.broker_name, frame.source, frame.units_behind, strict=True)) == [
        ("broker-a", 0, 60),
        ("broker-b", 0, 10),
        ("broker-a", 2, 30),
        ("broker-b", 2, 10),
    ]
    assert "broker-a (source 2)" in str(BatchStrip(frame))


def test_what_has_no_progress_is_an_error_that_says_what_to_give(stores: Path, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="expected a streaming query or its checkpoint folder"):
        progress_of(7, stores)
    with pytest.raises(UsageError, match="expected a folder with offsets/ in it"):
        progress_of(tmp_path, stores)
    with pytest.raises(UsageError, match="at least one source of format"):
        progress_of(checkpoint(tmp_path / "rate", [["17"]], finished=1), stores)
    cut = checkpoint(tmp_path / "cut", [['{"broker-a": 0}']], finished=0)
    (cut / "offsets" / "0").write_text("")
    with pytest.raises(CorruptionError, match="not an offset log of Spark"):
        progress_of(cut, stores)


@pytest.mark.spark
def test_a_query_and_its_checkpoint_say_the_same(spark: SparkSession, tmp_path: Path) -> None:
    folder = str(tmp_path / "checkpoint")
    with MessageStore.open(str(tmp_path / "stores" / "broker-a"), mapped_file_size_commit_log=4096) as store:
        for number in range(30):
            store.put(Message("orders", b"x" * 100, keys=f"k{number}"))
        log = spark.readStream.format("rocketmq").option("maxOffsetsPerTrigger", 20).load(str(tmp_path / "stores"))
        writer = log.writeStream.format("noop").option("checkpointLocation", folder)
        query = writer.trigger(availableNow=True).start()
        query.awaitTermination()
        for number in range(5):
            store.put(Message("orders", b"x" * 100, keys=f"late {number}"))
        reported = row_of(progress_of(query, tmp_path / "stores"), "broker-a")
        kept = row_of(progress_of(folder, tmp_path / "stores"), "broker-a")
    assert reported == kept
    assert (kept["batch_id"], kept["finished"], kept["units_behind"]) == (1, True, 5)
    first = row_of(progress_of(query.recentProgress[0], tmp_path / "stores"), "broker-a")
    assert first["batch_end"] == kept["batch_start"] and first["units_behind"] == 15
    # Spark would run a batch again whose commit is missing.
    (tmp_path / "checkpoint" / "commits" / "1").unlink()
    assert row_of(progress_of(folder, tmp_path / "stores"), "broker-a")["units_behind"] == 15
