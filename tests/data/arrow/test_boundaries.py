"""Many cursors find what the plain hop finds: in whole logs, in damaged ones, and whatever stands in bodies."""

from __future__ import annotations

import mmap
import random
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mqlab.data.arrow import boundaries
from mqlab.data.arrow.columns import UnitColumns
from mqlab.data.arrow.ranges import LogRange, plan
from mqlab.data.arrow.stores import find_stores
from mqlab.data.arrow.units import unit_positions
from mqlab.errors import CorruptionError
from mqlab.rocketmq.wire.record import Record, blank, decode, encode
from mqlab.rocketmq.wire.record_layout import MAGIC_BLANK, MAGIC_V1
from tests.data.arrow.logs import some_records, write_log


@pytest.fixture(autouse=True, scope="module")
def cursors_for_small_logs() -> Iterator[None]:
    before = boundaries.BYTES_PER_CURSOR, boundaries.FEWEST
    boundaries.BYTES_PER_CURSOR, boundaries.FEWEST = 300, 1
    yield
    boundaries.BYTES_PER_CURSOR, boundaries.FEWEST = before


def outcome(view: bytes, where: LogRange, *, fast: bool) -> list[int] | tuple[int | None, str]:
    """The places of the units, or where and how it failed: by cursors and columns, or by the hop and the decoder."""
    try:
        if fast:
            found = boundaries.boundaries(view, where)
            UnitColumns(view, where, found)
            return found.tolist()
        found = unit_positions(view, where)
        for at in found.tolist():
            try:
                decode(memoryview(view)[: where.end - where.file_start], at)
            except CorruptionError as error:
                return where.file_start + (at if error.offset is None else error.offset), error.what
        return found.tolist()
    except CorruptionError as error:
        return error.offset, error.what


def log_of(records: list[Record], file_start: int = 0, rest: int = 0) -> tuple[bytes, LogRange]:
    """The bytes of a file with these units and, if ``rest`` says so, a blank; and the range of all of it."""
    content = b""
    for record in records:
        content += encode(replace(record, physical_offset=file_start + len(content)))
    content += blank(rest) + bytes(rest - 8) if rest else b""
    return content, LogRange("f", file_start, file_start, file_start + len(content), "b")


BODIES = st.lists(st.binary(max_size=3000) | st.just(MAGIC_V1.to_bytes(4, "big", signed=True) * 30), max_size=40)


@given(bodies=BODIES, rest=st.sampled_from([0, 8, 90, 91, 300, 5000]), start=st.sampled_from([0, 1 << 40]))
def test_any_log(bodies: list[bytes], rest: int, start: int) -> None:
    view, where = log_of([Record("заказы-订单-🚚", body) for body in bodies], start, rest)
    assert outcome(view, where, fast=True) == outcome(view, where, fast=False)


def test_every_kind_of_host_and_blanks_in_real_files(tmp_path: Path) -> None:
    write_log(tmp_path / "b", some_records(900), file_size=65_536)
    ranges = plan(*find_stores(tmp_path), 20_000)
    assert len({where.path for where in ranges}) > 2
    for where in ranges:
        view = Path(where.path).read_bytes()
        found = outcome(view, where, fast=True)
        assert found == outcome(view, where, fast=False)
        assert isinstance(found, list) and len(found) > 5


DAMAGED, WHOLE_RANGE = log_of([replace(r, body=r.body * 9) for r in some_records(80)], 1 << 33, rest=700)


@given(seed=st.integers(0, 2**32), count=st.integers(1, 4), near=st.booleans())
def test_damaged_bytes_are_found_at_the_same_place(seed: int, count: int, near: bool) -> None:
    """``near``: in the first bytes of units, where sizes, magics and offsets stand."""
    rng = random.Random(seed)
    starts = unit_positions(DAMAGED, WHOLE_RANGE).tolist()
    view = bytearray(DAMAGED)
    for _ in range(count):
        at = rng.choice(starts) + rng.randrange(40) if near else rng.randrange(len(view))
        view[at] = rng.choice([0, 1, 0x7F, 0x80, 0xFF, rng.randrange(256)])
    assert outcome(bytes(view), WHOLE_RANGE, fast=True) == outcome(bytes(view), WHOLE_RANGE, fast=False)


@given(end=st.integers(0, len(DAMAGED)))
def test_a_range_that_ends_within_a_unit(end: int) -> None:
    where = replace(WHOLE_RANGE, end=WHOLE_RANGE.start + end)
    for view in (DAMAGED, DAMAGED[:end]):
        assert outcome(view, where, fast=True) == outcome(view, where, fast=False)


def test_the_range_of_a_file_that_became_shorter() -> None:
    view = DAMAGED[: len(DAMAGED) // 2]
    assert outcome(view, WHOLE_RANGE, fast=True) == outcome(view, WHOLE_RANGE, fast=False)
    assert isinstance(outcome(view, WHOLE_RANGE, fast=True), tuple)


def test_a_blank_in_the_middle_ends_nothing() -> None:
    """Only the rest of a file may be blank: behind one in the middle stand messages."""
    view = bytearray(DAMAGED)
    starts = unit_positions(DAMAGED, WHOLE_RANGE).tolist()
    view[starts[40] + 4 : starts[40] + 8] = MAGIC_BLANK.to_bytes(4, "big", signed=True)
    for end in (starts[41], starts[60], len(view)):
        where = replace(WHOLE_RANGE, end=WHOLE_RANGE.start + end)
        found = outcome(bytes(view), where, fast=True)
        assert found == outcome(bytes(view), where, fast=False)
        assert found == (WHOLE_RANGE.start + starts[40] + 4, "not a unit")


def test_cursors_are_at_work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With the plain hop out of reach, a healthy log is read all the same."""
    monkeypatch.setattr(boundaries, "unit_positions", lambda view, where: pytest.fail("the plain hop was asked"))
    write_log(tmp_path / "b", some_records(300), file_size=1 << 20)
    (where,) = plan(*find_stores(tmp_path), 1 << 30)
    with open(where.path, "rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as view:
        assert len(boundaries.boundaries(view, where)) == 300
