"""Temporary files of a test run in memory: the suite makes some hundred thousand of them, and a disk makes each slowly.

A Lab's stores are real files there, too. A machine without such a file system, or with a small one (a container has
64 MB by itself), keeps them where they would be otherwise, and so does a run that is told a place by TMPDIR.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from pathlib import Path

import pytest

MEMORY = Path("/dev/shm")
NEEDED = 2 << 30  # a whole run was seen to need 140 MB at a time
PREFIX = "mqlab-tests-"


def has_room(place: Path = MEMORY, needed: int = NEEDED) -> bool:
    """Whether a folder is there, can be written, may hold programs, and has so many bytes left."""
    if not os.access(place, os.W_OK):
        return False
    state = os.statvfs(place)
    return not state.f_flag & os.ST_NOEXEC and state.f_bavail * state.f_frsize >= needed


class InMemory:
    """In the process that starts the workers: they, and all that tests start, find the folder in TMPDIR."""

    def __init__(self) -> None:
        self.folder = MEMORY / f"{PREFIX}{os.getpid()}"
        self._passed = True

    def begin(self) -> None:
        for other in MEMORY.glob(
            f"{PREFIX}*"
        ):  # a run that failed leaves its files to be looked at, until the next one
            if not Path("/proc", other.name.removeprefix(PREFIX)).exists():
                shutil.rmtree(other, ignore_errors=True)
        self.folder.mkdir()
        os.environ["TMPDIR"] = str(self.folder)
        tempfile.tempdir = None  # it is looked up again

    def pytest_sessionfinish(self, exitstatus: int) -> None:
        self._passed = exitstatus in (pytest.ExitCode.OK, pytest.ExitCode.NO_TESTS_COLLECTED)

    def pytest_unconfigure(self) -> None:
        if self._passed:
            shutil.rmtree(self.folder, ignore_errors=True)


def keep_in_memory(config: pytest.Config) -> None:
    is_quick = "not long" in config.option.markexpr  # a long test writes a day of ten gigabytes
    if is_quick and not hasattr(config, "workerinput") and "TMPDIR" not in os.environ and has_room():
        files = InMemory()
        files.begin()
        config.pluginmanager.register(files, "in-memory")
