"""Lab 07: the reference passes on days it has not seen; what the cases call right is what RocketMQ's tables say."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from mqlab import RECONSUME_LATER
from mqlab.course import CheckFailed, check
from mqlab.course.cases.lab07 import bank, days, redrive
from mqlab.course.teach.exercises import Exercise, Finding, manifest
from mqlab.rocketmq.wire import names
from tests.course.labs.notebooks import ROOT, read, texts
from tests.course.teach.seeds import first_of

SOLUTIONS = [ROOT / "solutions" / f"{name}.ipynb" for name in ("07a-failure-takes-time", "07b-stop-in-time")]
EXERCISES = manifest("lab07").exercises
OTHER_SEEDS = range(100, 104)
DEFAULT_SECONDS = [10, 40, 100, 220, 400, 640, 940, 1300, 1720, 2200, 2740, 3340, 4540, 6340, 9940, 17140]


@pytest.fixture(scope="module")
def reference() -> dict[str, Any]:
    """The names that the solution's answer cells define, with the lab's imports and set-up."""
    found: dict[str, Any] = {}
    for cell in (cell for path in SOLUTIONS for cell in read(path).cells):
        is_set_up = "setup" in cell.metadata.get("tags", ())
        if cell.cell_type == "code" and (is_set_up or cell.source.startswith(("from mqlab import", "# exercise: "))):
            exec(compile(cell.source, "<a cell of lab 07>", "exec"), found)
    return found


@pytest.fixture(scope="module")
def hidden() -> ModuleType:
    spec = importlib.util.spec_from_file_location("hidden_lab07", ROOT / "solutions" / "grading" / "lab07.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def exercise(name: str) -> Exercise:
    return next(one for one in EXERCISES if one.id == f"lab07.{name}")


@pytest.mark.long
@pytest.mark.parametrize("exercise", EXERCISES, ids=lambda exercise: exercise.id)
def test_the_reference_passes_on_days_it_has_not_seen(
    exercise: Exercise, reference: dict[str, Any], hidden: ModuleType
) -> None:
    assert check(exercise.id, reference).state == "good"
    from_seed = hidden.FROM_SEED.get(exercise.id, lambda seed: ())(7)
    for case in [*map(exercise.case, OTHER_SEEDS), *from_seed]:
        assert case.run(reference) is None, case.name


@pytest.mark.parametrize(("name", "answer"), [("rewrite", "give_back"), ("schedule", "schedule")])
def test_an_answer_of_the_wrong_kind_is_told_what_to_return(name: str, answer: str) -> None:
    found = exercise(name).case(1).run({answer: lambda *_: 3.5})
    assert isinstance(found, Finding)
    assert found.rule.startswith(f"{answer} returns")


def test_the_default_schedule_is_the_one_of_rocketmq() -> None:
    plan = days.retry_plan(0)[0]
    assert plan.right == list(zip(range(3, 19), DEFAULT_SECONDS, strict=True))


def test_a_table_shorter_than_the_first_level_and_no_retry_at_all() -> None:
    assert days.planned("2s 9s", 3).right == [(2, 9), (2, 18), (2, 27)]
    assert days.planned("2s 9s", 0).right == []


@pytest.mark.parametrize("seed", range(4))
def test_a_plan_has_days_and_more_than_sixteen_retries(seed: int) -> None:
    plans = days.retry_plan(seed)
    assert any("d" in plan["levels"] and plan.right[-1][1] > 86_400 for plan in plans)
    assert any(len(plan.right) > 16 for plan in plans)


@pytest.mark.parametrize("seed", range(4))
def test_messages_given_back_are_of_every_kind(seed: int) -> None:
    cases = days.sent_back(seed)
    went = {(case.right[0], case["delay_level"] < 0) for case in cases}
    assert went == {(names.SCHEDULE_TOPIC, False), (days.DEAD, False), (days.DEAD, True)}
    assert any(case["delay_level"] == 99 and case.right[1] == 17 for case in cases)
    assert {case["message"].topic for case in cases} == {"orders", days.RETRY}
    assert all(case.right[3]["UNIQ_KEY"] == case["message"].msg_id for case in cases)
    assert any(case.right[0] == days.DEAD and case["delay_level"] > 0 for case in cases)


@pytest.mark.parametrize("seed", first_of(0, 1, 2, 3))
def test_dead_letters_are_of_three_kinds(seed: int) -> None:
    day = redrive.day(seed).play({"redrive": lambda dead, producer, group: None}, seed)
    ids = [letter.msg_id for letter in day.dead]
    assert len(set(ids)) < len(ids)
    orderly = [letter for letter in day.dead if "RECONSUME_TIME" in letter.properties]
    assert len(orderly) == 4 and len(day.dead) > 8
    assert {letter.topic for letter in day.dead} == {names.dlq_topic(day.group)}


@pytest.mark.parametrize("seed", first_of(0, 1, 2, 3))
def test_dead_letters_share_keys_and_bodies_and_came_from_two_topics(seed: int) -> None:
    day = redrive.day(seed).play({"redrive": lambda dead, producer, group: None}, seed)
    letters = {letter.msg_id: letter for letter in day.dead}.values()
    assert len({letter.keys for letter in letters}) < len(letters) > len({letter.body for letter in letters})
    assert {letter.properties["RETRY_TOPIC"] for letter in letters} == {"orders", "refunds"}


def test_an_untouched_order_is_seen_even_if_nothing_is_given_back() -> None:
    found = exercise("redrive").case(1).run({"redrive": lambda dead, producer, group: None})
    assert isinstance(found, Finding) and found.rule == "Every message among the dead letters is given back"
    assert (found.expected, found.found) == (1, 0)


def test_an_order_that_kills_is_met_seven_times_by_who_does_nothing(reference: dict[str, Any]) -> None:
    source = "def never_again(lab):\n    def listener(messages, context):\n        ask_bank(messages[0], context)\n"
    known = {name: reference[name] for name in ("ask_bank", "BankError")}
    exec(source + "        return 'CONSUME_SUCCESS'\n    return listener\n", known)
    day = bank.killer(1).play(known, 1)
    killer = next(msg_id for msg_id, order in day.sent.items() if order.bank == bank.KILLER)
    rows = [row for row in day.deliveries("billing") if row.msg_id == killer]
    assert [row.reconsume_times for row in rows[:7]] == [0] * 7
    assert [row.status for row in rows[:6]] == ["RUNNING"] * 6 and len(day.deaths_ms) == 8


def test_what_a_listener_raised_is_told_with_its_order(reference: dict[str, Any]) -> None:
    def three_times(lab: Any) -> Any:
        return lambda messages, context: undefined_name  # type: ignore[name-defined]  # noqa: F821

    with pytest.raises(CheckFailed) as failed:
        check("lab07.three", {"three_times": three_times})
    told = str(failed.value)
    assert "counts as RECONSUME_LATER" in told and "NameError" in told and "order-0, reconsume_times 0" in told
    assert "of <lambda>: return lambda messages, context: undefined_name" in told


def test_the_first_wrong_delivery_is_shown(reference: dict[str, Any]) -> None:
    def pay(messages: Any, context: Any) -> str:
        reference["ask_bank"](messages[0], context)
        return "CONSUME_SUCCESS"

    with pytest.raises(CheckFailed) as failed:
        check("lab07.stuck", {"pay": pay})
    told = str(failed.value)
    assert "A message without a result holds the offset of its queue" in told
    assert "still running when billing was killed" in told and "orders paid twice" in told


def test_reading_what_the_bank_will_do_gains_nothing(reference: dict[str, Any]) -> None:
    def pay(messages: Any, context: Any) -> str:
        words = messages[0].properties["bank"].split()
        if words[min(messages[0].reconsume_times, len(words) - 1)] == "hang":
            return RECONSUME_LATER
        return "CONSUME_SUCCESS"

    found = exercise("stuck").case(100).run({"pay": pay})
    assert isinstance(found, Finding) and found.rule.startswith("CONSUME_SUCCESS means that the order is done")


def test_every_belief_of_the_meeting_is_met_by_what_happened() -> None:
    """The solution's reveals are what the run did; the five beliefs predict something else."""
    believed = {
        "lab07.first_retry": "1",
        "lab07.retry_topic": "%RETRY%billing",
        "lab07.minutes": "286",
        "lab07.third": "3",
        "lab07.no_status": "at once",
    }
    cells = [cell for path in SOLUTIONS for cell in read(path).cells if cell.cell_type == "code"]
    shown = [texts(cell) for cell in cells if "reveal(" in cell.source]
    for question in manifest("lab07").predictions:
        told = next(text for text in shown if question.question in text)
        line = next(line for line in told.splitlines() if "it happened" in line)
        happened = line.removeprefix("  it happened").partition(":")[0].strip()
        assert "✓ " + question.question in told
        if question.id in believed:
            belief = believed[question.id]
            assert question.problem_with(belief) == ""
            assert belief != happened


