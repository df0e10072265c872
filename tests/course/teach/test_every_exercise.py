"""One test per exercise of the kit and rule: what a declaration promises is so, for every lab.

reference passes    untouched is told "not started"    each slip is told its words    forbidden names exist
a public check takes under 5 s, Spark's 30 s    (each known-wrong answer gets its words: tests/course/grading)

A Rows exercise is asked through Spark where its reference is; slips answer with rows, so they need none.
"""

from __future__ import annotations

import contextlib
import functools
import importlib
import importlib.util
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import psutil
import pytest

from mqlab.course import check
from mqlab.course.grading.submissions.lab_files import lab_numbers, open_lab
from mqlab.course.kit.crashing import Crashing
from mqlab.course.kit.rows import Tables
from mqlab.course.kit.shapes import Parts
from mqlab.course.kit.slips import PartSlip, Slip
from mqlab.course.kit.values import Values
from mqlab.course.material import course_folder
from mqlab.course.teach.exercises import Call, Case, Exercise, Finding, manifest
from tests.course.teach.check_work import passes_in_its_time
from tests.course.teach.notebook_answers import reference, starter

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

LABS = lab_numbers(course_folder())
OF_THE_KIT = [one for number in LABS for one in manifest(f"lab{number}").exercises if one.form is not None]
ASKS_SPARK = [one for one in OF_THE_KIT if getattr(one.form, "through", "")]
LABS_WITH_SPARK = {one.id[:5] for one in ASKS_SPARK}
OF_SPARKS_LABS = [one for one in OF_THE_KIT if one.id[:5] in LABS_WITH_SPARK]
"""Those of the others are judged in their solved notebooks (tests/course/labs) and behind the wall
(tests/course/grading), too."""

EXERCISES = [pytest.param(one, marks=pytest.mark.spark if one in ASKS_SPARK else ()) for one in OF_THE_KIT]
OF_VALUES = [one for one in OF_THE_KIT if isinstance(one.form, Values)]
OF_ROWS = [one for one in OF_THE_KIT if isinstance(one.form, Tables)]
BY_ID = {one.id: one for one in OF_THE_KIT}
SLIPS = [(one, slip) for one in OF_VALUES for slip in one.form.slips]
SLIPS_OF_ROWS = [(one, slip) for one in OF_ROWS for slip in one.form.slips]
FIRST_SEED = 1_000
SEEDS = 2  # days: more if long


@pytest.fixture(autouse=True)
def one_session(request: pytest.FixtureRequest) -> None:
    """An answer's rows are asked of the tests' session."""
    if request.node.get_closest_marker("spark") is not None:
        request.getfixturevalue("spark")


def failures(asked: Exercise, seeds: Sequence[int]) -> list[tuple[int, Finding]]:
    names = reference(asked.id)
    given = {name: names[name] for name in asked.defines}
    found = [(seed, asked.case(seed).run(given)) for seed in seeds]
    return [(seed, finding) for seed, finding in found if finding is not None]


@pytest.mark.parametrize(
    "asked",  # but for days of many days, and where Spark is asked, on the public days, below
    [one for one in OF_SPARKS_LABS if one not in ASKS_SPARK and not isinstance(one.form, Crashing)],
    ids=lambda asked: asked.id,
)
def test_the_reference_passes(asked: Exercise) -> None:
    assert failures(asked, range(FIRST_SEED, FIRST_SEED + SEEDS)) == []


@pytest.mark.long
@pytest.mark.parametrize("asked", EXERCISES, ids=lambda asked: asked.id)
def test_the_reference_passes_twenty_other_days(asked: Exercise) -> None:
    assert failures(asked, range(2_000, 2_020)) == []


@pytest.mark.parametrize("asked", EXERCISES, ids=lambda asked: asked.id)
def test_an_untouched_answer_is_not_started(asked: Exercise) -> None:
    said = check(asked.id, starter(asked.id))
    assert said.state == "open" and "not started" in said.headline


