"""The real broker's stores: whole, copied anew each time, and refused when they are not what was published."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from mqlab.course.teach import datasets
from mqlab.course.teach.datasets import real_store, small_day
from mqlab.errors import CorruptionError, UsageError
from mqlab.lab.inspector import StoreInspector

DATASETS = Path(__file__).resolve().parents[3] / "datasets"


@pytest.mark.parametrize(("name", "messages", "crashed"), [("clean", 204, False), ("killed", 2554, True)])
def test_a_store_is_as_its_readme_says(name: str, messages: int, crashed: bool) -> None:
    inspector = StoreInspector(real_store(name))
    assert len(list(inspector.messages())) == messages
    assert inspector.is_open is crashed and inspector.problems() == []
    assert f"{inspector.max_physical_offset:,} bytes | {messages}" in (DATASETS / "README.md").read_text("utf-8")


def test_the_small_day_is_as_its_readme_says() -> None:
    brokers = [StoreInspector(folder) for folder in sorted(small_day().iterdir()) if folder.is_dir()]
    assert [Path(broker.directory).name for broker in brokers] == ["broker-a", "broker-b"]
    assert sum(len(list(broker.messages())) for broker in brokers) == 3_000
    assert [broker.problems() for broker in brokers] == [[], []]
    assert "one day of an order platform, 3,000 messages" in (DATASETS / "README.md").read_text("utf-8")


def test_each_copy_is_ones_own() -> None:
    one, other = real_store("clean"), real_store("clean")
    shutil.rmtree(one / "commitlog")
    assert (other / "commitlog").is_dir()


def cut(archive: Path) -> None:
    archive.write_bytes(archive.read_bytes()[:-7])


def flip(archive: Path) -> None:
    data = bytearray(archive.read_bytes())
    data[len(data) // 2] ^= 1
    archive.write_bytes(data)


@pytest.mark.parametrize("damage", [cut, flip])
def test_a_damaged_archive_is_refused(damage: Callable[[Path], None], tmp_path: Path) -> None:
    folder = shutil.copytree(DATASETS, tmp_path / "datasets")
    damage(folder / datasets.ARCHIVE)
    with pytest.raises(CorruptionError, match="not the archive that was published"):
        real_store("clean", folder)
    assert small_day(folder).is_dir()
    damage(folder / datasets.DAY_ARCHIVE)
    with pytest.raises(CorruptionError, match=r"not the archive that was published in small-day"):
        small_day(folder)


def test_what_is_missing_is_named(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="there are: clean, killed"):
        real_store("чужой")
    with pytest.raises(UsageError, match="cannot be read"):
        real_store("clean", tmp_path)
