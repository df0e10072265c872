"""What a notebook shows of a failed check: the call or the moment, expected and found, a picture, and two buttons.

    ✗ lab07.schedule: The delay of retry n is that of level n + 2
      retry 1 of 5                          the first lines of show_me
      schedule(levels='1s 5s', most=5)
      ≠ [(10, 10), …      [(1, 1), …
      [Show me] [Hint]                      both are answered below, by the kernel

A check that fails still ends its cell as an error does, so that Run All stops there. Its own display takes the place of
the red box: IPython calls ``show_failure`` for it. Outside of a notebook's kernel the error has its lines of text.
"""

from __future__ import annotations

import functools
import secrets
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

from markupsafe import Markup

from mqlab.course.teach.clicking import can_be_clicked, show
from mqlab.course.teach.hints import hint
from mqlab.course.teach.said import EDGES, MARKS, AskedWrongly, Said, with_marks
from mqlab.course.teach.showing import Failed, failed_of, side_by_side, sides_table
from mqlab.lab.views.view import View, image
from mqlab.notebook import running_shell

MODULE = Path(__file__).with_name("failed.js")
LINES, MOMENTS = 6, 6
ASIDE = {"first wrong", "expected", "found", "call"}
"""Facts that have a place of their own in the picture of a finding."""
BOX = """<div{place} style="margin-top:4px">{words}
<script type="module">const mount = window.mqlabMounts?.get("{name}");
if (mount) document.querySelectorAll('[data-mqlab-place="{name}"]').forEach(mount);</script></div>"""


class FirstLook(View):
    """The first lines of what a check failed on. ``failed`` is None where show_me has nothing to show."""

    def __init__(self, said: Said, failed: Failed | None = None, *, place_id: str = "") -> None:
        self.said, self.failed, self.place = said, failed, place_id

    def text(self) -> str:
        return self.said.text()

    def html(self) -> Markup:
        finding = self.failed.finding if self.failed is not None else None
        facts = [(name, value) for name, value in self.said.facts if finding is None or name not in ASIDE]
        call = next((value for name, value in self.said.facts if name == "call"), "")
        parts = [Markup("<div>{} <b>{}</b></div>").format(MARKS["bad"], with_marks(self.said.headline))]
        if finding is not None:
            parts.append(Markup("<div>{}</div>").format(finding.first_wrong))
            parts.append(Markup("<div><code>{}</code></div>").format(call) if call else Markup(""))
            rows = side_by_side(finding.expected, finding.found)
            parts.append(sides_table(rows[:LINES], more=max(len(rows) - LINES, 0)))
        parts += [Said("bad", "", facts).facts_html(), self._picture(), self._below()]
        edge = f"border-left:4px solid {EDGES['bad']};padding:4px 12px"
        return Markup('<div style="{}">{}</div>').format(edge, Markup("").join(parts))

    def _picture(self) -> Markup:
        """The last moments of the failing world up to the step that shows the mistake."""
        finding = self.failed.finding if self.failed is not None else None
        if finding is None or finding.lab is None or finding.step is None:
            return Markup("")
        from mqlab.lab.views.moments import moments
        from mqlab.lab.views.timeline import Timeline

        shown = list(moments(finding.lab.journal, None, 0, finding.step))[-MOMENTS:]
        start_ms = finding.lab.timeline(last_step=finding.step).start_ms
        drawn = Timeline(shown, start_ms=start_ms)
        return image(drawn.svg(), drawn.alt) if shown else Markup("")

    def _below(self) -> Markup:
        """Room for the buttons; until they are there, and in a saved notebook, what to call."""
        words = Markup("<div>{}</div>").format(with_marks(self.said.note)) if self.said.note else Markup("")
        return room_for_buttons(self.place, words) if self.place else words


def show_failure(shell: Any, kind: type, error: Any, trace: Any, tb_offset: int | None = None) -> None:
    """IPython's handler: show a failed check, or a call of a wrong form, in place of a traceback."""
    if isinstance(error, AskedWrongly):
        show(Said("bad", error.text, note=error.hint)._repr_mimebundle_())
        return
    exercise_id = getattr(error, "exercise_id", "")
    failed = failed_of(exercise_id) if exercise_id else None
    if not exercise_id or not can_be_clicked():
        show(FirstLook(error.said, failed)._repr_mimebundle_())
        return
    asks = [["show_me", "Show me"]] * (failed is not None) + [["hint", "Hint"]]
    show_with_buttons(
        lambda place_id: FirstLook(error.said, failed, place_id=place_id),
        asks,
        lambda ask: answer_to(ask, exercise_id, failed),
    )


def show_with_buttons(
    look: Callable[[str], View], asks: list[list[str]], answer: Callable[[str], Markup], *, place_id: str = ""
) -> None:
    """Show a view with buttons under it, each a pair of what it asks and its text; a click brings ``answer(ask)``.

    ``look`` makes the view around the place of the buttons, which has another id each time unless one is given.
    """
    from mqlab.course.widgets.frame.places import view_entry

    buttons = _kind()(place=place_id or secrets.token_hex(8), asks=asks)
    buttons.on_msg(lambda _, asked, __: buttons.send({"html": str(answer(asked.get("ask", "")))}))
    show({**look(buttons.place)._repr_mimebundle_(), **view_entry(buttons)})


def room_for_buttons(place_id: str, words: Markup) -> Markup:
    """Where the buttons of a place are; until they are there, and in a saved notebook, these words."""
    from mqlab.course.widgets.frame.places import place_attribute

    return Markup(BOX).format(place=place_attribute(place_id), words=words, name=place_id)


def answer_to(asked: str, exercise_id: str, failed: Failed | None) -> Markup:
    """What a click brings: the next hint, or the whole of what the check failed on with its world's timeline."""
    if asked == "hint" or failed is None:
        reply = hint(exercise_id)
        return replace(reply, note=reply.note.replace("Run the cell", "Press *Hint*")).html()
    if failed.lab is None:
        return failed.html()
    step = failed.finding.step if failed.finding is not None else None
    more = f'Run `show_me("{exercise_id}")` in a cell of its own to step through this world.'
    return Markup("{}{}<div>{}</div>").format(
        failed.html(), failed.lab.timeline(last_step=step).html(), with_marks(more)
    )


def show_failures(*kinds: type) -> None:
    """From now on errors of these kinds are shown in this notebook; nothing outside of a notebook's kernel."""
    shell = running_shell()
    if shell is not None and getattr(shell, "kernel", None) is not None:
        shell.set_custom_exc((*kinds, AskedWrongly), show_failure)


@functools.cache
def _kind() -> type:
    """The widget's class, made when it is first needed: anywidget is imported late."""
    import anywidget
    import traitlets

    from mqlab.course.widgets.frame.bundle import bundled

    class CheckButtons(anywidget.AnyWidget):
        """The buttons under a check: pairs of what a click asks and what the button says."""

        _esm = bundled(MODULE.read_text("utf-8"), "teach")
        place = traitlets.Unicode().tag(sync=True)
        asks: traitlets.List[Any] = traitlets.List().tag(sync=True)

    return CheckButtons
