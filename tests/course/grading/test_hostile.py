"""The bank of hostile submissions: each ends in a record, gains nothing, stalls nothing, writes nothing outside.

They are graded together; every file is then a test of its own. Each answers lab99.box rightly, so that an attack
by lab99.total must neither gain its 3 points nor lose the other 4.
"""

from __future__ import annotations

import contextlib
import csv
import hashlib
import json
import os
import pkgutil
import re
import selectors
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from mqlab.course.grading.running.gradebook import file_name
from mqlab.course.grading.sandbox.walled import Sandbox
from tests.course.grading.course import RIGHT, save, untouched, with_answers
from tests.course.grading.hostile_notebooks import BANK, Hostile

ANSWERS = sorted((Path(__file__).parent / "hostile").glob("*.txt"))  # no modules: nothing may import them
NOTEBOOKS, OTHERS = (tuple(one for one in BANK if one.long is which) for which in (False, True))
KIND, STATUS = re.compile(r"^# kind: (.+)$", re.MULTILINE), re.compile(r"^# status: (.+)$", re.MULTILINE)
OURS = re.compile(r"(?<!vnd\.)\bmqlab(?:\.[a-z_]\w*)+")
MARK = "mqlab-was-here"
KINDS_OF_THE_DESIGN = {
    "checker redefined",
    "mqlab patched",
    "builtins replaced",
    "expected output printed",
    "traceback suppressed",
    "input transformer",
    "always-equal object",
    "frame peeking",
    "reading the disk",
    "rewriting the report",
    "killing the parent",
    "os._exit",
    "infinite loop",
    "swallowing KeyboardInterrupt",
    "memory hog",
    "fork bomb",
    "1 GB of output",
    "network",
}


QUICK = {
    "checker_redefined",
    "mqlab_patched",
    "builtins_replaced",
    "expected_output_printed",
    "traceback_suppressed",
    "input_transformer",
    "always_equal_object",
    "frame_peeking",
    "reading_the_disk",
    "rewriting_the_report",
    "killing_the_parent",
    "exit_in_the_call",
    "interrupts_swallowed",
    "memory_hog",
    "fork_bomb",
    "gigabyte_of_output",
    "network",
    "writing_everywhere",
    "forged_answers",
    "remembers_public_cases",
    "reading_the_judges",
    "reading_the_judges_files",
}
"""One answer of each kind of the design, and a few more; the others are as hostile and run with the long tests."""


@dataclass(frozen=True)
class Graded:
    """What the run left."""

    out: Path
    scratch: str
    count: int
    seconds: float
    before: str
    after: str

    def record(self, student: str) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(
            (self.out / "records" / f"{file_name(student)}.lab99.json").read_text("utf-8")
        )
        return found


def state_of(*folders: Path) -> str:
    """A digest of all names and contents in some folders."""
    digest = hashlib.sha256()
    for folder in folders:
        for path in sorted(folder.rglob("*")):
            digest.update(f"{path}\n".encode("utf-8", "surrogateescape"))
            if path.is_file() and not path.is_symlink():
                digest.update(path.read_bytes())
    return digest.hexdigest()


def run(course: Path, folder: Path, answers: list[Path], notebooks: tuple[Hostile, ...]) -> Graded:
    """Grade some of the bank, and an honest submission with it."""
    submissions, pristine = folder / "submissions", untouched(course)
    for path in answers:
        filled = with_answers(pristine, {**RIGHT, "lab99.total": path.read_text("utf-8")})
        save(filled, submissions / f"{path.stem}.ipynb")
    for hostile in notebooks:
        hostile.make(pristine, submissions / f"{hostile.file_name}.ipynb")
    save(with_answers(pristine, RIGHT), submissions / "honest.ipynb")
    before = state_of(submissions, course)
    scratch = tempfile.mkdtemp(prefix="mqlab-bank-")  # by its name this run's processes are known from another's
    os.chmod(scratch, 0o711)  # the walls' user goes through it
    began = time.monotonic()
    done = subprocess.run(
        [
            sys.executable,
            "-m",
            "mqlab.cli",
            "grade",
            str(submissions),
            "--lab",
            "99",
            "--out",
            str(folder / "out"),
            "--course",
            str(course),
            "-j",
            "2",
            "--show-hidden",
            "full",
            "--seed",
            "autumn",
        ],
        capture_output=True,
        text=True,
        check=False,
        cwd=folder,
        env={**os.environ, "TMPDIR": scratch, "PYTHONDONTWRITEBYTECODE": "1"},  # Python's own files are no attack
    )
    shutil.rmtree(scratch, ignore_errors=True)
    assert done.returncode == 0, done.stderr
    return Graded(
        folder / "out",
        scratch,
        len(answers) + len(notebooks) + 1,
        time.monotonic() - began,
        before,
        state_of(submissions, course),
    )


@pytest.fixture(scope="module")
def quick(course: Path, walls: Sandbox, tmp_path_factory: pytest.TempPathFactory) -> Graded:
    """One answer of each kind, and most notebooks."""
    return run(course, tmp_path_factory.mktemp("bank"), [path for path in ANSWERS if path.stem in QUICK], NOTEBOOKS)


@pytest.fixture(scope="module")
def rest(course: Path, walls: Sandbox, tmp_path_factory: pytest.TempPathFactory) -> Graded:
    """Everything else."""
    return run(course, tmp_path_factory.mktemp("bank"), [path for path in ANSWERS if path.stem not in QUICK], OTHERS)


