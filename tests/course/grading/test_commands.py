"""The verbs as instructors and students type them."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
import time
import zipfile
from pathlib import Path

import psutil
import pytest
from click.testing import CliRunner, Result

from mqlab.cli import main
from mqlab.course.grading.running.gradebook import file_name
from mqlab.course.grading.sandbox.walled import Sandbox
from mqlab.course.grading.submissions.lab_files import part_names
from mqlab.course.material import home
from tests.course.grading.course import RIGHT, save, untouched, with_answers

WRONG = {"lab99.total": "def total(numbers):\n    return sum(numbers[1:])\n"}
SHEET = "Student,ID,Lab 99 (5)\nboris,7,\n陈 阿,1,\n"
REPORTS = ("grades.csv", "grades.json", "junit.xml", "index.html", "heat_map.html", "tampering.html")


def mqlab(*words: object) -> Result:
    return CliRunner().invoke(main, [str(word) for word in words])


@pytest.fixture(scope="module")
def submissions(course: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A small class."""
    folder, pristine = tmp_path_factory.mktemp("class") / "in", untouched(course)
    save(pristine, folder / "anna" / "99-tiny.ipynb")
    save(with_answers(pristine, RIGHT), folder / "boris.ipynb")
    save(with_answers(pristine, {**RIGHT, **WRONG}), folder / "陈_1_2_99-tiny.ipynb")
    save("no notebook", folder / "dora.ipynb")
    return folder


@pytest.fixture(scope="module")
def first_run(
    course: Path, submissions: Path, walls: Sandbox, tmp_path_factory: pytest.TempPathFactory
) -> tuple[Path, Result]:
    """The class graded with one job."""
    out = tmp_path_factory.mktemp("grades") / "out"
    roster = save(b"anna\nboris\nemil\n", out.parent / "roster.txt")
    words = ("grade", submissions, "--lab", "99", "--course", course, "--out", out, "--seed", "autumn", "-j", "1")
    sheet = save(SHEET.encode(), out.parent / "export.csv")
    return out, mqlab(*words, "--roster", roster, "--sheet", sheet)


def test_the_sheet_of_the_course_system_comes_back_filled(first_run: tuple[Path, Result]) -> None:
    out, result = first_run
    assert (out / "filled-export.csv").read_text("utf-8") == SHEET.replace("7,\n", "7,7\n").replace("1,\n", "1,4\n")
    assert "students without a row in it: anna, dora" in result.stderr


def test_everybody_gets_a_record_and_the_exit_code_is_0(first_run: tuple[Path, Result]) -> None:
    out, result = first_run
    assert result.exit_code == 0, result.output
    lines = [line.split() for line in result.stdout.splitlines()]
    assert lines == [
        ["anna", "lab99", "graded", "0", "of", "7"],
        ["boris", "lab99", "graded", "7", "of", "7"],
        ["dora", "lab99", "malformed", "0", "of", "7"],
        ["emil", "lab99", "missing", "0", "of", "7"],
        ["陈", "1", "lab99", "graded", "4", "of", "7"],
    ]
    assert all((out / name).is_file() for name in REPORTS)
    assert len(list((out / "feedback").iterdir())) == len(list((out / "gradescope").iterdir())) == 5


def test_progress_with_time_left_goes_to_stderr(first_run: tuple[Path, Result]) -> None:
    _, result = first_run
    assert "5/5" in result.stderr and "<" in result.stderr and "notebook" in result.stderr


def test_a_wrong_answer_is_told_the_rule_and_the_first_wrong_thing(first_run: tuple[Path, Result]) -> None:
    record = json.loads((first_run[0] / "records").joinpath(f"{file_name('陈 1')}.lab99.json").read_text("utf-8"))
    total = record["exercises"][0]
    assert total["reason"] == "The total is the sum of all numbers, the first and the last included"
    kinds = [(case["kind"], case["state"]) for case in total["cases"]]
    assert kinds == [("public", "failed")] * 2 + [("hidden", "failed")] * 2 + [("hidden", "passed")]
    assert all(case["expected"] and case["found"] for case in total["cases"] if case["state"] == "failed")
    assert [case["name"] for case in total["cases"]][2:4] == ["five numbers, seed no. 1", "five numbers, seed no. 2"]


def test_grades_do_not_depend_on_the_number_of_jobs_or_on_the_day(
    course: Path, submissions: Path, first_run: tuple[Path, Result], tmp_path: Path
) -> None:
    roster = save(b"anna\nboris\nemil\n", tmp_path / "roster.txt")
    result = mqlab(
        "grade",
        submissions,
        "--lab",
        "99",
        "--course",
        course,
        "--out",
        tmp_path / "out",
        "--seed",
        "autumn",
        "-j",
        2,
        "--roster",
        roster,
    )
    assert result.exit_code == 0
    for path in first_run[0].rglob("*"):
        if path.is_file() and path.parent.name != "records" and not path.name.startswith("filled-"):
            again = tmp_path / "out" / path.relative_to(first_run[0])
            assert again.read_bytes() == path.read_bytes(), path


