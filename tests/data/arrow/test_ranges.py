"""Cutting a store into ranges: nothing twice, nothing left out, every cut between two units."""

from __future__ import annotations

import itertools
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mqlab.data.arrow.ranges import LogRange, plan, together
from mqlab.data.arrow.reading import read_range
from mqlab.data.arrow.stores import find_stores
from tests.data.arrow.logs import some_records, write_log


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[int]]:
    directory = tmp_path_factory.mktemp("cut") / "broker-a"
    return directory, [record.physical_offset for record in write_log(directory, some_records(90))]


def offsets_in(ranges: list[LogRange]) -> list[int]:
    return [
        offset
        for where in ranges
        for batch in read_range(where, ["physical_offset"])
        for offset in batch.column(0).to_pylist()
    ]


@given(target=st.integers(1, 20_000))
def test_every_unit_is_in_one_range_whatever_the_size(store: tuple[Path, list[int]], target: int) -> None:
    directory, offsets = store
    ranges = plan(*find_stores(directory), target)
    assert offsets_in(ranges) == offsets
    assert all(where.start in offsets for where in ranges)


@given(bounds=st.tuples(st.integers(-10, 20_000), st.integers(-10, 20_000)), target=st.integers(100, 9000))
def test_bounds_choose_units_that_begin_between_them(
    store: tuple[Path, list[int]], bounds: tuple[int, int], target: int
) -> None:
    directory, offsets = store
    start, end = bounds
    wanted = [offset for offset in offsets if start <= offset < end]
    assert offsets_in(plan(*find_stores(directory), target, start=start, end=end)) == wanted


def test_a_log_whose_first_files_were_deleted_and_whose_last_was_made_ahead(tmp_path: Path) -> None:
    directory = tmp_path / "broker-a"
    written = write_log(directory, some_records(20), start=40_960)
    last = max((directory / "commitlog").iterdir())
    (directory / "commitlog" / f"{int(last.name) + 4096:020}").write_bytes(bytes(4096))
    assert offsets_in(plan(*find_stores(directory), 1000)) == [record.physical_offset for record in written]


def test_a_body_that_looks_like_a_unit_is_not_a_cut(tmp_path: Path) -> None:
    """Magic numbers in bodies are passed over: their stored offset is not their place."""
    records = some_records(30)
    for record in records:
        record.body = bytes.fromhex("00000063daa320a7") * 20
    written = write_log(tmp_path / "b", records, file_size=65_536)
    cuts = {where.start for where in plan(*find_stores(tmp_path / "b"), 300)}
    assert cuts <= {record.physical_offset for record in written}
    assert len(cuts) > 10


def test_an_empty_log_has_no_ranges(tmp_path: Path) -> None:
    write_log(tmp_path / "b", [])
    assert plan(*find_stores(tmp_path / "b"), 1000) == []


@given(sizes=st.lists(st.integers(1, 500), max_size=30), target=st.integers(1, 1000))
def test_small_files_share_a_task(sizes: list[int], target: int) -> None:
    bounds = [0, *itertools.accumulate(sizes)]
    ranges = [LogRange("f", 0, a, b, "b") for a, b in itertools.pairwise(bounds)]
    groups = together(ranges, target)
    assert [where for group in groups for where in group] == ranges
    assert all(len(group) == 1 or sum(where.size for where in group) <= target for group in groups)
    for group, following in itertools.pairwise(groups):
        assert sum(where.size for where in group) + following[0].size > target
