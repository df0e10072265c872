"""What a lab keeps to whose words are in its source. ``make labs`` and the tests say where it does not.

    pictures          in a section (## …), no more than 8 cells in a row are without a picture or a parameter
    first exercise    its section begins within 15 minutes, old questions not counted
    easiest first     no exercise of the notebook gives fewer points than the first; or the first is tagged "easiest"
    words             exercises, tasks and predictions of the source are those of the manifest and of the cells
    own names         what a cell gives to answer(…) has a name that no other cell binds, so that after Run All it is
                      still the world of this question (the answer's own cell may bind it again, in the solution)
    hidden reveals    reveal(…) is the last statement of its cell: Jupyter shows no other
    no places         a prediction's refutations and note point at nothing "above" or "below": a later lab asks and says
                      them again, where it is not; a task is checked below its cell, so its words point at nothing below
    beliefs           each has both halves: words in the source, and a wrong answer beside the hidden cases

A section that is only to be read (why, objectives, where RocketMQ does it) is tagged "reading": it needs no picture.
A cell that shows a picture or holds a parameter in a way that is not seen here is tagged "picture" or "parameter".
"""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from mqlab.course.teach.exercises import Manifest
from solutions.cells import Cell
from solutions.minutes import asks_old_questions, cell_minutes

CELLS_WITHOUT_A_PICTURE, MINUTES_BEFORE_AN_EXERCISE = 8, 15
PICTURE = re.compile(
    r"\b(timeline|diagram|\w*hexdump|Hexdump|show_\w+|explore\w*|MessageView|draw\w*|picture\w*|plot\w*|[Bb]ars|[Cc]urve\w*"
    r"|[Hh]istogram|chart\w*|waits|how_far|store_map|unsynced|log_xray|retry_clock|\w+_board|\w+_strip|\w+_scope|\w+_tank"
    r"|crash_matrix|console|OwnersGrid|HashRing|queue_owners|space_time)\("
)
SECTION = re.compile(r"^## ", re.MULTILINE)
EXERCISE = re.compile(r"# exercise: (\S+)")
ASKED = re.compile(r'^(?:\w+ = )?(predict|reveal|answer)\("(lab\d\d\.\w+)"', re.MULTILINE)
BELIEF = re.compile(r"lab\d\d\.\w+")
ANSWERS = re.compile(r"(Yes|No)[.,;:]")
THINGS = r"\b(?:tables?|runs?|pictures?|matrix|bars?|bodies|timeline|queue|cells?|\w+`)[\w ]{0,20}"
NEARBY, BELOW = re.compile(rf"{THINGS} (?:above|below)\b(?! the)"), re.compile(rf"{THINGS} below\b(?! \d)")
BELIEFS_IN_PROSE = ("lab03", "lab06")
"""Labs that are being written: their wrong answers need not name their beliefs by ids yet."""
NOT_YET: dict[tuple[str, str], str] = {
    ("lab05", "first exercise"): "05a shows the pool of threads, twice, before a batch can be taken in part",
    ("lab10", "first exercise"): "10a's waits are measured: a day is written before it can be read",
}
"""Rules that a lab does not keep to yet, and why. One that is kept to must not be listed."""


@dataclass(frozen=True, slots=True)
class Complaint:
    """One place where a lab does not keep to a rule."""

    rule: str
    where: str
    words: str

    def __str__(self) -> str:
        return f"{self.where}: {self.words} ({self.rule})"


def complaints(
    parts: Mapping[str, Sequence[Cell]], words: Mapping[str, Any], asked: Manifest, held: Mapping[str, str]
) -> list[Complaint]:
    """What is against the rules in a lab. ``parts``: source name -> cells as the notebook has them.

    ``held``: the wrong answers beside the hidden cases, and what each believes.
    """
    found: list[Complaint] = []
    for where, cells in parts.items():
        found += _without_pictures(where, cells)
        found += _shared_names(where, cells)
        found += _hidden_reveals(where, cells)
        found += _first_exercise(where, cells, {exercise.id: exercise.points for exercise in asked.exercises})
    everything = [cell for cells in parts.values() for cell in cells]
    found += _missing_words(", ".join(parts), everything, words, asked)
    found += _wrong_names(", ".join(parts), words, asked)
    found += _nearby(", ".join(parts), words)
    found += _half_beliefs(asked.lab, ", ".join(parts), words, held)
    return found


