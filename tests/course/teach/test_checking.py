from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from mqlab.course import CheckFailed, check, hint
from mqlab.course.teach import exercises, hints
from mqlab.course.teach.checking import CheckInterrupted, is_untouched
from mqlab.course.teach.exercises import Answers, Case, Exercise, Finding, Manifest
from mqlab.course.teach.said import ERROR_COLUMNS, AskedWrongly, Said
from mqlab.errors import UsageError


def doubles(seed: int) -> Case:
    def run(answers: Answers) -> Finding | None:
        found = answers["double"](seed)
        return None if found == 2 * seed else Finding("Double means twice", f"for {seed}", 2 * seed, found)

    return Case(f"seed {seed}", run)


EXERCISE = Exercise("labxx.double", "Double", 2, ("double",), doubles, (1, 2, 3), ("look", "think", "2 * x"), "Well.")


@pytest.fixture(autouse=True)
def a_lab(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(exercises, "manifest", lambda lab: Manifest(lab, (), (EXERCISE,)))
    monkeypatch.setattr(hints, "_given", {})


def starter(x: int) -> int:
    """What to do."""
    ...


def todo(x: int) -> int:
    raise NotImplementedError


class Starter:
    def double(self) -> None:
        """Later."""


@pytest.mark.parametrize("answer", [None, ..., starter, todo, Starter])
def test_an_untouched_answer_is_not_started(answer: Any) -> None:
    said = check("labxx.double", {"double": answer})
    assert said.state == "open" and "labxx.double: not started" in str(said)


def test_a_missing_name_is_not_started_and_the_notebook_is_looked_into() -> None:
    assert "not started" in str(check("labxx.double"))  # this module defines no "double"


def test_a_right_answer_passes_and_hidden_checks_are_mentioned() -> None:
    said = check("labxx.double", {"double": lambda x: x + x})
    assert str(said) == "✓ labxx.double: 3 of 3 public checks pass; hidden checks run at grading\n  Well."


def test_a_wrong_answer_names_the_rule_and_the_first_wrong_thing() -> None:
    with pytest.raises(CheckFailed) as failed:
        check("labxx.double", {"double": lambda x: x * x if x != 1 else 2})
    (text,) = failed.value._render_traceback_()
    assert text.splitlines() == [
        "✗ labxx.double: Double means twice",
        "  first wrong  for 3",
        "  expected     6",
        "  found        9",
        "  case         seed 3 (3 of 3)",
        '  hint("labxx.double") helps.',
    ]


def test_a_notebooks_error_box_need_not_break_a_word() -> None:
    rule = "Сообщение 消息 " + "moves from one queue to another when its time has come, never before; " * 2
    said = Said("bad", rule.strip(), [("found", "a word " * 20 + "x" * 100), ("seen", "")], note="so\nit is")
    lines = CheckFailed(said)._render_traceback_()[0].splitlines()
    assert " ".join(" ".join(lines).split()) == " ".join(said.text().split())
    assert lines[0].startswith("✗ Сообщение") and lines[1].startswith("  ") and not lines[1].startswith("   ")
    assert [line for line in lines if len(line) > ERROR_COLUMNS] == [" " * 9 + "x" * 100]
    assert lines[-3:] == ["  seen", "  so", "  it is"]


@pytest.mark.parametrize("asked", [lambda: hint("labxx.double", 4), lambda: check("labxx.triple")])
def test_a_call_that_means_nothing_is_told_without_a_traceback(asked: Callable[[], Any]) -> None:
    with pytest.raises(AskedWrongly) as raised:
        asked()
    (text,) = raised.value._render_traceback_()
    assert text.splitlines()[0] == f"✗ {raised.value.text}"


@pytest.mark.parametrize(("value", "kind"), [(5, "an int"), ("x", "a str"), ([1], "a list")])
def test_a_name_bound_to_what_cannot_be_called_is_told_as_such(value: Any, kind: str) -> None:
    with pytest.raises(CheckFailed) as failed:
        check("labxx.double", {"double": value})
    assert f"double is bound to {kind}, which cannot be called" in str(failed.value)


def test_a_callable_object_is_an_answer() -> None:
    class Double:
        def __call__(self, x: int) -> int:
            return 2 * x

    assert check("labxx.double", {"double": Double()}).state == "good"


def test_an_exception_in_the_answer_is_told_with_its_line() -> None:
    def answer(x: int) -> int:
        return {}["订单"]

    with pytest.raises(CheckFailed, match="your code raised an exception") as failed:
        check("labxx.double", {"double": answer})
    assert "KeyError: '订单'" in str(failed.value) and "of answer: return {}" in str(failed.value)


def test_an_exception_in_a_comprehension_is_told_with_the_function_around_it() -> None:
    def answer(x: int) -> int:
        return sum({}[key] for key in ("订单",))

    with pytest.raises(CheckFailed) as failed:
        check("labxx.double", {"double": answer})
    assert "of answer: return sum({}" in str(failed.value)


def test_an_exception_of_a_library_is_told_with_the_line_that_called_it() -> None:
    def answer(x: int) -> int:
        return int(json.loads("{订单")) + x

    with pytest.raises(CheckFailed) as failed:
        check("labxx.double", {"double": answer})
    assert "JSONDecodeError" in str(failed.value) and 'of answer: return int(json.loads("{订单"))' in str(failed.value)


def test_of_sparks_words_the_plan_behind_them_is_left_out() -> None:
    class AnalysisException(Exception):
        """Looks like PySpark's."""

        def getSqlState(self) -> str:
            return "42703"

    words = "[UNRESOLVED] `тема` cannot be resolved;\n'Aggregate ['тема]\n+- RelationV2[topic#1]\n"

    def answer(x: int) -> int:
        raise AnalysisException(words)

    with pytest.raises(CheckFailed) as failed:
        check("labxx.double", {"double": answer})
    told = str(failed.value)
    assert "AnalysisException: [UNRESOLVED] `тема` cannot be resolved\n" in told and "RelationV2" not in told


def test_a_check_that_was_stopped_names_the_line() -> None:
    def answer(x: int) -> int:
        raise KeyboardInterrupt

    with pytest.raises(CheckInterrupted) as stopped:
        check("labxx.double", {"double": answer})
    (text,) = stopped.value._render_traceback_()
    assert text.splitlines()[0] == "✗ labxx.double: stopped before it ended"
    assert "of answer: raise KeyboardInterrupt" in text and "a loop that never ends" in text


def test_long_values_are_cut() -> None:
    with pytest.raises(CheckFailed) as failed:
        check("labxx.double", {"double": lambda x: "x" * 10_000})
    assert len(str(failed.value)) < 700


def with_a_blank_line(rows: list[int]) -> object:
    """A starter whose other lines are given."""
    status: object = ...
    return [*rows, status]


def with_dots_of_its_own(rows: Any) -> object:
    """An answer that needs ``...``."""
    return rows[..., 0]


@pytest.mark.parametrize(
    ("value", "untouched"),
    [
        (lambda: None, True),
        (with_a_blank_line, True),
        (with_dots_of_its_own, False),
        (lambda: 7, False),
        (lambda x: x, False),
        (len, False),
        (7, False),
        (Starter(), False),
    ],
)
def test_untouched(value: Callable[..., Any], untouched: bool) -> None:
    assert is_untouched(value) is untouched


def test_hints_come_one_by_one_and_stay_at_the_last() -> None:
    given = [str(hint("labxx.double")) for _ in range(4)]
    assert [text.split(": ")[1].splitlines()[0] for text in given] == ["look", "think", "2 * x", "2 * x"]
    assert "Run the cell again for hint 2." in given[0] and "That was the last hint." in given[3]
    assert "hint 2 of 3: think" in str(hint("labxx.double", 2))
    with pytest.raises(UsageError, match="hints 1 to 3, not 4"):
        hint("labxx.double", 4)


def test_unknown_labs_and_exercises(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(UsageError, match=r"there are: labxx\.double"):
        check("labxx.triple")
    monkeypatch.undo()
    with pytest.raises(UsageError, match="there is no lab 'labyy'"):
        check("labyy.anything")


def test_names_between_backticks_are_set_as_code_and_escaped() -> None:
    said = Said("note", "What does `a < b` hold?", note="`RETRY_TOPIC`, not `重试`; one ` alone stays")
    assert "<b>What does <code>a &lt; b</code> hold?</b>" in said.html()
    assert "<code>RETRY_TOPIC</code>, not <code>重试</code>; one ` alone stays" in said.html()
    assert "`a < b`" in said.text()
