"""`make test` shares the tests out in groups (tests/parallel.py), tried on a run of its own with two workers."""

from __future__ import annotations

import asyncio
import os
import shutil
import subprocess
import sys
from collections import defaultdict
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tests import parallel
from tests.conftest import outside_of_loops
from tests.tidy.sources import ROOT

pytest.importorskip("xdist", reason="pytest-xdist is not installed (make env brings it)")

FILE = """
import os
import pathlib
import pytest
from tests.parallel import made_once

HERE = pathlib.Path(__file__).parent

@pytest.fixture(scope="session")
def spark(): return 1

def note(kind, text=os.environ.get("PYTEST_XDIST_WORKER", "")):
    with open(HERE / kind, "a") as file:
        file.write(f"{text}\\n")

@pytest.mark.parametrize("number", range(4))
def test_spark(number, spark): note("spark")

@pytest.mark.parametrize("number", range(4))
def test_of_a_file(number): note(f"{pathlib.Path(__file__).stem}.workers")

def test_of_all(tmp_path_factory):
    folder = made_once(tmp_path_factory, "shared", lambda folder: note("made", folder))
    assert folder.is_dir()
"""


@pytest.fixture
def suite(tmp_path: Path) -> Path:
    """Four files that each ask for the Spark session and for a shared folder."""
    (tmp_path / "tests").mkdir()
    for name in ("conftest.py", "parallel.py", "allowed_skips.txt"):
        shutil.copy(ROOT / "tests" / name, tmp_path / "tests" / name)
    for number in range(4):
        (tmp_path / "tests" / f"test_{number}.py").write_text(FILE, "utf-8")
    return tmp_path / "tests"


def run(suite: Path, *words: str, ends: int = 0) -> str:
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-p", "xdist", *words, "tests"], cwd=suite.parent,
        env={**os.environ, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == ends, done.stdout + done.stderr
    return done.stdout


def lines(path: Path) -> list[str]:
    return path.read_text("utf-8").splitlines()


def test_a_worker_compiles_its_own_share_and_leaves_broken_tests_to_the_collection(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(tmp_path)
    for name in ("mqlab/a", "mqlab/b", "mqlab/part/c", "mqlab/part/d", "tests/broken/test_e", "tests/broken/test_f"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / f"{name}.py").write_text("open(f'{__file__}.tried', 'w').close()\nraise RuntimeError\n", "utf-8")

    def done() -> set[str]:
        return {path.name.partition(".")[0] for ending in ("pyc", "tried") for path in tmp_path.rglob(f"*.{ending}")}

    one_process: Any = SimpleNamespace(rootpath=tmp_path)
    parallel.compile_a_share(one_process)
    assert done() == set()
    for number, so_far in ((0, "a c test_e"), (1, "a b c d test_e test_f")):
        worker: Any = SimpleNamespace(rootpath=tmp_path, workerinput={"workerid": f"gw{number}", "workercount": 2})
        parallel.compile_a_share(worker)
        assert done() == set(so_far.split())


def test_a_group_stays_in_one_worker_and_what_all_need_is_made_once(suite: Path) -> None:
    assert "36 passed" in run(suite, "-n2", "--dist=loadgroup")
    assert len(lines(suite / "spark")) == 16 and len(set(lines(suite / "spark"))) == 1
    workers = defaultdict(list)
    for path in suite.glob("*.workers"):
        workers[path.stem] = lines(path)
    assert {len(each) for each in workers.values()} == {4} and all(len(set(each)) == 1 for each in workers.values())
    assert {*lines(suite / "spark"), *(each[0] for each in workers.values())} == {"gw0", "gw1"}
    assert len(lines(suite / "made")) == 1


BROKEN = """
import pytest

@pytest.fixture
def refused(): raise ValueError("not prepared")

@pytest.fixture
def kept():
    yield
    raise ValueError("not cleared away")

def test_prepared(refused): pass
def test_cleared_away(kept): pass
def test_called(): raise ValueError("called")
def test_skipped(): pytest.skip("for a reason")
@pytest.mark.skip(reason="by a mark")
def test_marked(): pass
"""


def test_a_worker_tells_of_failures_and_skips_wherever_they_are(suite: Path) -> None:
    (suite / "test_0.py").write_text(BROKEN, "utf-8")
    said = run(suite, "-n2", "--dist=loadgroup", "-rs", ends=1)
    assert "1 failed, 28 passed, 2 skipped, 2 errors" in said
    for words in ("not prepared", "not cleared away", "ValueError: called", "for a reason", "by a mark"):
        assert words in said


def test_without_workers_nothing_changes(suite: Path) -> None:
    assert "36 passed" in run(suite, "-n0")
    assert len(lines(suite / "made")) == 1


def test_only_a_file_that_has_an_example_is_imported_for_it(suite: Path) -> None:
    (suite / "with_one.py").write_text('def one():\n    """\n    >>> one()\n    1\n    """\n    return 1\n', "utf-8")
    (suite / "without.py").write_text("raise ValueError\n", "utf-8")
    assert "1 passed" in run(suite, "-n0", "--doctest-modules", "-k", "with_one")


def test_every_long_group_is_there() -> None:
    names = [name for name in parallel.LONGEST_FIRST if name not in ("spark", "browser")]
    assert [name for name in [*names, *parallel.SPLIT] if not (ROOT / name).exists()] == []


def test_exercises_that_ask_spark_share_the_session_of_all() -> None:
    def item(*fixtures: str, marked: bool) -> Any:
        return SimpleNamespace(fixturenames=fixtures, get_closest_marker=lambda name: marked and name == "spark")

    assert parallel.group_of("tests/spark/test_source.py", item("spark", marked=True)) == "spark"
    for asking in (item("spark", marked=True), item("one_session", marked=True)):
        assert parallel.group_of("tests/teach/test_every_exercise.py", asking) == "spark"
    asks_none = item("one_session", marked=False)
    assert parallel.group_of("tests/teach/test_every_exercise.py", asks_none) == "tests/teach/test_every_exercise.py"


def test_a_loop_that_another_test_left_running_is_out_of_sight_and_comes_back() -> None:
    left = asyncio.new_event_loop()
    asyncio._set_running_loop(left)  # so Playwright leaves it between two calls
    try:
        with outside_of_loops():
            assert asyncio.run(asyncio.sleep(0, "ran")) == "ran"
        assert asyncio._get_running_loop() is left
    finally:
        asyncio._set_running_loop(None)
        left.close()
