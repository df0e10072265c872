"""How `make test` shares the tests out to the worker processes of pytest-xdist, and what the workers share.

    group         its tests                                     why they stay in one worker
    spark         all that use the shared Spark session         one JVM for them
    browser       all that open pages in Chromium               one Chromium, and one JupyterLab at a time
    tests/tidy    those that read all of the source             it is parsed once
    <a file>      those of every other file                     what a file prepares is prepared once
    none          those of the files in SPLIT                   each is long and prepares what it needs itself

The longest groups begin first, so that no worker is left alone with one of them at the end.
"""

from __future__ import annotations

import compileall
import contextlib
import fcntl
import importlib
import json
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from _pytest.runner import runtestprotocol

if TYPE_CHECKING:
    from xdist.remote import Producer
    from xdist.scheduler import LoadScopeScheduling
    from xdist.workermanage import WorkerController

LONGEST_FIRST = (
    "spark", "tests/grading/test_known_wrong.py", "browser", "tests/labs/test_notebooks.py",
    "tests/grading/test_spark_answers.py", "tests/grading/test_hostile.py", "tests/grading/test_whole_labs.py",
    "tests/grading/test_commands.py", "tests/spark", "tests/grading", "tests/scenarios", "tests/conformance",
    "tests/cli", "tests/benchmarks", "tests/traffic", "tests/store", "tests/front_door", "tests/tidy", "tests/arrow",
    "tests",
)  # fmt: skip
"""Groups and folders, by the time they take; all others come last. Known-wrong answers are judged in copies of a
worker, which cost least while it is small: so before it has opened pages, or a JVM."""

SPLIT = ("tests/labs/test_notebooks.py",)
READS_ALL_SOURCES = "tests/tidy"


def group_of(file: str, item: pytest.Item) -> str:
    """The name of a test's group; empty for a test that may run anywhere."""
    fixtures = getattr(item, "fixturenames", ())
    if "spark" in fixtures or ("one_session" in fixtures and item.get_closest_marker("spark")):
        return "spark"
    if item.get_closest_marker("browser"):
        return "browser"
    if file.startswith(f"{READS_ALL_SOURCES}/"):
        return READS_ALL_SOURCES
    return "" if file in SPLIT else file


def rank(group: str) -> int:
    """The place of a group among the long ones."""
    places = (place for place, name in enumerate(LONGEST_FIRST) if group == name or group.startswith(f"{name}/"))
    return next(places, len(LONGEST_FIRST))


class Worker:
    """In a worker: puts the long groups first, writes down the group of each test, and tells what it has found."""

    def __init__(self, groups: Path) -> None:
        self._groups = groups

    def pytest_runtest_protocol(self, item: pytest.Item, nextitem: pytest.Item | None) -> bool:
        """Run a test as pytest does; that it was prepared and cleared away without a failure is not worth a message."""
        told = item.ihook
        told.pytest_runtest_logstart(nodeid=item.nodeid, location=item.location)
        for report in runtestprotocol(item, log=False, nextitem=nextitem):
            if report.when == "call" or not report.passed:
                told.pytest_runtest_logreport(report=report)
        told.pytest_runtest_logfinish(nodeid=item.nodeid, location=item.location)
        return True

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        ranked, groups = [], {}
        for item in items:
            file = item.nodeid.partition("::")[0]
            group = group_of(file, item)
            ranked.append((rank(group or file), item))
            groups[item.nodeid] = group or item.nodeid
        items[:] = [item for _, item in sorted(ranked, key=lambda pair: pair[0])]
        own = self._groups.with_suffix(f".{os.getpid()}")  # all workers write the same: each whole, or not at all
        own.write_text(json.dumps(groups), "utf-8")
        own.replace(self._groups)


def scheduler(config: pytest.Config, log: Producer, groups: Path) -> LoadScopeScheduling:
    """One that gives out groups. xdist's own is told of them by a suffix of each test's name; pytest 9.2 has none."""
    from xdist.scheduler import LoadScopeScheduling

    class InGroups(LoadScopeScheduling):
        group_of_test: dict[str, str]

        def schedule(self) -> None:
            if self.collection is None:  # all workers have collected, nothing is given out yet
                self.group_of_test = json.loads(groups.read_text("utf-8"))
            super().schedule()

        def _split_scope(self, nodeid: str) -> str:
            return self.group_of_test[nodeid]

    config.option.loadscopereorder = False  # or the groups with most tests came first
    return InGroups(config, log)


class Controller:
    """In the process that prints: gives the workers one group after the other."""

    def __init__(self, groups: Path) -> None:
        self._groups = groups

    @pytest.hookimpl(optionalhook=True)
    def pytest_configure_node(self, node: WorkerController) -> None:
        node.workerinput["groups"] = str(self._groups)

    @pytest.hookimpl(optionalhook=True)
    def pytest_xdist_make_scheduler(self, config: pytest.Config, log: Producer) -> LoadScopeScheduling | None:
        return scheduler(config, log, self._groups) if config.getoption("dist") == "loadgroup" else None

    def pytest_unconfigure(self) -> None:
        shutil.rmtree(self._groups.parent, ignore_errors=True)


def share_out(config: pytest.Config) -> None:
    """Prepare a run with several workers; a run in one process stays as it is."""
    if hasattr(config, "workerinput"):
        if "groups" in config.workerinput:
            config.pluginmanager.register(Worker(Path(config.workerinput["groups"])), "in-groups")
    elif config.getoption("dist", "no") == "loadgroup":
        folder = Path(tempfile.mkdtemp(prefix="mqlab-tests-"))
        config.pluginmanager.register(Controller(folder / "groups.json"), "in-groups")


def compile_a_share(config: pytest.Config) -> None:
    """In a worker of a fresh checkout: compile this worker's share of all sources, which the others then find compiled.

    Each would compile all of them otherwise, for ten seconds. Tests are imported for it, as pytest puts its own code
    into them; one that cannot be imported is left to the collection, which says why.
    """
    if not hasattr(config, "workerinput"):
        return
    number, workers = int(config.workerinput["workerid"].removeprefix("gw")), config.workerinput["workercount"]
    for source in sorted((config.rootpath / "mqlab").rglob("*.py"))[number::workers]:
        compileall.compile_file(source, quiet=2)
    for source in sorted((config.rootpath / "tests").rglob("test_*.py"))[number::workers]:
        with contextlib.suppress(Exception, pytest.skip.Exception):
            importlib.import_module(".".join(source.relative_to(config.rootpath).with_suffix("").parts))


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
