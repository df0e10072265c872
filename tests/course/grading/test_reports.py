"""What instructors and students read: complete, escaped, redacted as asked, the same for the same records."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from mqlab.course.grading.judging.cases import UNUSABLE
from mqlab.course.grading.judging.verdict import (
    FAILED,
    GRADED,
    HIDDEN,
    KERNEL_DIED,
    MISSING,
    NOT_JUDGED,
    NOT_STARTED,
    PASSED,
    PUBLIC,
    RAISED,
    STOPPED,
    TAMPERED,
    TIMEOUT,
    CaseResult,
    ExerciseResult,
    GradeRecord,
    Note,
    settle,
)
from mqlab.course.grading.reports import REDACTIONS, feedback, gradescope, junit, tables, write_reports
from mqlab.errors import UsageError

SECRET = {"first_wrong": "entry 2 of SECRET", "expected": "SECRET 40", "found": "SECRET 41", "trace": "SECRET line"}


def record(student: str, lab: str = "lab01", **changes: Any) -> GradeRecord:
    public = CaseResult("a clean store", PUBLIC, PASSED)
    wrong = CaseResult("a killed store", HIDDEN, FAILED, "Entry n stands at byte 20 * n", **SECRET)
    exercises = (
        ExerciseResult(f"{lab}.unit", "Decode a unit 单元", 3, PASSED, "", (public,), "def unit(): <b>&"),
        ExerciseResult(f"{lab}.queue", "Look up", 4, FAILED, wrong.rule, (public, wrong), "def queue(): ..."),
        ExerciseResult(f"{lab}.tags", "Tags", 2, NOT_STARTED, "as handed out"),
    )
    return GradeRecord(**{"student": student, "lab": lab, "status": GRADED, "exercises": exercises, **changes})


CLASS = [
    record("анна"),
    record("boris", status=TIMEOUT, reason="lab01.unit: it gave no answer within 10 s", seconds=7.5),
    record("=2+5", status=TAMPERED, reason="it lied", notes=(Note("patches", "sets builtins.sum", grave=True),)),
    record("<script>alert(1)</script>", notes=(Note("worth a look", "lab01.unit mentions _getframe"),)),
    GradeRecord(
        "李雷",
        "lab01",
        MISSING,
        "nothing was handed in",
        exercises=tuple(
            ExerciseResult(one.id, one.title, one.points, MISSING, "nothing was handed in")
            for one in record("x").exercises
        ),
    ),
]


@pytest.fixture
def out(tmp_path: Path) -> Path:
    write_reports(tmp_path, CLASS, seed="autumn", show_hidden="message")
    return tmp_path


def test_records_come_back_from_json_as_they_were() -> None:
    for one in CLASS:
        again = GradeRecord.from_json(json.loads(json.dumps(one.to_json())))
        assert again == one and again.seconds == one.seconds and again.scored == one.scored


def test_the_csv_has_a_row_a_student_and_a_column_an_exercise(out: Path) -> None:
    with open(out / "grades.csv", encoding="utf-8", newline="") as file:
        rows = {row["student"]: row for row in csv.DictReader(file)}
    assert set(rows) == {"анна", "boris", "'=2+5", "<script>alert(1)</script>", "李雷"}
    assert rows["анна"] == {
        "student": "анна",
        "status": "graded",
        "score": "3",
        "max": "9",
        "lab01.status": "graded",
        "lab01.score": "3",
        "lab01.max": "9",
        "lab01.unit": "3",
        "lab01.queue": "0",
        "lab01.tags": "0",
        "lab01.unit.max": "3",
        "lab01.queue.max": "4",
        "lab01.tags.max": "2",
        "changed_by_hand": "",
    }
    assert rows["李雷"]["status"] == "missing" and rows["李雷"]["score"] == "0"


@pytest.mark.parametrize("separator", [",", ";", "\t"])
@pytest.mark.parametrize(
    "name",
    [
        "=1+1",
        "\t=1",
        "\r=1",
        " =1",
        "＝1+1",
        "＠SUM(A1)",
        "anna;=1+1",
        'anna; "=1',
        "anna;＋1",
        "anna\n=1",
        "a\x00;\x1b=1",
        "anna\u2028=1",
        '";=1',
        "-2",
    ],
)
def test_no_name_becomes_a_formula_whatever_separates_the_cells(name: str, separator: str) -> None:
    text = tables.grades_csv([record(name), record("boris")])
    rows = list(csv.reader(text.splitlines(), delimiter=separator, quotechar='"'))
    assert len(rows) == 3
    starts = {cell.strip("\"' \t")[:1] for row in rows for cell in row if not cell.strip('" ').startswith("'")}
    assert not starts & set("=+@-＝＋－＠")
    assert all(char >= " " for line in text.splitlines() for char in line)


def test_every_cell_is_quoted() -> None:
    assert tables.csv_of([["a", 1], ['say "no"', ""]]) == '"a","1"\n"say ""no""",""\n'


