"""How the stream's reader plans: every message in one batch, cuts between units, and errors instead of stalls."""

from __future__ import annotations

import itertools
import json
import pickle
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadMaxBytes, ReadMaxRows, ReadMinRows

from mqlab.data.arrow.losses import DataLossWarning
from mqlab.data.arrow.reading import read_table
from mqlab.data.spark.marks import mark_in
from mqlab.data.spark.options import parse
from mqlab.data.spark.stream import Offsets, RocketMQStreamReader, numbers_of
from mqlab.errors import CorruptionError, StoreError, UsageError
from mqlab.rocketmq.store import MessageStore
from mqlab.rocketmq.wire.message import Message
from tests.data.arrow.logs import some_records, write_log

EVERYTHING = ReadAllAvailable()


def reader_of(path: Path, **options: object) -> RocketMQStreamReader:
    given = {name: str(value) for name, value in options.items()}
    return RocketMQStreamReader(parse({"path": str(path), **given}), ["broker_name", "physical_offset"])


def rows(reader: RocketMQStreamReader, start: Offsets, end: Offsets) -> list[tuple[str, int]]:
    """The messages of one batch, by way of pickled tasks and offsets that were JSON, as in Spark."""
    found = []
    for task in reader.partitions(json.loads(json.dumps(start)), json.loads(json.dumps(end))):
        batches = pickle.loads(pickle.dumps(reader)).read(pickle.loads(pickle.dumps(task)))
        found += [tuple(row.values()) for batch in batches for row in batch.to_pylist()]
    return found


def all_of(*stores: Path) -> list[tuple[str, int]]:
    return [tuple(row.values()) for row in read_table(list(stores), ["broker_name", "physical_offset"]).to_pylist()]


def drained(reader: RocketMQStreamReader, limit: Any, start: Offsets | None = None) -> list[list[tuple[str, int]]]:
    """The batches until there is nothing more."""
    batches, at = [], reader.initialOffset() if start is None else start
    while (end := reader.latestOffset(at, limit)) != at:
        batches.append(rows(reader, at, end))
        at = end
    return batches


@pytest.mark.parametrize("limit", [1, 700, 4000, 9001, 1 << 20])
def test_every_message_once_whatever_the_limit(tmp_path: Path, limit: int) -> None:
    for name, count in (("broker-a", 80), ("broker-b", 15), ("брокер-🚚", 3)):
        write_log(tmp_path / name, some_records(count))
    batches = drained(reader_of(tmp_path, splitMB=1), ReadMaxBytes(limit))
    assert sorted(itertools.chain(*batches)) == sorted(all_of(tmp_path))
    table = read_table(tmp_path, ["broker_name", "physical_offset", "total_size"])
    sizes = {(row["broker_name"], row["physical_offset"]): row["total_size"] for row in table.to_pylist()}
    for batch in batches:
        assert len(batch) <= 1 or sum(sizes[message] for message in batch) <= limit


def test_a_store_that_is_being_written_and_a_broker_that_joins(tmp_path: Path) -> None:
    reader = reader_of(tmp_path)
    with MessageStore.open(str(tmp_path / "broker-a"), mapped_file_size_commit_log=4096) as first:
        at = reader.initialOffset()
        assert at == {"broker-a": 0}
        assert reader.latestOffset(at, EVERYTHING) == at
        seen: list[tuple[str, int]] = []
        for number in range(40):
            first.put(Message("orders", "订单 🚚".encode() * number))
            if number == 20:
                write_log(tmp_path / "broker-b", some_records(30), start=8192)
            end = reader.latestOffset(at, EVERYTHING)
            assert reader.reportLatestOffset() == end
            seen += rows(reader, at, end)
            at = end
        assert seen and len(seen) == 70
        assert sorted(seen) == sorted(all_of(tmp_path))
        assert reader.latestOffset(at, EVERYTHING) == at


def test_available_now_ends_where_the_logs_ended(tmp_path: Path) -> None:
    with MessageStore.open(str(tmp_path / "b"), mapped_file_size_commit_log=16_384) as store:
        for number in range(20):
            store.put(Message("orders", b"x" * number))
        reader = reader_of(tmp_path)
        reader.prepareForTriggerAvailableNow()
        at = reader.initialOffset()
        middle = reader.latestOffset(at, ReadMaxBytes(1000))
        for _ in range(5):
            store.put(Message("orders", b"later"))
        write_log(tmp_path / "c", some_records(3))
        batches = [rows(reader, at, middle), *drained(reader, ReadMaxBytes(1000), middle)]
        assert len(batches[0]) < 20
        assert list(itertools.chain(*batches)) == all_of(tmp_path / "b")[:20]