def test_a_run_that_was_killed_is_taken_up_again(
    course: Path, submissions: Path, first_run: tuple[Path, Result], tmp_path: Path
) -> None:
    words = ["grade", submissions, "--lab", "99", "--course", course, "--out", tmp_path / "out", "--seed", "autumn"]
    process = subprocess.Popen(
        [sys.executable, "-m", "mqlab.cli", *map(str, words), "-j", "1"],
        stderr=subprocess.PIPE,
        text=True,
        stdout=subprocess.DEVNULL,
        start_new_session=True,
    )
    assert process.stderr is not None
    seen = ""
    while "1/4" not in seen:
        seen += process.stderr.read(1)
    started = psutil.Process(process.pid).children(recursive=True)
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    process.stderr.close()
    kept = {path: path.stat().st_mtime_ns for path in (tmp_path / "out" / "records").glob("*.json")}
    _, left = psutil.wait_procs(started, timeout=120)
    assert left == []
    assert set((tmp_path / "out" / "records").glob("*.json")) == set(kept)  # nothing writes into the run that follows
    assert 1 <= len(kept) < 4
    result = mqlab(*words, "--resume", "-j", 2)
    assert result.exit_code == 0
    assert all(path.stat().st_mtime_ns == written for path, written in kept.items())
    without_roster = [line for line in first_run[1].stdout.splitlines() if not line.startswith("emil")]
    assert result.stdout.splitlines() == without_roster


def test_without_a_seed_a_random_one_is_made_kept_and_used_again(course: Path, tmp_path: Path, walls: Sandbox) -> None:
    save("no notebook", tmp_path / "in" / "anna.ipynb")
    words = ("grade", tmp_path / "in", "--lab", "99", "--course", course, "--out")
    seeds = []
    for name in ("one", "two"):
        out = tmp_path / name
        first, again = mqlab(*words, out), mqlab(*words, out, "--resume")
        seed = (out / "seed").read_text("utf-8").strip()
        assert len(seed) >= 16 and f"class seed: {seed} " in first.stderr and f"class seed: {seed} " in again.stderr
        assert seed not in first.stdout and json.loads((out / "grades.json").read_text("utf-8"))["seed"] == seed
        readable = [path.name for path in out.rglob("*") if path.is_file() and path.stat().st_mode & 0o077]
        assert not {"seed", "grades.json", "index.html"} & set(readable)
        assert all(seed not in path.read_text("utf-8") for path in out.rglob("*") if path.name in readable)
        seeds.append(seed)
    assert seeds[0] != seeds[1]
    mqlab(*words, tmp_path / "two", "--seed", "autumn")
    assert "class seed: autumn " in mqlab(*words, tmp_path / "two").stderr


def test_the_seed_is_on_no_disk_while_grading_and_nothing_stays_after_a_kill(
    course: Path, tmp_path: Path, walls: Sandbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    slow = {**RIGHT, "lab99.total": "import time\ndef total(numbers):\n    time.sleep(60)\n"}
    save(with_answers(untouched(course), slow), tmp_path / "in" / "anna.ipynb")
    (tmp_path / "tmp").mkdir()
    words = ["grade", tmp_path / "in", "--lab", "99", "--course", course, "--out", tmp_path / "out", "--seed", "SECRET"]
    process = subprocess.Popen(
        [sys.executable, "-m", "mqlab.cli", *map(str, words)],
        stderr=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        start_new_session=True,
        env={**os.environ, "TMPDIR": str(tmp_path / "tmp")},
    )
    answering = None
    while answering is None:
        assert process.poll() is None
        time.sleep(0.2)
        answering = next((tmp_path / "tmp").glob("mqlab-grade-*/shared/mqlab-answers-*"), None)
    written = [path for path in (tmp_path / "tmp").rglob("*") if path.is_file() and b"SECRET" in path.read_bytes()]
    started = psutil.Process(process.pid).children(recursive=True)
    commands = [one.cmdline() for one in started if one.is_running()]
    folders = [path for path in (tmp_path / "tmp").glob("mqlab-grade-*/*") if path.name != "shared"]
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    _, left = psutil.wait_procs(started, timeout=120)
    assert left == []
    assert written == [] and "SECRET" not in str(commands)
    assert folders and all(path.stat().st_mode & 0o077 == 0 for path in folders)
    assert list((tmp_path / "tmp").glob("mqlab-grade-*"))  # killed: no process was left to remove it
    save("no notebook", tmp_path / "in" / "anna.ipynb")
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "tmp"))
    assert mqlab(*words).exit_code == 0 and not list((tmp_path / "tmp").glob("mqlab-grade-*"))


