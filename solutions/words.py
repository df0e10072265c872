"""The words of a lab, written in its source in cells of five kinds, and what a notebook shows of them.

The lines of such a cell begin with "# ", as those of a text cell. What comes first is prose, which the notebook shows.
Then come labelled blocks; a block goes on in lines that are indented by two spaces (and may have blank lines within).

    # %% [prediction] lab07.first_retry           the notebook: question and choices as text, then predict("lab07…")
    # The listener has failed once. When is it called again?        the last paragraph is the question
    #
    # - 10: after 10 seconds                      a choice: its key (what the code's value says), and its text
    #   = Right: the first retry waits for level 3.         "=": this is what the run will show
    # - 1: after 1 second {lab07.level_one}       a choice that stands for a belief names it in braces
    #   > Level 1 lasts a second, but the first retry waits for level 3.      ">": the refutation of this choice
    # note: The delay of retry n is that of level n + 2.          said to all when the run has answered
    # later: A listener fails for the first time. When …      the question as old_questions asks it labs later, if the
                                                  cells above it are needed; "later: -": it is not asked again
                                                  A prediction without choices asks for a whole number; the solution's
                                                  number is then a block of its own, answer: 3

    # %% [exercise] lab07.schedule                the notebook: the prose; the code cell and its check follow it
    # ### Exercise 1: plan the retries            the heading gives the title ("Exercise 1:" is not part of it)
    # Write `schedule`. It gets …
    #
    # hint: The first retry does not wait for level 1.             three of them
    # hint: …
    # hint: …
    # note: You have written what the broker does for each …       said when the checks pass

    # %% [answer] lab00.unindexed                 the notebook: the prose, whose last paragraph is the question;
    # Change `PAUSE` above and run the cell again. How many …?     a cell with answer("lab00.unindexed", …, lab) follows
    #
    # wrong all: That is every message of the log …     a wrong answer that the task knows by name
    # wrong: Count the rows of the log that …           every other wrong answer
    # note: …                                           said to a right answer

    # %% [reflection] lab07.why_dead              the notebook: the question, and the model answer folded under it
    # Why does a dead letter not come back on its own?
    #
    # answer: Because no group …

    # %% [belief] lab07.level_one                 not in the notebook: a belief that no prediction asks about
    # question: When does the first retry come?
    # claim: After a second, which is level 1.
    # refutation: Level 1 lasts a second, but the first retry waits for level 3.

Minutes are in solutions/minutes.py, what the builder demands of a lab in solutions/lint.py.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from mqlab.errors import UsageError

KINDS = {
    "prediction": {"note", "answer", "later"},
    "exercise": {"hint", "note"},
    "answer": {"wrong", "note"},
    "reflection": {"answer"},
    "belief": {"question", "claim", "refutation"},
}
LABEL = re.compile(r"(?P<label>[a-z]+)(?: (?P<name>\w+))?:(?: (?P<text>.*))?$")
CHOICE = re.compile(r"- (?P<key>[^:]+): (?P<text>.+?)(?: \{(?P<belief>lab\d\d\.\w+)\})?$")
EXERCISE_NUMBER = re.compile(r"^Exercise(?: \w+)?: ")
SOURCE_NAME = re.compile(r"(?P<part>(?P<number>\d\d)[a-z]?)_")


@dataclass(slots=True)
class Block:
    """A labelled block: ``wrong all: …`` has the label "wrong" and the name "all"."""

    label: str
    name: str
    lines: list[str]

    @property
    def text(self) -> str:
        """The text as paragraphs without line breaks; lists and code keep their lines."""
        return "\n\n".join(_joined(paragraph) for paragraph in "\n".join(self.lines).strip("\n").split("\n\n"))


@dataclass(slots=True)
class ChoiceText:
    """A choice as it is written. ``right``: marked with "="."""

    key: str
    text: str
    belief: str = ""
    right: bool = False
    said: list[str] = field(default_factory=list)


@dataclass(slots=True)
class Typed:
    """One cell of words: its prose, its choices and its blocks."""

    kind: str
    id: str
    where: str
    prose: str
    choices: list[ChoiceText]
    blocks: list[Block]

    def texts(self, label: str) -> list[str]:
        return [block.text for block in self.blocks if block.label == label]

    def one(self, label: str, default: str | None = None) -> str:
        """The block of a label. UsageError if there are more, or none and no default."""
        found = self.texts(label)
        if len(found) > 1 or (not found and default is None):
            raise UsageError(f"{self.where}: {self.id} needs one block '{label}:', it has {len(found)}")
        return found[0] if found else str(default)

    @property
    def question(self) -> str:
        """The last paragraph of the prose, in one line."""
        return _joined(self.prose.rsplit("\n\n", 1)[-1])

    @property
    def answer(self) -> str:
        """What the run will show: the key of the choice marked "=", or the number. UsageError without one."""
        right = [choice.key for choice in self.choices if choice.right]
        if not self.choices:
            return self.one("answer")
        if len(right) != 1:
            raise UsageError(f"{self.where}: {self.id} needs one choice with a line '= …', it has {len(right)}")
        return right[0]


def lab_and_part(where: str) -> tuple[str, str]:
    """The lab and the part of a source's name.

    >>> lab_and_part("01a_the_log.py"), lab_and_part("00_a_day.py"), lab_and_part("index.py")
    (('lab01', '01a'), ('lab00', '00'), ('index', 'index'))
    """
    found = SOURCE_NAME.match(where)
    name = where.removesuffix(".py")
    return (f"lab{found['number']}", found["part"]) if found else (name, name)


def typed(kind: str, identity: str, body: str, where: str) -> Typed:
    """A cell of words, read. ``body``: its lines without "# ". UsageError for a line that has no place."""
    prose: list[str] = []
    choices: list[ChoiceText] = []
    blocks: list[Block] = []
    lines = body.splitlines()
    for line in lines:
        label, choice = LABEL.match(line), CHOICE.match(line)
        # 1. A known label begins a block. ("question: …" in the prose of an exercise is prose.)
        if label and label["label"] in KINDS[kind]:
            blocks.append(Block(label["label"], label["name"] or "", [label["text"] or ""]))
        # 2. A choice, and what is said to it.
        elif kind == "prediction" and choice and not blocks:
            choices.append(ChoiceText(choice["key"].strip(), choice["text"], choice["belief"] or ""))
        elif blocks and (line.startswith("  ") or not line.strip()):
            blocks[-1].lines.append(line[2:])
        elif choices and not blocks and line.startswith(("  > ", "  = ")):
            choices[-1].right |= line.startswith("  = ")
            choices[-1].said.append(line[4:])
        elif choices and not blocks and line.startswith("  ") and not choices[-1].said:
            _lengthen(choices[-1], line.strip())
        # 3. Everything before the first of both is prose.
        elif not choices and not blocks:
            prose.append(line)
        elif line.strip():
            raise UsageError(f"{where}: {identity}: a line that belongs to nothing: {line!r}")
    made = Typed(kind, identity, where, "\n".join(prose).strip("\n"), choices, blocks)
    _complain(made)
    return made


def _lengthen(choice: ChoiceText, more: str) -> None:
    again = CHOICE.match(f"- x: {choice.text} {more}")
    if again is not None:
        choice.text, choice.belief = again["text"], again["belief"] or choice.belief


def _complain(cell: Typed) -> None:
    for choice in cell.choices:
        if not choice.said:
            hint = "add a line '  > …' with its refutation ('  = …' for the one that is right)"
            raise UsageError(f"{cell.where}: there is no text for choice {choice.key!r} of {cell.id}", hint=hint)
    if len({choice.key for choice in cell.choices}) < len(cell.choices):
        raise UsageError(f"{cell.where}: two choices of {cell.id} have the same key")
    if cell.kind != "belief" and not cell.prose:
        raise UsageError(f"{cell.where}: {cell.id} has no text")


def text_of(cell: Typed) -> str:
    """What the notebook shows of a cell of words, as Markdown."""
    if cell.kind == "prediction":
        before, _, question = cell.prose.rpartition("\n\n")
        choices = "\n".join(f"- **{choice.key}**: {choice.text}" for choice in cell.choices)
        return "\n\n".join(part for part in (before, f"**Predict.** {question}", choices) if part)
    if cell.kind == "reflection":
        answer = cell.one("answer")
        return f"{cell.prose}\n\n<details><summary>A model answer</summary>\n\n{answer}\n\n</details>"
    return cell.prose


def predict_cell(cell: Typed) -> str:
    """The code cell of a prediction, as a source writes it: to click for the student, answered in the solution."""
    answer = f'"{cell.answer}"' if cell.choices else cell.answer
    asked, solved = f'predict("{cell.id}")', f'predict("{cell.id}", {answer})'
    return f"### BEGIN SOLUTION\n{solved}\n### STARTER\n# {asked}\n### END SOLUTION"


def compiled(cells: Iterable[Typed]) -> dict[str, Any]:
    """The content of a lab's file of words. UsageError for what is missing, doubled or of another lab."""
    made: dict[str, dict[str, Any]] = {
        name: {} for name in ("predictions", "exercises", "tasks", "reflections", "beliefs")
    }
    for cell in cells:
        for group, identity, content in _contents(cell):
            if identity in made[group]:
                raise UsageError(f"{cell.where}: the words of {identity} are there twice")
            made[group][identity] = content
    return dict(made)


