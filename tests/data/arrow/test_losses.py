"""A log that ends before its queues do: refused with what is missing, or read as far as it goes with a warning."""

from __future__ import annotations

import shutil
import warnings
from collections.abc import Callable
from pathlib import Path

import pytest

from mqlab.data.arrow.growing import log_end
from mqlab.data.arrow.losses import DataLossWarning, find_losses
from mqlab.data.arrow.ranges import plan
from mqlab.data.arrow.reading import read_table
from mqlab.data.arrow.stores import find_stores
from mqlab.errors import CorruptionError
from mqlab.lab.inspector import StoreInspector
from mqlab.rocketmq.store import MessageStore
from mqlab.rocketmq.wire.message import Message
from mqlab.rocketmq.wire.units import PREBLANK

COUNT = 60


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store of 60 messages in three queues, and a log of several files."""
    directory = tmp_path_factory.mktemp("loss") / "broker-a"
    with MessageStore.open(str(directory), mapped_file_size_commit_log=4096) as store:
        for number in range(COUNT):
            topic = ["orders", "заказы", "订单"][number % 3]
            store.put(Message(topic, "оплачен 🚚".encode() * 6, tags="paid", keys=f"k-{number}"))
    return directory


@pytest.fixture
def store(whole: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(whole, tmp_path / "broker-a"))


def files(store: Path) -> list[Path]:
    return sorted((store / "commitlog").iterdir())


def places(store: Path) -> list[int]:
    column = read_table(store, ["physical_offset"]).column(0)
    return [int(offset) for offset in column.to_pylist()]


def cut_to(store: Path, size: int, *, zeros: bool) -> None:
    """Lose what the log has from the physical offset ``size`` on: the file ends there, or holds zeros."""
    for path in files(store):
        start, length = int(path.name), path.stat().st_size
        if start + length > size:
            content = path.read_bytes()[: max(0, size - start)]
            path.write_bytes(content + bytes(length - len(content)) if zeros else content)
        if not zeros and start >= size:
            path.unlink()


@pytest.mark.parametrize("zeros", [False, True], ids=["cut", "zeros"])
@pytest.mark.parametrize("left", [0, 1, 7, 30, COUNT - 1])
def test_a_log_that_was_cut_is_refused_with_what_is_missing(store: Path, left: int, zeros: bool) -> None:
    units = places(store)
    end = log_end(StoreInspector(str(store))).offset
    cut_to(store, units[left], zeros=zeros)
    with pytest.raises(CorruptionError) as caught:
        read_table(store, ["topic"])
    error = caught.value
    last_end = units[left - 1] + _size(store, units[left - 1]) if left else 0
    assert (error.where, error.offset) == (str(store / "commitlog"), last_end)
    assert f"messages up to {end} (unit 19 of queue 0 of '订单')" in str(error)
    assert f"{COUNT - left} are missing" in str(error)
    assert "copy the store again" in error.hint and "fail_on_data_loss=False" in error.hint
    with pytest.warns(DataLossWarning, match=rf"{COUNT - left} are missing"):
        assert read_table(store, ["topic"], fail_on_data_loss=False).num_rows == left


def _size(store: Path, physical_offset: int) -> int:
    piece = StoreInspector(str(store)).log.unit_at(physical_offset)
    assert piece is not None
    return piece.size


def test_a_read_that_ends_before_the_loss_is_not_concerned(store: Path) -> None:
    units = places(store)
    cut_to(store, units[40], zeros=False)
    (where,) = find_stores(store)
    assert sum(each.size for each in plan(where, 1 << 20, end=units[20])) > 0
    with pytest.raises(CorruptionError, match="20 are missing"):
        plan(where, 1 << 20, end=units[40] + 1)


def test_a_file_that_is_missing_in_the_middle(store: Path) -> None:
    units = places(store)
    second = files(store)[1]
    start, end = int(second.name), int(second.name) + 4096
    second.unlink()
    inside = sum(start <= unit < end for unit in units)
    with pytest.raises(CorruptionError, match=rf"at offset {start}: .*up to {end} .*{inside} are missing"):
        read_table(store, ["topic"])
    with pytest.warns(DataLossWarning, match=f"{inside} are missing"):
        assert read_table(store, ["topic"], fail_on_data_loss=False).num_rows == COUNT - inside
    (where,) = find_stores(store)
    assert plan(where, 1 << 20, start=end)


def test_a_store_without_any_log_but_with_queues(store: Path) -> None:
    shutil.rmtree(store / "commitlog")
    with pytest.raises(CorruptionError, match=f"{COUNT} are missing"):
        read_table(store, ["topic"])


def test_a_damaged_last_unit_is_not_left_out_silently(store: Path) -> None:
    last = places(store)[-1]
    path = files(store)[-1]
    content = bytearray(path.read_bytes())
    content[last - int(path.name) + 4] ^= 1
    path.write_bytes(content)
    with pytest.raises(CorruptionError, match=f"at offset {last}: .*1 are missing"):
        read_table(store, ["topic"])


def test_healthy_stores_are_read_without_a_word(store: Path, real_store: Callable[[str], Path], tmp_path: Path) -> None:
    """Whole ones, one in use whose queues are behind, old files deleted, and a queue of deleted messages only."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for name in ("clean", "killed", "edges", "edges-killed"):
            inspector = StoreInspector(str(real_store(name)))
            assert find_losses(inspector, log_end(inspector), 0) == [], name
        files(store)[0].unlink()
        queue = store / "consumequeue" / "gone" / "0"
        queue.mkdir(parents=True)
        (queue / f"{0:020}").write_bytes(PREBLANK * 7 + bytes(20 * 93))
        assert 0 < read_table(store).num_rows < COUNT
        with MessageStore.open(str(tmp_path / "b"), mapped_file_size_commit_log=4096, dispatch=False) as behind:
            for number in range(40):
                behind.put(Message("orders", b"x" * 200))
                if number == 20:
                    behind.dispatch()
            assert read_table(tmp_path / "b").num_rows == 40