def test_a_wrong_answer_file_exists_for_each_exercise_and_none_is_empty() -> None:
    folder = Path(ROOT, "solutions", "grading", "wrong")
    files = {path.stem: path.read_text("utf-8") for path in folder.glob("lab07.*.diff")}
    assert set(files) == {one.id for one in EXERCISES}
    assert all("\n=== " in text for text in files.values())


@pytest.mark.parametrize(
    ("name", "answer", "source", "words"),
    [
        (
            "stuck",
            "pay",
            "def pay(messages, context):\n    ask_bank(messages[0], context, 3000)",
            "Returning nothing sends the order back",
        ),
        (
            "stuck",
            "pay",
            "def pay(messages, context):\n    return 'SUCCESS'",
            "anything else counts as RECONSUME_LATER",
        ),
        (
            "three",
            "three_times",
            "def three_times(lab):\n    lab.database('billing')",
            "three_times returns a listener",
        ),
        (
            "redrive",
            "redrive",
            "def redrive(dead, producer, group):\n    producer.send(dead[0])",
            "no group reads %DLQ%group",
        ),
    ],
)
def test_a_slip_of_the_pen_is_told_for_what_it_is(
    name: str, answer: str, source: str, words: str, reference: dict[str, Any]
) -> None:
    known = {given: reference[given] for given in ("ask_bank", "BankError")}
    exec(source, known)
    with pytest.raises(CheckFailed) as failed:
        check(f"lab07.{name}", {answer: known[answer]})
    assert words in str(failed.value)