def test_the_bank_has_every_kind_of_the_design_and_more() -> None:
    kinds = {match[1] for path in ANSWERS if (match := KIND.search(path.read_text("utf-8")))}
    assert kinds >= KINDS_OF_THE_DESIGN
    assert {path.stem for path in ANSWERS} >= QUICK
    assert len(ANSWERS) >= 40 and len(BANK) >= 20


def test_what_attacks_reach_for_is_there() -> None:
    """A name that has moved would attack nothing."""
    texts = [path.read_text("utf-8") for path in (*ANSWERS, Path(__file__).parent / "hostile_notebooks.py")]
    reached = {name for text in texts for name in OURS.findall(text)} - {"mqlab.course.cases.lab99"}
    assert "mqlab.course.cases" in reached
    for name in sorted(reached):
        assert pkgutil.resolve_name(name), name


def test_no_tool_can_take_a_hostile_answer_for_a_module() -> None:
    assert {path.suffix for path in ANSWERS[0].parent.iterdir()} == {".txt"}


@pytest.fixture(params=["quick", pytest.param("rest", marks=pytest.mark.long)])
def graded(request: pytest.FixtureRequest) -> Graded:
    """Each of the two runs."""
    found: Graded = request.getfixturevalue(request.param)
    return found


def test_every_submission_has_a_record(graded: Graded) -> None:
    assert len(list((graded.out / "records").glob("*.json"))) == graded.count


def test_the_honest_one_has_all_points(graded: Graded) -> None:
    record = graded.record("honest")
    assert record["status"] == "graded"
    assert [exercise["state"] for exercise in record["exercises"]] == ["passed", "passed"]


@pytest.mark.parametrize(
    "path",
    [pytest.param(path, marks=() if path.stem in QUICK else pytest.mark.long, id=path.stem) for path in ANSWERS],
)
def test_a_hostile_answer_gains_nothing_and_sinks_nothing(path: Path, request: pytest.FixtureRequest) -> None:
    graded: Graded = request.getfixturevalue("quick" if path.stem in QUICK else "rest")
    record = graded.record(path.stem)
    total, box = record["exercises"]
    wanted = STATUS.search(path.read_text("utf-8"))
    assert wanted is not None
    assert total["state"] != "passed" and total["reason"]
    assert box["state"] == "passed", box
    assert record["status"] in wanted[1].split(" or "), record["reason"]


@pytest.mark.parametrize(
    "hostile", [pytest.param(one, marks=pytest.mark.long if one.long else (), id=one.name) for one in BANK]
)
def test_a_hostile_notebook_gains_nothing(hostile: Hostile, request: pytest.FixtureRequest) -> None:
    graded: Graded = request.getfixturevalue("rest" if hostile.long else "quick")
    record = graded.record(hostile.file_name)
    states = [exercise["state"] for exercise in record["exercises"]]
    points = sum(exercise["points"] for exercise in record["exercises"] if exercise["state"] == "passed")
    assert (record["status"], points) == (hostile.status, hostile.points), (record["reason"], states)
    assert record["status"] == "graded" or record["reason"]


def test_nothing_was_written_outside(graded: Graded) -> None:
    assert graded.before == graded.after
    places = [
        Path.cwd(),
        Path("/"),
        Path("/tmp"),
        Path("/var/tmp"),
        Path("/dev/shm"),
        Path.home(),
        Path(sys.prefix),
        Path(sys.base_prefix),
        graded.out,
        graded.out.parent,
        *map(Path, sys.path),
    ]
    assert [place for place in places if (place / MARK).exists()] == []


def workers(scratch: str) -> Iterator[str]:
    """The workers that see a folder of this run's grader."""
    for name in os.listdir("/proc") if os.path.isdir("/proc") else ():
        with contextlib.suppress(OSError):
            command = Path("/proc", name, "cmdline").read_bytes() if name.isdigit() else b""
            if b"mqlab.course.grading.sandbox.worker" in command and os.fsencode(scratch) in command:
                yield name


def test_nothing_is_left_running(graded: Graded) -> None:
    for name in workers(graded.scratch):
        with contextlib.suppress(ProcessLookupError):
            descriptor = os.pidfd_open(int(name))  # readable once its process has ended
            with selectors.DefaultSelector() as selector:
                selector.register(descriptor, selectors.EVENT_READ)
                assert selector.select(60), f"process {name} goes on"
            os.close(descriptor)


def test_reports_hold_whatever_students_wrote(graded: Graded) -> None:
    ElementTree.parse(graded.out / "junit.xml")
    json.loads((graded.out / "grades.json").read_text("utf-8"))
    with open(graded.out / "grades.csv", encoding="utf-8", newline="") as file:
        rows = list(csv.reader(file))
    assert len(rows) == graded.count + 1
    assert not any(cell.startswith(("=", "+", "@")) for row in rows for cell in row)
    for page in graded.out.rglob("*.html"):
        text = page.read_text("utf-8")
        assert "<script" not in text and "<img" not in text, page


def test_what_looks_like_an_attempt_is_told(quick: Graded) -> None:
    rows = csv.reader((quick.out / "tampering.csv").read_text("utf-8").splitlines())
    text = "\n".join(",".join(row) for row in rows)
    for words in (
        "checker_redefined,lab99,yes,redefines",
        "mqlab_patched,lab99,yes,patches",
        "frame_peeking,lab99,,worth a look",
        "check_forged,lab99,,check edited",
        "nbval_markers,lab99,,marker",
        "answer_duplicated,lab99,,duplicate",
        "forged_answers,lab99,yes,grading",
    ):
        assert words in text
