"""What the process of an answer lacks of mqlab, because it would answer the exercise: its code is not there.

A desk's worker is started for the names that an exercise forbids; see ``Exercise.forbids``.

    mqlab.rocketmq.wire.record.decode     a function: its module is there, and the function raises NotGiven
    mqlab.lab.inspector.IndexTable   a class: none of its methods has a body
    mqlab.rocketmq.store                  a module or package: all its files are empty, every name in them is a stand-in

Other functions of mqlab that call a forbidden one fail with it, under whatever name. Neither reading the source, nor
loading it again, nor another Python process brings the code back: the files themselves are other files. Byte code
that Python keeps of them is covered.
Copies of mqlab in other folders are hidden by mqlab.course.grading.sandbox.walled.
"""

from __future__ import annotations

import ast
import os
from collections.abc import Iterable, Mapping
from pathlib import Path

import mqlab
from mqlab.errors import UsageError

PACKAGE = Path(mqlab.__file__).resolve().parent
KEPT_DECORATORS = {"classmethod", "staticmethod", "property"}
EMPTY_MODULE = """from mqlab.course.grading.sandbox.not_given import stand_in

def __getattr__(name):
    return stand_in({module!r}, name)
"""


def withhold(forbids: Iterable[str], folder: Path) -> dict[Path, Path]:
    """Write the files to put in place of mqlab's own: (a file or folder of mqlab, what stands in for it).

    UsageError for a name that mqlab does not have.
    """
    shown: dict[Path, Path] = {}
    functions: dict[Path, list[str]] = {}
    # 1. Which names are modules, and which are functions in them?
    for name in forbids:
        path, rest = _place_of(name)
        if rest:
            functions.setdefault(path, []).append(rest)
        else:
            shown[path] = _emptied(path, folder)
    # 2. Modules that stay lose some functions. What is inside an empty package is gone already.
    for path, names in functions.items():
        if any(path.is_relative_to(gone) for gone in shown):
            continue
        shown[path] = _written(folder / path.relative_to(PACKAGE), without(path.read_text("utf-8"), names))
        shown.update(dict.fromkeys(_byte_code_of(path), Path(os.devnull)))
    return shown


def _place_of(name: str) -> tuple[Path, str]:
    """The file or folder of the longest part of a dotted name that is a module, and the rest of the name."""
    parts = name.split(".")
    if parts[0] == "mqlab":
        for count in range(len(parts), 1, -1):
            path = PACKAGE.joinpath(*parts[1:count])
            rest = ".".join(parts[count:])
            if path.is_dir() and not rest:
                return path, ""
            for file in (path.with_suffix(".py"), path / "__init__.py"):
                if file.is_file():
                    return file, rest
    raise UsageError(
        f"{name!r} is not a name of mqlab", hint='forbid names such as "mqlab.rocketmq.wire.record.decode"'
    )


def _byte_code_of(source: Path) -> list[Path]:
    return sorted((source.parent / "__pycache__").glob(f"{source.stem}.*.pyc"))


def _emptied(path: Path, folder: Path) -> Path:
    """The same files without content. An empty package has all its modules, so that they can be imported."""
    for file in sorted(path.rglob("*.py")) if path.is_dir() else [path]:
        inside = file.relative_to(PACKAGE)
        parts = ("mqlab", *inside.with_suffix("").parts)
        module = ".".join(parts[:-1] if inside.name == "__init__.py" else parts)
        _written(folder / inside, EMPTY_MODULE.format(module=module))
    return folder / path.relative_to(PACKAGE)


def _written(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, "utf-8")
    # The worker is another user if the judge is root.
    path.parent.chmod(0o755)
    path.chmod(0o644)
    return path


def without(source: str, names: Iterable[str]) -> str:
    """A module's text in which some functions, methods and classes have no body. UsageError if one is not there.

    >>> print(without("def one(): return 1\\ndef two(): return 2", ["two"]))
    def one():
        return 1
    <BLANKLINE>
    def two():
        raise __import__('mqlab.errors', fromlist=['errors']).NotGiven(__name__ + '.two')
    """
    tree = ast.parse(source)
    for name in names:
        node: ast.AST = tree
        for part in name.split("."):
            definitions = [
                child
                for child in ast.walk(node)
                if isinstance(child, ast.FunctionDef | ast.ClassDef) and child.name == part and child is not node
            ]
            if not definitions:
                raise UsageError(f"there is no function or class {name!r} in that module")
            node = definitions[0]
        _empty(node, name)
    return ast.unparse(tree)


def _empty(node: ast.AST, name: str) -> None:
    refuse = f"raise __import__('mqlab.errors', fromlist=['errors']).NotGiven(__name__ + '.{name}')"
    if isinstance(node, ast.FunctionDef):
        node.body = ast.parse(refuse).body
        # Others, such as lru_cache, would see a function that they do not expect.
        node.decorator_list = [
            decorator
            for decorator in node.decorator_list
            if isinstance(decorator, ast.Name) and decorator.id in KEPT_DECORATORS
        ]
        return
    assert isinstance(node, ast.ClassDef)
    for child in node.body:
        if isinstance(child, ast.FunctionDef):
            _empty(child, name)
    node.body += ast.parse(f"def __new__(cls, *args, **kwargs):\n    {refuse}").body


def copied_without(shown: Mapping[Path, Path], folder: Path) -> Path:
    """A folder with a package mqlab of links to its files, but with those of ``shown`` in place of their originals.

    For a process without walls, which finds the originals when it looks for them.
    """
    _link(PACKAGE, folder / "mqlab", {path: file for path, file in shown.items() if file != Path(os.devnull)})
    return folder


def _link(original: Path, link: Path, shown: Mapping[Path, Path]) -> None:
    if original in shown:
        link.symlink_to(shown[original])
    elif not any(path.is_relative_to(original) for path in shown):
        link.symlink_to(original)
    else:
        link.mkdir(parents=True)
        for entry in original.iterdir():
            if entry.name != "__pycache__":
                _link(entry, link / entry.name, shown)
