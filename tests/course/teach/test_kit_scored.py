"""Scored exercises: shares of several calls, values of another form, what opens the disks."""

from __future__ import annotations

from typing import Any

from mqlab.course.kit.form import NO_WORDS
from mqlab.course.kit.rows import Store
from mqlab.course.kit.scored import Scored
from mqlab.course.kit.shapes import tuple_of
from mqlab.course.teach.exercises import Call, Finding


def near(call: Call, found: Any) -> Finding | None:
    far = abs(found - call.right)
    return None if far == 0 else Finding("It is another number", call.about, call.right, found, share=0.5 / far)


def asked(returns: Any = int, **more: Any) -> Any:
    return Scored(
        "lab90.number",
        "number(day)",
        points=4,
        about="numbers",
        returns=returns,
        judges=[near],
        words=NO_WORDS,
        calls=lambda seed: [Call(day=one, right=one, about=f"day {one}") for one in (1, 2)],
        **more,
    )


def test_the_shares_of_several_calls_are_averaged_and_the_first_finding_is_told() -> None:
    finding = asked().case(1).run({"number": lambda day: day + (day == 2)})
    assert finding is not None and finding.first_wrong == "day 2" and finding.share == 0.75


def test_a_right_answer_has_no_finding() -> None:
    assert asked().case(1).run({"number": lambda day: day}) is None


def test_a_value_of_another_form_is_told_the_form() -> None:
    finding = asked().case(1).run({"number": lambda day: "two"})
    assert finding is not None and finding.rule == "number returns a whole number" and finding.share == 0.0
    finding = asked(tuple_of(since=int, until=int)).case(1).run({"number": lambda day: (1, "x")})
    assert finding is not None and "until is a whole number" in finding.rule


def test_nothing_and_a_printed_result_are_told_apart() -> None:
    silent = asked().case(1).run({"number": lambda day: None})
    loud = asked().case(1).run({"number": lambda day: print(day)})
    assert silent is not None and "returned nothing: a function" in silent.rule
    assert loud is not None and "printed its result" in loud.rule


def test_what_opens_the_disks_gets_the_answer_and_a_path() -> None:
    form = Scored(
        "lab90.size",
        "size(facts)",
        points=1,
        about="disks",
        returns=int,
        judges=[],
        opens="opened",
        words=NO_WORDS,
        calls=lambda seed: [Call(facts=Store("/disk", "the disk"), about="the disk")],
    )
    given: list[object] = []

    def opened(answer: Any, path: str) -> Any:
        given.append((type(path), path))
        return answer(len(path))

    assert form.defines == ("size", "opened")
    assert form.case(1).run({"size": lambda facts: facts, "opened": opened}) is None
    assert given == [(str, "/disk")]
