"""Puts the answers of a submission into the lab as it was handed out, so that the notebook that runs is ours.

``mqlab grade`` and ``mqlab check`` run what this makes.

    submission's cells ─▶ whose exercise? mqlab.course.grading.submissions.claims
                          none: missing; untouched: not started
    pristine notebook  ─▶ answer cells become calls that load the source into the worker, everything else stays
                          + a first cell that opens the desk, + one last cell per exercise for the hidden cases

From the rest of a submission only imports and the functions and classes of added cells are taken, into the worker, so
that an answer finds its helpers. Outputs, tags, edited checks and edited demonstrations are never looked at.
mqlab.course.grading.running.execute runs it.
"""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Collection
from dataclasses import dataclass, field
from typing import Any

from mqlab.course.grading.judging.verdict import Note
from mqlab.course.grading.submissions.claims import Claims, same_code
from mqlab.course.grading.submissions.lab_files import CourseLab, grade_id, marked_exercise, top_level_names
from mqlab.course.grading.submissions.notebook_file import Notebook

SETUP_TAG = "setup"
ROLE = "mqlab_grading"
IMPORTS = ast.Import | ast.ImportFrom
MAKERS = {
    "namedtuple",
    "NamedTuple",
    "TypedDict",
    "NewType",
    "make_dataclass",
    "Enum",
    "IntEnum",
    "partial",
    "cache",
    "lru_cache",
}
DEFINITIONS = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef


@dataclass(frozen=True, slots=True)
class Transplant:
    """What was taken from a submission: the answers of begun exercises, and which ones are untouched or missing.

    ``set_up`` are texts to run before them: first the lab's own, then what the submission's other cells bring. Where
    the lab has parts they are the first part's, and ``later_set_up`` has those of each later part.
    """

    answers: dict[str, str]
    untouched: tuple[str, ...]
    missing: tuple[str, ...]
    set_up: tuple[str, ...]
    notes: tuple[Note, ...]
    later_set_up: dict[str, tuple[str, ...]] = field(default_factory=dict)


def transplant(lab: CourseLab, submission: Notebook) -> Transplant:
    """Find each exercise's answer in a submission."""
    claims = Claims(lab, submission)
    answers: dict[str, str] = {}
    untouched, missing, notes = [], [], []
    for answer in lab.answers:
        name = answer.exercise.id
        claim, remarks = claims.judged(answer)
        notes += remarks
        if claim is None:
            missing.append(name)
        elif same_code(claim.source, answer.cell.source):
            untouched.append(name)  # an unchanged starter is not an answer: it is not judged and not counted as wrong
        else:
            answers[name] = claim.source
    # Answers may rely on the lab's set-up, and on imports and helpers that the learner added in other cells.
    set_ups = {
        mark: _set_up(lab, mark, submission, claims.taken) for mark in dict.fromkeys(a.cell.part for a in lab.answers)
    }
    first = next(iter(set_ups), "")
    return Transplant(answers, tuple(untouched), tuple(missing), set_ups.pop(first, ()), tuple(notes), set_ups)


def _set_up(lab: CourseLab, part: str, submission: Notebook, answers: set[int]) -> tuple[str, ...]:
    """What answers of a part may rely on: what the lab gives, then what the student's notebook of that part brings."""
    own = Notebook(tuple(cell for cell in lab.notebook.cells if cell.part == part), b"")
    theirs = Notebook(tuple(cell for cell in submission.cells if cell.part in (part, "")), b"")
    brought = (_imports(theirs), _helpers(lab, theirs, answers))
    return (_own_setup(own), *(text for text in brought if text))


def _statements(source: str) -> list[ast.stmt]:
    lines = [line for line in source.splitlines() if not line.lstrip().startswith(("%", "!"))]
    try:
        body = ast.parse("\n".join(lines)).body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return []
    for statement in body:
        statement.lines = lines  # type: ignore[attr-defined]
    return body


def _text(statement: ast.stmt) -> str:
    """A statement as one or more lines that can be indented. A statement nested too deep is kept as it was written."""
    try:
        return ast.unparse(statement)
    except RecursionError:
        lines: list[str] = statement.lines  # type: ignore[attr-defined]
        first = min([statement.lineno, *(decorator.lineno for decorator in getattr(statement, "decorator_list", ()))])
        source = "\n".join(lines[first - 1 : statement.end_lineno])
        return f"exec(compile({source!r}, '<answer set-up>', 'exec', dont_inherit=True))"


def _guarded(statements: list[ast.stmt]) -> str:
    """Statements as one text, each in a ``try``: what fails here fails again, visibly, where an answer needs it."""
    parts = []
    usable = [s for s in statements if not (isinstance(s, ast.ImportFrom) and s.module == "__future__")]
    for statement in dict.fromkeys(map(_text, usable)):
        body = "\n".join(f"    {line}" for line in statement.splitlines())
        parts.append(f"try:\n{body}\nexcept BaseException:\n    pass")
    return "\n".join(parts)


