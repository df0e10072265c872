"""Which cells of a submission answer an exercise, and which text of theirs is judged.

    by grade_id, else cell id, else "# exercise: lab01.unit" in the first line     a cell claims an exercise
    two halves of a cell that was split                                            one claim, joined
    a cell without any of these that defines what the untouched answer cell does   a claim, where no other is begun

Of several claims a begun one is judged, of several begun ones one that defines the exercise's names, then the original.
"""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterator
from dataclasses import dataclass

from mqlab.course.grading.judging.verdict import Note
from mqlab.course.grading.submissions.lab_files import (
    AnswerCell,
    CourseLab,
    grade_id,
    marked_exercise,
    top_level_names,
)
from mqlab.course.grading.submissions.notebook_file import CellText, Notebook


@dataclass(frozen=True, slots=True)
class ClaimedAnswer:
    """Cells in a row that answer an exercise together: one, or what a split has left of one."""

    exercise: str
    cells: tuple[CellText, ...]

    @property
    def source(self) -> str:
        """Their text, in the order of the notebook."""
        return "\n".join(cell.source for cell in self.cells)


class Claims:
    """All claims of a submission, and for each exercise the one that is judged."""

    def __init__(self, lab: CourseLab, submission: Notebook) -> None:
        self._lab = lab
        self._given = {cell.source.strip() for cell in lab.notebook.cells}
        self._given_ids = {cell.id for cell in lab.notebook.cells if cell.id}
        self._names = {answer.exercise.id: answer.names for answer in lab.answers}
        self._owners = _owners(lab, submission)
        self._claims = list(self._found(submission))
        self._free = [cell for cell in submission.code if self._is_free(cell)]
        self.taken: set[int] = {id(cell) for claim in self._claims for cell in claim.cells}

    def judged(self, answer: AnswerCell) -> tuple[ClaimedAnswer | None, list[Note]]:
        """The claim that is judged, None without one, and what is to be told about the choice."""
        name, notes = answer.exercise.id, []
        claims = [claim for claim in self._claims if claim.exercise == name]
        begun = [claim for claim in claims if not same_code(claim.source, answer.cell.source)]
        if not begun and (adopted := self._without_a_mark(answer)):
            self.taken.add(id(adopted.cells[0]))
            note = f"{name}: its answer was found in a cell without the line `# exercise: {name}`, and was judged"
            return adopted, [Note("unmarked", note)]
        if not claims:
            return None, []
        wanted = begun or claims
        wanted = [claim for claim in wanted if claim.cells[0].part == answer.cell.part] or wanted
        wanted = [claim for claim in wanted if _defines(claim.source, answer.names)] or wanted
        original = next((claim for claim in wanted if any(cell.id == answer.cell.id for cell in claim.cells)), None)
        chosen = original or wanted[0]
        if len(claims) > 1:
            which = "the original one" if original else "a begun one" if begun else "one of them"
            notes.append(Note("duplicate", f"{name}: {len(claims)} answer cells; {which} was judged"))
        if len(chosen.cells) > 1:
            notes.append(Note("split", f"{name}: {len(chosen.cells)} cells in a row were judged as one answer"))
        if chosen.cells[0].kind != "code":
            notes.append(Note("not code", f"{name}: the answer is in a text cell"))
        return chosen, notes

    def _found(self, submission: Notebook) -> Iterator[ClaimedAnswer]:
        current: ClaimedAnswer | None = None
        for cell in submission.cells:
            owner = self._owners.get(id(cell))
            if current is not None and self._continues(current, cell, owner):
                current = ClaimedAnswer(current.exercise, (*current.cells, cell))
                continue
            if current is not None and (owner is not None or cell.source.strip()):
                yield current
                current = None
            if owner is not None:
                current = ClaimedAnswer(owner, (cell,))
        if current is not None:
            yield current

    def _continues(self, claim: ClaimedAnswer, cell: CellText, owner: str | None) -> bool:
        """Whether a cell is the rest of the answer before it, and not another answer or work of another kind."""
        if cell.kind != "code" or claim.cells[-1].kind != "code" or cell.part != claim.cells[-1].part:
            return False
        if owner not in (None, claim.exercise) or marked_exercise(cell.source) or not cell.source.strip():
            return False
        names = self._names[claim.exercise]
        is_whole, together = _defines(claim.source, names), f"{claim.source}\n{cell.source}"
        if owner is None and ((is_whole and _body(cell.source) is not None) or not self._is_free(cell)):
            return False
        if is_whole and _defines(cell.source, names):
            return False
        return _body(together) is not None or _body(claim.source) is None

    def _is_free(self, cell: CellText) -> bool:
        """Whether the learner added a code cell that claims nothing."""
        return (
            id(cell) not in self._owners and cell.id not in self._given_ids and cell.source.strip() not in self._given
        )

    def _without_a_mark(self, answer: AnswerCell) -> ClaimedAnswer | None:
        """The last of the learner's own cells that defines the exercise's names, all of them."""
        parts = (answer.cell.part, "")
        cells = [cell for cell in self._free if cell.part in parts and _defines(cell.source, answer.names)]
        return ClaimedAnswer(answer.exercise.id, (cells[-1],)) if cells else None


def _owners(lab: CourseLab, submission: Notebook) -> dict[int, str]:
    """Which exercise each cell answers: by its grade_id, else its id, else its first line."""
    by_grade_id = {answer.cell.grade_id or grade_id(answer.exercise.id): answer.exercise.id for answer in lab.answers}
    by_id = {answer.cell.id: answer.exercise.id for answer in lab.answers if answer.cell.id}
    by_mark = {answer.exercise.id: answer.exercise.id for answer in lab.answers}
    owners: dict[int, str] = {}
    for cell in submission.cells:
        mark = marked_exercise(cell.source)
        owner = by_grade_id.get(cell.grade_id) or by_id.get(cell.id) or by_mark.get(mark)
        if owner is not None:
            owners[id(cell)] = owner
    return owners


def same_code(source: str, pristine: str) -> bool:
    """Whether two texts are the same program, ignoring comments and blank lines."""
    if source.split() == pristine.split():
        return True
    first, second = _body(source), _body(pristine)
    try:
        return first is not None and second is not None and ast.dump(first) == ast.dump(second)
    except (RecursionError, MemoryError):
        return False


def _body(source: str) -> ast.Module | None:
    try:
        return ast.parse(source)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None


def _defines(source: str, names: Collection[str]) -> bool:
    return bool(names) and set(names) <= set(top_level_names(source))
