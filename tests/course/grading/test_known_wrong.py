"""Every exercise of every lab: the reference passes behind the wall, each known-wrong answer fails.

Known-wrong answers are judged in copies of this process, and each gets the verdict that it gets behind the wall: one of
each lab, and one that dies, show that here, all if long. BEHIND_THE_WALL names those that need the wall itself; of each
exercise in LONG_DAYS, one wrong answer is judged here and all if long.
"""

from __future__ import annotations

import functools
import importlib
import tempfile
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from mqlab.course.cases.lab13 import alarm as lab13_alarm
from mqlab.course.cases.lab13 import days as lab13_days
from mqlab.course.cases.lab13 import repair as lab13_repair
from mqlab.course.grading.judging.cases import hidden_seeds, judge
from mqlab.course.grading.judging.verdict import FAILED, HIDDEN, PUBLIC, RAISED, CaseResult
from mqlab.course.grading.running import kernel
from mqlab.course.grading.running.kernel import Judge
from mqlab.course.grading.sandbox.walled import Sandbox
from mqlab.course.grading.submissions.lab_files import lab_numbers, open_lab
from mqlab.course.kit import form
from mqlab.course.kit.crashing import Crashing
from mqlab.course.kit.form import Form
from mqlab.course.kit.scored import Scores
from mqlab.course.kit.values import Values
from mqlab.course.material import course_folder
from mqlab.course.teach.exercises import Call, Case, Exercise
from mqlab.errors import UsageError
from mqlab.lab.world.lab import Lab
from mqlab.lab.world.state import CrashPoint
from tests.course.grading.court import Court, OpenCourt, in_a_copy, judge_of, without_walls

COURSE = course_folder()
wrong_module = importlib.import_module("solutions.wrong")
Wrong = wrong_module.Wrong
KNOWN_WRONG = wrong_module.wrong_answers()
SPARK = ("10", "11", "12")  # in test_known_wrong_spark
LABS = [number for number in lab_numbers(COURSE) if number not in SPARK]
ALL_WRONG = [wrong for wrong in KNOWN_WRONG if wrong.exercise[3:5] in LABS]
BEHIND_THE_WALL = {
    "lab03.sticky.hash_of_python",
    "lab03.two_owners.the_first_is_killed",
    "lab07.killer.counts_in_a_global",
    "lab07.killer.counts_in_a_library",
}
"""They keep something where only a process of their own loses it, or ask what hash() gives there."""
LONG_DAYS = {
    "lab00.timeline",
    "lab02.outbox",
    "lab02.scale_in",
    "lab03.sticky",
    "lab04.once",
    "lab04.rescue",
    "lab05.poisoned",
    "lab06.detector",
    "lab06.migrate",
    "lab08.any_delay",
    "lab08.cancel_unpaid",
    "lab08.transaction",
    "lab09.brake",
    "lab09.size",
    "lab13.when",
    "lab13.whom",
    "lab13.why",
    "lab13.triage",
    "lab13.repair",
    "lab16.store",
    "lab16.groups",
    "lab16.retries",
    "lab16.handlers",
}
"""Their answers play a day of hundreds of messages, or one with each crash, or read days of thousands: a third of a
second of a processor or more.
"""
LONG_TALKS = {"lab09.brake"}
"""Its listeners wait in steps of 100 ms: twenty thousand questions through the wall, half of the work of lab 09."""
FEW_GOOD_DAYS = 2
"""So many of the six that lab 13's alarm is judged by are made, if not long."""
FEWEST_WRONG = 3
"""So many wrong answers has every exercise."""
PLACES_OF_DEATH = 6
"""Evenly spread over a day that a reference plays behind the wall."""
FIRST_OF_EACH = {wrong.exercise: wrong.id for wrong in reversed(ALL_WRONG)}
QUICKLY_JUDGED = [
    wrong
    for wrong in ALL_WRONG
    if wrong.exercise not in LONG_DAYS or wrong.id in (FIRST_OF_EACH[wrong.exercise], *BEHIND_THE_WALL)
]
DIES_AT_EACH_LINE = "lab02.outbox"
ONE_OF_EACH_LAB = [
    *{
        wrong.exercise[:5]: wrong
        for wrong in ALL_WRONG
        if wrong.id not in BEHIND_THE_WALL and wrong.exercise not in LONG_DAYS
    }.values(),
    next(wrong for wrong in ALL_WRONG if wrong.exercise == DIES_AT_EACH_LINE),
]
"""Of exercises with short days; one with crashes."""
EXERCISES = [(number, exercise.id) for number in LABS for exercise in open_lab(COURSE, number).exercises]


