"""How `make test` shares the tests out to the worker processes of pytest-xdist, and what the workers share.

    group         its tests                                     why they stay in one worker
    spark         all that use the shared Spark session         one JVM in a run
    browser       all that open pages in Chromium               one Chromium, and one JupyterLab at a time
    <a file>      those of every other file                     what a file prepares is prepared once
    none          those of the files in SPLIT                   each is long and prepares what it needs itself

The longest groups begin first, so that no worker is left alone with one of them at the end.
"""

from __future__ import annotations

import contextlib
import fcntl
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

LONGEST_FIRST = (
    "spark", "browser", "tests/labs/test_notebooks.py", "tests/grading/test_known_wrong_spark.py",
    "tests/grading/test_spark_answers.py", "tests/grading/test_hostile.py", "tests/grading/test_whole_labs.py",
    "tests/grading/test_commands.py", "tests/spark", "tests/grading", "tests/scenarios", "tests/conformance",
    "tests/cli", "tests/benchmarks", "tests/traffic", "tests/store", "tests/front_door", "tests/tidy", "tests/arrow",
    "tests",
)  # fmt: skip
"""Groups and folders, by the time they take; all others come last."""

SPLIT = ("tests/labs/test_notebooks.py",)


def file_of(item: pytest.Item) -> str:
    return item.nodeid.partition("::")[0]


def group_of(item: pytest.Item) -> str:
    """The name of a test's group; empty for a test that may run anywhere."""
    if "spark" in getattr(item, "fixturenames", ()):
        return "spark"
    if item.get_closest_marker("browser"):
        return "browser"
    return "" if file_of(item) in SPLIT else file_of(item)


def rank(item: pytest.Item) -> int:
    """The place of a test's group among the long ones."""
    group = group_of(item) or file_of(item)
    places = (place for place, name in enumerate(LONGEST_FIRST) if group == name or group.startswith(f"{name}/"))
    return next(places, len(LONGEST_FIRST))


class InGroups:
    """In a worker: each test learns its group, and the long groups come first."""

    @pytest.hookimpl(tryfirst=True)
    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        items.sort(key=rank)
        for item in items:
            if group := group_of(item):
                item.add_marker(pytest.mark.xdist_group(group))


class PlainNames:
    """In the process that prints: xdist writes the group behind a test's name; here it is taken off again."""

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        report.nodeid = without_group(report.nodeid)


def without_group(nodeid: str) -> str:
    name, _, group = nodeid.rpartition("@")
    return name if name and "]" not in group else nodeid


def share_out(config: pytest.Config) -> None:
    """Prepare a run with several workers; a run in one process stays as it is."""
    if hasattr(config, "workerinput"):
        config.pluginmanager.register(InGroups(), "in-groups")
    elif config.getoption("dist", "no") != "no":
        config.pluginmanager.register(PlainNames(), "plain-names")


@contextlib.contextmanager
def locked(path: Path) -> Iterator[None]:
    """One process at a time."""
    with open(path, "w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def made_once(factory: pytest.TempPathFactory, name: str, make: Callable[[Path], object]) -> Path:
    """A folder that the first process that asks for it fills, and that all workers of the run read."""
    base = factory.getbasetemp()
    if base.name.startswith("popen-gw"):
        base = base.parent
    folder, complete = base / name, base / f"{name}.complete"
    with locked(base / f"{name}.lock"):
        if not complete.exists():
            folder.mkdir()
            make(folder)
            complete.touch()
    return folder
