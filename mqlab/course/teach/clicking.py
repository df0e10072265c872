"""A prediction that is clicked: radio buttons in the notebook, and the answer kept in the cell's saved output.

``predict("lab00.audit")`` shows two outputs in its cell. Each has a display id, so that it can be changed later.

    the question       the choices as HTML; a widget puts radio buttons there while it may be answered
    the answer         what was chosen; next to text and HTML it carries PREDICTION_MIME, which mqlab reads as data

A click changes the second output only, so the focus stays on the button. When the notebook is saved, both are in it,
and neither needs the widget: opened without its kernel, the notebook shows the choices and the answer.
JupyterLab forgets which output belongs to which display id when a notebook is closed or the page is loaded again. A
click is noted in the kernel then, but its output does not change; the buttons see that and ask to run the cell again.
Without anywidget, and outside of a notebook's kernel, there is the static question with its Python form. The
widgets are imported when a question is shown: a process that grades imports this module, too, and shows none.
"""

from __future__ import annotations

import functools
import secrets
from collections.abc import Callable
from pathlib import Path
from typing import Any

from markupsafe import Markup

from mqlab.course.teach.exercises import Prediction
from mqlab.course.teach.said import with_marks
from mqlab.lab.views.view import View
from mqlab.notebook import running_shell

PREDICTION_MIME = "application/vnd.mqlab.prediction+json"
VERSION = 1
MODULE = Path(__file__).with_name("question.js")
HOW_TO_CHOOSE = "Run this cell to choose."
BOX = """<div{place}>{choices}<div><i>{how}</i></div>
<script type="module">const mount = window.mqlabMounts?.get("{name}");
if (mount) document.querySelectorAll('[data-mqlab-place="{name}"]').forEach(mount);</script></div>"""


def answer_data(prediction_id: str, answer: object, *, before_reveal: bool) -> dict[str, object]:
    """What a saved output says of an answer. It is an answer to be counted when it was given before the reveal."""
    return {"version": VERSION, "prediction": prediction_id, "answer": str(answer), "before_reveal": before_reveal}


def can_be_clicked() -> bool:
    """Whether this process is the kernel of a notebook and has what a click needs."""
    shell = running_shell()
    if shell is None or getattr(shell, "kernel", None) is None:
        return False
    try:
        import anywidget  # noqa: F401
    except ImportError:
        return False
    return True


class CellQuestion:
    """The two outputs of one cell. ``answered``: what the second one shows now."""

    def __init__(
        self,
        asked: Prediction,
        chosen: str,
        answered: View,
        on_click: Callable[[str], None],
        legend: str = "Your prediction",
    ) -> None:
        from mqlab.course.widgets.frame.places import view_entry

        self._buttons = _buttons(asked, chosen, on_click, legend)
        self._place = self._buttons.place
        self._question = show({**to_click(asked, chosen, self._place), **view_entry(self._buttons)})
        self._answer = show(self._kept(answered, chosen))

    def say(self, answered: View, chosen: str) -> None:
        """Show what was answered, and tell the buttons that it is there to be seen."""
        self._answer.update(self._kept(answered, chosen), raw=True)
        self._buttons.send({"kept": chosen})

    def close(self, asked: Prediction, chosen: str, answered: View) -> None:
        """The run has shown what happens: the buttons become text."""
        self._question.update(static_choices(asked, chosen), raw=True)
        self.say(answered, chosen)
        self._buttons.close()

    def _kept(self, answered: View, chosen: str) -> dict[str, Any]:
        """The answer's output, which the buttons know by its place and its choice."""
        bundle = answered._repr_mimebundle_()
        marked = Markup('<div data-mqlab-kept="{}" data-chosen="{}">{}</div>')
        return {**bundle, "text/html": str(marked.format(self._place, chosen, Markup(bundle["text/html"])))}


def show(bundle: dict[str, Any]) -> Any:
    """Show a bundle of MIME types in the cell; the handle that can change it later."""
    from IPython.display import display

    return display(bundle, raw=True, display_id=True)  # type: ignore[no-untyped-call]


def static_choices(asked: Prediction, chosen: str) -> dict[str, str]:
    """The question and its choices as plain text and HTML; the chosen one is marked."""
    lines = [(("●" if key == chosen else "○"), key, text) for key, text in asked.choices]
    text = "\n".join([asked.question, *(f"  {mark} {key}: {words}" for mark, key, words in lines)])
    line = Markup("<div>{} <b>{}</b>: {}</div>")
    items = Markup("").join(line.format(mark, key, with_marks(words)) for mark, key, words in lines)
    box = Markup('<div><div>{}</div><div style="padding-left:12px">{}</div></div>')
    html = box.format(with_marks(asked.question), items)
    return {"text/plain": text, "text/html": str(html)}


def to_click(asked: Prediction, chosen: str, place_id: str) -> dict[str, str]:
    """The choices as a box into which the widget with this place puts its buttons."""
    from mqlab.course.widgets.frame.places import place_attribute

    static = static_choices(asked, chosen)
    choices = Markup(static["text/html"])
    box = Markup(BOX).format(place=place_attribute(place_id), choices=choices, how=HOW_TO_CHOOSE, name=place_id)
    return {"text/plain": static["text/plain"], "text/html": str(box)}


def _buttons(asked: Prediction, chosen: str, on_click: Callable[[str], None], legend: str) -> Any:
    buttons = _kind()(
        question=asked.question,
        choices=[list(choice) for choice in asked.choices],
        answer=chosen,
        legend=legend,
        place=secrets.token_hex(8),
    )
    buttons.observe(lambda change: on_click(change["new"]), names="answer")
    return buttons


@functools.cache
def _kind() -> type:
    """The widget's class, made when it is first needed: anywidget is imported late."""
    import anywidget
    import traitlets

    from mqlab.course.widgets.frame.bundle import bundled

    class QuestionButtons(anywidget.AnyWidget):
        """A question, its choices, and the answer that was clicked ("" before)."""

        _esm = bundled(MODULE.read_text("utf-8"), "teach")
        question = traitlets.Unicode().tag(sync=True)
        choices: traitlets.List[Any] = traitlets.List().tag(sync=True)
        answer = traitlets.Unicode().tag(sync=True)
        legend = traitlets.Unicode().tag(sync=True)
        place = traitlets.Unicode().tag(sync=True)

    return QuestionButtons
