"""No rule quotes an answer: students read the rules of hidden cases, and an answer knows what these ask."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

import mqlab.course
import mqlab.lab.parts

ROOT = Path(mqlab.course.__file__).parent
PARTS = Path(mqlab.lab.parts.__file__).parent  # lab 16's findings have the rules of broken parts
FILES = sorted(path for folder in (ROOT / "cases", ROOT / "kit", PARTS) for path in folder.rglob("*.py"))
ADDED = ast.AugAssign
MAY_STAND_IN_A_RULE = {
    "self.name",
    "self.form",
    "name",
    "what",
    "parts",
    "TRIES",
    "kind",
    "SIGNS[kind]",
    "PLACED_RULE",
    "refutation(belief)",
    "described(self.returns)",
    "described(misfit.shape)",
    "', '.join(columns)",
    "', '.join(self.columns)",
    "'a DataFrame' if self.through else 'a list of rows'",
    "misfit.path[-1]",
    "slips.little_endian.says",
    "', '.join(METHODS)",
    "', '.join(self.by)",
    "broken.part",
    "broken.rule",
}
"""Beside constants: what the exercise or the truth of its day says. ``kind`` is the true one, and a path's parts are
names of a shape. ``broken.rule`` is looked at where it is raised."""


def rules_in(tree: ast.AST) -> Iterator[ast.expr]:
    """What is bound to a name that ends in "rule", stands in the place of a Finding's rule, or is added to one."""
    for node in ast.walk(tree):
        if (
            isinstance(node, ast.Assign) and any(ast.unparse(one).lower().endswith("rule") for one in node.targets)
        ) or (isinstance(node, ast.AugAssign) and ast.unparse(node.target).lower().endswith("rule")):
            yield node.value
        elif isinstance(node, ast.FunctionDef) and node.name.lower().endswith("rule"):
            yield from (one.value for one in ast.walk(node) if isinstance(one, ast.Return) and one.value is not None)
        elif isinstance(node, ast.Call):
            if ast.unparse(node.func) == "Finding" and node.args:
                yield node.args[0]
            yield from (one.value for one in node.keywords if one.arg == "rule")


def raised_in(tree: ast.AST) -> Iterator[ast.expr]:
    """The rule of each broken part that is raised."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and ast.unparse(node.func) == "broken" and len(node.args) > 1:
            yield node.args[1]


def quoted_in(rule: ast.expr) -> Iterator[str]:
    """The expressions whose text becomes a part of a rule."""
    for node in ast.walk(rule):
        if isinstance(node, ast.FormattedValue):
            yield ast.unparse(node.value)
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "format":
            yield from map(ast.unparse, (*node.args, *(one.value for one in node.keywords)))


@pytest.mark.parametrize("path", FILES, ids=lambda path: f"{path.parent.name}/{path.name}")
def test_a_rule_has_no_text_of_an_answer(path: Path) -> None:
    tree = ast.parse(path.read_text("utf-8"))
    rules = [*rules_in(tree), *(raised_in(tree) if path.parent == PARTS else ())]
    quoted = {one for rule in rules for one in quoted_in(rule)}
    assert {one for one in quoted if not one.replace("_", "").isupper()} <= MAY_STAND_IN_A_RULE
