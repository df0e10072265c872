"""show_me(id): what the last check of an exercise failed on, to look at and to work with.

a call               its arguments by name; expected and found side by side; what differs has a mark
a world              the failing Lab in the explorer, at the first step that shows the mistake
an exception         the arguments with which it came

failed = show_me("lab07.schedule")
schedule(*failed.arguments.values())       the same call again, in a cell of one's own
"""

from __future__ import annotations

import difflib
import pprint
import textwrap
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from markupsafe import Markup

from mqlab.counts import counted
from mqlab.course.teach.exercises import Call, Finding, exercise
from mqlab.course.teach.said import Said
from mqlab.lab.views.view import View

if TYPE_CHECKING:
    from mqlab.lab.world.lab import Lab

WIDTH, MAX_LINES, LINES_AROUND = 44, 40, 3
MAX_ARGUMENT, MAX_CALL = 32, 110
MAX_ARGUMENT_LINES, BYTES_IN_A_ROW = 8, 16
SHORT_CAPTION = 60  # characters


@dataclass(frozen=True, repr=False)
class Failed(View):
    """A failed check: what was said, the call, and expected and found where they differ first."""

    said: Said
    call: Call | None = None
    finding: Finding | None = None

    @property
    def arguments(self) -> Mapping[str, object]:
        """The arguments of the failing call by name, in order; empty where no single call failed."""
        return self.call.arguments if self.call is not None else {}

    @property
    def lab(self) -> Any:
        """The failing world; None where no world failed."""
        return self.finding.lab if self.finding is not None else None

    def text(self) -> str:
        parts = [self.said.text().partition("\n")[0]]
        if self.call is not None:
            parts += ["  called with", *(f"    {name} = {value!r}" for name, value in self.arguments.items())]
        if self.finding is not None:
            parts.append(f"  {self.finding.first_wrong}")
            parts += [f"  {mark} {left:<{WIDTH}} │ {right}".rstrip() for mark, left, right in self._sides()]
        return "\n".join(parts)

    def html(self) -> Markup:
        head = self.said.__class__(self.said.state, self.said.headline).html()
        return Markup("<div>{}{}{}</div>").format(head, self._sides_html(), self._arguments_html())

    def _sides(self) -> list[tuple[str, str, str]]:
        assert self.finding is not None
        return side_by_side(self.finding.expected, self.finding.found)

    def _arguments_html(self) -> Markup:
        if self.call is None:
            return Markup("")
        row = Markup('<tr><th scope="row" style="text-align:left">{}</th>{}</tr>')
        value_cell = Markup('<td style="text-align:left"><pre>{}</pre></td>')
        rows = Markup("").join(
            row.format(name, value_cell.format(_clipped(value))) for name, value in self.arguments.items()
        )
        about = f" ({self.call.about})" if self.call.about else ""
        return Markup("<table>{}<tbody>{}</tbody></table>").format(_caption(f"It was called with{about}"), rows)

    def _sides_html(self) -> Markup:
        if self.finding is None:
            return Markup("")
        return sides_table(self._sides(), caption=_caption(self.finding.first_wrong))

    def _ipython_display_(self) -> None:
        """In a notebook: the call, or the failing world in the explorer."""
        from IPython.display import display

        display(self._repr_mimebundle_(), raw=True)  # type: ignore[no-untyped-call]
        world = world_of(self.finding)
        if world is not None:
            display(world)  # type: ignore[no-untyped-call]


def sides_table(sides: list[tuple[str, str, str]], *, caption: str | Markup = "", more: int = 0) -> Markup:
    """Rows of ``side_by_side`` as a table; ``more`` rows are left out below."""
    mark = Markup('<td aria-label="{}">{}</td>')
    rows = Markup("").join(
        Markup("<tr>{}{}{}</tr>").format(
            mark.format("differs" if sign == "≠" else "same", sign), _side(left), _side(right)
        )
        for sign, left, right in [*sides, *([("", f"… {counted(more, 'more lines')}", "")] if more else [])]
    )
    head = Markup('<th scope="col" style="text-align:left">{}</th>')
    heads = Markup("").join(head.format(name) for name in ("", "expected", "found"))
    return Markup("<table>{}<thead><tr>{}</tr></thead><tbody>{}</tbody></table>").format(caption, heads, rows)


def _side(line: str) -> Markup:
    cell = '<td style="text-align:left"><code style="white-space:pre-wrap">{}</code></td>' if line else "<td>{}</td>"
    return Markup(cell).format(line)


def _caption(words: str) -> Markup:
    """A table's caption: a short one in one line; a long one is broken, and makes no table wider than the page."""
    width = "white-space:nowrap" if len(words) <= SHORT_CAPTION else "min-width:min(40em,80vw)"
    return Markup('<caption style="text-align:left;{}">{}</caption>').format(width, words)


def world_of(finding: Finding | None) -> Any:
    """The failing Lab in the explorer, at the finding's step; its timeline if no story made it; None without a Lab."""
    if finding is None or finding.lab is None:
        return None
    telling = finding.lab.telling
    if telling is None:
        return finding.lab.timeline(last_step=finding.step)
    from mqlab.course.widgets import explore

    explorer = explore(telling.story, seed=finding.lab.seed, **telling.settings)
    if finding.step is not None:
        go_to_step(explorer, finding.lab, finding.step)
    return explorer


