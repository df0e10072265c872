"""The rule that a skip in CI has to be owned up to (tests/conftest.py), tried on runs of its own."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.tidy.sources import ROOT

SUITE = """
import pytest

def test_runs(): pass

@pytest.mark.parametrize("x", ["a/b"])
def test_skips(x): pytest.skip("no browser here")

@pytest.mark.xfail(strict=False)
def test_expected_to_fail(): assert False
"""


@pytest.fixture
def suite(tmp_path: Path) -> Path:
    (tmp_path / "tests").mkdir()
    for name in ("conftest.py", "allowed_skips.txt"):
        shutil.copy(ROOT / "tests" / name, tmp_path / "tests" / name)
    (tmp_path / "tests" / "test_tried.py").write_text(SUITE, "utf-8")
    return tmp_path


def run(suite: Path, *words: str, ci: bool) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "CI": "true" if ci else "", "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    return subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *words, "tests"],
        cwd=suite,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )


def test_at_home_a_skip_is_a_skip(suite: Path) -> None:
    assert run(suite, ci=False).returncode == 0


def test_in_ci_a_skip_fails_the_run_and_the_closing_line_stays_last(suite: Path) -> None:
    answer = run(suite, ci=True)
    assert answer.returncode == 1
    assert "test_tried.py::test_skips[a/b]: Skipped: no browser here" in answer.stdout
    assert "1 passed, 1 skipped, 1 xfailed" in answer.stdout.strip().splitlines()[-1]


def test_in_ci_a_named_skip_passes(suite: Path) -> None:
    with (suite / "tests" / "allowed_skips.txt").open("a", encoding="utf-8") as allowed:
        allowed.write("tests/test_tried.py::test_skips[a/b]  # tried here\n")
    assert run(suite, ci=True).returncode == 0


def test_a_name_without_a_reason_is_an_error(suite: Path) -> None:
    with (suite / "tests" / "allowed_skips.txt").open("a", encoding="utf-8") as allowed:
        allowed.write("tests/test_tried.py::*\n")
    answer = run(suite, ci=True)
    assert answer.returncode not in (0, 5)
    assert "expected 'node id  # reason'" in answer.stdout + answer.stderr


WORKERS = ("-p", "xdist", "-n2", "--dist=worksteal")


@pytest.fixture
def workers() -> None:
    pytest.importorskip("xdist", reason="pytest-xdist is not installed (make env brings it)")


@pytest.mark.usefixtures("workers")
def test_the_skips_of_all_workers_are_named_once(suite: Path) -> None:
    (suite / "tests" / "test_other.py").write_text(
        "import pytest\npytest.skip('not here', allow_module_level=True)\n", "utf-8"
    )
    answer = run(suite, *WORKERS, ci=True)
    assert answer.returncode == 1
    named = answer.stdout.partition("skipped, and not named in tests/allowed_skips.txt")[2].splitlines()
    assert named[1].startswith("tests/test_other.py: ") and "not here" in named[1]
    assert named[2] == "tests/test_tried.py::test_skips[a/b]: Skipped: no browser here"
    assert answer.stdout.count("no browser here") == 1
    assert "1 passed, 2 skipped, 1 xfailed" in named[-1]


@pytest.mark.usefixtures("workers")
def test_with_workers_a_named_skip_passes(suite: Path) -> None:
    with (suite / "tests" / "allowed_skips.txt").open("a", encoding="utf-8") as allowed:
        allowed.write("tests/test_tried.py::test_skips[a/b]  # tried here\n")
    assert run(suite, *WORKERS, ci=True).returncode == 0
