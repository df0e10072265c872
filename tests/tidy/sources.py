"""The package's own source, parsed once, for the tests that hold the house in order."""

from __future__ import annotations

import ast
import functools
import gc
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "mqlab"


@dataclass(frozen=True)
class Module:
    """One file of the package: ``name`` is dotted, ``wing`` and ``room`` are where it stands (see ``room_of``)."""

    name: str
    path: Path
    text: str
    tree: ast.Module

    @property
    def room(self) -> str:
        return room_of(self.name)

    @property
    def wing(self) -> str:
        return self.room.partition(".")[0]

    @property
    def is_package(self) -> bool:
        return self.path.name == "__init__.py"

    def at(self, line: int) -> str:
        return f"{self.path.relative_to(ROOT)}:{line}"


@dataclass(frozen=True)
class Import:
    """One imported module. ``lazy``: inside a function or under TYPE_CHECKING, so not run when the module loads."""

    target: str
    line: int
    lazy: bool


WINGS = ("rocketmq", "lab", "cluster", "data", "course")


def room_of(name: str) -> str:
    """The room of a dotted name: "rocketmq.store", or the wing for its own file, "errors", "cli"; "" for mqlab itself.

    >>> room_of("mqlab.rocketmq.store.flush"), room_of("mqlab.lab"), room_of("mqlab.cli.lab"), room_of("mqlab")
    ('rocketmq.store', 'lab', 'cli', '')
    """
    parts = name.split(".")[1:]
    return ".".join(parts[:2] if parts and parts[0] in WINGS else parts[:1])


def assert_none(objections: Iterable[str]) -> None:
    """Fail with all objections, one a line."""
    lines = list(objections)
    assert not lines, "\n" + "\n".join(lines)


def parse(name: str, path: Path, text: str) -> Module:
    return Module(name, path, text, ast.parse(text, filename=str(path)))


@functools.cache
def modules() -> tuple[Module, ...]:
    return modules_of(PACKAGE)


def modules_of(package: Path) -> tuple[Module, ...]:
    """Every file of a package, parsed; of this one, see ``modules``."""
    gc.disable()  # looking for garbage among the millions of nodes took four fifths of the time, and there is none
    try:
        return tuple(parse(name, path, text) for name, path, text in texts_of(package))
    finally:
        gc.enable()


def texts_of(package: Path) -> Iterator[tuple[str, Path, str]]:
    """The dotted name, the path and the text of every file of a package."""
    for path in sorted(package.rglob("*.py")):
        parts = path.relative_to(package.parent).with_suffix("").parts
        yield ".".join(parts[:-1] if parts[-1] == "__init__" else parts), path, path.read_text("utf-8")


def in_rooms(rooms: frozenset[str]) -> list[Module]:
    return [module for module in modules() if module.room in rooms]


def imports(module: Module) -> Iterator[Import]:
    """Every import with what it loads: ``from mqlab import wire`` counts as mqlab.rocketmq.wire."""
    yield from _imports_in(module.tree, module, lazy=False)


def _imports_in(node: ast.AST, module: Module, *, lazy: bool) -> Iterator[Import]:
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.expr):  # nine of ten nodes, and no import is in one
            continue
        inside = lazy or isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef)
        if isinstance(child, ast.If) and "TYPE_CHECKING" in ast.unparse(child.test):
            inside = True
        if isinstance(child, ast.Import):
            for alias in child.names:
                yield Import(alias.name, child.lineno, lazy)
        elif isinstance(child, ast.ImportFrom):
            base = _absolute(child, module)
            if base == "mqlab":
                for alias in child.names:
                    yield Import(f"mqlab.{alias.name}", child.lineno, lazy)
            else:
                yield Import(base, child.lineno, lazy)
        else:
            yield from _imports_in(child, module, lazy=inside)


def _absolute(node: ast.ImportFrom, module: Module) -> str:
    if not node.level:
        return node.module or ""
    parents = module.name.split(".")
    kept = parents[: len(parents) - node.level + (1 if module.is_package else 0)]
    return ".".join([*kept, *([node.module] if node.module else [])])
