"""The unit tests of the boards' JavaScript, by node's own runner: ``node --test tests/course/widgets/javascript/``."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]


def test_the_modules_of_boards_pass_their_own_tests() -> None:
    if shutil.which("node") is None:
        pytest.skip("node is missing: it runs the tests of the boards' JavaScript")
    tests = sorted((Path(__file__).parent / "javascript").glob("*.test.js"))
    ran = subprocess.run(["node", "--test", *map(str, tests)], cwd=ROOT, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert tests and "# pass 0" not in ran.stdout
