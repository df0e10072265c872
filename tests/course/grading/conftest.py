"""What the tests of grading share: walls that were tried once, and the tiny course."""

from __future__ import annotations

import functools
from collections.abc import Iterator
from pathlib import Path
from unittest import mock

import pytest

from mqlab.course.grading.judging.desk import Desk
from mqlab.course.grading.running import gradebook
from mqlab.course.grading.running.copies import Copies
from mqlab.course.grading.sandbox.limits import Limits
from mqlab.course.grading.sandbox.walled import Sandbox, SandboxUnavailable, probe
from tests.course.grading.course import make_course

HASTY = Limits(seconds=1, total_seconds=5, clock_times=1)
"""For an answer that never comes."""

PATIENT = Limits(seconds=300, total_seconds=900)
"""For all others: time enough on the busiest machine."""


@pytest.fixture(scope="session", autouse=True)
def one_original() -> Iterator[None]:
    """The runs of a grader in this process copy one original. Each that is started by a command has its own."""
    copies = Copies()
    with mock.patch.object(gradebook, "Copies", lambda: copies), mock.patch.object(copies, "close"):
        yield
    copies.close()


@functools.cache
def why_no_walls() -> str:
    try:
        probe(Sandbox("bwrap"))
    except SandboxUnavailable as error:
        return str(error)
    return ""


@pytest.fixture(scope="session")
def walls() -> Sandbox:
    """Bubblewrap, where it works; the test is skipped where it does not."""
    if why_no_walls():
        pytest.skip(f"needs bubblewrap: {why_no_walls().splitlines()[0]}")
    return Sandbox("bwrap", limits=PATIENT)


@pytest.fixture(params=["process", "bwrap"])
def desk(request: pytest.FixtureRequest) -> Iterator[Desk]:
    """A desk with and without walls: answers behave the same."""
    if request.param == "bwrap":
        request.getfixturevalue("walls")
    opened = Desk(Sandbox(request.param, limits=PATIENT))
    yield opened
    opened.close()


@pytest.fixture(scope="session")
def course(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The tiny course."""
    return make_course(tmp_path_factory.mktemp("course") / "course")
