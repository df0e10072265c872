"""A prediction that is clicked: radio buttons in the notebook, and the answer kept in the cell's saved output.

``predict("lab00.audit")`` shows two outputs in its cell. Each has a display id, so that it can be changed later.

    the question       radio buttons while it may be answered; the static choices once the run has shown what happens
    the answer         what was chosen; beside text and HTML it carries PREDICTION_MIME, which mqlab reads as data

A click changes the second output only, so the focus stays on the button. When the notebook is saved, both are in it.
After a notebook was closed and opened again, its cell is run again before it is clicked: JupyterLab has forgotten then
which output belongs to which display id.
Without anywidget, and outside of a notebook's kernel, there is the static question with its Python form.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from pathlib import Path
from typing import Any

from mqlab.notebook import running_shell
from mqlab.teach.exercises import Prediction
from mqlab.views.view import View

PREDICTION_MIME = "application/vnd.mqlab.prediction+json"
VERSION = 1
MODULE = Path(__file__).with_name("question.js")


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


class Question:
    """The two outputs of one cell. ``answered``: what the second one shows now."""

    def __init__(self, asked: Prediction, chosen: str, answered: View, on_click: Callable[[str], None]) -> None:
        self._buttons = _buttons(asked, chosen, on_click)
        # The text twins are for whoever opens the saved notebook where there are no widgets.
        texts = static_choices(asked, chosen)
        widget, *_ = self._buttons._repr_mimebundle_()  # and metadata, of which there is none
        self._question = show({**widget, **texts})
        self._answer = show(answered._repr_mimebundle_())

    def say(self, answered: View) -> None:
        """Show what was answered."""
        self._answer.update(answered._repr_mimebundle_(), raw=True)

    def close(self, asked: Prediction, chosen: str, answered: View) -> None:
        """The run has shown what happens: the buttons become text."""
        self._question.update(static_choices(asked, chosen), raw=True)
        self.say(answered)
        self._buttons.close()


def show(bundle: dict[str, Any]) -> Any:
    """Show a bundle of MIME types in the cell; the handle that can change it later."""
    from IPython.display import display

    return display(bundle, raw=True, display_id=True)  # type: ignore[no-untyped-call]


def static_choices(asked: Prediction, chosen: str) -> dict[str, str]:
    """The question and its choices as plain text and HTML; the chosen one is marked."""
    from markupsafe import Markup

    lines = [(("●" if key == chosen else "○"), key, text) for key, text in asked.choices]
    text = "\n".join([asked.question, *(f"  {mark} {key}: {words}" for mark, key, words in lines)])
    items = Markup("").join(Markup("<div>{} <b>{}</b>: {}</div>").format(*line) for line in lines)
    html = Markup('<div><div>{}</div><div style="padding-left:12px">{}</div></div>').format(asked.question, items)
    return {"text/plain": text, "text/html": str(html)}


def _buttons(asked: Prediction, chosen: str, on_click: Callable[[str], None]) -> Any:
    buttons = _kind()(question=asked.question, choices=[list(choice) for choice in asked.choices], answer=chosen)
    buttons.observe(lambda change: on_click(change["new"]), names="answer")
    return buttons


@functools.cache
def _kind() -> type:
    """The widget's class, made when it is first needed: anywidget is imported late."""
    import anywidget
    import traitlets

    class QuestionButtons(anywidget.AnyWidget):
        """A question, its choices, and the answer that was clicked ("" before)."""

        _esm = MODULE.read_text("utf-8")
        question = traitlets.Unicode().tag(sync=True)
        choices: traitlets.List[Any] = traitlets.List().tag(sync=True)
        answer = traitlets.Unicode().tag(sync=True)

    return QuestionButtons