def test_a_class_of_several_labs_has_one_row_a_student(tmp_path: Path) -> None:
    labs = [record("anna"), record("anna", "lab07", status=TIMEOUT), record("boris", "lab07")]
    write_reports(tmp_path, labs, seed="s", show_hidden="none")
    with open(tmp_path / "grades.csv", encoding="utf-8", newline="") as file:
        anna, boris = csv.DictReader(file)
    assert (anna["status"], anna["score"], anna["max"], anna["lab07.unit"]) == ("timeout", "6", "18", "3")
    assert (boris["lab01.status"], boris["lab01.unit"], boris["lab07.status"]) == ("", "", "graded")


def test_json_tells_all_but_sources_and_durations(out: Path) -> None:
    content = json.loads((out / "grades.json").read_text("utf-8"))
    assert content["seed"] == "autumn" and len(content["students"]) == 5
    anna = next(one for one in content["students"] if one["student"] == "анна")
    queue = anna["labs"][0]["exercises"][1]
    assert (queue["state"], queue["score"], queue["max"], queue["hidden"]) == ("failed", 0, 4, {"passed": 0, "of": 1})
    assert queue["failed"][0]["rule"] == "Entry n stands at byte 20 * n"
    assert "seconds" not in json.dumps(content) and "def unit" not in json.dumps(content)


def test_junit_is_xml_with_a_test_an_exercise(out: Path) -> None:
    suites = ElementTree.parse(out / "junit.xml").getroot().findall("testsuite")
    assert len(suites) == 5
    anna = next(suite for suite in suites if suite.get("name") == "анна lab01")
    assert (anna.get("tests"), anna.get("failures"), anna.get("skipped")) == ("3", "1", "1")
    tests = {test.get("name"): test for test in anna.findall("testcase")}
    assert tests["lab01.unit"].find("failure") is None
    failure = tests["lab01.queue"].find("failure")
    assert failure is not None and failure.get("message") == "Entry n stands at byte 20 * n"
    points = {p.get("name"): p.get("value") for p in tests["lab01.queue"].iter("property")}
    assert points == {"points": "4", "scored": "0", "state": "failed"}


def test_junit_takes_any_text(tmp_path: Path) -> None:
    nasty = "\x00\x1b[31m ]]> &amp; \ud800 \ufffe"
    case = CaseResult(nasty, PUBLIC, RAISED, nasty, trace=nasty)
    exercise = ExerciseResult("lab01.x", nasty, 1, FAILED, nasty, (case,), nasty)
    one = GradeRecord("a", "lab01", GRADED, nasty, exercises=(exercise,))
    write_reports(tmp_path, [one], seed=nasty, show_hidden="full")
    ElementTree.parse(tmp_path / "junit.xml")


@pytest.mark.parametrize("show", REDACTIONS)
def test_hidden_cases_are_told_as_far_as_was_asked(show: str) -> None:
    one = record("anna")
    texts = [feedback.page(one, show), gradescope.results(one, show)]
    for text in texts:
        assert "0 of 1 hidden cases" in text or "1 of 1 hidden cases fail" in text
        assert ("a killed store" in text) == (show != "none")
        assert ("Entry n stands at byte 20 * n" in text) == (show in ("message", "full"))
    assert ("SECRET" in texts[0]) == (show == "full")
    assert "SECRET" not in texts[1]


@pytest.mark.parametrize("kind", [PUBLIC, HIDDEN])
def test_a_page_shows_the_call_and_the_step_of_a_case(kind: str) -> None:
    case = CaseResult("a killed store", kind, FAILED, "a rule", call="queue(entries=b'SECRET')", step=1734)
    exercise = ExerciseResult("lab01.queue", "Look up", 4, FAILED, "a rule", (case,), "def queue(): ...")
    for show in REDACTIONS:
        text = feedback.page(GradeRecord("anna", "lab01", GRADED, exercises=(exercise,)), show)
        for words in ("called with", "SECRET", "at step", "1734"):
            assert (words in text) == (kind == PUBLIC or show == "full"), (show, words)


def hidden_words(state: str, rule: str, cause: str = "") -> GradeRecord:
    """One whose hidden case holds words that an answer wrote."""
    public = CaseResult("a clean store", PUBLIC, PASSED)
    case = CaseResult("a killed store", HIDDEN, state, rule, trace="SECRET line", cause=cause)
    result, reason = settle([public], [case])
    exercise = ExerciseResult("lab01.queue", "Look up", 4, result, reason, (public, case), "def queue(): ...", cause)
    status = {"died": KERNEL_DIED, "garbled": TAMPERED}.get(cause, GRADED)
    return GradeRecord("anna", "lab01", status, reason if status != GRADED else "", exercises=(exercise,))


