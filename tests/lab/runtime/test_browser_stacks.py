"""The stacks of a browser do what greenlet does: stories, kills and steps leave the same journals."""

from __future__ import annotations

import os
import subprocess
import sys
import types
from collections.abc import Callable
from pathlib import Path
from typing import Any

import greenlet
import pytest

from tests.lab.runtime.in_a_browser import digests

ROOT = Path(__file__).parents[3]


def played(*arguments: str) -> list[str]:
    command = [sys.executable, "-m", "tests.lab.runtime.in_a_browser", *arguments]
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    run = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=300, check=False)
    assert (run.returncode, run.stderr) == (0, "")
    return run.stdout.splitlines()


def test_stories_and_every_crash_leave_the_same_journals() -> None:
    here = digests()
    assert sum(line.startswith("line ") for line in here) >= 5
    assert played("pretend") == here


def in_turn(stacks: Any) -> list[Any]:
    """What is brought from stack to stack, with values, errors, an end in the middle and a parent that has ended."""
    seen: list[Any] = []

    def child(*values: Any) -> str:
        seen.append(("began", values))
        seen.append(("back", main.switch("one")))
        try:
            main.switch("two")
        except ValueError as error:
            seen.append(("thrown", str(error)))
        return "end"

    def fails() -> None:
        raise KeyError("why")

    main = stacks.current_stack()
    stack = stacks.Stack(child)
    seen += [bool(stack), stack.switch(1, 2), bool(stack), stack.switch(3), stack.throw(ValueError("x"))]
    seen += [stack.dead, bool(stack), stack.switch("to the parent"), main.switch(4, 5)]
    for act in (stacks.Stack(fails).switch, lambda: stacks.Stack(fails).throw(NodeGone("now")), stack.throw):
        try:
            seen.append(type(act()).__name__.replace("Greenlet", "Stack"))
        except (KeyError, NodeGone) as error:
            seen.append(repr(error))
    middle = stacks.Stack(lambda: stacks.Stack(lambda: "inner", None).switch())
    seen.append(middle.switch())
    parked = stacks.Stack(lambda: main.switch("parked"))
    seen += [parked.switch(), type(parked.throw()).__name__.replace("Greenlet", "Stack"), parked.dead]
    seen.append(stacks.current_stack() is main)
    return seen


class NodeGone(Exception):
    """Thrown at a stack that has not begun."""


def print_in_turn() -> None:
    from tests.lab.runtime.in_a_browser import pretend

    pretend()
    from mqlab.lab.runtime import stacks

    print(in_turn(stacks))


def traced(stacks: Any) -> list[tuple[str, str]]:
    """The functions whose lines a tracer sees that was set on one stack, and goes on to the next."""
    names: list[tuple[str, str]] = []

    def trace(frame: types.FrameType, event: str, argument: object) -> Callable[..., Any] | None:
        if frame.f_code.co_filename == __file__ and event == "call":
            names.append((event, frame.f_code.co_name))
        return None

    def inner() -> None:
        main.switch()
        again()

    def again() -> None:
        pass

    main = stacks.current_stack()
    stack = stacks.Stack(inner)
    stack.switch()
    sys.settrace(trace)
    again()
    stack.switch()
    sys.settrace(None)
    again()
    return names


def in_process(function: str) -> str:
    code = f"import tests.lab.runtime.test_browser_stacks as t; t.{function}()"
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    run = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, env=environment, capture_output=True, text=True, timeout=60, check=True
    )
    return run.stdout.strip()


def test_values_errors_and_ends_go_from_stack_to_stack_as_with_greenlet() -> None:
    theirs = types.SimpleNamespace(Stack=greenlet.greenlet, current_stack=greenlet.getcurrent)
    expected = in_turn(theirs)
    assert ("thrown", "x") in expected and "KeyError('why')" in expected
    assert in_process("print_in_turn") == repr(expected)


def print_traced() -> None:
    from tests.lab.runtime.in_a_browser import pretend

    pretend()
    from mqlab.lab.runtime import stacks

    print(traced(stacks))


def test_a_tracer_goes_with_the_switch() -> None:
    assert in_process("print_traced") == repr([("call", "again"), ("call", "again")])


def test_a_browser_without_stacks_is_no_reason_to_load_pyodide_here() -> None:
    from mqlab.lab.runtime import stacks

    assert stacks.Stack is greenlet.greenlet
    with pytest.raises(ImportError):
        __import__("pyodide")