def new_complaints(lab: str, found: Sequence[Complaint]) -> list[str]:
    """The complaints that are not excused by NOT_YET, and the excuses that are not needed."""
    wrong = [str(one) for one in found if (lab, one.rule) not in NOT_YET]
    rules = {one.rule for one in found}
    wrong += [
        f"{lab} keeps to the rule {rule!r}: take it out of NOT_YET"
        for name, rule in NOT_YET
        if name == lab and rule not in rules
    ]
    return wrong


def _without_pictures(where: str, cells: Sequence[Cell]) -> Iterator[Complaint]:
    """Counts cells since the section's heading, or since the last picture or parameter in it."""
    plain, section = 0, None
    for cell in cells:
        if SECTION.search(cell.source) and cell.kind == "markdown":
            section, plain = cell, 0
        if section is None or "reading" in section.tags:
            continue
        # A question and the cell in which it is answered count as one.
        if not (cell.kind == "code" and cell.id):
            plain = 0 if shows_something(cell) else plain + 1
        if plain == CELLS_WITHOUT_A_PICTURE + 1:
            words = f"{plain} cells in a row show no picture and have no parameter to change"
            yield Complaint("pictures", f"{where} line {cell.line}", words)


def shows_something(cell: Cell) -> bool:
    """Whether a cell has a picture, or something for the learner to change."""
    if {"picture", "parameter", "explorer"} & set(cell.tags) or "![" in cell.source or "<svg" in cell.source:
        return True
    return cell.kind == "code" and (bool(PICTURE.search(cell.source)) or 'answer("' in cell.source)


def _shared_names(where: str, cells: Sequence[Cell]) -> Iterator[Complaint]:
    """What answer(…) is given after the value may be bound by one cell only, its own cell aside."""
    trees = [(cell, ast.parse(cell.source)) for cell in cells if cell.kind == "code"]
    bound = [set(_bound_by(tree.body)) for _, tree in trees]
    binders = Counter(name for names in bound for name in names)
    for (cell, tree), own in zip(trees, bound, strict=True):
        for task, name in _given_to_answers(tree):
            others = binders[name] - (name in own)
            if others > 1:
                words = f"{task} is given {name!r}, which {others} other cells bind: after Run All it is the last one's"
                yield Complaint("own names", f"{where} line {cell.line}", words)


def _hidden_reveals(where: str, cells: Sequence[Cell]) -> Iterator[Complaint]:
    """A notebook shows the value of a cell's last statement only: a reveal before it is not shown."""
    for cell in cells:
        for asked in ASKED.finditer(cell.source) if cell.kind == "code" else ():
            last = ast.unparse(ast.parse(cell.source).body[-1])
            if asked[1] == "reveal" and not last.startswith(f"reveal({asked[2]!r}"):
                words = f"the reveal of {asked[2]} is not its cell's last statement, so it is never shown"
                yield Complaint("hidden reveals", f"{where} line {cell.line}", words)


def _given_to_answers(tree: ast.AST) -> Iterator[tuple[str, str]]:
    """Task and name, for each name in what answer(…) is given after the value."""
    for call in ast.walk(tree):
        if isinstance(call, ast.Call) and isinstance(call.func, ast.Name) and call.func.id == "answer":
            task = str(getattr(call.args[0], "value", ""))
            given = (node for argument in call.args[2:] for node in ast.walk(argument))
            yield from ((task, node.id) for node in given if isinstance(node, ast.Name))


def _bound_by(body: Sequence[ast.AST]) -> Iterator[str]:
    """The names that a cell's statements bind in the notebook; what is bound within functions is theirs."""
    for node in body:
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            yield node.name
        elif isinstance(node, ast.Import | ast.ImportFrom):
            yield from (one.asname or one.name for one in node.names)
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.id
        elif not isinstance(node, ast.Lambda | ast.ListComp | ast.SetComp | ast.DictComp | ast.GeneratorExp):
            yield from _bound_by(list(ast.iter_child_nodes(node)))


