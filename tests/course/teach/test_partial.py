"""What a wrong answer has earned so far is shown, where an exercise weighs its cases."""

from __future__ import annotations

from typing import Any

import pytest

from mqlab.course import CheckFailed, check
from tests.course.teach.notebook_answers import reference


def message(exercise_id: str, answer: str, function: Any) -> str:
    with pytest.raises(CheckFailed) as failed:
        check(exercise_id, {answer: function})
    return str(failed.value)


def test_points_of_the_public_cases_that_hold_are_told() -> None:
    schedule = reference("lab07.schedule")["schedule"]

    def default_alone(levels: str, most: int) -> Any:
        of_every_case = levels.endswith("d") or levels == "1s 2s 3s"
        return schedule(levels, most) if of_every_case or len(levels.split()) == 18 else [(0, 0)]

    text = message("lab07.schedule", "schedule", default_alone)
    assert "0.8 of 3 points in the public checks; hidden checks count too" in text


def test_cases_behind_the_wrong_one_count_and_are_quiet(capsys: pytest.CaptureFixture[str]) -> None:
    schedule = reference("lab07.schedule")["schedule"]

    def all_but_the_default(levels: str, most: int) -> Any:
        print("asked")
        return schedule(levels, most) if len(levels.split()) < 18 else []

    assert "2.2 of 3 points" in message("lab07.schedule", "schedule", all_but_the_default)
    assert capsys.readouterr().out.count("asked") == 1


def test_nothing_is_told_where_nothing_is_earned_or_it_is_all_or_nothing() -> None:
    assert "so far" not in message("lab07.schedule", "schedule", lambda levels, most: [(0, 0)])
    tag_bytes = reference("lab01.tags")["tag_bytes"]
    wrong = message("lab01.tags", "tag_bytes", lambda tags: tag_bytes(tags) if tags is None else b"12345678")
    assert "so far" not in wrong