def go_to_step(explorer: Any, lab: Lab, step: int) -> None:
    """Move an explorer of a Lab's story to the last stop that is not after a step."""
    from mqlab.lab.views.moments import moments

    stops = {moment.step for moment in moments(lab.journal) if moment.step is not None and moment.step <= step}
    position = min(len(stops), len(explorer.stepper))
    explorer.stepper.go_to(position)
    # A board has its position in its state as well.
    if hasattr(explorer, "state"):
        explorer.set("position", position)


_failed: dict[str, Failed] = {}


def remember(exercise_id: str, failed: Failed | None) -> None:
    """Keep what a check failed on, or that it did not fail."""
    _failed.pop(exercise_id, None)
    if failed is not None:
        _failed[exercise_id] = failed


def failed_of(exercise_id: str) -> Failed | None:
    """What the last check of an exercise failed on; None where there is nothing to show."""
    return _failed.get(exercise_id)


def show_me(exercise_id: str) -> View:
    """What the last check of an exercise failed on. UsageError for an unknown exercise."""
    asked = exercise(exercise_id)
    if asked.id not in _failed:
        note = f'Run check("{asked.id}"). If it finds something wrong, show_me("{asked.id}") shows it.'
        return Said("open", f"{asked.id}: no failed check to show", note=note)
    return _failed[asked.id]


def short_call(call: Call, name: str) -> str:
    """A call of a function in one line; long arguments are cut, and a function is its parameter's name.

    >>> short_call(Call(levels="1s 5s", read=print, log=list(range(100))), "schedule")
    "schedule(levels='1s 5s', read, log=[0, 1, 2, 3, 4, 5, 6, 7, 8, 9, … (100 items))"
    """
    parts = [name if callable(value) else f"{name}={_short(value)}" for name, value in call.arguments.items()]
    text = f"{name or 'called'}({', '.join(parts)})"
    return text if len(text) <= MAX_CALL else f"{text[: MAX_CALL - 1]}…"


def _short(value: object) -> str:
    text = repr(value)
    if len(text) <= MAX_ARGUMENT:
        return text
    size = f" ({len(value)} bytes)" if isinstance(value, bytes) else ""
    size = f" ({len(value)} items)" if isinstance(value, (list, tuple, dict, set)) else size
    return f"{text[: MAX_ARGUMENT - 1]}…{size}"


def _lines(value: object) -> list[str]:
    """A value's text in lines that fit; what has a text of its own is one long line for pprint."""
    lines = pprint.pformat(value, width=WIDTH, sort_dicts=False).splitlines()
    return [piece for line in lines for piece in (textwrap.wrap(line, WIDTH, drop_whitespace=False) or [line])]


def _clipped(value: object) -> str:
    """An argument's beginning. Long bytes are shown as rows of sixteen, as hexdumps have them."""
    if callable(value):
        return "a function"
    if isinstance(value, bytes) and len(value) > BYTES_IN_A_ROW:
        rows = range(0, min(len(value), MAX_ARGUMENT_LINES * BYTES_IN_A_ROW), BYTES_IN_A_ROW)
        lines = [f"{start:04x}  {value[start : start + BYTES_IN_A_ROW].hex(' ')}" for start in rows]
        return "\n".join([*lines, f"{len(value)} bytes"])
    lines = _lines(value)
    left_out = len(lines) - MAX_ARGUMENT_LINES
    return "\n".join(lines if left_out <= 0 else [*lines[:MAX_ARGUMENT_LINES], f"… {counted(left_out, 'more lines')}"])


def side_by_side(expected: object, found: object) -> list[tuple[str, str, str]]:
    """Rows of (mark, expected, found): "≠" marks what differs. Only lines near a difference, at most MAX_LINES.

    >>> side_by_side([1, 2], [1, 3])
    [('≠', '[1, 2]', '[1, 3]')]
    """
    left, right = _lines(expected), _lines(found)
    rows: list[tuple[str, str, str]] = []
    for kind, a, b, c, d in difflib.SequenceMatcher(None, left, right, autojunk=False).get_opcodes():
        height = max(b - a, d - c)
        expected_lines, other = (lines + [""] * (height - len(lines)) for lines in (left[a:b], right[c:d]))
        mark = " " if kind == "equal" else "≠"
        rows += [(mark, *pair) for pair in zip(expected_lines, other, strict=True)]
    # Equal values of different types look alike as text only if their texts are equal.
    differing = [number for number, row in enumerate(rows) if row[0] == "≠"]
    if not differing:
        return [("≠", *row[1:]) for row in rows[:MAX_LINES]]
    first = max(differing[0] - LINES_AROUND, 0)
    last = min(differing[-1] + LINES_AROUND + 1, first + MAX_LINES)
    above = [("", f"… {first} lines", f"… {first} lines")] if first else []
    below = [("", f"… {len(rows) - last} lines", "")] if last < len(rows) else []
    return [*above, *rows[first:last], *below]