def test_what_is_not_committed_is_told_so(reference: dict[str, Any]) -> None:
    source = """
def three_times(lab):
    def inner(messages, context):
        try:
            ask_bank(messages[0], context)
        except BankError:
            if messages[0].reconsume_times < 2:
                return "RECONSUME_LATER"
            row = (messages[0].msg_id, messages[0].body)
            lab.database("billing").connect().execute("INSERT OR IGNORE INTO for_a_human VALUES (?, ?)", row)
        return "CONSUME_SUCCESS"
    return inner
"""
    known = {given: reference[given] for given in ("ask_bank", "BankError")}
    exec(source, known)
    with pytest.raises(CheckFailed) as failed:
        check("lab07.three", {"three_times": known["three_times"]})
    assert "Commit what you write" in str(failed.value)


def test_where_nothing_is_stored_for_a_human_the_table_is_shown(reference: dict[str, Any]) -> None:
    with pytest.raises(CheckFailed) as failed:
        check("lab07.three", {"three_times": lambda lab: lambda messages, context: "CONSUME_SUCCESS"})
    assert "rows committed in for_a_human: none" in str(failed.value)


def test_a_count_taken_back_in_a_finally_is_right_since_a_dead_process_runs_none(reference: dict[str, Any]) -> None:
    source = """
def never_again(lab):
    table = lab.database("billing").connect()
    def listener(messages, context):
        (message,) = messages
        before = table.execute("SELECT times FROM started WHERE msg_id = ?", (message.msg_id,)).fetchone() or (0,)
        if before[0] == 3:
            with table:
                table.execute("INSERT OR IGNORE INTO for_a_human VALUES (?, ?)", (message.msg_id, message.body))
            return "CONSUME_SUCCESS"
        with table:
            table.execute("INSERT OR REPLACE INTO started VALUES (?, ?)", (message.msg_id, before[0] + 1))
        try:
            ask_bank(message, context)
        finally:
            with table:
                table.execute("DELETE FROM started WHERE msg_id = ?", (message.msg_id,))
        return "CONSUME_SUCCESS"
    return listener
"""
    known = {given: reference[given] for given in ("ask_bank", "BankError")}
    exec(source, known)
    assert check("lab07.killer", {"never_again": known["never_again"]}).state == "good"
