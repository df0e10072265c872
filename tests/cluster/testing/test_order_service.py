"""A project of another folder, with the official client and the wheel: its five tests pass soon, without Java."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import sysconfig
import time
import venv
from pathlib import Path

import pytest

from tests.tidy.sources import ROOT

PROJECT = ROOT / "tests" / "cluster" / "grpc" / "order_service"
SECONDS = 20.0


@pytest.fixture(scope="module")
def python(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An environment with the wheel that is built of this tree; other packages are those of this one."""
    work = tmp_path_factory.mktemp("order_service")
    build = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(work)]
    subprocess.run(build, cwd=ROOT, check=True, capture_output=True)
    (wheel,) = work.glob("*.whl")
    venv.create(work / "env", with_pip=False)
    (site,) = (work / "env").glob("lib/python*/site-packages")
    shutil.unpack_archive(wheel, site, "zip")
    # Without the tree's own mqlab: its .pth file is not read from here.
    (site / "others.pth").write_text(sysconfig.get_path("purelib") + "\n", "utf-8")
    return work / "env" / "bin" / "python"


@pytest.mark.long
def test_the_tests_of_an_order_service_pass(python: Path, tmp_path: Path) -> None:
    project = tmp_path / "order_service"
    shutil.copytree(PROJECT, project, ignore=shutil.ignore_patterns("__pycache__"))
    environment = {**os.environ, "PATH": "/nowhere", "JAVA_HOME": ""}
    environment.pop("PYTHONPATH", None)
    where = [str(python), "-c", "import mqlab; print(mqlab.__file__)"]
    assert str(python.parents[1]) in subprocess.run(where, cwd=project, capture_output=True, text=True).stdout
    began = time.monotonic()
    command = [str(python), "-m", "pytest", "-q", "-p", "no:cacheprovider"]
    answer = subprocess.run(command, cwd=project, env=environment, capture_output=True, text=True, check=False)
    assert answer.returncode == 0 and "5 passed" in answer.stdout, answer.stdout[-4000:] + answer.stderr
    assert time.monotonic() - began < SECONDS
