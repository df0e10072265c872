"""Temporary files of a run are in memory where that has room for them."""

import os
import tempfile
from pathlib import Path
from types import SimpleNamespace

import pytest

from tests.in_memory import MEMORY, PREFIX, InMemory, has_room, keep_in_memory


def test_a_folder_that_is_missing_full_or_closed_to_programs_is_not_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert has_room(tmp_path, needed=1)
    assert not has_room(tmp_path / "missing", needed=1)
    assert not has_room(tmp_path, needed=1 << 60)
    closed = os.statvfs(tmp_path)
    monkeypatch.setattr(os, "statvfs", lambda _: os.statvfs_result((*closed[:8], os.ST_NOEXEC, closed[9])))
    assert not has_room(tmp_path, needed=1)


@pytest.mark.parametrize(("code", "left"), [(pytest.ExitCode.OK, False), (pytest.ExitCode.TESTS_FAILED, True)])
def test_files_of_a_run_that_failed_are_kept_until_the_next_run(
    code: pytest.ExitCode, left: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tests.in_memory.MEMORY", tmp_path)
    monkeypatch.setattr(tempfile, "tempdir", None)
    monkeypatch.setenv("TMPDIR", str(MEMORY))
    of_a_run_that_ended = tmp_path / f"{PREFIX}{2**30}"  # no process has this number
    of_a_run_that_ended.mkdir()
    files = InMemory()
    files.begin()
    assert not of_a_run_that_ended.exists() and tempfile.gettempdir() == str(files.folder)
    files.pytest_sessionfinish(code)
    files.pytest_unconfigure()
    assert files.folder.exists() == left


@pytest.mark.parametrize(("chosen", "begun"), [("not long and not interop", 1), ("long", 0)])
def test_long_tests_fill_no_memory(chosen: str, begun: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tests.in_memory.has_room", lambda: True)
    monkeypatch.setattr("tests.in_memory.MEMORY", tmp_path)
    monkeypatch.setattr(tempfile, "tempdir", None)
    monkeypatch.setenv("TMPDIR", "")  # so that it is taken back after the test, also where it was not set
    monkeypatch.delenv("TMPDIR")
    registered: list[str] = []
    plugins = SimpleNamespace(register=lambda plugin, name: registered.append(name))
    keep_in_memory(SimpleNamespace(option=SimpleNamespace(markexpr=chosen), pluginmanager=plugins))  # type: ignore[arg-type]
    assert len(registered) == begun == len(list(tmp_path.iterdir()))