def test_resuming_grades_again_what_has_changed(course: Path, tmp_path: Path, walls: Sandbox) -> None:
    words = ("grade", tmp_path / "in", "--lab", "99", "--course", course, "--out", tmp_path / "out", "--resume")
    save("no notebook", tmp_path / "in" / "anna.ipynb")
    save("no notebook", tmp_path / "in" / "boris.ipynb")
    assert mqlab(*words).exit_code == 0
    boris = tmp_path / "out" / "records" / "boris.lab99.json"
    before = boris.stat().st_mtime_ns
    (tmp_path / "out" / "records" / "anna.lab99.json").write_text("{damaged", "utf-8")
    assert mqlab(*words).exit_code == 0
    assert json.loads((tmp_path / "out" / "records" / "anna.lab99.json").read_text("utf-8"))["status"] == "malformed"
    assert boris.stat().st_mtime_ns == before
    save(b"", tmp_path / "in" / "boris.ipynb")
    result = mqlab(*words, "--json")
    assert [json.loads(line)["reason"] for line in result.stdout.splitlines()][1] == "it is empty"
    assert boris.stat().st_mtime_ns != before


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (["--lab", "98"], "there is no lab '98'"),
        (["--course", "nowhere"], "no labs folder"),
        (["--show-hidden", "some"], "'some' is not one of"),
        (["--roster", "nowhere.csv"], "cannot be read"),
        (["-j", "0"], "0 is not in the range"),
    ],
)
def test_a_wrong_question_is_exit_code_2(course: Path, tmp_path: Path, change: list[str], words: str) -> None:
    save(b"", tmp_path / "in" / "anna.ipynb")
    given = ["grade", tmp_path / "in", "--lab", "99", "--course", course, "--out", tmp_path / "out"]
    if change[0] in given:
        at = given.index(change[0])
        del given[at : at + 2]
    result = mqlab(*given, *change)
    assert result.exit_code == 2 and words in result.output


def test_results_never_go_into_a_folder_of_other_things(course: Path, tmp_path: Path, walls: Sandbox) -> None:
    save(b"", tmp_path / "in" / "anna.ipynb")
    save(b"keep", tmp_path / "out" / "thesis.txt")
    words = ["grade", tmp_path / "in", "--lab", "99", "--course", course, "--out"]
    assert mqlab(*words, tmp_path / "out").exit_code == 2
    assert mqlab(*words, tmp_path / "out" / "thesis.txt").exit_code == 2
    assert [path.name for path in (tmp_path / "out").iterdir()] == ["thesis.txt"]


def test_without_a_sandbox_grading_is_possible_and_says_what_it_means(course: Path, tmp_path: Path) -> None:
    save(with_answers(untouched(course), RIGHT), tmp_path / "in" / "boris.ipynb")
    result = mqlab(
        "grade", tmp_path / "in", "--lab", "99", "--course", course, "--out", tmp_path / "out", "--unsafe-no-sandbox"
    )
    assert result.exit_code == 0 and "7 of 7" in result.stdout
    assert "every answer can read the checks" in result.stderr and "read and change your files" in result.stderr


def test_check_tells_a_student_what_is_wrong(course: Path, submissions: Path) -> None:
    result = mqlab("check", "--course", course, submissions / "陈_1_2_99-tiny.ipynb")
    assert result.exit_code == 1
    assert "✗ lab99.total: The total is the sum of all numbers" in result.stdout
    assert "expected: " in result.stdout and "✓ lab99.box: 1 of 1 public check passes" in result.stdout
    assert "hidden" not in result.stdout


def test_check_of_unbegun_and_right_work_is_content(course: Path, submissions: Path) -> None:
    result = mqlab("check", "--course", course, submissions / "anna" / "99-tiny.ipynb", "--json")
    assert result.exit_code == 0
    assert [one["state"] for one in json.loads(result.stdout)["exercises"]] == ["not started"] * 2
    for other in (submissions / "dora.ipynb", save({"cells": []}, submissions.parent / "x.ipynb")):
        assert mqlab("check", "--course", course, other).exit_code == 2