def _first_exercise(where: str, cells: Sequence[Cell], points: Mapping[str, int]) -> Iterator[Complaint]:
    passed = before = 0.0
    exercises: list[tuple[str, Cell]] = []
    easiest = {cell.id for cell in cells if "easiest" in cell.tags}
    for cell in cells:
        found = EXERCISE.match(cell.source) if cell.kind == "code" else None
        if found:
            exercises.append((found[1], cell))
        elif not exercises:
            before = passed if cell.kind == "markdown" and SECTION.search(cell.source) else before
            if not asks_old_questions(cell):  # they are exercises of the labs before
                passed += cell_minutes(cell, where, lambda name: points.get(name, 0))
    if not exercises:
        return
    first, cell = exercises[0]
    if before > MINUTES_BEFORE_AN_EXERCISE:
        words = f"{round(before)} minutes pass before the section of the first exercise, {first}"
        yield Complaint("first exercise", f"{where} line {cell.line}", words)
    least = min(points.get(name, 0) for name, _ in exercises)
    if points.get(first, 0) > least and first not in easiest:
        words = f"{first} comes first and is not the easiest: it gives {points.get(first)} points, another {least}"
        yield Complaint("easiest first", f"{where} line {cell.line}", words)


def _missing_words(where: str, cells: Sequence[Cell], words: Mapping[str, Any], asked: Manifest) -> Iterator[Complaint]:
    calls: dict[str, set[str]] = {"predict": set(), "reveal": set(), "answer": set()}
    for cell in cells:
        for verb, name in ASKED.findall(cell.source) if cell.kind == "code" else ():
            calls[verb].add(name)
    # Each pair of sets has to be the same: what is in one only is missing in the other.
    pairs = (
        ("exercises of the manifest", {one.id for one in asked.exercises}, "[exercise] cells", set(words["exercises"])),
        ("tasks of the manifest", {one.id for one in asked.tasks}, "[answer] cells", set(words["tasks"])),
        ("answer(…) calls", calls["answer"], "[answer] cells", set(words["tasks"])),
        ("reveal(…) calls", calls["reveal"], "[prediction] cells", set(words["predictions"])),
    )
    for one, first, other, second in pairs:
        for name in sorted(first - second):
            yield Complaint("words", where, f"{name} is among the {one} and not among the {other}")
        for name in sorted(second - first):
            yield Complaint("words", where, f"{name} is among the {other} and not among the {one}")


def _wrong_names(where: str, words: Mapping[str, Any], asked: Manifest) -> Iterator[Complaint]:
    """Wrong answers that a task knows by name must have words, and the other way round."""
    for task in asked.tasks:
        spoken = set(words["tasks"].get(task.id, {"wrong": task.wrong})["wrong"]) - {""}
        for name in sorted(spoken ^ set(task.wrong)):
            place = "words" if name in spoken else "a rule"
            yield Complaint("words", where, f"the wrong answer {name!r} of {task.id} has {place} only")


def _nearby(where: str, words: Mapping[str, Any]) -> Iterator[Complaint]:
    """What a prediction says after its reveal is said again where the question is asked again, in a later lab."""
    for name, asked in words["predictions"].items():
        for text in (asked["note"], *(refutation for _, _, refutation in asked["choices"])):
            if nearby := NEARBY.search(text):
                yield Complaint("no places", where, f"{name} says {nearby[0]!r}, which is not there in a later lab")
    for name, task in words["tasks"].items():
        for text in (task["question"], *task["wrong"].values()):
            if nearby := BELOW.search(text):
                yield Complaint("no places", where, f"{name} says {nearby[0]!r}, but its check is below that")


def _half_beliefs(lab: str, where: str, words: Mapping[str, Any], held: Mapping[str, str]) -> Iterator[Complaint]:
    """``held``: wrong answer -> the id of its belief, or its belief in prose where the lab may still have that."""
    spoken, ids = set(words["beliefs"]), {belief for belief in held.values() if BELIEF.fullmatch(belief)}
    for name in sorted(spoken - ids):
        yield Complaint("beliefs", where, f"{name} has words, but no wrong answer with the hidden cases holds it")
    for name in sorted(ids - spoken):
        yield Complaint("beliefs", where, f"{name} is held by a wrong answer, and the source has no words for it")
    for name, belief in words["beliefs"].items():
        if ANSWERS.match(belief["refutation"]):  # a failed check says it without the question
            yield Complaint("beliefs", where, f"the refutation of {name} begins with Yes or No: a check shows it alone")
    for name in sorted(held):
        if held[name] not in ids and lab not in BELIEFS_IN_PROSE:
            words_of_it = (
                f"the wrong answer {name} has a belief in prose, {held[name]!r}: give the id of one with words"
            )
            yield Complaint("beliefs", where, words_of_it)
