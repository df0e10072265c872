"""Real files, their lock, and files that lose power: what is written, what is synced, what a power cut takes."""

from __future__ import annotations

import gc
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from mqlab.errors import CorruptionError, StoreError
from mqlab.lab.runtime.crash_files import CrashFiles, Unsynced
from mqlab.rocketmq.machine import files as machine_files
from mqlab.rocketmq.machine.files import RealFiles, copy_without_holes

PAGE = 4096
TEXT = "сообщение 你好 🚀".encode()


HERE = [(RealFiles, False), (CrashFiles, False)]
IN_A_BROWSER = [(RealFiles, True), (CrashFiles, True)]
on_a_system = pytest.mark.parametrize("files", HERE, indirect=True)
"""For what a browser does not have: holes in files, other processes."""


@pytest.fixture(params=HERE + IN_A_BROWSER)
def files(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> RealFiles:
    """Both kinds of files, on this system and with what a browser lacks taken away."""
    kind, is_in_browser = request.param
    if is_in_browser:
        monkeypatch.setattr(machine_files, "IN_BROWSER", True)
        for name in ("fcntl", "resource"):
            monkeypatch.delattr(machine_files, name)
        monkeypatch.delattr(os, "SEEK_DATA", raising=False)
    made: RealFiles = kind()
    return made


def test_what_is_written_to_a_map_is_read_from_the_file(files: RealFiles, tmp_path: Path) -> None:
    mapping = files.map(f"{tmp_path}/f", 3 * PAGE)
    mapping.write(PAGE - 3, TEXT)
    assert bytes(mapping.view[PAGE - 3 : PAGE - 3 + len(TEXT)]) == TEXT
    mapping.flush(PAGE - 3, PAGE + 10)
    assert files.read(f"{tmp_path}/f")[PAGE - 3 :].startswith(TEXT)
    assert files.size(f"{tmp_path}/f") == 3 * PAGE
    with pytest.raises(TypeError):
        mapping.view[0] = 1  # only ``write`` writes
    mapping.close()


def test_a_map_may_be_closed_under_a_reader(files: RealFiles, tmp_path: Path) -> None:
    mapping = files.map(f"{tmp_path}/f", PAGE)
    mapping.write(0, TEXT)
    slice_of_it = mapping.view[: len(TEXT)]
    mapping.close()
    files.remove(f"{tmp_path}/f")
    assert bytes(slice_of_it) == TEXT


def test_a_map_of_a_file_that_is_not_there_or_too_short(files: RealFiles, tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        files.map(f"{tmp_path}/none", PAGE, create=False)
    files.write(f"{tmp_path}/short", b"123")
    with pytest.raises(CorruptionError, match="expected 4096 bytes, found 3"):
        files.map(f"{tmp_path}/short", PAGE, create=False)
    assert bytes(files.map(f"{tmp_path}/short", PAGE).view[:5]) == b"123\0\0"


@on_a_system
def test_zero_writes_only_what_is_not_zero(files: RealFiles, tmp_path: Path) -> None:
    mapping = files.map(f"{tmp_path}/f", 1 << 22)
    for position in (10, 5 * PAGE, (1 << 22) - 4):
        mapping.write(position, b"\xff\xfe\xfd\xfc")
    mapping.zero(12)
    assert os.stat(f"{tmp_path}/f").st_blocks * 512 < 1 << 21  # the holes are still holes; to read them may fill them
    assert bytes(mapping.view[10:14]) == b"\xff\xfe\0\0"
    assert not any(mapping.view[14:])


@pytest.mark.parametrize("pieces", [[], [(0, 5)], [(3 << 20, 5), (40 << 20, 3 << 20)], [((64 << 20) - 7, 7)]])
def test_a_copy_has_the_bytes_and_the_holes(tmp_path: Path, pieces: list[tuple[int, int]]) -> None:
    source, target, size = tmp_path / "source", tmp_path / "target", 64 << 20
    with source.open("wb") as file:
        file.truncate(size)
        for start, length in pieces:
            file.seek(start)
            file.write(os.urandom(length))
    target.write_bytes(b"what was there before" * 9)
    copy_without_holes(str(source), str(target))
    assert target.read_bytes() == source.read_bytes()
    assert os.stat(target).st_blocks <= os.stat(source).st_blocks + 16 < size // 512 // 4


def test_directories_names_and_times(files: RealFiles, tmp_path: Path) -> None:
    files.make_directory(f"{tmp_path}/a/b")
    files.make_directory(f"{tmp_path}/a/b")
    files.write(f"{tmp_path}/a/z", b"1")
    files.write(f"{tmp_path}/a/y", b"2", sync=True)
    files.sync_directory(f"{tmp_path}/a")
    assert files.list(f"{tmp_path}/a") == ["b", "y", "z"]
    assert files.is_dir(f"{tmp_path}/a/b") and not files.is_dir(f"{tmp_path}/a/y")
    files.rename(f"{tmp_path}/a/y", f"{tmp_path}/a/z")
    assert files.read(f"{tmp_path}/a/z") == b"2" and not files.exists(f"{tmp_path}/a/y")
    files.set_modified_ms(f"{tmp_path}/a/z", 1_700_000_000_456)
    assert files.modified_ms(f"{tmp_path}/a/z") == 1_700_000_000_456
    files.remove_tree(f"{tmp_path}/a")
    assert not files.exists(f"{tmp_path}/a")
    assert 0 <= files.used_ratio(str(tmp_path)) <= 1
    total, free = files.disk_space(str(tmp_path))
    assert 0 <= free <= total


@on_a_system
def test_a_lock_is_held_against_this_process_and_others(files: RealFiles, tmp_path: Path) -> None:
    path = f"{tmp_path}/lock"
    lock = files.lock(path)
    with pytest.raises(StoreError, match="locked"):
        RealFiles().lock(path)
    files.write(path, b"lock")
    assert files.read(path) == b"lock"  # neither may close a second descriptor: that would drop the lock
    attempt = f"import fcntl; f = open({path!r}, 'r+b'); fcntl.lockf(f, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, 0)"
    assert subprocess.run([sys.executable, "-c", attempt], capture_output=True, check=False).returncode == 1
    lock.release()
    lock.release()
    assert subprocess.run([sys.executable, "-c", attempt], capture_output=True, check=False).returncode == 0
    RealFiles().lock(path).release()


def test_the_locks_of_a_dead_process_are_free(files: RealFiles, tmp_path: Path) -> None:
    files.lock(f"{tmp_path}/lock")
    files.process_ended()
    files.lock(f"{tmp_path}/lock").release()


def test_more_files_than_the_usual_limit(tmp_path: Path) -> None:
    """In a process of its own: how many files the tests before this one keep open is not its subject."""
    script = f"""
import resource
from mqlab.rocketmq.machine.files import RealFiles

_, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
resource.setrlimit(resource.RLIMIT_NOFILE, (20, hard))
mappings = [RealFiles().map(f"{tmp_path}/{{number}}", {PAGE}) for number in range(400)]
assert all(mapping.size == {PAGE} for mapping in mappings)
"""
    subprocess.run([sys.executable, "-c", script], check=True)


def test_files_that_are_forgotten_give_their_lock_back(tmp_path: Path) -> None:
    path = f"{tmp_path}/замок"
    gc.freeze()  # what other tests have left is not looked through: it takes a second
    RealFiles().lock(path)
    gc.collect()  # who held it is in a circle with its locks
    RealFiles().lock(path).release()


@pytest.fixture
def machine(tmp_path: Path) -> CrashFiles:
    made = CrashFiles()
    mapping = made.map(f"{tmp_path}/log", 4 * PAGE)
    mapping.write(0, b"old" * 5000)
    mapping.flush()
    made.sync_directory(str(tmp_path))
    return made


def test_a_synced_file_loses_nothing(machine: CrashFiles, tmp_path: Path) -> None:
    assert machine.unsynced() == []
    assert machine.power_cut() == []
    assert machine.read(f"{tmp_path}/log").startswith(b"old" * 5000)


def test_unsynced_pages_go_back_to_what_the_disk_has(machine: CrashFiles, tmp_path: Path) -> None:
    mapping = machine.map(f"{tmp_path}/log", 4 * PAGE)
    before = bytes(mapping.view)
    mapping.write(100, b"new")
    mapping.write(2 * PAGE - 1, b"new")
    assert [(item.kind, item.page) for item in machine.unsynced()] == [("page", 0), ("page", 1), ("page", 2)]
    assert machine.read(f"{tmp_path}/log")[100:103] == b"new"  # every reader sees it until the power goes
    mapping.flush(0, PAGE)
    lost = machine.power_cut(lambda item: item.page == 2)
    assert [item.page for item in lost] == [1]
    after = machine.read(f"{tmp_path}/log")
    assert after[100:103] == b"new"
    assert after[2 * PAGE - 1] == before[2 * PAGE - 1] and after[2 * PAGE : 2 * PAGE + 2] == b"ew"


def test_a_dead_process_cannot_write(machine: CrashFiles, tmp_path: Path) -> None:
    mapping = machine.map(f"{tmp_path}/log", 4 * PAGE)
    machine.process_ended()
    with pytest.raises(StoreError, match="dead"):
        mapping.write(0, b"x")
    assert machine.map(f"{tmp_path}/log", 4 * PAGE).size == 4 * PAGE


def test_kill_keeps_what_is_written_but_it_is_still_unsynced(machine: CrashFiles, tmp_path: Path) -> None:
    machine.map(f"{tmp_path}/log", 4 * PAGE).write(0, b"new")
    machine.process_ended()
    assert machine.read(f"{tmp_path}/log")[:3] == b"new"
    machine.power_cut()
    assert machine.read(f"{tmp_path}/log")[:3] == b"old"


def test_names_are_lost_from_the_end(machine: CrashFiles, tmp_path: Path) -> None:
    for name in "abc":
        machine.write(f"{tmp_path}/{name}", TEXT, sync=True)
    machine.rename(f"{tmp_path}/a", f"{tmp_path}/d")
    machine.remove(f"{tmp_path}/log")
    assert [item.kind for item in machine.unsynced()] == ["create", "create", "create", "rename", "remove"]
    keep: list[Unsynced] = machine.unsynced()[:2]
    machine.power_cut(lambda item: item in keep)
    assert machine.list(str(tmp_path)) == ["a", "b", "log"]
    assert machine.read(f"{tmp_path}/a") == TEXT
    assert machine.read(f"{tmp_path}/log").startswith(b"old")


def test_a_replaced_file_comes_back(machine: CrashFiles, tmp_path: Path) -> None:
    machine.write(f"{tmp_path}/new", TEXT, sync=True)
    machine.rename(f"{tmp_path}/new", f"{tmp_path}/log")
    machine.power_cut()
    assert machine.list(str(tmp_path)) == ["log"]
    assert machine.read(f"{tmp_path}/log").startswith(b"old")


def test_a_synced_directory_keeps_its_names(machine: CrashFiles, tmp_path: Path) -> None:
    machine.make_directory(f"{tmp_path}/topic/0")
    machine.map(f"{tmp_path}/topic/0/file", PAGE).flush()
    machine.sync_directory(f"{tmp_path}/topic/0")
    machine.sync_directory(f"{tmp_path}/topic")
    machine.power_cut()
    assert machine.list(str(tmp_path)) == ["log"]  # its parent was never told about the topic
    machine.make_directory(f"{tmp_path}/topic/0")
    machine.map(f"{tmp_path}/topic/0/file", PAGE).flush()
    for directory in ("", "/topic", "/topic/0"):
        machine.sync_directory(f"{tmp_path}{directory}")
    assert machine.power_cut() == []
    assert machine.exists(f"{tmp_path}/topic/0/file")


def test_a_removed_tree_comes_back_with_its_unsynced_pages_lost(machine: CrashFiles, tmp_path: Path) -> None:
    machine.make_directory(f"{tmp_path}/topic")
    mapping = machine.map(f"{tmp_path}/topic/file", PAGE)
    mapping.write(0, b"synced")
    mapping.flush()
    for directory in ("", "/topic"):
        machine.sync_directory(f"{tmp_path}{directory}")
    mapping.write(0, b"only written")
    machine.remove_tree(f"{tmp_path}/topic")
    assert not machine.exists(f"{tmp_path}/topic")
    machine.power_cut()
    assert machine.read(f"{tmp_path}/topic/file").rstrip(b"\0") == b"synced"
    machine.remove_tree(f"{tmp_path}/topic")
    machine.sync_directory(str(tmp_path))
    machine.power_cut()
    assert not machine.exists(f"{tmp_path}/topic")


def test_a_content_that_was_not_synced_is_empty(machine: CrashFiles, tmp_path: Path) -> None:
    machine.write(f"{tmp_path}/config", TEXT)
    machine.sync_directory(str(tmp_path))
    assert [item.kind for item in machine.unsynced()] == ["content"]
    machine.power_cut()
    assert machine.read(f"{tmp_path}/config") == b""


@pytest.mark.parametrize(
    "attempt",
    [
        lambda files, root: files.map(f"{root}/log", PAGE).flush(),
        lambda files, root: files.write(f"{root}/x", b"", sync=True),
        lambda files, root: files.sync_directory(root),
    ],
)
def test_a_disk_that_refuses(machine: CrashFiles, tmp_path: Path, attempt: Callable[[CrashFiles, str], None]) -> None:
    machine.refuse_sync = OSError(5, "Input/output error")
    with pytest.raises(OSError, match="Input/output"):
        attempt(machine, str(tmp_path))


def test_a_disk_as_full_as_a_lab_wants(machine: CrashFiles, tmp_path: Path) -> None:
    machine.disk_used = 0.93
    assert machine.used_ratio(str(tmp_path)) == 0.93
    total, free = machine.disk_space(str(tmp_path))
    assert total == 100 << 30 and 1 - free / total == pytest.approx(0.93)
