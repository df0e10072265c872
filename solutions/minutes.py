"""The minutes of a notebook, computed from its cells: what a learner needs who works alone and does everything.

    words        a minute for 180 of them, in text cells
    code         36 s a cell; a check is one
    prediction   90 s; three old questions 2 min
    your turn    4 min
    exercise     18 min an easy one (2 points at most), 28 a usual one, 42 one with Spark or a hunt (labs 10 to 14)
    waits        the seconds that cells take which take two seconds and more, measured on two cores

The sum is rounded to quarters of an hour. A source says where it is told:

About {minutes} minutes.           in a text cell: of this notebook, as in "About 2¼ hours."
| lab 07 | {minutes:07} |          of lab 07; {minutes:07b}: of a part; {minutes:evening}: of a path
{paths}                            the rows of the table of paths (mqlab.course.words.paths)

<!-- minutes 07 -->180<!-- end -->          in docs/instructors.md: ``make labs`` puts the sum between the two
<!-- hours 07 -->3 h<!-- end -->            the same in hours
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence

from mqlab.course.words.parts import minutes_of
from mqlab.course.words.paths import PATHS, path_minutes, path_parts
from mqlab.errors import UsageError
from solutions.cells import Cell

WORDS_A_MINUTE = 180
CODE, PREDICTION, OLD_QUESTIONS, YOUR_TURN = 0.6, 1.5, 2.0, 4.0
EASY, USUAL, LONG = 18, 28, 42
EASY_POINTS = 2
LONG_LABS = ("10", "11", "12", "13", "14")
WAITS_S = {"02b": 12, "02c": 7, "08a": 21, "08b": 21, "09a": 9, "09b": 9, "10a": 57, "10b": 80, "11b": 47}
"""Part -> seconds, where they come to more than a few."""
QUARTER = 15
ANSWER_CELL = re.compile(r"# exercise: (\S+)$", re.MULTILINE)
YOUR_TURN_CELL = re.compile(r'^answer\("(lab\d\d\.\w+)"', re.MULTILINE)

IN_A_SOURCE = re.compile(r"\{minutes(?::(\w+))?\}( minutes)?")
IN_A_PAGE = re.compile(r"(<!-- (minutes|hours) (\w+) -->)[^<]*(<!-- end -->)")
QUARTERS = {0: "", 15: "¼", 30: "½", 45: "¾"}


def cell_minutes(cell: Cell, part: str, points: Callable[[str], int]) -> float:
    """The minutes of one cell of a student's notebook. ``points``: what an exercise gives, by its id."""
    if cell.kind != "code":
        return len(cell.source.split()) / WORDS_A_MINUTE
    exercise = ANSWER_CELL.match(cell.source)
    if exercise:
        usual = LONG if part[:2] in LONG_LABS else USUAL
        return EASY if points(exercise[1]) <= EASY_POINTS else usual
    if cell.id:  # of a prediction
        return PREDICTION
    if asks_old_questions(cell):
        return OLD_QUESTIONS
    return YOUR_TURN if YOUR_TURN_CELL.search(cell.source) else CODE


def asks_old_questions(cell: Cell) -> bool:
    """Whether a cell is the lab's first, with three questions of the labs before it."""
    return cell.kind == "code" and any(line.startswith("old_questions(") for line in cell.source.splitlines())


def notebook_minutes(cells: Sequence[Cell], part: str, points: Callable[[str], int]) -> int:
    """The minutes of a notebook, in quarters of an hour and at least one quarter."""
    whole = sum(cell_minutes(cell, part, points) for cell in cells) + WAITS_S.get(part, 0) / 60
    return max(QUARTER, QUARTER * round(whole / QUARTER))


def asked_in(cells: Sequence[Cell]) -> Iterator[str]:
    """The ids of what a notebook asks, in order: predictions, your-turn tasks and exercises."""
    for cell in cells:
        if cell.kind == "code":
            found = ANSWER_CELL.match(cell.source) or YOUR_TURN_CELL.search(cell.source)
            if cell.id or found:
                yield cell.id or str(found and found[1])


def hours(minutes: int, *, in_prose: bool = False) -> str:
    """Minutes as a reader likes them.

    >>> hours(45), hours(135), hours(60, in_prose=True), hours(75, in_prose=True)
    ('45 min', '2¼ h', '1 hour', '1¼ hours')
    """
    if minutes < 60:
        return f"{minutes} {'minutes' if in_prose else 'min'}"
    quarter = 15 * round(minutes / 15)
    number = f"{quarter // 60}{QUARTERS[quarter % 60]}"
    return f"{number} h" if not in_prose else f"{number} hour{'s' * (quarter > 60)}"


def filled(text: str, own: int, where: str) -> str:
    """A text cell with the minutes and the paths in their places. ``own``: the minutes of this notebook."""

    def told(found: re.Match[str]) -> str:
        minutes = _known(found[1], where) if found[1] else own
        return hours(minutes, in_prose=bool(found[2]))

    if "{paths}" in text:
        text = text.replace("{paths}", path_rows())
    return IN_A_SOURCE.sub(told, text)


def path_rows() -> str:
    """The rows of the table of paths: name, time, room for the progress, pages, what one can do afterwards."""
    rows = []
    for path in PATHS:
        title = f"[**{path.title}**]({path_parts(path)[0].page}) `{path.name}`"
        time = hours(path_minutes(path)).replace(" ", "&nbsp;")
        done = f"<!-- progress {path.name} -->not begun<!-- end -->"
        rows.append(f"| {' | '.join((title, time, done, path.pages, path.afterwards))} |")
    return "\n".join(rows)


def _known(name: str, where: str) -> int:
    try:
        path = next((path for path in PATHS if path.name == name), None)
        return path_minutes(path) if path else minutes_of(name)
    except UsageError as error:
        raise UsageError(f"{where}: {error}", hint="build the lab first: make labs") from None


def filled_page(text: str, where: str) -> str:
    """A page of docs with the minutes between its marks.

    >>> filled_page("about an hour", "page.md")
    'about an hour'
    """

    def told(found: re.Match[str]) -> str:
        minutes = _known(found[3], where)
        return f"{found[1]}{minutes if found[2] == 'minutes' else hours(minutes)}{found[4]}"

    return IN_A_PAGE.sub(told, text)
