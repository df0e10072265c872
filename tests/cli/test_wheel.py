"""The wheel is the whole thing: in an empty folder and a fresh environment, without a clone and without a network."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import sysconfig
import venv
import zipfile
from pathlib import Path

import pytest

from mqlab.course.grading.submissions.lab_files import part_names
from tests.tidy.sources import ROOT

SHIPPED = "mqlab/course/shipped/"
LAB = "00-a-messages-day"


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel, built from this tree."""
    folder = tmp_path_factory.mktemp("wheel")
    command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder)]
    subprocess.run(command, cwd=ROOT, check=True, capture_output=True)
    (built,) = folder.glob("*.whl")
    return built


@pytest.fixture(scope="module")
def python(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The Python of an environment that has the wheel, and what it depends on from the environment of the tests."""
    folder = tmp_path_factory.mktemp("installed") / "env"
    venv.create(folder, with_pip=False)
    (site,) = folder.glob("lib/python*/site-packages")
    with zipfile.ZipFile(wheel) as packed:
        packed.extractall(site)
    (site / "dependencies.pth").write_text(sysconfig.get_path("purelib") + "\n", "utf-8")
    return folder / "bin" / "python"


@pytest.fixture(scope="module")
def folder(python: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a learner who has called `mqlab lab` in it: it was empty, and JupyterLab answered."""
    empty = tmp_path_factory.mktemp("learner")
    command = [str(python), "-m", "mqlab.cli", "lab", "--no-browser", "--port", "0"]
    with subprocess.Popen(command, cwd=empty, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as process:
        assert process.stdout is not None
        try:
            found = next((line for line in process.stdout if "/lab/tree/" in line), "")
        finally:
            process.send_signal(signal.SIGINT)
            rest = process.stdout.read()
    assert re.search(r"/lab/tree/my-labs/index\.ipynb\?token=", found), rest
    return empty


def mqlab(python: Path, folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    """The verb's answer, from a folder without a clone."""
    return subprocess.run(
        [str(python), "-m", "mqlab.cli", *words], cwd=folder, capture_output=True, text=True, check=False
    )


def program(python: Path, folder: Path, text: str) -> str:
    answer = subprocess.run([str(python), "-c", text], cwd=folder, capture_output=True, text=True, check=False)
    assert answer.returncode == 0, answer.stderr
    return answer.stdout.strip()


def test_the_wheel_has_every_lab_and_no_solution(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as packed:
        names = packed.namelist()
        texts = {name: packed.read(name).decode("utf-8") for name in names if name.endswith(".ipynb")}
    tracked = subprocess.run(["git", "ls-files", "labs", "datasets"], cwd=ROOT, capture_output=True, text=True)
    if tracked.returncode == 0:  # else it is a release, which has no history
        assert {name for name in names if SHIPPED in name} == {SHIPPED + name for name in tracked.stdout.split()}
    assert len(texts) > len(part_names(ROOT)) > 20
    assert {name.split("/")[0].split("-")[0] for name in names} == {"mqlab"}
    assert not [name for name in names if "solutions" in name or "hidden" in name.rpartition("/")[2]]
    for name, text in texts.items():
        assert "SOLUTION" not in text, name
        assert not any(cell.get("outputs") for cell in json.loads(text)["cells"]), name


def test_an_empty_folder_gets_the_labs(python: Path, folder: Path) -> None:
    assert Path(program(python, folder, "import mqlab; print(mqlab.__file__)")).is_relative_to(python.parents[1])
    assert [path.name for path in folder.iterdir()] == ["my-labs"]
    originals = {path.name: path.read_bytes() for path in (ROOT / "labs").glob("*.ipynb") if part_of(path)}
    assert originals == {path.name: path.read_bytes() for path in (folder / "my-labs").glob("*.ipynb")}


def part_of(path: Path) -> bool:
    """Whether a notebook of ``labs`` is handed out: not a working copy."""
    return not re.search(r"-\d{4}-\d\d-\d\d|-Copy", path.name)


def test_a_lab_is_started_checked_and_restored(python: Path, folder: Path) -> None:
    started = mqlab(python, folder, "start", "00")
    copy = folder / started.stdout.strip()
    assert copy.parent == folder / "my-labs" and copy.is_file(), started.stderr
    assert mqlab(python, folder, "progress").stdout.split()[0] == "lab"
    checked = mqlab(python, folder, "check", started.stdout.strip())
    assert checked.returncode == 0, checked.stderr
    assert "lab00.find: the answer cell is as it was handed out" in checked.stdout
    restored = mqlab(python, folder, "restore", "00", "--answers-of", started.stdout.strip())
    assert (folder / restored.stdout.strip()).is_file() and restored.stdout != started.stdout, restored.stderr


def test_the_stores_of_the_labs_are_there(python: Path, folder: Path) -> None:
    read = "from mqlab.course.teach.datasets import real_store as store"
    text = f"{read}; print(sorted(path.name for path in store('clean').iterdir()))"
    assert "'commitlog'" in program(python, folder, text)


def test_a_class_is_graded_and_the_lack_of_hidden_cases_is_said(python: Path, folder: Path) -> None:
    (folder / "in").mkdir()
    shutil.copy(ROOT / "solutions" / f"{LAB}.ipynb", folder / "in" / "anna.ipynb")
    words = ("grade", "in", "--lab", "00", "--out", "grades", "--seed", "autumn", "-j", "1", "--unsafe-no-sandbox")
    graded = mqlab(python, folder, *words)
    assert graded.returncode == 0, graded.stderr
    assert re.fullmatch(r"anna +lab00  graded +(\d+) of \1\n", graded.stdout), graded.stdout
    assert "a clone of mqlab has them: --course CLONE" in graded.stderr


def test_what_is_released_is_what_students_need_beside_the_wheel(python: Path, folder: Path, tmp_path: Path) -> None:
    packed = mqlab(python, folder, "release", "--out", str(tmp_path / "labs.zip"))
    assert packed.returncode == 0, packed.stderr
    with zipfile.ZipFile(tmp_path / "labs.zip") as archive:
        archive.extractall(tmp_path)
    release = tmp_path / "mqlab-labs"
    assert {path.name for path in release.iterdir()} == {"labs", "datasets", "originals", "requirements.txt"}
    assert (release / "requirements.txt").read_text("utf-8").startswith("mqlab[all]==")
    started = mqlab(python, release, "start", "01a")
    assert started.stdout.startswith("labs" + os.sep), started.stderr
