"""Each lab has a teaching script that names its exercises; the guide leads to it."""

from __future__ import annotations

import re

import pytest

from mqlab.course.grading.submissions.lab_files import lab_numbers
from mqlab.course.material import home
from mqlab.course.teach.exercises import manifest

SCRIPTS = home() / "docs" / "teaching"


@pytest.mark.parametrize("number", lab_numbers(home()))
def test_a_lab_has_a_script_with_all_its_exercises(number: str) -> None:
    text = (SCRIPTS / f"lab{number}.md").read_text("utf-8")
    asked = manifest(f"lab{number}")
    named = set(re.findall(r"`(lab\d\d\.\w+)`", text))
    exercises = {exercise.id for exercise in asked.exercises}
    assert exercises <= named
    # It may also name questions to ask, and those have to exist.
    assert named <= exercises | {one.id for one in (*asked.predictions, *asked.tasks)}
    for heading in (
        "Before class",
        "What they will get wrong",
        "Exercises at home",
        "Model answers for the discussion",
    ):
        assert f"\n## {heading}\n" in text


@pytest.mark.parametrize("number", lab_numbers(home()))
def test_the_minutes_of_a_script_fill_whole_lectures(number: str) -> None:
    text = (SCRIPTS / f"lab{number}.md").read_text("utf-8")
    plan = text[: text.index("## What they will get wrong")]
    minutes = sum(map(int, re.findall(r"^\| (\d+) \|", plan, re.MULTILINE)))
    promised = re.search(r"^For (?:one hour|(\d+) minutes) in class", text, re.MULTILINE)
    assert promised is not None and minutes == int(promised[1] or 60)


def test_the_guide_leads_to_every_script_and_to_no_other() -> None:
    guide = (home() / "docs" / "instructors.md").read_text("utf-8")
    linked = set(re.findall(r"\(teaching/(lab\d\d\.md)\)", guide))
    assert linked == {path.name for path in SCRIPTS.glob("*.md")} == {f"lab{n}.md" for n in lab_numbers(home())}
