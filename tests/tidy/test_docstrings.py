"""Docstrings: what a module is, and a line on everything public."""

from __future__ import annotations

import ast
import functools
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.tidy.sources import Module, assert_none, modules, parse


def objections(module: Module) -> Iterator[str]:
    text = ast.get_docstring(module.tree) or ""
    if not text:
        yield f"{module.at(1)}: no docstring"
    yield from silent(module.tree, module)


@functools.cache
def documented_methods() -> dict[str, set[str]]:
    """Class name -> the methods it or a base documents, in the whole package; "Protocol" -> those of all protocols."""
    found: dict[str, set[str]] = {}
    parents: dict[str, set[str]] = {}
    for module in modules():
        for node in ast.walk(module.tree):
            if isinstance(node, ast.ClassDef):
                methods = [child for child in node.body if isinstance(child, ast.FunctionDef)]
                named = {child.name for child in methods if ast.get_docstring(child)}
                found.setdefault(node.name, set()).update(named)
                parents.setdefault(node.name, set()).update(base_names(node) - {node.name})
                if "Protocol" in base_names(node):  # what it says holds for every class that fits it
                    found.setdefault("Protocol", set()).update(child.name for child in methods)
    for _ in range(4):  # levels of inheritance
        for name, bases in parents.items():
            found[name].update(*(found.get(base, set()) for base in bases - {"Protocol"}))
    return found


def base_names(node: ast.ClassDef) -> set[str]:
    return {ast.unparse(base).partition("[")[0].split(".")[-1] for base in node.bases}


def silent(node: ast.Module | ast.ClassDef, module: Module) -> Iterator[str]:
    """Public functions and classes without a docstring. A method may rely on that of its base class or a protocol."""
    quiet = isinstance(node, ast.ClassDef) and "Protocol" in base_names(node)
    bases = base_names(node) | {"Protocol"} if isinstance(node, ast.ClassDef) else set()
    inherited = set().union(*(documented_methods().get(base, set()) for base in bases))
    for child in node.body:
        if not isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef) or child.name.startswith("_"):
            continue
        marks = {ast.unparse(decorator).split(".")[-1] for decorator in child.decorator_list}
        short = isinstance(child, ast.FunctionDef) and len(child.body) == 1  # one line says it itself
        elsewhere = quiet or child.name in inherited or marks & {"override", "setter", "overload"}
        if not (ast.get_docstring(child) or short or elsewhere):
            yield f"{module.at(child.lineno)}: {child.name} has no docstring"
        if isinstance(child, ast.ClassDef):
            yield from silent(child, module)


def test_modules_and_public_names_say_what_they_are() -> None:
    assert_none(line for module in modules() for line in objections(module))


FULL = '"""One sentence."""\n'


@pytest.mark.parametrize(
    ("source", "refused"),
    [
        ("x = 1", True),
        (FULL, False),
        (FULL + "def f(a):\n    b = a\n    return b", True),
        (FULL + "def f(a):\n    return a", False),
        (FULL + "class A:\n    pass", True),
        (FULL + 'class A:\n    """An A."""\n    def m(self):\n        b = 1\n        return b', True),
        (FULL + "def _f(a):\n    b = a\n    return b", False),
    ],
)
def test_the_rule_sees_what_it_should(source: str, refused: bool) -> None:
    assert bool(list(objections(parse("mqlab.rocketmq.store.tried", Path(__file__), source)))) is refused
