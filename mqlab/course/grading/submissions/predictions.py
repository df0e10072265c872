"""What a class predicted, read out of the notebooks that were handed in: a count per answer of each question.

``mqlab grade`` calls it before the first answer is judged. Nothing in a notebook is executed here.

    a click        the cell's saved output: application/vnd.mqlab.prediction+json {"prediction", "answer", …}
    in Python      the cell's text: predict("lab07.first_retry", "10")
    of several     the last click before the run showed what happens, else the text, else a late click
    asked again    saved by a later lab's old_questions: application/vnd.mqlab.old-question+json {"question", …}

Anyone may have written a notebook: what is not an answer to the question counts as "another answer", and its text is
kept nowhere. A student counts once per question.
"""

from __future__ import annotations

import ast
import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from mqlab.course.grading.submissions.finding import Submission
from mqlab.course.grading.submissions.lab_files import CourseLab
from mqlab.course.grading.submissions.notebook_file import NotANotebook, Notebook, read_notebook
from mqlab.course.teach.asked_again import OLD_MIME, question_of
from mqlab.course.teach.clicking import PREDICTION_MIME
from mqlab.course.teach.exercises import Prediction, manifest
from mqlab.course.teach.record import lab_of

LONGEST_SOURCE = 20_000
MOST_OUTPUTS = 1_000
WHOLE_NUMBER = re.compile(r"-?\d{1,15}")
LARGEST = 10**15
OTHER = "another answer"


@dataclass(frozen=True, slots=True)
class Bar:
    """One answer to a question: its key, its text, and how many students gave it."""

    key: str
    text: str
    students: int


@dataclass(frozen=True, slots=True)
class PredictionHistogram:
    """The answers of a class to one question.

    ``silent``: students who handed in a notebook without an answer. ``late``: those who first answered after the run.
    ``again``: the last answers of those whom a later lab asked again. A belief is asked in later labs only.
    """

    lab: str
    prediction: str
    question: str
    bars: tuple[Bar, ...]
    silent: int
    late: int
    again: tuple[Bar, ...] = ()

    @property
    def answers(self) -> int:
        """How many students answered."""
        return sum(bar.students for bar in self.bars)


@dataclass(frozen=True, slots=True)
class _Found:
    """One answer in a notebook; of a student's, the one with the highest ``rank`` counts, and among equals the last."""

    prediction: str
    answer: Any
    rank: int


CLICKED, WRITTEN, LATE = 2, 1, 0


def class_predictions(labs: Iterable[CourseLab], submissions: Sequence[Submission]) -> list[PredictionHistogram]:
    """A histogram for each question of some labs, in the labs' order."""
    histograms = []
    for lab in labs:
        asked = [prediction for prediction in manifest(lab.manifest_id).predictions if _is_asked_in(lab, prediction.id)]
        handed_in = [submission for submission in submissions if submission.lab == lab.number and submission.files]
        answers = [predicted(submission.files) for submission in handed_in] if asked else []
        histograms += [_histogram(lab, prediction, answers) for prediction in asked]
    again = _asked_again(submissions)
    known = {histogram.prediction for histogram in histograms}
    older = [
        PredictionHistogram(lab_of(name), name, question.asked.question, (), 0, 0)
        for name in sorted(again.keys() - known)
        if (question := question_of(name)) is not None
    ]
    return [replace(histogram, again=again.get(histogram.prediction, ())) for histogram in (*histograms, *older)]


def _asked_again(submissions: Sequence[Submission]) -> dict[str, tuple[Bar, ...]]:
    """Id of a prediction or a belief -> the last answer of each student to whom later labs gave it as an old question.

    What names no question that can be asked again is left out.
    """
    answers: dict[str, dict[str, Any]] = {}
    for submission in sorted(submissions, key=lambda submission: submission.lab):
        for path in submission.files:
            for said in _saved_in(path, OLD_MIME):
                if isinstance(said.get("question"), str):
                    answers.setdefault(said["question"], {})[submission.student] = said.get("answer")
    bars = {}
    for name, of_students in answers.items():
        question = question_of(name)
        if question is not None:
            counts = Counter(_key(question.asked, answer) for answer in of_students.values())
            other = [Bar("", OTHER, counts[OTHER])] if counts[OTHER] else []
            bars[name] = (*(Bar(key, text, counts[key]) for key, text in question.asked.choices), *other)
    return bars


def _is_asked_in(lab: CourseLab, prediction_id: str) -> bool:
    """Whether a lab's notebooks ask a question: those of one part ask only some of the manifest's."""
    return any(prediction_id in cell.source for cell in lab.notebook.cells)