def test_where_a_stream_begins(tmp_path: Path) -> None:
    written = write_log(tmp_path / "a", some_records(30), start=4096)
    write_log(tmp_path / "b", some_records(10))
    tenth = written[10].physical_offset
    ends = reader_of(tmp_path, startingOffsets="latest").initialOffset()
    assert ends["a"] == written[-1].physical_offset + written[-1].total_size
    assert reader_of(tmp_path).initialOffset() == {"a": 4096, "b": 0}
    some = reader_of(tmp_path, startingOffsets=json.dumps({"a": tenth}))
    assert some.initialOffset() == {"a": tenth, "b": 0}
    assert len(drained(some, EVERYTHING)[0]) == 30
    assert reader_of(tmp_path / "a", startPhysicalOffset=tenth).initialOffset() == {"a": tenth}
    with pytest.raises(UsageError, match=r"startingOffsets names broker-a[\s\S]*brokers are a, b"):
        reader_of(tmp_path, startingOffsets='{"broker-a": 0}').initialOffset()
    with pytest.raises(UsageError, match="one store, and 2"):
        reader_of(tmp_path, startPhysicalOffset=0).initialOffset()
    with pytest.raises(UsageError, match="endPhysicalOffset"):
        reader_of(tmp_path, endPhysicalOffset=7)


def test_a_place_that_is_none_is_an_error_at_once(tmp_path: Path) -> None:
    """A checkpoint of another store, a log that was cut, a wrong number given: told, not waited for."""
    written = write_log(tmp_path / "b", some_records(10), file_size=8192)
    end = written[-1].physical_offset + written[-1].total_size
    for place in (written[3].physical_offset + 1, end + 1, end + 500, 1 << 40):
        with pytest.raises(StoreError, match=rf"begins or ends at {place}[\s\S]*checkpoint"):
            reader_of(tmp_path).latestOffset({"b": place}, EVERYTHING)
    assert reader_of(tmp_path).latestOffset({"b": end}, EVERYTHING) == {"b": end}


def test_files_that_were_deleted_before_they_were_read(tmp_path: Path) -> None:
    written = write_log(tmp_path / "b", some_records(60))
    reader = reader_of(tmp_path)
    at = {"b": written[3].physical_offset}
    end = reader.latestOffset(at, EVERYTHING)
    (tmp_path / "b" / "commitlog" / f"{0:020}").unlink()
    for question in (lambda: reader.latestOffset(at, EVERYTHING), lambda: reader.partitions(at, end)):
        with pytest.raises(StoreError, match=rf"messages {at['b']} to 4096 of b were deleted[\s\S]*failOnDataLoss"):
            question()
    lenient = reader_of(tmp_path, failOnDataLoss="false")
    left = [("b", record.physical_offset) for record in written if record.physical_offset >= 4096]
    with pytest.warns(DataLossWarning, match=rf"messages {at['b']} to 4096 of b were deleted before they were read"):
        assert [rows(lenient, at, lenient.latestOffset(at, EVERYTHING))] == [left]
    with pytest.warns(DataLossWarning, match="of b were deleted"):
        assert list(itertools.chain(*drained(lenient, ReadMaxBytes(900), at))) == left


def test_a_broker_that_went_away(tmp_path: Path) -> None:
    for name in ("a", "b"):
        write_log(tmp_path / name, some_records(5))
    at = reader_of(tmp_path).initialOffset()
    shutil.rmtree(tmp_path / "b")
    with pytest.raises(StoreError, match=r"store of b no longer exists[\s\S]*failOnDataLoss"):
        reader_of(tmp_path).latestOffset(at, EVERYTHING)
    lenient = reader_of(tmp_path, failOnDataLoss="false")
    with pytest.warns(DataLossWarning, match=rf"store of b no longer exists; it had been read up to {at['b']}"):
        end = lenient.latestOffset(at, EVERYTHING)
    assert end["b"] == at["b"] and numbers_of(end)["a"] > numbers_of(at)["a"]
    assert len(rows(lenient, at, end)) == 5


