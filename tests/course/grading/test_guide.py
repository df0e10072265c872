"""The instructor's guide says what is so: its verbs, options, statuses, files and labs exist."""

from __future__ import annotations

import re

from mqlab.cli import VERBS
from mqlab.cli.grading import grade
from mqlab.course.grading.judging.verdict import STATUSES
from mqlab.course.grading.reports import REDACTIONS
from mqlab.course.grading.submissions.lab_files import lab_numbers
from mqlab.course.material import home

GUIDE = (home() / "docs" / "instructors.md").read_text("utf-8")


def test_the_syllabus_has_a_row_for_every_lab_and_no_other() -> None:
    rows = re.findall(r"^\| (\d\d)[a-z]? [^|]+ \| <!-- minutes", GUIDE, re.MULTILINE)
    assert list(dict.fromkeys(rows)) == lab_numbers(home())


def test_the_syllabus_names_the_labs_as_they_are_called() -> None:
    """A heading may have a subject and a name, *08a Delayed messages: later*: the guide has one of the two."""
    solved = {done.name for done in (home() / "solutions").glob("*.ipynb")}
    for path in sorted((home() / "labs").glob("[0-9][0-9]*-*.ipynb")):
        if path.name in solved:
            title = re.search(r'"# (?:Lab )?(\d\d[a-z]?):? (.+?)\\n', path.read_text("utf-8"))
            assert title is not None, path.name
            rows = [f"| {title[1]} {name} |".lower() for name in (title[2], *title[2].split(": "))]
            assert any(row in GUIDE.lower() for row in rows), path.name


def test_every_verb_it_names_exists() -> None:
    told = set(re.findall(r"(?:^|`)mqlab (\w+)", GUIDE, re.MULTILINE))
    named = {"release", "start", "restore", "check", "grade", "override", "progress", "incident", "league", "slides"}
    assert told == named <= set(VERBS)


def test_every_option_it_names_exists_and_the_other_way_round() -> None:
    options = {name for parameter in grade.params for name in parameter.opts if name.startswith("--")}
    told = set(re.findall(r"`(--[a-z-]+)", GUIDE))
    assert options - told <= {"--lab", "--out", "--jobs"}
    assert told - options <= {"--privileged", "--answers-of", "--comment", "--page"}


def test_every_status_and_redaction_is_explained() -> None:
    assert all(f"| `{status}` |" in GUIDE for status in STATUSES)
    assert all(f"`{word}`" in GUIDE for word in REDACTIONS)


def test_every_file_of_the_project_it_names_is_there() -> None:
    for name in re.findall(r"`((?:mqlab|tests|solutions)/[\w/.]+\.py)`", GUIDE):
        assert (home() / name).is_file() or "NN" in name, name


def test_the_readme_leads_to_the_guide() -> None:
    assert "docs/instructors.md" in (home() / "README.md").read_text("utf-8")