@pytest.mark.parametrize(
    ("state", "rule", "cause", "told"),
    [
        (RAISED, "your code raised ValueError: SECRET 41", "", "your code raised an exception"),
        (RAISED, f"{UNUSABLE} (NotPlain: SECRET)", "", UNUSABLE),
        (STOPPED, "lab01.queue: its process ended with exit code SECRET", "died", "its process ended"),
        (STOPPED, "not JSON: SECRET", "garbled", "something other than an answer"),
        (NOT_JUDGED, "the case itself failed (SECRET)", "", "before it called the answer"),
    ],
)
@pytest.mark.parametrize("show", REDACTIONS)
def test_no_word_of_an_answer_is_told_of_a_hidden_case_below_full(
    show: str, state: str, rule: str, cause: str, told: str
) -> None:
    one = hidden_words(state, rule, cause)
    texts = [feedback.page(one, show), gradescope.results(one, show), junit.junit_xml([one], show)]
    for text in texts:
        assert ("SECRET" in text) == (show == "full")
        assert (told in text) or show != "message"


def test_a_hidden_cell_without_verdict_tells_nothing_of_its_error() -> None:
    public = CaseResult("a clean store", PUBLIC, PASSED)
    reason = "its hidden cell gave no result: ValueError: SECRET"
    exercise = ExerciseResult("lab01.queue", "Look up", 4, NOT_JUDGED, reason, (public,))
    one = GradeRecord("anna", "lab01", GRADED, f"lab01.queue was not judged: {reason}", exercises=(exercise,))
    for show in ("none", "name", "message"):
        assert "SECRET" not in feedback.page(one, show) + gradescope.results(one, show)


def test_an_unknown_redaction_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="none, name, message, full"):
        write_reports(tmp_path, CLASS, seed="s", show_hidden="some")


def test_public_cases_are_always_told_in_full() -> None:
    case = CaseResult("c", PUBLIC, FAILED, "the rule", "first", "1", "2")
    one = GradeRecord("a", "lab01", GRADED, exercises=(ExerciseResult("lab01.x", "X", 1, FAILED, "the rule", (case,)),))
    page = feedback.page(one, "none")
    assert all(word in page for word in ("the rule", "first", "<code>1</code>", "<code>2</code>"))


def test_gradescope_gets_its_form() -> None:
    content = json.loads(gradescope.results(record("anna"), "message"))
    assert (content["score"], content["max_score"]) == (3, 9)
    assert [(t["score"], t["max_score"], t["status"]) for t in content["tests"]] == [
        (3, 3, "passed"),
        (0, 4, "failed"),
        (0, 2, "failed"),
    ]


def test_pages_escape_what_students_wrote(out: Path) -> None:
    pages = list(out.rglob("*.html"))
    assert len(pages) == 5 + 5
    for page in pages:
        text = page.read_text("utf-8")
        assert "<script" not in text and text.startswith("<!doctype html>")
    mine = next(page for page in (out / "feedback").iterdir() if "alert" in page.name)
    assert "def unit(): &lt;b&gt;&amp;" in mine.read_text("utf-8")


def test_the_overview_links_to_every_feedback_page(out: Path) -> None:
    from urllib.parse import unquote

    text = (out / "index.html").read_text("utf-8")
    links = [unquote(part.partition('"')[0]) for part in text.split('href="')[1:]]
    assert len([link for link in links if link.startswith("feedback/")]) == 5
    assert all((out / link).is_file() for link in links)
    assert "1 tampered" in text and "autumn" in text


def test_the_heat_map_shows_what_to_talk_about(out: Path) -> None:
    rows = list(csv.reader((out / "heat_map.csv").read_text("utf-8").splitlines()))
    head, *cases = rows
    assert "李雷" not in head and "boris" in head
    killed = next(row for row in cases if row[2] == "a killed store")
    assert killed[3] == "1.00" and killed[head.index("boris")] == "failed"
    assert "Entry n stands at byte 20 * n" in (out / "heat_map.html").read_text("utf-8")


def test_the_tamper_report_names_grave_things_first(out: Path) -> None:
    rows = list(csv.reader((out / "tampering.csv").read_text("utf-8").splitlines()))
    assert rows[1:] == [
        ["'=2+5", "lab01", "yes", "grading", "it lied"],
        ["'=2+5", "lab01", "yes", "patches", "sets builtins.sum"],
        ["<script>alert(1)</script>", "lab01", "", "worth a look", "lab01.unit mentions _getframe"],
    ]


def test_the_same_records_give_the_same_bytes(out: Path, tmp_path: Path) -> None:
    again = tmp_path / "again"
    again.mkdir()
    write_reports(again, list(reversed(CLASS)), seed="autumn", show_hidden="message")
    for path in again.rglob("*"):
        if path.is_file():
            assert path.read_bytes() == (out / path.relative_to(again)).read_bytes(), path


def test_an_exercise_is_settled_by_its_worst_case() -> None:
    good, bad = CaseResult("a", PUBLIC, PASSED), CaseResult("b", HIDDEN, FAILED, "rule")
    stopped = CaseResult("c", HIDDEN, STOPPED, "no answer", cause="timeout")
    assert settle([good], [good]) == (PASSED, "")
    assert settle([good], [bad]) == (FAILED, "rule")
    assert settle([bad], [stopped]) == (STOPPED, "no answer")
    assert settle([], [])[0] == FAILED
