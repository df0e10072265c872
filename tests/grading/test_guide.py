"""The instructor's guide says what is so: its verbs, options, statuses, files and labs exist."""

from __future__ import annotations

import re

from mqlab.cli import VERBS
from mqlab.cli.grading import grade
from mqlab.grading.lab_files import CLONE, lab_numbers
from mqlab.grading.reports import REDACTIONS
from mqlab.grading.verdict import STATUSES

GUIDE = (CLONE / "docs" / "instructors.md").read_text("utf-8")


def test_every_lab_has_a_row_in_the_syllabus() -> None:
    assert set(lab_numbers(CLONE)) <= set(re.findall(r"^\| \d+ \| (\d\d) ", GUIDE, re.MULTILINE))


def test_every_verb_it_names_exists() -> None:
    told = set(re.findall(r"(?:^|`)mqlab (\w+)", GUIDE, re.MULTILINE))
    assert told == {"release", "start", "restore", "check", "grade"} <= set(VERBS)


def test_every_option_it_names_exists_and_the_other_way_round() -> None:
    options = {name for parameter in grade.params for name in parameter.opts if name.startswith("--")}
    told = set(re.findall(r"`(--[a-z-]+)", GUIDE))
    assert options - told <= {"--lab", "--out", "--jobs"}
    assert told - options <= {"--privileged", "--answers-of"}


def test_every_status_and_redaction_is_explained() -> None:
    assert all(f"| `{status}` |" in GUIDE for status in STATUSES)
    assert all(f"`{word}`" in GUIDE for word in REDACTIONS)


def test_every_file_of_the_project_it_names_is_there() -> None:
    for name in re.findall(r"`((?:mqlab|tests|solutions)/[\w/.]+\.py)`", GUIDE):
        assert (CLONE / name).is_file() or "NN" in name, name
