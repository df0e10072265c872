"""A local is called by the noun of what it holds, not by a word that fits anything."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.tidy.sources import Module, assert_none, modules, parse

FIT_ANYTHING = {"one", "each", "found", "told", "made", "given", "at", "place"}
PROMISED = {  # parameters that callers write by name
    ("mqlab.course.teach.exercises", "given"),  # Call(given=…)
    ("mqlab.course.widgets.boards.allocation.board", "told"),  # board.play(told=False), as HandoverSettings has it
}
FUNCTIONS = ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda
COMPREHENSIONS = ast.ListComp | ast.SetComp | ast.DictComp | ast.GeneratorExp


def locals_of(node: ast.AST, inside: bool = False) -> Iterator[tuple[str, int, ast.arguments | None]]:
    """What functions and comprehensions bind: name, line, and the parameters among which it is one."""
    for child in ast.iter_child_nodes(node):
        opens = isinstance(child, FUNCTIONS | COMPREHENSIONS)
        if isinstance(child, FUNCTIONS):
            listed = child.args
            starred = [arg for arg in (listed.vararg, listed.kwarg) if arg is not None]
            for arg in (*listed.posonlyargs, *listed.args, *listed.kwonlyargs, *starred):
                yield arg.arg, arg.lineno, listed
        if inside and (name := bound_by(child)):
            yield name, child.lineno, None  # type: ignore[attr-defined]
        yield from locals_of(child, opens or (inside and not isinstance(child, ast.ClassDef)))


def bound_by(node: ast.AST) -> str:
    """The name that a node binds where it stands, or ""."""
    if isinstance(node, ast.Name):
        return node.id if isinstance(node.ctx, ast.Store) else ""
    if isinstance(node, ast.FunctionDef | ast.ExceptHandler | ast.MatchAs | ast.MatchStar):
        return node.name or ""
    return ""


def names_that_fit_anything(module: Module) -> Iterator[str]:
    """Such locals, but for a moment or position ``at`` as a parameter, and ``found`` beside ``expected``."""
    for name, line, parameters in locals_of(module.tree):
        if name not in FIT_ANYTHING:
            continue
        if parameters is not None:
            beside = {arg.arg for arg in (*parameters.args, *parameters.kwonlyargs)}
            if name == "at" or (name == "found" and "expected" in beside) or (module.name, name) in PROMISED:
                continue
        yield f"{module.at(line)}: {name}"


def test_locals_are_called_by_the_noun_of_the_thing() -> None:
    assert_none(line for module in modules() for line in names_that_fit_anything(module))


def test_every_promised_parameter_is_still_there() -> None:
    named = {
        (module.name, name)
        for module in modules()
        if module.name in {promised for promised, _ in PROMISED}
        for name, _, parameters in locals_of(module.tree)
        if parameters is not None
    }
    assert named >= PROMISED


@pytest.mark.parametrize(
    ("source", "refused"),
    [
        ("def f(rows):\n    for one in rows: pass", True),
        ("names = [each.name for each in rows]", True),
        ("def f(): found = 1", True),
        ("def f():\n    if (found := look()): pass", True),
        ("def f():\n    at, end = 0, 1", True),
        ("def f(given): pass", True),
        ("def f(*given): pass", True),
        ("rows.sort(key=lambda one: one.name)", True),
        ("def f():\n    def place(): pass", True),
        ("def f():\n    with look() as found: pass", True),
        ("def send(message, at): pass", False),
        ("def wrong(expected, found): pass", False),
        ("def right(found): pass", True),
        ("class Finding:\n    found: object\n    place: str = ''", False),
        ("def f():\n    class Finding:\n        found = 1", False),
        ("def f(row): return row.found, row.place, look(at=1)", False),
    ],
)
def test_the_rule_sees_what_it_should(source: str, refused: bool) -> None:
    assert bool(list(names_that_fit_anything(parse("mqlab.tried", Path(__file__), source)))) is refused
