"""What a notebook shows of a failed check: no red box, the first lines of show_me, and room for two buttons."""

from __future__ import annotations

from typing import Any

import nbformat
import pytest
from markupsafe import escape
from nbclient import NotebookClient
from nbclient.exceptions import CellExecutionError

from mqlab import play
from mqlab.course import CheckFailed, check, hint
from mqlab.course.teach.exercises import Finding
from mqlab.course.teach.first_look import LINES, FirstLook, answer_to
from mqlab.course.teach.said import Said
from mqlab.course.teach.showing import Failed, failed_of
from tests.course.teach.test_showing import two_messages

WRONG = "def schedule(levels, max_reconsume_times):\n    return [(1, 1)] * 9"
BEGUN = "from mqlab.course import check, hint, show_me"


def run(*sources: str, allow_errors: bool = True) -> list[Any]:
    cells = [nbformat.v4.new_code_cell(source) for source in sources]
    notebook = nbformat.v4.new_notebook(cells=cells)
    NotebookClient(notebook, timeout=120, kernel_name="python3", allow_errors=allow_errors).execute()
    return list(notebook.cells)


def test_a_failed_check_is_shown_without_a_red_box_and_stops_run_all() -> None:
    *_, failed, wrong = run(BEGUN, WRONG, 'check("lab07.schedule")', 'hint("lab07.schedule", 9)')
    assert [output.output_type for output in failed.outputs] == ["display_data"]
    data = failed.outputs[0].data
    assert data["text/plain"].startswith("✗ lab07.schedule: ")
    assert "data-mqlab-place" in data["text/html"] and "expected" in data["text/html"]
    assert [output.output_type for output in wrong.outputs] == ["display_data"]
    assert "hints 1 to 3" in wrong.outputs[0].data["text/plain"]
    with pytest.raises(CellExecutionError):
        run(BEGUN, WRONG, 'check("lab07.schedule")', allow_errors=False)


def test_other_errors_are_what_they_were() -> None:
    (cell,) = run(f"{BEGUN}\n1 / 0")
    assert cell.outputs[0].output_type == "error" and cell.outputs[0].ename == "ZeroDivisionError"


def failed_schedule() -> Failed:
    with pytest.raises(CheckFailed) as failed:
        check("lab07.schedule", {"schedule": lambda levels, max_reconsume_times: [(1, 1)]})
    assert failed.value.exercise_id == "lab07.schedule"
    found = failed_of("lab07.schedule")
    assert found is not None
    return found


def test_the_first_lines_are_those_of_show_me() -> None:
    failed = failed_schedule()
    look = FirstLook(failed.said, failed)
    assert look.text() == failed.said.text()
    html = str(look.html())
    assert failed.finding is not None and str(escape(failed.finding.first_wrong)) in html
    assert "schedule(levels=" in html and ">expected</th>" in html and ">found</th>" in html
    assert html.count("≠") + html.count('aria-label="same"') <= LINES + 1
    assert "helps." in html  # what to call, where no buttons are


def test_an_error_of_the_answer_shows_where_it_was_raised() -> None:
    said = Said(
        "bad", "labxx.double: your code raised an exception", [("raised", "ValueError: <no>"), ("at", "line 3")]
    )
    html = str(FirstLook(said).html())
    assert "ValueError: &lt;no&gt;" in html and "line 3" in html and "expected" not in html


def test_the_buttons_bring_the_hints_in_turn_and_the_whole_failure() -> None:
    failed = failed_schedule()
    assert "hint 1 of 3" in answer_to("hint", "lab07.schedule", failed)
    second = answer_to("hint", "lab07.schedule", failed)
    assert "hint 2 of 3" in second and "Press <em>Hint</em> again" in second
    assert "hint 3 of 3" in hint("lab07.schedule").text()
    assert answer_to("show_me", "lab07.schedule", failed) == failed.html()


def test_a_world_is_shown_by_its_last_moments() -> None:
    lab = play(two_messages, seed=4)
    stored = [record.step for record, _ in lab.journal.changes("message.stored")]
    finding = Finding("Nothing is lost", "the second", 2, 1, step=stored[1], lab=lab)
    said = Said("bad", "lab03.twins: twice", [("first wrong", finding.first_wrong)])
    failed = Failed(said, None, finding)
    html = str(FirstLook(said, failed).html())
    assert "<svg" in html and "Timeline: " in html
    assert "Run <code>show_me(" in answer_to("show_me", "lab03.twins", failed)