WITHOUT_SPARK = [
    pytest.param(one, marks=() if one in OF_SPARKS_LABS else pytest.mark.long)
    for one in OF_THE_KIT
    if one not in ASKS_SPARK
]


@pytest.mark.parametrize("asked", WITHOUT_SPARK, ids=lambda asked: asked.id)
def test_a_public_check_passes_in_its_time(asked: Exercise) -> None:
    passes_in_its_time(asked.id)


SPARK_SECONDS = 30.0


@pytest.mark.spark
@pytest.mark.usefixtures("plans_as_by_itself")
@pytest.mark.parametrize("asked", ASKS_SPARK, ids=lambda asked: asked.id)
def test_a_public_check_of_a_warm_spark_passes_in_its_time(asked: Exercise, spark: SparkSession) -> None:
    names = reference(asked.id)
    spark.range(1).count()
    before = cpu_seconds()
    assert check(asked.id, names).state == "good"
    assert cpu_seconds() - before < SPARK_SECONDS


def cpu_seconds() -> float:
    """What this process, the JVM and its Python workers have used."""
    used = 0.0
    for process in (psutil.Process(), *psutil.Process().children(recursive=True)):
        with contextlib.suppress(psutil.NoSuchProcess):
            times = process.cpu_times()
            used += times.user + times.system
    return used


@pytest.mark.parametrize("asked", EXERCISES, ids=lambda asked: asked.id)
def test_it_has_points_words_and_names_that_exist(asked: Exercise) -> None:
    assert asked.points > 0 and asked.title and len(asked.hints) == 3 and all(asked.hints) and asked.note
    for name in asked.forbids:
        assert is_there(name), f"{asked.id} forbids {name}, which does not exist"


def is_there(name: str) -> bool:
    """Whether a dotted name is a module, or something in one."""
    try:
        importlib.import_module(name)
    except ModuleNotFoundError:
        module, _, last = name.rpartition(".")
        return bool(module) and (is_there(module) if not last else hasattr(_object(module), last))
    return True


def _object(name: str) -> Any:
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError:
        module, _, last = name.rpartition(".")
        return getattr(_object(module), last, None)


def words_for(asked: Exercise, slip: Slip | PartSlip, seed: int) -> set[str]:
    """What a slip is told on the day of a seed; nothing where the day does not show it."""
    told, calls = set(), calls_of(asked.id, seed)
    for values in impostors(asked.form, slip, calls):
        if any(values(call) != call.right for call in calls):
            finding = asked.form.judge({asked.defines[0]: answering(calls, values)}, calls)
            told.add(finding.rule if finding is not None else "nothing")
    return told


def words_of_its_kind(asked: Exercise, slip: Slip | PartSlip) -> set[str]:
    return {one.says for one in asked.form.slips if one.name == slip.name}


@pytest.mark.parametrize(("asked", "slip"), SLIPS, ids=lambda one: getattr(one, "id", None) or one.name)
def test_a_slip_is_told_its_words(asked: Exercise, slip: Slip | PartSlip) -> None:
    """On one public day at least, and nothing else on the others: each misunderstanding is met in the check."""
    told = set().union(*(words_for(asked, slip, seed) for seed in asked.public_seeds))
    assert told and told <= words_of_its_kind(asked, slip)


@pytest.mark.long
@pytest.mark.parametrize(("asked", "slip"), SLIPS, ids=lambda one: getattr(one, "id", None) or one.name)
def test_a_slip_is_told_its_words_on_four_other_days(asked: Exercise, slip: Slip | PartSlip) -> None:
    told = set().union(*(words_for(asked, slip, seed) for seed in range(FIRST_SEED, FIRST_SEED + 4)))
    assert told <= words_of_its_kind(asked, slip)


@functools.cache
def calls_of(exercise_id: str, seed: int) -> list[Call]:
    """The calls of a seed, made once for all slips of an exercise."""
    return list(BY_ID[exercise_id].form.make(seed))


