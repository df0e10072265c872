"""Stores used where they are: nodes recover, write and delete, and not a byte of the owner's files changes."""

from __future__ import annotations

from pathlib import Path
from typing import cast

import pytest

from mqlab import Message
from mqlab.errors import UsageError
from mqlab.lab.world.borrowed_stores import BorrowedFiles, BorrowingLab
from mqlab.rocketmq.store import MessageStore

TEXT = "заказ 订单 💳"


def written_store(directory: Path, count: int = 40) -> Path:
    with MessageStore.open(str(directory), mapped_file_size_commit_log=16384, max_index_num=100) as store:
        for number in range(count):
            store.put(Message("orders", f"{TEXT} {number} {'x' * 900}".encode(), keys=f"key-{number}"))
    return directory


def content(directory: Path) -> dict[Path, tuple[bytes, int]]:
    return {path: (path.read_bytes(), path.stat().st_mtime_ns) for path in directory.rglob("*") if path.is_file()}


@pytest.mark.parametrize("how", ["clean", "killed", "torn"])
def test_a_store_is_recovered_read_and_written_to_without_a_change_of_its_files(how: str, tmp_path: Path) -> None:
    store = written_store(tmp_path / "store")
    if how != "clean":
        (store / "abort").write_text("4711")
    logs = sorted((store / "commitlog").iterdir())
    if how == "torn":  # in the middle of the last unit, in the page that recovery makes zero
        last = bytearray(logs[-1].read_bytes())
        end = len(bytes(last).rstrip(b"\0"))
        last[end - 300 : end - 200] = b"?" * 100
        logs[-1].write_bytes(last)
    for path in [*logs, store]:
        path.chmod(path.stat().st_mode & ~0o222)
    before = content(store)
    kept = 39 if how == "torn" else 40
    with BorrowingLab(stores={"broker-a": store}, directory=tmp_path / "scratch") as lab:
        log = lab.directory / "broker-a" / "commitlog"
        assert {path.is_symlink() for path in log.iterdir()} == {True}
        lab.create_topic("orders", read_queue_nums=1, write_queue_nums=1)
        assert lab.admin.examine_topic_stats("orders")[0].max_offset == kept
        producer = lab.producer("shop")
        for number in range(20):
            producer.send(Message("orders", f"{number}{'y' * 900}".encode(), keys="new"))
        lab.run_for("30s")
        assert len(lab.admin.query_message("orders", "new")) == 20
        found = lab.admin.query_message_by_time("orders")[:kept]
        assert [message.body.decode().split(" x")[0] for message in found] == [f"{TEXT} {n}" for n in range(kept)]
        lab.kill("broker-a")
        with pytest.raises(UsageError, match="borrowed"):
            cast(BorrowedFiles, lab.handles["broker-a"].files).power_cut()
    assert content(store) == before


def test_files_behind_links(tmp_path: Path) -> None:
    own = tmp_path / "own"
    with own.open("wb") as file:
        file.truncate(1 << 20)
        file.write(b"first")
    before = own.stat().st_mtime_ns
    links = [tmp_path / name for name in ("a", "b", "c")]
    for link in links:
        link.symlink_to(own)
    files = BorrowedFiles()
    mapping = files.map(str(links[0]), 1 << 20)
    mapping.write(500_000, b"into a hole of the file")
    mapping.zero(499_000)
    assert not any(mapping.view[499_000:]) and bytes(mapping.view[:5]) == b"first"
    mapping.zero(0)
    assert not any(mapping.view) and own.read_bytes()[:5] == b"first"
    longer = files.map(str(links[1]), 2 << 20)
    assert longer.size == 2 << 20 and bytes(longer.view[:5]) == b"first" and not links[1].is_symlink()
    files.set_modified_ms(str(links[2]), 12_345)
    assert files.modified_ms(str(links[2])) == 12_345
    files.write(str(links[2]), b"other")
    assert (files.read(str(links[2])), own.read_bytes()[:5], own.stat().st_mtime_ns) == (b"other", b"first", before)
    files.remove(str(links[0]))
    assert own.exists() and not links[0].exists()
