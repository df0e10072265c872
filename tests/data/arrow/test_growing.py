"""The end of a log that grows: never behind a unit that is not wholly there, always behind one that is."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mqlab.data.arrow.growing import boundary_before, confirmed_end, place_after, unit_end
from mqlab.data.arrow.ranges import plan, plan_between
from mqlab.data.arrow.reading import read_range, read_table
from mqlab.data.arrow.stores import find_stores
from mqlab.errors import CorruptionError, StoreError
from mqlab.lab.inspector import StoreInspector
from mqlab.rocketmq.store import MessageStore
from mqlab.rocketmq.wire.message import Message
from mqlab.rocketmq.wire.record import Record, encode
from tests.data.arrow.logs import some_records, write_log


def log_file(store: Path) -> Path:
    return store / "commitlog" / f"{0:020}"


def write_at(store: Path, physical_offset: int, data: bytes) -> None:
    with open(log_file(store), "r+b") as file:
        file.seek(physical_offset)
        file.write(data)


def offsets_between(store: Path, start: int, end: int) -> list[int]:
    ranges = plan_between(*find_stores(store), 2_000, start, end)
    batches = [batch for where in ranges for batch in read_range(where, ["physical_offset"])]
    return [offset for batch in batches for offset in batch.column(0).to_pylist()]


@pytest.fixture(scope="module")
def half_way(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, int, bytes]:
    """A store of ten messages with queues, how long its log is, and a unit longer than a page that comes next."""
    directory = tmp_path_factory.mktemp("grow") / "broker-a"
    with MessageStore.open(str(directory), mapped_file_size_commit_log=65_536) as store:
        for number in range(10):
            store.put(Message("orders", "оплачен 已付款 🚚".encode() * number, tags="paid", keys=f"k{number}"))
    inspector = StoreInspector(str(directory))
    end, newest = inspector.max_physical_offset, inspector.last_store_timestamp()
    assert newest is not None
    long = b"KEYS\x01" + b"k" * 5000 + b"\x02"
    return (
        directory,
        end,
        encode(
            Record("orders", "订单".encode() * 900, store_timestamp=newest + 5, physical_offset=end, properties=long)
        ),
    )


@pytest.mark.parametrize("queues", ["with queues", "without queues"])
def test_a_unit_counts_when_its_last_byte_is_there(
    half_way: tuple[Path, int, bytes], tmp_path: Path, queues: str
) -> None:
    """Written from the front, from behind, or page by page: at no moment is a piece of it handed out."""
    origin, end, unit = half_way
    directory = shutil.copytree(origin, tmp_path / "broker-a")
    if queues == "without queues":
        shutil.rmtree(directory / "consumequeue")
    size = len(unit)
    forward = [range(stop) for stop in range(0, size, 97)]
    backward = [range(start, size) for start in range(3, size, 97)]  # the size begins with zeros anyway
    pages = [[at for at in range(size) if (end + at) // 4096 % 2 == odd] for odd in (0, 1)]
    for written in [*forward, *backward, *pages]:
        there = bytearray(size)
        for at in written:
            there[at] = unit[at]
        write_at(directory, end, bytes(there))
        assert confirmed_end(StoreInspector(str(directory))) == end
        assert confirmed_end(StoreInspector(str(directory)), known=end) == end
        assert read_table(directory, ["body"]).num_rows == 10
    write_at(directory, end, unit)
    assert confirmed_end(StoreInspector(str(directory))) == end + size
    assert read_table(directory, ["body"]).num_rows == 11


def test_every_put_is_seen_at_once_across_files(tmp_path: Path) -> None:
    known, seen = 0, []
    with MessageStore.open(str(tmp_path / "b"), mapped_file_size_commit_log=4096, dispatch=False) as store:
        inspector = StoreInspector(str(tmp_path / "b"))
        for number in range(60):
            store.put(Message("订单", b"x" * (number * 37 % 900), keys=f"k{number}"))
            if number % 3:
                store.dispatch()
            end = confirmed_end(inspector, known)
            assert end == store.max_physical_offset
            seen += offsets_between(tmp_path / "b", known, end)
            known = end
    assert seen == read_table(tmp_path / "b", ["physical_offset"]).column(0).to_pylist()
    assert len(seen) == 60


def test_old_units_behind_the_end_of_a_recovered_log_do_not_come_back(
    half_way: tuple[Path, int, bytes], tmp_path: Path
) -> None:
    """RocketMQ leaves them on the disk: a new unit of the same length leads straight to one of them."""
    directory = shutil.copytree(half_way[0], tmp_path / "broker-a")
    inspector = StoreInspector(str(directory))
    end, newest = half_way[1], inspector.last_store_timestamp()
    assert newest is not None
    old = replace(Record("orders", b"old", properties=b"KEYS\x01a\x02"), store_timestamp=newest - 50)
    place = end + len(encode(old))
    write_at(directory, place, encode(replace(old, physical_offset=place)))
    assert confirmed_end(inspector) == end
    write_at(directory, end, encode(replace(old, body=b"new", store_timestamp=newest + 9, physical_offset=end)))
    assert confirmed_end(inspector) == place


def test_damage_does_not_end_a_log(tmp_path: Path) -> None:
    """With or without queues: the reader of the range says where the damage is."""
    with MessageStore.open(str(tmp_path / "b"), mapped_file_size_commit_log=16_384) as store:
        for number in range(30):
            store.put(Message("orders", b"x" * number * 3))
        end = store.max_physical_offset
    places = read_table(tmp_path / "b", ["physical_offset"]).column(0).to_pylist()
    write_at(tmp_path / "b", places[12] + 4, b"\xff")
    for _ in range(2):
        assert confirmed_end(StoreInspector(str(tmp_path / "b")), known=places[5]) == end
        with pytest.raises(CorruptionError, match=f"at offset {places[12] + 4}"):
            offsets_between(tmp_path / "b", places[5], end)
        shutil.rmtree(tmp_path / "b" / "consumequeue", ignore_errors=True)


def test_a_place_that_is_none_is_an_error(tmp_path: Path) -> None:
    written = write_log(tmp_path / "b", some_records(30))
    inside, end = written[4].physical_offset + 7, written[20].physical_offset
    with pytest.raises(CorruptionError, match=f"at offset {inside + 4}"):
        offsets_between(tmp_path / "b", inside, end)
    with pytest.raises(CorruptionError, match="total size leads out"):
        offsets_between(tmp_path / "b", written[4].physical_offset, end + 7)


def test_a_file_deleted_between_plan_and_read(tmp_path: Path) -> None:
    write_log(tmp_path / "b", some_records(40))
    where = plan(*find_stores(tmp_path), 1 << 20)[0]
    log_file(tmp_path / "b").unlink()
    with pytest.raises(StoreError, match=rf"{0:020} is gone[\s\S]*fileReservedTime"):
        list(read_range(where))


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[Record]]:
    directory = tmp_path_factory.mktemp("limits") / "b"
    return directory, write_log(directory, [replace(r, body=r.body * 20) for r in some_records(70)], file_size=16_384)


@given(data=st.data())
def test_limits_fall_between_units(written: tuple[Path, list[Record]], data: st.DataObject) -> None:
    directory, records = written
    inspector = StoreInspector(str(directory))
    starts = [record.physical_offset for record in records]
    known = data.draw(st.sampled_from(starts))
    limit = data.draw(st.integers(known, starts[-1] + 3000))
    found = boundary_before(inspector, known, limit)
    file_start = limit - limit % 16_384
    assert found == max([known, file_start, *(start for start in starts if known <= start <= limit)])
    assert unit_end(inspector, known) == known + records[starts.index(known)].total_size


def test_behind_the_last_unit_of_a_file_the_next_one_follows(written: tuple[Path, list[Record]]) -> None:
    directory, records = written
    first = next(record for record in records if record.physical_offset == 16_384)
    before = records[records.index(first) - 1]
    assert before.physical_offset + before.total_size < 16_384  # a blank stands there
    end = unit_end(StoreInspector(str(directory)), before.physical_offset + before.total_size)
    assert end == first.physical_offset + first.total_size


def test_a_log_without_files_or_units(tmp_path: Path) -> None:
    (tmp_path / "fresh" / "commitlog").mkdir(parents=True)
    assert confirmed_end(StoreInspector(str(tmp_path / "fresh"))) == 0
    write_log(tmp_path / "empty", [], start=8192)
    inspector = StoreInspector(str(tmp_path / "empty"))
    assert confirmed_end(inspector) == 8192
    assert unit_end(inspector, 8192) == boundary_before(inspector, 8192, 9000) == 8192


def test_the_place_after_some_units(tmp_path: Path) -> None:
    """Over blanks, up to the limit, and no further than damage lets see."""
    written = write_log(tmp_path / "b", some_records(60))
    inspector = StoreInspector(tmp_path / "b")
    end = confirmed_end(inspector)
    places = [record.physical_offset for record in written]
    for first in (0, 17, 40):
        for count in (1, 2, 19):
            place, units = place_after(inspector, places[first], count, end)
            assert (units, place) == (count, places[first + count - 1] + written[first + count - 1].total_size)
    assert place_after(inspector, places[10], 0, end) == (places[10], 0)
    assert place_after(inspector, places[10], 30, places[12]) == (places[12], 2)
    assert place_after(inspector, 0, 1_000, end) == (end, 60)
    write_at(tmp_path / "b", places[3], b"\0" * 8)
    assert place_after(inspector, 0, 1_000, end) == (end, 3)
    log_file(tmp_path / "b").unlink()
    assert place_after(inspector, 0, 2, end)[1] == 2
