"""The place of a moment in a log: the first unit that is not older, whatever files and equal times there are."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from mqlab.data.arrow.growing import confirmed_end, is_boundary
from mqlab.data.arrow.moments import first_stored_at
from mqlab.lab.inspector import StoreInspector
from mqlab.rocketmq.wire.record import Record
from tests.data.arrow.logs import some_records, write_log


def stored(count: int, each_ms: int = 1, body: int = 0) -> list[Record]:
    """Records of which every third is stored in the same millisecond as the one before it."""
    return [
        replace(record, store_timestamp=10_000 + (number - number % 3) * each_ms, body=record.body + bytes(body))
        for number, record in enumerate(some_records(count))
    ]


@pytest.mark.parametrize(("count", "body", "file_size"), [(60, 0, 4096), (400, 900, 262_144), (7, 0, 4096)])
def test_every_moment_of_a_log(tmp_path: Path, count: int, body: int, file_size: int) -> None:
    written = write_log(tmp_path / "b", stored(count, 10, body), file_size)
    inspector = StoreInspector(tmp_path / "b")
    end = confirmed_end(inspector)
    for moment in [0, *range(9_990, 10_000 + count * 10 + 20, 5 if count < 100 else 35), 1 << 50]:
        expected = next((each.physical_offset for each in written if each.store_timestamp >= moment), end)
        found = first_stored_at(inspector, moment, end)
        assert found == expected
        assert is_boundary(inspector, found)


def test_what_comes_after_the_end_is_not_looked_at(tmp_path: Path) -> None:
    written = write_log(tmp_path / "b", stored(60))
    inspector = StoreInspector(tmp_path / "b")
    for number in (0, 13, 40):
        place = written[number].physical_offset
        assert first_stored_at(inspector, written[number].store_timestamp + 1, place) == place


def test_files_made_ahead_and_a_log_without_files(tmp_path: Path) -> None:
    written = write_log(tmp_path / "b", stored(30), start=8192)
    (tmp_path / "b" / "commitlog" / f"{written[-1].physical_offset // 4096 * 4096 + 4096:020}").write_bytes(bytes(4096))
    inspector = StoreInspector(tmp_path / "b")
    end = confirmed_end(inspector)
    assert first_stored_at(inspector, written[20].store_timestamp, end) == written[18].physical_offset
    assert first_stored_at(inspector, 0, end) == 8192
    (tmp_path / "c" / "commitlog").mkdir(parents=True)
    assert first_stored_at(StoreInspector(tmp_path / "c"), 7, 0) == 0


def test_damage_before_the_moment_stays_in_the_range(tmp_path: Path) -> None:
    """A read from there comes to it; damage among older messages does not matter."""
    written = write_log(tmp_path / "b", stored(20), file_size=65_536)
    path = tmp_path / "b" / "commitlog" / f"{0:020}"
    damaged = bytearray(path.read_bytes())
    for number in (4, 11):
        damaged[written[number].physical_offset + 4] ^= 1
    path.write_bytes(damaged)
    inspector = StoreInspector(tmp_path / "b")
    end = written[-1].physical_offset + written[-1].total_size
    assert first_stored_at(inspector, written[12].store_timestamp, end) == written[11].physical_offset
    assert first_stored_at(inspector, written[9].store_timestamp, end) == written[9].physical_offset
    assert first_stored_at(inspector, written[15].store_timestamp, end) == written[15].physical_offset
