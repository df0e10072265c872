"""Where a process may die is counted where no answer reaches: hidden lines are told, and requests are places, too."""

from __future__ import annotations

import pytest

from mqlab import Lab, every_crash
from mqlab.course.grading.judging.desk import Desk
from mqlab.course.grading.judging.loaded import AnswerStopped
from tests.course.grading.test_whole_labs import crash_story, kind_of, paid

TWO_STEPS = """
    connection = lab.database("billing").connect()
    connection.execute("INSERT INTO paid VALUES (?)", (messages[0].keys,))
    connection.commit()
    connection.execute("INSERT INTO paid VALUES (?)", (messages[0].keys,))
    connection.commit()
"""
"""Not idempotent: a death between its two commits leaves three rows, one without any leaves two."""

IN_A_TEXT = f"""
TEXT = {TWO_STEPS.replace(chr(10) + "    ", chr(10))!r}
def make(lab):
    def listener(messages, context):
        exec(TEXT, {{"lab": lab, "messages": messages}})
        return "CONSUME_SUCCESS"
    return listener
"""

SWITCHED_OFF = f"""
import sys
def make(lab):
    def listener(messages, context):
        sys.settrace(None); work(lab, messages)
        return "CONSUME_SUCCESS"
    return listener
def work(lab, messages):{TWO_STEPS}
"""

NO_TRACER = f"""
import sys
sys.settrace = lambda tracer: None
def make(lab):
    def listener(messages, context):
        work(lab, messages)
        return "CONSUME_SUCCESS"
    return listener
def work(lab, messages):{TWO_STEPS}
"""


def deaths(desk: Desk, source: str, *kinds: str) -> list[Lab]:
    make = desk.load("lab.a", source, ["make"])["make"]
    return list(every_crash(crash_story(make), node="billing-1", seed=1, only=lambda point: point.kind in kinds))


def test_lines_of_a_text_that_is_executed_are_places_to_die(desk: Desk) -> None:
    where = [str(lab.crash_point) for lab in deaths(desk, IN_A_TEXT, "line")]
    assert sum("<module> line" in one for one in where) == 5


@pytest.mark.parametrize("source", [IN_A_TEXT, SWITCHED_OFF])
def test_whatever_an_answer_hides_its_requests_are_places_to_die(desk: Desk, source: str) -> None:
    runs = deaths(desk, source, "request")
    assert [kind_of(lab) for lab in runs] == ["request"] * len(runs) and len(runs) >= 6
    assert {len(paid(lab)) for lab in runs} == {2, 3, 4}  # before the first commit, between the two, after both


def test_a_listener_that_shows_no_line_is_tampered_with(desk: Desk) -> None:
    with pytest.raises(AnswerStopped, match="shows none of its lines") as stopped:
        deaths(desk, NO_TRACER, "line")
    assert stopped.value.kind == "garbled"


@pytest.mark.parametrize("listener", ["lambda messages, context: 'CONSUME_SUCCESS'", "Kind().listen"])
def test_an_honest_listener_is_not_accused(desk: Desk, listener: str) -> None:
    source = (
        "class Kind:\n    def listen(self, messages, context):\n        return 'CONSUME_SUCCESS'\n"
        f"def make(lab):\n    return {listener}\n"
    )
    assert len(deaths(desk, source, "line")) >= 1
