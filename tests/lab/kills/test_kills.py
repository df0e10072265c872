"""One kill of each victim, and a hundred of each in `make long`.

The server is killed in tests/cluster/serving/test_under_fire.py, the streaming job in
tests/data/spark/test_exactly_once.py; a grader is killed once in tests/course/grading/test_commands.py.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from mqlab.course.grading.sandbox.walled import Sandbox
from tests.course.grading.conftest import walls
from tests.lab.kills.grader import grader_killed
from tests.lab.kills.live import live_killed
from tests.lab.kills.threads import Survived, threads_killed
from tests.lab.kills.writer import writer_killed

__all__ = ["walls"]


def check_threads(survived: Survived, more_than: int) -> None:
    assert survived.acknowledged > more_than
    assert (survived.lost, survived.not_consumed) == (0, 0), survived


def test_a_lab_on_threads_that_is_killed_loses_nothing_that_was_acknowledged(tmp_path: Path) -> None:
    check_threads(threads_killed(tmp_path, times=1, seed=6), more_than=0)


def test_a_writer_that_is_killed_ends_with_the_same_bytes(tmp_path: Path) -> None:
    days, different = writer_killed(tmp_path, times=1, seed=5)
    assert (days > 0, different) == (True, 0)


def test_stores_that_grow_go_on_after_kills_as_if_nothing_had_happened(tmp_path: Path) -> None:
    stored, is_equal = live_killed(tmp_path, times=1, seed=1)
    assert (stored > 0, is_equal) == (True, True)


@pytest.mark.long
def test_a_hundred_kills_of_a_lab_on_threads(tmp_path: Path) -> None:
    check_threads(threads_killed(tmp_path, times=100, seed=2), more_than=1_000)


@pytest.mark.long
def test_a_hundred_kills_of_a_writer(tmp_path: Path) -> None:
    days, different = writer_killed(tmp_path, times=100, seed=2)
    assert (days > 0, different) == (True, 0)


@pytest.mark.long
def test_a_hundred_kills_of_a_grader(tmp_path: Path, walls: Sandbox) -> None:
    classes, different, folders = grader_killed(tmp_path, times=100, seed=2)
    assert (classes > 0, different, folders) == (True, 0, 0)


@pytest.mark.long
def test_a_hundred_kills_of_stores_that_grow(tmp_path: Path) -> None:
    stored, is_equal = live_killed(tmp_path, times=100, seed=2)
    assert (stored > 1_000, is_equal) == (True, True)