def impostors(form: Values, slip: Slip | PartSlip, calls: list[Call]) -> list[Callable[[Call], Any]]:
    """Answers that hold a misunderstanding: one for each of its values."""
    if isinstance(slip, Slip):
        return [lambda call, n=n: slip.values(call)[n] for n in range(len(slip.values(calls[0])))]  # type: ignore[misc]
    return [lambda call: misread(form.returns, call.right, slip, [])]


def misread(shape: Any, right: Any, slip: PartSlip, parts: list[str], name: str = "") -> Any:
    """The right value with the first part that the slip can change changed wherever it stands."""
    if isinstance(shape, Parts):
        keys = [name if shape.keyed else number for number, (name, _) in enumerate(shape.parts)]
        changed = [
            misread(one, right[key], slip, parts, part) for key, (part, one) in zip(keys, shape.parts, strict=True)
        ]
        return dict(zip(keys, changed, strict=True)) if shape.keyed else tuple(changed)
    if isinstance(shape, list):
        return [misread(shape[0], one, slip, parts, name) for one in right]
    if isinstance(shape, dict):
        return {
            key: misread(next(iter(shape.values())), one, slip, parts, name or str(key)) for key, one in right.items()
        }
    wrong = list(slip.wrong(right))
    if wrong and not parts:
        parts.append(name)
    return wrong[0] if wrong and parts == [name] else right


def answering(calls: list[Call], values: Callable[[Call], Any]) -> Callable[..., Any]:
    """A function that knows these calls."""

    def answer(*given: Any) -> Any:
        return values(next(call for call in calls if list(call.arguments.values()) == list(given)))

    return answer


@pytest.mark.parametrize(("asked", "slip"), SLIPS_OF_ROWS, ids=lambda one: getattr(one, "id", None) or one.name)
def test_a_slip_in_a_table_is_told_its_words(asked: Exercise, slip: Slip) -> None:
    """In one of the public or hidden cases: some show in stores full of exceptions alone. No other belief is blamed."""
    parameters = asked.form.signature.partition("(")[2].rstrip(")").split(", ")
    for case in (*asked.public_cases(), *hidden_cases(asked)):

        def answer(*given: Any) -> Any:
            # What is asked through may make further arguments of the first.
            return slip.values(Call(**dict(zip(parameters, given, strict=False))))[0]

        given = {asked.form.name: answer, asked.form.through: lambda function, *given: function(*given)}
        finding = case.run(given)
        assert finding is None or finding.belief in ("", slip.belief)
        if finding is not None and finding.rule == slip.says:
            return
    pytest.fail(f"{slip.name} is never told {slip.says!r}")


def hidden_cases(asked: Exercise) -> tuple[Case, ...]:
    """The special cases beside the seeded ones, as grading loads them."""
    path = open_lab(course_folder(), asked.id[3:5]).hidden_file
    spec = importlib.util.spec_from_file_location(f"hidden_{asked.id[:5]}", str(path))
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    made = module.FROM_SEED.get(asked.id)
    return tuple(made(FIRST_SEED)) if made is not None else ()


@pytest.mark.parametrize("asked", OF_VALUES, ids=lambda asked: asked.id)
def test_nothing_returned_and_a_printed_result_are_told_apart(
    asked: Exercise, capsys: pytest.CaptureFixture[str]
) -> None:
    calls = calls_of(asked.id, asked.public_seeds[-1])
    silent = asked.form.judge({asked.defines[0]: lambda *given: None}, calls)
    talking = asked.form.judge({asked.defines[0]: answering(calls, lambda call: print(call.right))}, calls)
    if None in [call.right for call in calls]:
        return
    assert "returned nothing: a function gives its result with return" in silent.rule
    assert "printed its result" in talking.rule and str(calls[0].right) in capsys.readouterr().out