def test_damage_is_an_error_of_the_batch_it_is_in(tmp_path: Path) -> None:
    written = write_log(tmp_path / "b", some_records(20))
    path = tmp_path / "b" / "commitlog" / f"{0:020}"
    damaged = bytearray(path.read_bytes())
    damaged[written[7].physical_offset + 4] ^= 1
    path.write_bytes(damaged)
    reader = reader_of(tmp_path)
    at = reader.initialOffset()
    with pytest.raises(CorruptionError, match=f"{0:020} at offset {written[7].physical_offset + 4}: expected DAA320A7"):
        rows(reader, at, reader.latestOffset(at, EVERYTHING))


def write_orders(directory: Path) -> list[int]:
    with MessageStore.open(str(directory), mapped_file_size_commit_log=4096) as store:
        for number in range(40):
            store.put(Message("orders", b"x" * 300, keys=f"k{number}"))
    return [place for _, place in all_of(directory)]


def test_a_log_that_ends_before_its_queues_do(tmp_path: Path) -> None:
    """At the begin of a query, and when its log was cut while it ran."""
    places = write_orders(tmp_path / "b")
    reader = reader_of(tmp_path)
    at = reader.latestOffset(reader.initialOffset(), ReadMaxBytes(1000))
    for path in sorted((tmp_path / "b" / "commitlog").iterdir())[2:]:
        path.unlink()
    left = [("b", place) for place in places if place < 8192]
    latest = reader_of(tmp_path, startingOffsets="latest")
    for question in (
        lambda: reader.latestOffset(at, EVERYTHING),
        reader_of(tmp_path).prepareForTriggerAvailableNow,
        latest.initialOffset,
    ):
        with pytest.raises(CorruptionError, match=rf"{40 - len(left)} are missing[\s\S]*failOnDataLoss"):
            question()
    lenient = reader_of(tmp_path, failOnDataLoss="false")
    with pytest.warns(DataLossWarning, match=f"{40 - len(left)} are missing"):
        assert list(itertools.chain(*drained(lenient, EVERYTHING))) == left


def test_a_file_that_is_missing_between_two_others(tmp_path: Path) -> None:
    write_orders(tmp_path / "b")
    (tmp_path / "b" / "commitlog" / f"{4096:020}").unlink()
    reader = reader_of(tmp_path)
    with pytest.raises(CorruptionError, match=r"at offset 4096: .*up to 8192"):
        reader.latestOffset(reader.initialOffset(), EVERYTHING)


def test_topics_and_options_that_cannot_mean_anything(tmp_path: Path) -> None:
    write_orders(tmp_path / "b")
    with pytest.raises(UsageError, match=r"no topic 'ordesr'[\s\S]*topics are orders"):
        reader_of(tmp_path, topic="ordesr").initialOffset()
    with pytest.raises(UsageError, match="endTime has no meaning in a stream"):
        reader_of(tmp_path, endTime=7)


def test_a_limit_of_another_kind_is_refused(tmp_path: Path) -> None:
    write_log(tmp_path / "b", some_records(2))
    reader = reader_of(tmp_path, maxBytesPerTrigger="1k")
    assert reader.getDefaultReadLimit() == ReadMaxBytes(1024)
    assert reader_of(tmp_path, maxOffsetsPerTrigger=7).getDefaultReadLimit() == ReadMaxRows(7)
    assert isinstance(reader_of(tmp_path).getDefaultReadLimit(), ReadAllAvailable)
    with pytest.raises(UsageError, match="maxBytesPerTrigger and maxOffsetsPerTrigger"):
        reader.latestOffset(reader.initialOffset(), ReadMinRows(5))


@pytest.mark.parametrize("limit", [1, 2, 7, 50, 1000])
def test_every_message_once_whatever_the_limit_of_units(tmp_path: Path, limit: int) -> None:
    for name, count in (("broker-a", 80), ("broker-b", 15), ("брокер-🚚", 3)):
        write_log(tmp_path / name, some_records(count))
    batches = drained(reader_of(tmp_path, splitMB=1), ReadMaxRows(limit))
    assert sorted(itertools.chain(*batches)) == sorted(all_of(tmp_path))
    assert max(map(len, batches)) <= limit
    assert len(batches) <= 98 // min(limit, 98) * 2 + 3  # what a broker does not use of its share goes to the others


def test_the_smaller_of_two_limits_counts(tmp_path: Path) -> None:
    write_log(tmp_path / "b", some_records(60))
    for options, most in (({"maxBytesPerTrigger": "1m"}, 5), ({"maxBytesPerTrigger": "900"}, 4)):
        reader = reader_of(tmp_path, maxOffsetsPerTrigger=5, **options)
        batches = drained(reader, reader.getDefaultReadLimit())
        assert sorted(itertools.chain(*batches)) == sorted(all_of(tmp_path))
        assert max(map(len, batches)) == most