def _histogram(lab: CourseLab, asked: Prediction, answers: Sequence[Mapping[str, _Found]]) -> PredictionHistogram:
    chosen = [of_student[asked.id] for of_student in answers if asked.id in of_student]
    counts = Counter(_key(asked, choice.answer) for choice in chosen)
    # Choices in their own order, also those that no student took; numbers in theirs.
    if asked.choices:
        bars = [Bar(key, text, counts[key]) for key, text in asked.choices]
    else:
        bars = [Bar(key, "", counts[key]) for key in sorted(counts.keys() - {OTHER}, key=int)]
    if counts[OTHER]:
        bars.append(Bar("", OTHER, counts[OTHER]))
    late = sum(choice.rank == LATE for choice in chosen)
    return PredictionHistogram(lab.id, asked.id, asked.question, tuple(bars), len(answers) - len(chosen), late)


def _key(asked: Prediction, answer: Any) -> str:
    """The answer as a key of the question; OTHER for anything else."""
    if isinstance(answer, bool) or not isinstance(answer, int | str):
        return OTHER
    if asked.choices:
        keys = {str(key) for key, _ in asked.choices}
        return answer if isinstance(answer, str) and answer in keys else OTHER
    text = str(answer) if isinstance(answer, int) and abs(answer) < LARGEST else answer
    return str(int(text)) if isinstance(text, str) and WHOLE_NUMBER.fullmatch(text) else OTHER


def predicted(files: Iterable[Path]) -> dict[str, _Found]:
    """A student's answer to each question, from all files of a submission; files that cannot be read have none."""
    best: dict[str, _Found] = {}
    late: dict[str, Any] = {}
    for path in files:
        try:
            notebook = read_notebook(path)
        except NotANotebook:
            continue
        for choice in (*_written(notebook), *_clicked(notebook)):
            if choice.prediction not in best or choice.rank >= best[choice.prediction].rank:
                best[choice.prediction] = choice
            if choice.rank == LATE:
                late[choice.prediction] = choice.answer
    # A text whose own output says that it came after the run is late, too.
    return {
        name: replace(choice, rank=LATE) if choice.rank == WRITTEN and _same(choice.answer, late.get(name)) else choice
        for name, choice in best.items()
    }


def _same(written: Any, clicked: Any) -> bool:
    """Whether the text gives the answer that an output has: there, a number is text."""
    if isinstance(written, int) and abs(written) >= LARGEST:  # too long to be written out
        return False
    return isinstance(clicked, str) and str(written) == clicked


def _clicked(notebook: Notebook) -> Iterator[_Found]:
    """The predictions in the saved outputs of a notebook."""
    for said in _saved(notebook, PREDICTION_MIME):
        name = said.get("prediction")
        if isinstance(name, str) and said.get("answer") is not None:
            yield _Found(name, said["answer"], CLICKED if said.get("before_reveal") is True else LATE)


def _saved_in(path: Path, mime: str) -> Iterator[dict[str, Any]]:
    """The same for a file; nothing for one that is not a notebook."""
    try:
        yield from _saved(read_notebook(path), mime)
    except NotANotebook:
        return


def _saved(notebook: Notebook, mime: str) -> Iterator[dict[str, Any]]:
    """The data of one kind in the saved outputs of a notebook, in the order of its cells."""
    try:
        cells = json.loads(notebook.data.decode("utf-8-sig")).get("cells")
    except (ValueError, RecursionError):
        return
    left = MOST_OUTPUTS
    for cell in cells if isinstance(cells, list) else ():
        outputs = cell.get("outputs") if isinstance(cell, dict) else None
        for output in outputs if isinstance(outputs, list) else ():
            bundle = output.get("data") if isinstance(output, dict) else None
            said = bundle.get(mime) if isinstance(bundle, dict) else None
            if isinstance(said, dict) and left > 0:
                left -= 1
                yield said


def _written(notebook: Notebook) -> Iterator[_Found]:
    """The predictions in the text of a notebook's cells: calls of ``predict`` with a constant answer."""
    for cell in notebook.code:
        if "predict(" not in cell.source or len(cell.source) > LONGEST_SOURCE:
            continue
        try:
            tree = ast.parse(cell.source)
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            continue
        for call in ast.walk(tree):
            if isinstance(call, ast.Call) and isinstance(call.func, ast.Name) and call.func.id == "predict":
                named = {word.arg: word.value for word in call.keywords}
                values = [*call.args, *(named[name] for name in ("prediction_id", "answer") if name in named)]
                name, answer = [_constant(value) for value in (*values, None, None)[:2]]
                if isinstance(name, str) and answer is not None and answer is not ...:
                    yield _Found(name, answer, WRITTEN)


def _constant(node: ast.expr | None) -> Any:
    """The value of a constant or of a negative number; None for every other expression."""
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub) and isinstance(node.operand, ast.Constant):
        value = node.operand.value
        return -value if isinstance(value, int) else None
    return node.value if isinstance(node, ast.Constant) else None
