"""What a failed check shows: the call, expected and found side by side, the failing world; and more seeds."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from mqlab import Message, play
from mqlab.course import CheckFailed, check, show_me
from mqlab.course.teach import exercises, practice, showing
from mqlab.course.teach.exercises import Answers, Call, Case, Exercise, Finding, Manifest
from mqlab.course.teach.said import Said
from mqlab.course.teach.showing import go_to_step, side_by_side, world_of
from mqlab.errors import UsageError


def doubles(seed: int) -> Case:
    def run(answers: Answers) -> Finding | None:
        call = Call(numbers=[seed] * 30, deep={"bytes": bytes(40)}, right=2 * seed, about="a long one")
        try:
            found = answers["double"](*call.arguments.values())
        except Exception as error:
            error.mqlab_call = call  # type: ignore[attr-defined]
            raise
        if found == 2 * seed:
            return None
        return Finding("Double means twice", "the sum", {"sum": 2 * seed, "n": 1}, {"sum": found, "n": 1}, call=call)

    return Case(f"seed {seed}", run)


EXERCISE = Exercise("labxx.double", "Double", 2, ("double",), doubles, (1, 2, 3), ("look", "think", "2 * x"), "Well.")


@pytest.fixture(autouse=True)
def a_lab(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(exercises, "manifest", lambda lab: Manifest(lab, (), (EXERCISE,)))
    yield
    showing.remember(EXERCISE.id, None)


def failed(answer: Any, **more: int) -> CheckFailed:
    with pytest.raises(CheckFailed) as caught:
        check("labxx.double", {"double": answer}, **more)
    return caught.value


def right(numbers: list[int], deep: object) -> int:
    return 2 * numbers[0]


def test_a_failed_check_names_the_call_and_show_me_shows_it() -> None:
    said = failed(lambda numbers, deep: numbers[0]).said
    facts = dict(said.facts)
    assert facts["call"].startswith("double(numbers=[1, 1, 1") and "(30 items)" in facts["call"]
    assert facts["case"] == "seed 1 (1 of 3)" and len(facts["call"]) <= 110
    assert said.note == 'show_me("labxx.double") shows it. hint("labxx.double") helps.'
    shown = show_me("labxx.double")
    assert list(shown.arguments) == ["numbers", "deep"]  # type: ignore[attr-defined]
    assert "numbers = [1, 1, 1" in str(shown) and "≠ {'sum': 2, 'n': 1}" in str(shown)
    html = str(shown.html())
    assert '<th scope="row" style="text-align:left">numbers</th>' in html and "It was called with (a long one)" in html
    assert "0010  00 00" not in html and "… 22 more lines" in html  # short, however long the argument
    assert ">expected</th>" in html and 'aria-label="differs">≠' in html
    right_answer = right(*shown.arguments.values())  # type: ignore[attr-defined]
    assert right_answer == 2


def test_a_long_place_is_broken_and_a_short_one_is_not() -> None:
    said, place = Said("bad", "wrong"), "topic 'stock', queues [1, 3], begin_ms 1731295918248, end_ms 1731336910950"
    for first_wrong, in_one_line in (("the sum", True), (place, False)):
        html = showing.Failed(said, finding=Finding("Rule", first_wrong, 1, 2)).html()
        assert first_wrong in html.unescape()
        assert ("nowrap" in html) == in_one_line


def test_an_exception_keeps_the_arguments_with_which_it_came() -> None:
    said = failed(lambda numbers, deep: numbers[99]).said
    assert "IndexError" in dict(said.facts)["raised"] and dict(said.facts)["call"].startswith("double(numbers=")
    assert "show_me" in said.note and "deep = " in str(show_me("labxx.double"))


def test_there_is_nothing_to_show_before_a_failure_and_after_success() -> None:
    assert "no failed check" in str(show_me("labxx.double"))
    failed(lambda numbers, deep: 0)
    check("labxx.double", {"double": right})
    assert "no failed check" in str(show_me("labxx.double"))
    with pytest.raises(UsageError, match=r"labxx\.double"):
        show_me("labxx.single")


def test_long_values_are_shown_where_they_differ() -> None:
    one, other = list(range(10_000, 10_400)), list(range(10_000, 10_400))
    other[200] = 7
    rows = side_by_side(one, other)
    assert len(rows) <= showing.MAX_LINES + 2 and rows[0] == ("", "… 197 lines", "… 197 lines")
    assert [row for row in rows if row[0] == "≠"] == [("≠", " 10200,", " 7,")]
    assert side_by_side("a", "a\n")[0][0] == "≠"
    assert side_by_side(3, 3.0) == [("≠", "3", "3.0")]


def two_messages(lab: Any) -> None:
    lab.create_topic("orders", read_queue_nums=1, write_queue_nums=1)
    shop = lab.producer("shop")
    for number in range(2):
        shop.send(Message("orders", b"%d" % number))


def test_a_failing_world_opens_in_the_explorer_at_its_step() -> None:
    lab = play(two_messages, seed=4)
    stored = [record.step for record, _ in lab.journal.changes("message.stored")]
    explorer = world_of(Finding("Nothing is lost", "the second", 2, 1, step=stored[1], lab=lab))
    assert explorer.stepper.step_number == stored[1]
    assert len(list(explorer.stepper.lab.store().messages("orders"))) == 2
    go_to_step(explorer, lab, stored[1] - 1)
    assert len(list(explorer.stepper.lab.store().messages("orders"))) == 1
    assert world_of(Finding("rule", "place", 1, 2)) is None and world_of(None) is None


def test_more_seeds_that_all_hold(capsys: pytest.CaptureFixture[str]) -> None:
    said = check("labxx.double", {"double": right}, more=5)
    assert (said.state, said.headline) == ("good", "labxx.double: 5 of 5 other seeds hold")


def test_the_first_other_seed_that_does_not_hold_is_shown() -> None:
    tried: list[int] = []

    def wrong_later(numbers: list[int], deep: object) -> int:
        tried.append(numbers[0])
        return 2 * numbers[0] if len(tried) < 6 else 0

    facts = dict(failed(wrong_later, more=20).said.facts)
    assert facts["held before it"] == "2 of 20 other seeds" and facts["case"] == f"seed {tried[5]}"
    assert f"numbers = [{tried[5]}, " in str(show_me("labxx.double"))
    assert len(set(tried)) == 6 and min(tried[3:]) >= practice.FIRST_SEED


def test_public_cases_come_first() -> None:
    assert dict(failed(lambda numbers, deep: 0, more=20).said.facts)["case"] == "seed 1 (1 of 3)"


def test_more_seeds_can_be_interrupted() -> None:
    tried: list[int] = []

    def stopped(numbers: list[int], deep: object) -> int:
        tried.append(numbers[0])
        if len(tried) == 7:
            raise KeyboardInterrupt
        return 2 * numbers[0]

    said = check("labxx.double", {"double": stopped}, more=20)
    assert said.headline == "labxx.double: stopped after 3 of 20 other seeds" and said.state == "note"