def test_a_stream_begins_at_a_moment(tmp_path: Path) -> None:
    """Where each log has it; a log whose messages are all older begins at its end, as new ones come in."""
    written = write_log(tmp_path / "a", some_records(90))
    write_log(tmp_path / "b", some_records(10))
    moment = written[40].store_timestamp
    reader = reader_of(tmp_path, startingTimestamp=moment)
    at = reader.initialOffset()
    assert at == {
        "a": written[40].physical_offset,
        "b": reader_of(tmp_path / "b", startingOffsets="latest").initialOffset()["b"],
    }
    assert len(list(itertools.chain(*drained(reader, EVERYTHING)))) == 50
    assert reader_of(tmp_path, startingTimestamp=0).initialOffset() == {"a": 0, "b": 0}
    with pytest.raises(UsageError, match=r"startingOffsets: the log of b ends at \d+, before 99999999"):
        reader_of(tmp_path, startingOffsets='{"b": 99999999}').initialOffset()


def test_a_directory_that_has_no_log_yet_joins_with_its_first_file(tmp_path: Path) -> None:
    """A store that is being copied, or whose older files were deleted, does not begin at 0."""
    write_log(tmp_path / "a", some_records(5))
    reader = reader_of(tmp_path)
    at = reader.latestOffset(reader.initialOffset(), EVERYTHING)
    (tmp_path / "b").mkdir()
    (tmp_path / "b" / "abort").touch()
    assert reader.latestOffset(at, EVERYTHING) == at
    write_log(tmp_path / "b", some_records(6), start=8192)
    joined = reader.latestOffset(at, EVERYTHING)
    assert joined == {**at, "b": 8192}
    assert rows(reader, at, joined) == []
    assert len(rows(reader_of(tmp_path), joined, reader_of(tmp_path).latestOffset(joined, EVERYTHING))) == 6


def log_of(folder: Path, bodies: Sequence[str]) -> None:
    """A store of messages with these bodies: bodies of equal lengths make units at equal places."""
    with MessageStore.open(str(folder), mapped_file_size_commit_log=4096) as store:
        for body in bodies:
            store.put(Message("orders", body.encode()))


@pytest.mark.parametrize("place", [3, 20, 40])
@pytest.mark.parametrize("restarted", [False, True])
def test_another_log_with_units_at_the_same_places_is_not_read_on(tmp_path: Path, place: int, restarted: bool) -> None:
    log_of(tmp_path / "a", [f"old {number:03d}" for number in range(place)])
    reader = reader_of(tmp_path)
    start = reader.initialOffset()
    at = reader.latestOffset(start, EVERYTHING)
    assert len(rows(reader, start, at)) == place
    shutil.rmtree(tmp_path / "a")
    log_of(tmp_path / "a", [f"new {number:03d}" for number in range(place + 5)])
    reader = reader_of(tmp_path) if restarted else reader
    with pytest.raises(StoreError, match="is another one now"):
        reader.latestOffset(at, EVERYTHING)


def test_a_planned_batch_is_not_read_of_another_log_after_a_restart(tmp_path: Path) -> None:
    log_of(tmp_path / "a", [f"old {number:03d}" for number in range(5)])
    reader = reader_of(tmp_path)
    start = reader.initialOffset()
    planned = reader.latestOffset(start, EVERYTHING)
    shutil.rmtree(tmp_path / "a")
    log_of(tmp_path / "a", [f"new {number:03d}" for number in range(9)])
    with pytest.raises(StoreError, match="is another one now"):
        rows(reader_of(tmp_path), start, planned)


def test_a_mark_survives_files_that_were_deleted_and_so_does_a_checkpoint_without_one(tmp_path: Path) -> None:
    log_of(tmp_path / "a", [f"old {number:03d}" for number in range(60)])
    reader = reader_of(tmp_path)
    at: Any = reader.latestOffset(reader.initialOffset(), ReadMaxBytes(5000))
    assert mark_in(at["a"]) is not None
    sorted((tmp_path / "a" / "commitlog").iterdir())[0].unlink()  # before what is read next
    plain = numbers_of(at)
    left = [row for row in all_of(tmp_path / "a") if row[1] >= plain["a"]]
    for begin in (at, plain):
        end = reader_of(tmp_path).latestOffset(begin, EVERYTHING)
        assert rows(reader_of(tmp_path), begin, end) == left