def _contents(cell: Typed) -> Iterable[tuple[str, str, dict[str, Any]]]:
    """What one cell adds: group, id, content. A prediction adds the beliefs of its choices as well."""
    if cell.kind == "prediction":
        choices = [[choice.key, choice.text, _joined("\n".join(choice.said))] for choice in cell.choices]
        beliefs = {choice.key: choice.belief for choice in cell.choices if choice.belief}
        yield (
            "predictions",
            cell.id,
            {
                "question": cell.question,
                "choices": choices,
                "right": cell.answer,
                "note": cell.one("note", ""),
                "beliefs": beliefs,
                "later": _joined(cell.one("later", "")),
            },
        )
        for (key, text, refutation), choice in zip(choices, cell.choices, strict=True):
            if choice.belief:
                if choice.right:
                    raise UsageError(f"{cell.where}: choice {key!r} of {cell.id} is right, so it is not a wrong belief")
                claim = {"question": cell.question, "claim": text, "refutation": refutation}
                yield "beliefs", choice.belief, claim
    elif cell.kind == "exercise":
        hints = cell.texts("hint")
        if len(hints) != 3:
            raise UsageError(f"{cell.where}: {cell.id} needs three blocks 'hint:', it has {len(hints)}")
        yield "exercises", cell.id, {"title": _title(cell), "hints": hints, "note": cell.one("note")}
    elif cell.kind == "answer":
        wrong = {block.name: block.text for block in cell.blocks if block.label == "wrong"}
        if "" not in wrong:
            raise UsageError(f"{cell.where}: {cell.id} needs a block 'wrong:' for all other wrong answers")
        yield "tasks", cell.id, {"question": cell.question, "wrong": wrong, "note": cell.one("note")}
    elif cell.kind == "reflection":
        yield "reflections", cell.id, {"question": cell.question, "answer": cell.one("answer")}
    else:
        yield "beliefs", cell.id, {label: cell.one(label) for label in ("question", "claim", "refutation")}


def _title(cell: Typed) -> str:
    heading = next((line.lstrip("#").strip() for line in cell.prose.splitlines() if line.startswith("#")), "")
    title = EXERCISE_NUMBER.sub("", heading)
    if not title:
        raise UsageError(f"{cell.where}: {cell.id} has no heading, which would be its title")
    return title[0].upper() + title[1:]


def _joined(paragraph: str) -> str:
    """A paragraph in one line; a list, a table or code keeps its lines."""
    lines = paragraph.splitlines()
    keeps = any(line.startswith(("- ", "|", "```", "1. ")) for line in lines)
    return "\n".join(lines) if keeps else " ".join(line.strip() for line in lines)
