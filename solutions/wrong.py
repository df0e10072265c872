"""Known-wrong answers: each is a small change to an exercise's reference answer, and the words its message must have.

    solutions/grading/wrong/lab01.tags.diff

    === unsigned                              the name of a wrong answer
    belief: lab01.hash_is_positive            the belief behind such an answer, by its id
    says: A negative hash stays negative      words that the message must contain; without: the belief's refutation
    -    return struct.pack(">q", value - (1 << 32) if value >> 31 else value)
    +    return struct.pack(">q", value)

A belief's words are in the lab's source: a choice with its id in braces, or a [belief] cell (solutions/words.py).

A change has lines of the reference to take out (-), to keep (a blank first) and to put in (+); ``@@`` is between
two changes. Lines that are taken out or kept must be in the reference, next to each other, exactly once. A wrong answer
with + lines only replaces the reference as a whole.
"""

from __future__ import annotations

import functools
import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from mqlab.course.grading.submissions.lab_files import marked_exercise, parts_of, pristine
from mqlab.course.words import refutation
from mqlab.errors import UsageError

ROOT = Path(__file__).resolve().parents[1]
FOLDER = ROOT / "solutions" / "grading" / "wrong"
HEAD = re.compile(r"=== (?P<name>\w+)\nbelief: (?P<belief>.+)\n(?:says: (?P<says>.+)\n)?")


IDENTITY = re.compile(r"lab\d\d\.\w+")


@dataclass(frozen=True)
class Wrong:
    """One known-wrong answer: the belief behind it, words that its message must contain, and its changes."""

    exercise: str
    name: str
    belief: str
    says: str
    changes: str

    @property
    def id(self) -> str:
        """Its name among all wrong answers: lab01.tags.unsigned."""
        return f"{self.exercise}.{self.name}"

    def source(self) -> str:
        """The wrong answer's whole cell. UsageError when a change does not fit the reference answer any more."""
        reference = references(self.exercise[3:5])[self.exercise]
        hunks = self.changes.split("@@\n")
        # Without lines to find in the reference, the change is a whole answer.
        if all(line.startswith("+") for line in self.changes.splitlines()):
            return f"{reference.splitlines()[0]}\n" + "".join(_lines(self.changes, "+"))
        for hunk in hunks:
            reference = self._changed(reference, hunk)
        return reference

    def _changed(self, reference: str, hunk: str) -> str:
        old, new = "".join(_lines(hunk, " -")), "".join(_lines(hunk, " +"))
        # The added line break makes sure that only whole lines match.
        places = f"\n{reference}".count(f"\n{old}")
        if not old or places != 1:
            raise UsageError(
                f"{self.id}: these lines are {places} times in the reference answer:\n{old}",
                hint=f"adapt the changes in {file_of(self.exercise)}: they must name each place once",
            )
        return f"\n{reference}".replace(f"\n{old}", f"\n{new}")[1:]


def _lines(hunk: str, marks: str) -> Iterator[str]:
    for line in hunk.splitlines(keepends=True):
        if line[0] in marks:
            yield line[1:]


def file_of(exercise: str) -> Path:
    """Where an exercise's wrong answers are."""
    return FOLDER / f"{exercise}.diff"


def wrong_answers(exercise: str = "") -> list[Wrong]:
    """All known-wrong answers, or those of one exercise. UsageError for a file of another form."""
    files = [file_of(exercise)] if exercise else sorted(FOLDER.glob("*.diff"))
    return [wrong for path in files for wrong in _read(path)]


def _read(path: Path) -> Iterator[Wrong]:
    for part in re.split(r"^(?==== )", path.read_text("utf-8"), flags=re.MULTILINE):
        # A file may begin with comments.
        if part.startswith("#") or not part.strip():
            continue
        head = HEAD.match(part)
        if head is not None and not head["says"] and not IDENTITY.fullmatch(head["belief"]):
            head = None  # a belief without an id has no words of its own
        changes = part[head.end() :].rstrip("\n") + "\n" if head else ""
        odd = [line for line in changes.splitlines() if line != "@@" and line[:1] not in ("-", "+", " ")]
        if head is None or odd or not changes.strip():
            raise UsageError(
                f"{path}: cannot read {(odd or part.splitlines())[0]!r}",
                hint="a wrong answer is '=== name', 'belief: id', 'says: ..', and lines that begin with - + or a blank",
            )
        yield Wrong(path.stem, head["name"], head["belief"], head["says"] or refutation(head["belief"]), changes)


@functools.cache
def references(number: str) -> Mapping[str, str]:
    """The reference answers of a lab: exercise -> the text of its solved cell, in whichever part it is."""
    paths = [ROOT / "solutions" / pristine(ROOT, part)[0].name for part in parts_of(ROOT, number)]
    cells = [cell for path in paths for cell in json.loads(path.read_text("utf-8"))["cells"]]
    sources = ["".join(cell["source"]) for cell in cells if cell["cell_type"] == "code"]
    return {marked_exercise(source): f"{source.rstrip()}\n" for source in sources if marked_exercise(source)}


def beliefs_held(lab: str) -> Mapping[str, str]:
    """What each wrong answer of a lab believes: its id -> what stands in its line "belief:", the id of a belief."""
    found = (wrong for path in sorted(FOLDER.glob(f"{lab}.*.diff")) for wrong in _read(path))
    return {wrong.id: wrong.belief for wrong in found}