def _own_setup(pristine: Notebook) -> str:
    """What the lab itself gives to answers: its imports, functions and classes, and its cells tagged ``setup``."""
    statements: list[ast.stmt] = []
    for cell in pristine.code:
        body = _statements(cell.source)
        if not marked_exercise(cell.source):
            statements += body if SETUP_TAG in cell.tags else [s for s in body if isinstance(s, IMPORTS | DEFINITIONS)]
    return _guarded(statements)


def _imports(submission: Notebook) -> str:
    return _guarded(
        [
            statement
            for cell in submission.code
            for statement in _statements(cell.source)
            if isinstance(statement, IMPORTS)
        ]
    )


def _helpers(lab: CourseLab, submission: Notebook, answers: set[int]) -> str:
    """Functions, classes and their like of cells that the learner added or changed; what the lab defines stays."""
    texts = {cell.source.strip() for cell in lab.notebook.cells}
    defined = {
        name for cell in lab.notebook.code if not marked_exercise(cell.source) for name in top_level_names(cell.source)
    }
    ours = {cell.id for cell in lab.notebook.cells if cell.id}
    statements: list[ast.stmt] = []
    for cell in submission.code:
        if id(cell) in answers or cell.source.strip() in texts:
            continue
        for statement in filter(_defines, _statements(cell.source)):
            if cell.id not in ours or not defined & set(top_level_names(ast.unparse(statement))):
                statements.append(statement)
    return _guarded(statements)


def _defines(statement: ast.stmt) -> bool:
    """Whether a statement defines a function or a class: by its own word, or as namedtuple(..) and lambda do."""
    if isinstance(statement, DEFINITIONS):
        return True
    value = statement.value if isinstance(statement, ast.Assign | ast.AnnAssign) else None
    while isinstance(value, ast.Call):
        called = value.func
        if isinstance(called, ast.Name | ast.Attribute):
            return (called.id if isinstance(called, ast.Name) else called.attr) in MAKERS
        value = called
    return isinstance(value, ast.Lambda)


def rebuilt(lab: CourseLab, begun: Collection[str], job_file: str, *, hidden: bool) -> dict[str, Any]:
    """The notebook to run, in nbformat 4. Each cell's metadata names its role, and its exercise if it has one.

    Answer cells of ``begun`` exercises become calls of the kernel; other answer cells stay as handed out. Cells after
    the last check of a begun exercise are left out, because a lab may go on for minutes.
    """
    # 1. The first cell opens the desk; then come the lab's own cells. Two parts may have cells of the same id.
    cells = [_code("mqlab-desk", f"{KERNEL}.open_desk({job_file!r})", role="desk")]
    used = Counter(cell.id for cell in lab.notebook.cells)
    answers = {id(answer.cell): answer.exercise.id for answer in lab.answers}
    for number, cell in enumerate(lab.notebook.cells):
        if cell.kind != "code":
            continue
        exercise = answers.get(id(cell), "")
        cell_id = cell.id if used[cell.id] == 1 and cell.id else f"cell-{number}"
        if exercise in begun:
            source = f"# exercise: {exercise}\n{KERNEL}.give_answer({exercise!r}, globals())"
            cells.append(_code(cell_id, source, role="answer", exercise=exercise))
        else:
            checked = cell.grade_id.removesuffix("-check") if cell.grade_id.endswith("-check") else ""
            named = next((e.id for e in lab.exercises if grade_id(e.id) == checked), "")
            role = "check" if named else "demo"
            cells.append(_code(cell_id, cell.source, role=role, exercise=named))
    # 2. Leave out what comes after the last cell of a begun exercise.
    last = max((n for n, cell in enumerate(cells) if cell["metadata"][ROLE]["exercise"] in begun), default=0)
    del cells[last + 1 :]
    # 3. Hidden cases run last, so that no cell of the lab sees their effects. The exercise that was checked last comes
    #    first: its worker is still there.
    if hidden:
        for asked in reversed(lab.exercises):
            if asked.id not in begun:
                continue
            source = f"{KERNEL}.judge_hidden({asked.id!r})"
            cells.append(_code(f"mqlab-hidden-{grade_id(asked.id)}", source, role="hidden", exercise=asked.id))
    return {"cells": cells, "metadata": METADATA, "nbformat": 4, "nbformat_minor": 5}


KERNEL = '__import__("mqlab.course.grading.running.kernel", fromlist=["open_desk"])'
METADATA = {"kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"}}


def _code(cell_id: str, source: str, *, role: str, exercise: str = "") -> dict[str, Any]:
    return {
        "cell_type": "code",
        "execution_count": None,
        "id": cell_id,
        "outputs": [],
        "source": source,
        "metadata": {ROLE: {"role": role, "exercise": exercise}},
    }
