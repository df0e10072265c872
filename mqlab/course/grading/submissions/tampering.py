"""Parts of a submission that look like an attempt to manipulate the grading, or change what a learner must not change.

Nothing found here changes a score: scores depend only on what answers do behind the wall.

    grave      redefines check, patches mqlab or builtins, speaks over the worker's pipe, is a link to another file
    to know    edited or deleted checks, nbval markers, words such as _getframe, subprocess, /proc

A grave note makes the status "tampered"; a person decides what it means.
Students are not compared with each other.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator

from mqlab.course.grading.judging.verdict import Note
from mqlab.course.grading.submissions.lab_files import CourseLab, marked_exercise
from mqlab.course.grading.submissions.notebook_file import CellText, Notebook
from mqlab.course.grading.submissions.parts import parts_not_in

NBVAL_MARK = re.compile(r"^[ \t]*#[ \t]*(NBVAL_\w+|PYTEST_VALIDATE_IGNORE_OUTPUT)[ \t]*$", re.MULTILINE)
NBVAL_TAGS = {"nbval-skip", "nbval-ignore-output", "nbval-raises-exception", "raises-exception"}
JUDGES_NAMES = {"check", "CheckFailed"}
JUDGES_MODULES = {"mqlab", "builtins", "__builtins__", "nbval", "IPython"}
WORTH_A_LOOK = re.compile(
    r"_getframe|f_back|gc\.get_objects|get_ipython|showtraceback|input_transformers|sys\.modules|settrace"
    r"|os\._exit|os\.kill|os\.fork|subprocess|ctypes|socket\b|/proc/|mqlab\.course\.grading|mqlab\.course\.cases|solutions/"
)


def suspicions(lab: CourseLab, submission: Notebook) -> list[Note]:
    """Notes on a submission, in the order of its cells, each once."""
    notes: list[Note] = []
    # 1. What the lab itself contains is not suspicious.
    own_cells = {cell.source.strip() for cell in lab.notebook.code}
    own_tags = {(cell.id or cell.source.strip(), tag) for cell in lab.notebook.code for tag in cell.tags}
    # 2. Look at each cell that the student changed or added.
    for cell in submission.code:
        added = {tag for tag in cell.tags if (cell.id or cell.source.strip(), tag) not in own_tags}
        for tag in sorted(NBVAL_TAGS & added):
            notes.append(Note("marker", f"carries the tag {tag}, which is ignored"))
        if cell.source.strip() in own_cells:
            continue
        notes += _patches(cell)
        for mark in NBVAL_MARK.findall(cell.source):
            notes.append(Note("marker", f"carries the marker {mark}, which is ignored"))
        for word in dict.fromkeys(WORTH_A_LOOK.findall(cell.source)):
            where = marked_exercise(cell.source) or cell.grade_id or "a cell of its own"
            notes.append(Note("worth a look", f"{where} mentions {word}"))
    # 3. Look for the lab's checks in the submission.
    notes += _changed_checks(lab, submission)
    return list(dict.fromkeys(notes))


def _changed_checks(lab: CourseLab, submission: Notebook) -> Iterator[Note]:
    theirs = {cell.grade_id or cell.id: cell.source for cell in submission.code}
    sources = {cell.source.strip() for cell in submission.code}
    absent = parts_not_in(lab, submission)
    for cell in lab.notebook.code:
        if not cell.grade_id.endswith("-check") or cell.source.strip() in sources:
            continue
        if cell.part in absent:
            continue
        if cell.grade_id in theirs or cell.id in theirs:
            yield Note("check edited", f"the check cell {cell.grade_id} was changed; the lab's own was used")
        else:
            yield Note("check deleted", f"the check cell {cell.grade_id} is gone; the lab's own was used")


def _patches(cell: CellText) -> Iterator[Note]:
    try:
        tree = ast.parse(cell.source)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return
    modules = dict(_module_names(tree))
    for node in ast.walk(tree):
        for name in _defined(node):
            if name in JUDGES_NAMES:
                yield Note("redefines", f"redefines {name}; the grader uses its own", grave=True)
        for root, path in _assigned_attributes(node):
            module = modules.get(root, root)
            if module.partition(".")[0] in JUDGES_MODULES and (root in modules or root == "__builtins__"):
                yield Note("patches", f"changes {module}.{path}; only the student's own process sees that", grave=True)


def _module_names(tree: ast.AST) -> Iterable[tuple[str, str]]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                whole, first = alias.name, alias.name.partition(".")[0]
                yield (alias.asname, whole) if alias.asname else (first, first)
        elif isinstance(node, ast.ImportFrom) and node.module:
            for alias in node.names:
                yield (alias.asname or alias.name), f"{node.module}.{alias.name}"


def _defined(node: ast.AST) -> Iterator[str]:
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        yield node.name
    elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
        yield node.id
    elif isinstance(node, ast.alias) and node.asname:
        yield node.asname


def _assigned_attributes(node: ast.AST) -> Iterator[tuple[str, str]]:
    """(root name, dotted rest) of each attribute that a statement sets or deletes, setattr included."""
    if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store | ast.Del):
        root, path = _dotted(node)
        if root:
            yield root, path
    elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in ("setattr", "delattr"):
        named = node.args[1] if len(node.args) >= 2 else None
        root, path = _dotted(node.args[0]) if node.args else ("", "")
        if root and isinstance(named, ast.Constant):
            yield root, ".".join(filter(None, (path, str(named.value))))


def _dotted(node: ast.AST) -> tuple[str, str]:
    names: list[str] = []
    while isinstance(node, ast.Attribute):
        names.append(node.attr)
        node = node.value
    return (node.id, ".".join(reversed(names))) if isinstance(node, ast.Name) else ("", "")