def made_once(make: Callable[[], list[Call]]) -> Callable[[], list[Call]]:
    """Calls that serve all wrong answers; calls are made anew where an argument counts how often it is used."""
    calls: list[Call] = []

    def made() -> list[Call]:
        found = calls or make()
        if not any(callable(value) for call in found for value in call.arguments.values()):
            calls[:] = found
        return found

    return made


def lasting(
    case_of: Callable[..., Case], asked: Form, name: str, make: Callable[[], Any], weight_of: str | None = None
) -> Case:
    """A case that makes its values once; each answer that plays in a day gets a new day."""
    return case_of(asked, name, made_once(make) if isinstance(asked, Values) else make, weight_of)


@pytest.fixture(scope="module")
def walls_with_files(
    walls: Sandbox, tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest
) -> Iterator[Sandbox]:
    """Walls behind which an answer sees the files that a case hands over, as in grading."""
    folder, before = tmp_path_factory.mktemp("handing"), tempfile.tempdir
    folder.chmod(0o755)
    for made in (lab13_days.day, lab13_days.days_of, lab13_repair.repairs, lab13_alarm.days_of):
        made.cache_clear()
    tempfile.tempdir = str(folder)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(kernel, "hidden_seeds", seeds_in_common)
        if not any(item.get_closest_marker("long") for item in request.session.items):
            patch.setattr(lab13_alarm, "GOOD_DAYS", FEW_GOOD_DAYS)
        yield replace(walls, handing=str(folder.resolve()))
    tempfile.tempdir = before


def seeds_in_common(exercise: Exercise, class_seed: str, count: int) -> list[int]:
    """Hidden seeds. Exercises whose days take seconds have them in common, so that their days are made once."""
    asked = replace(exercise, id=exercise.id[:5]) if isinstance(exercise.form, Scores) else exercise
    return hidden_seeds(asked, class_seed, count)


@pytest.fixture(scope="module")
def court_of(walls_with_files: Sandbox) -> Iterator[Callable[[Wrong, type[Court]], Any]]:
    """``court_of(wrong, kind)``: the court of its exercise. Those of one exercise are open at a time; wrong answers
    come exercise by exercise.
    """
    opened: dict[tuple[str, type[Court]], Court] = {}

    def of(wrong: Wrong, kind: type[Court]) -> Court:
        one = wrong.exercise
        if (one, kind) not in opened:
            for other in [place for place in opened if place[0] != one]:
                opened.pop(other).close()
            lab = open_lab(COURSE, one[3:5])
            asked = next(exercise for exercise in lab.exercises if exercise.id == one)
            opened[one, kind] = kind(asked, lab, walls_with_files)
        return opened[one, kind]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(form, "case_of", functools.partial(lasting, form.case_of))
        yield of
    for court in opened.values():
        court.close()