def test_start_and_restore_never_overwrite(course: Path, tmp_path: Path) -> None:
    words = ("99", "--course", course, "--to", tmp_path)
    first = Path(mqlab("start", *words).stdout.strip())
    assert first.name.startswith("99-tiny-2") and first.parent == tmp_path
    save(with_answers(json.loads(first.read_text("utf-8")), RIGHT), first)
    work = first.read_bytes()
    again = mqlab("start", *words)
    assert Path(again.stdout.strip()) == first and "started this lab already" in again.stderr
    fresh = Path(mqlab("restore", *words).stdout.strip())
    assert fresh.name == f"{first.stem}-2.ipynb"
    assert json.loads(fresh.read_text("utf-8")) == untouched(course)
    carried = mqlab("restore", *words, "--answers-of", first)
    assert "lab99.total, lab99.box" in carried.stderr
    assert "return sum(numbers)" in Path(carried.stdout.strip()).read_text("utf-8")
    assert first.read_bytes() == work
    assert len(list(tmp_path.iterdir())) == 3


def test_start_of_an_unknown_lab_names_those_there_are(course: Path, tmp_path: Path) -> None:
    result = mqlab("start", "55", "--course", course, "--to", tmp_path)
    assert result.exit_code == 2 and "there are: 99" in result.output


def test_a_release_has_labs_and_no_solutions(tmp_path: Path) -> None:
    result = mqlab("release", "--out", tmp_path / "labs.zip")
    assert result.exit_code == 0, result.output
    with zipfile.ZipFile(tmp_path / "labs.zip") as archive:
        names = archive.namelist()
        texts = {name: archive.read(name) for name in names if name.endswith(".ipynb")}
    folders = {name.split("/")[1] for name in names}
    assert {"mqlab", "labs", "originals", "Makefile", "pyproject.toml"} <= folders
    assert not {"solutions", "tests", "benchmarks", ".git"} & folders
    assert len([name for name in texts if "/originals/" in name]) == len(part_names(home()))
    for text in texts.values():
        assert b"SOLUTION" not in text and not any(cell.get("outputs") for cell in json.loads(text)["cells"])
    again = tmp_path / "again.zip"
    mqlab("release", "--out", again)
    assert again.read_bytes() == (tmp_path / "labs.zip").read_bytes()


def test_a_lab_with_solution_text_is_not_released(course: Path, tmp_path: Path) -> None:
    notebook = untouched(course)
    notebook["cells"][1]["source"] = "### BEGIN SOLUTION"
    save(notebook, tmp_path / "labs" / "99-tiny.ipynb")
    for words in (["init", "-q"], ["add", "labs"]):
        subprocess.run(["git", "-C", str(tmp_path), *words], check=True)
    result = mqlab("release", "--course", tmp_path, "--out", tmp_path / "labs.zip")
    assert result.exit_code == 2 and "solution text" in result.output
    assert not list(tmp_path.glob("labs.zip*"))


@pytest.mark.parametrize("verb", ["grade", "check", "start", "restore", "release"])
def test_every_verb_has_help_with_an_example(verb: str) -> None:
    result = mqlab(verb, "--help")
    assert result.exit_code == 0 and f"Example:  mqlab {verb}" in result.stdout


@pytest.mark.long
def test_a_class_of_fifty_is_graded_killed_and_taken_up_again(course: Path, tmp_path: Path, walls: Sandbox) -> None:
    pristine = untouched(course)
    for number in range(50):
        answers = {**RIGHT, **(WRONG if number % 3 == 0 else {})}
        save(with_answers(pristine, answers), tmp_path / "in" / f"s{number:02d}.ipynb")
    words = ["grade", tmp_path / "in", "--lab", "99", "--course", course, "--seed", "autumn", "-j", "2", "--out"]
    whole = mqlab(*words, tmp_path / "whole")
    assert whole.exit_code == 0 and "50/50" in whole.stderr
    process = subprocess.Popen(
        [sys.executable, "-m", "mqlab.cli", *map(str, words), str(tmp_path / "cut")],
        stderr=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        text=True,
        start_new_session=True,
    )
    assert process.stderr is not None
    seen = ""
    while "20/50" not in seen:
        seen += process.stderr.read(1)
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    process.stderr.close()
    assert mqlab(*words, tmp_path / "cut", "--resume").stdout == whole.stdout
    for name in REPORTS:
        assert (tmp_path / "cut" / name).read_bytes() == (tmp_path / "whole" / name).read_bytes()


def test_start_works_beside_the_labs_where_links_lead_somewhere(
    course: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert Path(mqlab("start", "99", "--course", course).stdout.strip()).parent == Path()
    (tmp_path / "labs").mkdir()
    assert Path(mqlab("start", "99", "--course", course).stdout.strip()).parent == Path("labs")
    assert Path(mqlab("restore", "99", "--course", course).stdout.strip()).name.endswith("-2.ipynb")
