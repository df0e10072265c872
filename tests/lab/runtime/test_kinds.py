"""The table of kinds is complete: every kind that the code arms or notes is in it, and in no other words."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from mqlab.lab.runtime.kinds import CHANGE_KINDS, PERIODIC_KINDS, STEP_KINDS
from tests.tidy.sources import modules

ARMING = {"call_later": 2, "call_at": 2, "arm": 2, "Periodic": 1}  # where the kind stands among the arguments


def calls() -> Iterator[ast.Call]:
    return (node for module in modules() for node in ast.walk(module.tree) if isinstance(node, ast.Call))


def name_of(call: ast.Call) -> str:
    function = call.func
    return function.attr if isinstance(function, ast.Attribute) else getattr(function, "id", "")


def texts(node: ast.expr) -> Iterator[str]:
    for part in ast.walk(node):
        if isinstance(part, ast.Constant) and isinstance(part.value, str) and "." in part.value:
            yield part.value


def test_every_noted_kind_is_in_the_table() -> None:
    noted = {
        text for call in calls() if name_of(call) in ("note", "_note") and call.args for text in texts(call.args[0])
    }
    assert len(noted) > 50
    assert not noted - set(CHANGE_KINDS)


def test_every_armed_kind_is_in_the_table() -> None:
    armed = {
        text
        for call in calls()
        if (place := ARMING.get(name_of(call))) is not None and len(call.args) > place
        for text in texts(call.args[place])
    }
    assert len(armed) > 20
    assert not armed - set(STEP_KINDS)


def test_periodic_kinds_are_step_kinds() -> None:
    assert set(STEP_KINDS) >= PERIODIC_KINDS