@pytest.mark.parametrize("number", LABS)
def test_the_reference_passes_hidden_cases_behind_the_wall(
    number: str, walls_with_files: Sandbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One hidden day, and where it is short, all that the lab's hidden file makes; a process that may die anywhere dies
    at a few places.

    Public days, and each place where it may die: tests/course/labs, and all if long.
    """
    seeds, places = kernel.hidden_seeds, Crashing._chosen

    def one_and_the_last(exercise: Exercise, class_seed: str, count: int) -> list[int]:
        return [*seeds(exercise, class_seed, count)[:-1][:1], seeds(exercise, class_seed, count)[-1]]

    def a_few(asked: Crashing, points: Sequence[CrashPoint], calm: Lab) -> list[CrashPoint]:
        return places(replace(asked, most=PLACES_OF_DEATH), points, calm)

    monkeypatch.setattr(kernel, "hidden_seeds", one_and_the_last)
    monkeypatch.setattr(Crashing, "_chosen", a_few)
    the_reference_passes(number, walls_with_files, (HIDDEN,), cases_of_long_days=1, without_a_wall=LONG_TALKS)


@pytest.mark.long
@pytest.mark.parametrize("number", LABS)
def test_the_reference_passes_every_case_behind_the_wall(number: str, walls_with_files: Sandbox) -> None:
    the_reference_passes(number, walls_with_files, (PUBLIC, HIDDEN))


def the_reference_passes(
    number: str,
    walls_with_files: Sandbox,
    kinds: tuple[str, ...],
    cases_of_long_days: int | None = None,
    without_a_wall: Collection[str] = (),
) -> None:
    lab, references = open_lab(COURSE, number), wrong_module.references(number)
    court = judge_of(lab, references, walls_with_files)
    for exercise in lab.exercises:
        most = cases_of_long_days if exercise.id in LONG_DAYS else None
        if exercise.id in without_a_wall:
            with without_walls():
                alone = judge_of(lab, {exercise.id: references[exercise.id]}, walls_with_files)
                cases = in_a_copy(functools.partial(results_of, alone, exercise, kinds, most))
        else:
            cases = results_of(court, exercise, kinds, most)
        assert [case for case in cases if not case.passed] == [], exercise.id
        assert {case.kind for case in cases} == set(kinds)
    court.desk.close()


def results_of(court: Judge, exercise: Exercise, kinds: tuple[str, ...], most: int | None) -> list[CaseResult]:
    court.give(exercise.id, {})
    made = {HIDDEN: court.hidden_cases, PUBLIC: Exercise.public_cases}
    return [result for kind in kinds for result in judge(made[kind](exercise)[:most], court.answers[exercise.id], kind)]


def is_told_and_lost(wrong: Wrong, results: Iterable[CaseResult]) -> bool:
    """Whether an answer was told what helps, and lost a hidden case."""
    lost = [case for case in results if case.state in (FAILED, RAISED)]
    return wrong.says in told(lost) and any(case.kind == HIDDEN for case in lost)


def told(lost: Iterable[CaseResult]) -> str:
    return "\n".join(f"{case.rule} {case.first_wrong} {case.trace}" for case in lost)


def loses(wrong: Wrong, results: Iterable[CaseResult]) -> None:
    """An answer is told what helps, loses a hidden case, and no case blames another belief."""
    lost = [case for case in results if case.state in (FAILED, RAISED)]
    assert lost, f"believing that {wrong.belief} passes"
    assert [case.belief for case in lost if case.belief not in ("", wrong.belief)] == []
    assert wrong.says in told(lost)
    assert is_told_and_lost(wrong, lost), "no hidden case is lost"


def until_lost(wrong: Wrong, results: Iterator[CaseResult]) -> list[CaseResult]:
    """The results up to the one with which an answer has lost and was told what helps."""
    found: list[CaseResult] = []
    for result in results:
        found.append(result)
        if is_told_and_lost(wrong, found):
            break
    return found


@pytest.fixture(scope="module")
def together(request: pytest.FixtureRequest) -> dict[str, list[Wrong]]:
    """Exercise -> its wrong answers that are judged in this run without walls. An exercise is taken out once."""
    found: dict[str, list[Wrong]] = {}
    for item in request.session.items:
        if getattr(item, "originalname", "") == "test_a_known_wrong_answer_loses_with_the_message_that_helps":
            wrong: Wrong = item.callspec.params["wrong"]  # type: ignore[attr-defined]
            if wrong.id not in BEHIND_THE_WALL:
                found.setdefault(wrong.exercise, []).append(wrong)
    return found


@pytest.mark.parametrize("wrong", QUICKLY_JUDGED, ids=lambda wrong: wrong.id)
def test_a_known_wrong_answer_loses_with_the_message_that_helps(
    wrong: Wrong, court_of: Callable[..., Any], together: dict[str, list[Wrong]]
) -> None:
    if wrong.id in BEHIND_THE_WALL:
        return loses(wrong, until_lost(wrong, court_of(wrong, Court).results(wrong.source())))
    court: OpenCourt = court_of(wrong, OpenCourt)
    if wrong.exercise in together:
        of_one = together.pop(wrong.exercise)
        court.begin_together([(one.source(), functools.partial(is_told_and_lost, one)) for one in of_one])
    loses(wrong, court.results_until(wrong.source(), functools.partial(is_told_and_lost, wrong)))


@pytest.mark.parametrize("wrong", ONE_OF_EACH_LAB, ids=lambda wrong: wrong.id)
def test_the_verdict_without_walls_is_the_verdict_behind_them(wrong: Wrong, court_of: Callable[..., Any]) -> None:
    walled = until_lost(wrong, court_of(wrong, Court).results(wrong.source()))
    assert (
        court_of(wrong, OpenCourt).results_until(wrong.source(), functools.partial(is_told_and_lost, wrong)) == walled
    )


@pytest.mark.long
@pytest.mark.parametrize("wrong", ALL_WRONG, ids=lambda wrong: wrong.id)
def test_no_case_of_a_known_wrong_answer_blames_another_belief(wrong: Wrong, court_of: Callable[..., Any]) -> None:
    """All cases, behind the wall; and without walls each has the same result."""
    walled = list(court_of(wrong, Court).results(wrong.source()))
    loses(wrong, walled)
    if wrong.id not in BEHIND_THE_WALL:
        assert court_of(wrong, OpenCourt).results_until(wrong.source(), lambda found: False) == walled


@pytest.mark.parametrize(("number", "exercise"), EXERCISES)
def test_every_exercise_has_at_least_three_known_wrong_answers(number: str, exercise: str) -> None:
    assert len([wrong for wrong in ALL_WRONG if wrong.exercise == exercise]) >= FEWEST_WRONG


def test_known_wrong_answers_belong_to_exercises_that_exist() -> None:
    assert {exercise for _, exercise in EXERCISES} >= LONG_DAYS
    there_are = {exercise.id for number in lab_numbers(COURSE) for exercise in open_lab(COURSE, number).exercises}
    assert {wrong.exercise for wrong in KNOWN_WRONG} <= there_are


@pytest.mark.parametrize("wrong", KNOWN_WRONG, ids=lambda wrong: wrong.id)
def test_a_known_wrong_answer_is_a_change_of_todays_reference(wrong: Wrong) -> None:
    source = wrong.source()
    compile(source, wrong.id, "exec")
    assert source != wrong_module.references(wrong.exercise[3:5])[wrong.exercise]


def test_a_change_that_does_not_fit_the_reference_any_more_is_named() -> None:
    stale = Wrong("lab01.tags", "stale", "?", "?", "-    data = tags\n+    data = None\n")
    with pytest.raises(UsageError, match=r"lab01\.tags\.stale: these lines are 0 times"):
        stale.source()


def test_a_file_of_another_form_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(wrong_module, "FOLDER", tmp_path)
    for text in ("=== a\nbelief: x\n-y\n", "=== a\nbelief: x\nsays: y\nz\n", "=== a\nbelief: x\nsays: y\n"):
        (tmp_path / "lab01.tags.diff").write_text(text, "utf-8")
        with pytest.raises(UsageError, match="cannot read"):
            wrong_module.wrong_answers("lab01.tags")


def test_hidden_seeds_follow_from_the_class_seed_and_are_not_public() -> None:
    for number in LABS:
        for exercise in open_lab(COURSE, number).exercises:
            seeds = hidden_seeds(exercise, "autumn", 5)
            assert seeds == hidden_seeds(exercise, "autumn", 5) != hidden_seeds(exercise, "spring", 5)
            assert not set(seeds) & set(exercise.public_seeds) and len(set(seeds)) == 5
