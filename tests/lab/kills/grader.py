"""`mqlab grade` dies while it grades a class; `--resume` ends with the grades of a run that was left alone."""

from __future__ import annotations

import random
import shutil
import time
from pathlib import Path

from tests.course.grading.course import RIGHT, make_course, save, untouched, with_answers
from tests.lab.kills.processes import run_until_killed

WRONG = {"lab99.total": "def total(numbers):\n    return sum(numbers[1:])\n"}
STUDENTS = 8
REPORTS = ("grades.csv", "grades.json", "junit.xml", "index.html", "heat_map.html", "tampering.html")


def _class(directory: Path) -> list[str]:
    """A course and a class beside it; the words that grade it, without the directory of the results."""
    course = make_course(directory / "course")
    pristine = untouched(course)
    for number in range(STUDENTS):
        answers = {**RIGHT, **(WRONG if number % 3 == 0 else {})}
        save(with_answers(pristine, answers), directory / "in" / f"s{number:02d}.ipynb")
    (directory / "tmp").mkdir()
    return [
        "-m",
        "mqlab.cli",
        "grade",
        str(directory / "in"),
        "--lab",
        "99",
        "--course",
        str(course),
        "--seed",
        "autumn",
        "-j",
        "2",
        "--resume",
        "--out",
    ]


def grader_killed(directory: Path, times: int, seed: int) -> tuple[int, int, int]:
    """Kill the grader at least so many times.

    Returns how many classes were graded to their end, how many reports differ from those of a run that was left
    alone, and how many temporary folders are left after it.
    """
    rng, log, words = random.Random(seed), directory / "log.txt", _class(directory)
    tmp = {"TMPDIR": str(directory / "tmp")}
    whole, cut = directory / "whole", directory / "cut"
    began = time.monotonic()
    assert run_until_killed([*words, str(whole)], log=log, seconds=900, environment=tmp) == 0, log.read_text("utf-8")
    whole_seconds = time.monotonic() - began
    kills = classes = different = 0
    while kills < times:
        began_again = 0
        while True:
            seconds = rng.uniform(0.1, 1) * whole_seconds
            began = time.monotonic()
            code = run_until_killed([*words, str(cut)], log=log, seconds=seconds, environment=tmp)
            if code is not None:
                break
            kills += 1
            began_again += 1
        if not began_again:  # the machine has become quicker: what lasts longer than a run kills nothing
            whole_seconds = time.monotonic() - began
        assert code == 0, log.read_text("utf-8")[-3000:]
        classes += 1
        different += sum((cut / name).read_bytes() != (whole / name).read_bytes() for name in REPORTS)
        shutil.rmtree(cut)
    return classes, different, len(list((directory / "tmp").glob("mqlab-grade-*")))
