"""What a learner answered, in order: progress.jsonl next to the notebooks, one answer per line.

    reveal("lab00.audit", 3)      the prediction that was made before the run
    check("lab04.offset")         the belief that a failed check names
    old_questions("lab05")        what is asked again, and what is answered now

``old_questions`` chooses by it, and ``mqlab progress`` shows what was known at first and is known now. It is written in
a learner's notebook only: Jupyter names its file in JPY_SESSION_NAME, and a browser has no such name.
"""

from __future__ import annotations

import contextlib
import datetime
import json
import os
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

from mqlab.browser import IN_BROWSER
from mqlab.course.teach.kept import PATH_IN, kept_answers
from mqlab.course.words import has_words, words_of

FILE = "progress.jsonl"


@dataclass(frozen=True, slots=True)
class AnswerNoted:
    """One answer: the id of a prediction or of a belief, the key that was chosen ("" for a belief met by a check).

    ``on`` is a date as in "2026-11-27"; ``asked_in`` is the lab that asked, at first that of the question.
    """

    question: str
    answer: str
    right: bool
    on: str
    asked_in: str

    @property
    def is_first(self) -> bool:
        """Whether the question's own lab asked, before it showed the answer."""
        return self.asked_in == lab_of(self.question)


def lab_of(question: str) -> str:
    """The lab of an id: "lab04" of "lab04.report"."""
    return question.partition(".")[0]


def answers_in(folder: Path) -> list[AnswerNoted]:
    """The record of a folder of notebooks; without the file, the predictions that its notebooks keep."""
    path = folder / FILE
    if not path.is_file():
        return list(_from_notebooks(sorted(folder.glob("*.ipynb"))))
    return [answer for line in path.read_text("utf-8", "replace").splitlines() if (answer := _read(line))]


def learner_answers() -> list[AnswerNoted]:
    """The record of the learner whose notebook runs; nothing where none runs."""
    return answers_in(Path.cwd()) if _is_learning() else []


def note_answer(question: str, answer: str, right: bool, asked_in: str = "") -> None:
    """Add an answer of today. What is noted of a question at first stays: of a second run nothing is added."""
    if not _is_learning():
        return
    answered = AnswerNoted(question, answer, right, datetime.date.today().isoformat(), asked_in or lab_of(question))
    before = learner_answers()
    lines = [] if Path(FILE).exists() else list(before)
    if all((old.question, old.asked_in) != (question, answered.asked_in) for old in before):
        lines.append(answered)
    with contextlib.suppress(OSError), open(FILE, "a", encoding="utf-8") as file:  # a read-only folder has no record
        file.writelines(json.dumps(asdict(line)) + "\n" for line in lines)


def _is_learning() -> bool:
    return IN_BROWSER or os.environ.get(PATH_IN, "").endswith(".ipynb")


def _read(line: str) -> AnswerNoted | None:
    """One line of the file; None for a broken line."""
    try:
        answered = AnswerNoted(**json.loads(line))
        datetime.date.fromisoformat(answered.on)
    except (ValueError, TypeError):
        return None
    return answered if isinstance(answered.question, str) else None


def _from_notebooks(paths: Iterable[Path]) -> Iterator[AnswerNoted]:
    for path in paths:
        on = datetime.date.fromtimestamp(path.stat().st_mtime).isoformat()
        for question, answer in kept_answers(path).items():
            lab = lab_of(question)
            words = words_of(lab).predictions.get(question) if has_words(lab) else None
            if words is not None:
                yield AnswerNoted(question, answer, answer == words.right, on, lab)
