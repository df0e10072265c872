"""Calls an answer, and hears what it printed instead of returning it.

Pure and Fields exercises use it. An exception keeps the call during which it came, as ``mqlab_call``.
"""

from __future__ import annotations

import contextlib
import io
import sys
from collections.abc import Iterator
from typing import Any

from mqlab.course.teach.exercises import Answers, Call

HEARD_CHARACTERS = 4_000


class _Heard(io.TextIOBase):
    """Passes everything on, and keeps the beginning of it."""

    def __init__(self, on: Any) -> None:
        self._on, self.text = on, ""

    def write(self, text: str) -> int:
        if len(self.text) < HEARD_CHARACTERS:
            self.text += text
        self._on.write(text)
        return len(text)

    def flush(self) -> None:
        self._on.flush()


@contextlib.contextmanager
def hearing() -> Iterator[_Heard]:
    """What is printed meanwhile; it is printed all the same."""
    heard = _Heard(sys.stdout)
    with contextlib.redirect_stdout(heard):
        yield heard


def ask(answers: Answers, name: str, call: Call) -> tuple[Any, str]:
    """What an answer returns for a call, and what it printed. It gets copies of lists: it may empty them."""
    arguments = [_copied(value) for value in call.arguments.values()]
    with hearing() as heard, marked(call):
        answer = answers[call.to or name](*arguments)
    return answer, heard.text


def _copied(value: Any) -> Any:
    """A copy of lists, dictionaries and sets, with what is in them; everything else as it is."""
    if type(value) is dict:
        return {key: _copied(inner) for key, inner in value.items()}
    if type(value) in (list, tuple):
        return type(value)(map(_copied, value))
    return set(value) if type(value) is set else value


@contextlib.contextmanager
def marked(call: Call) -> Iterator[None]:
    """An exception that comes out of this is told with the call."""
    try:
        yield
    except Exception as error:
        with contextlib.suppress(AttributeError, TypeError):
            error.mqlab_call = call  # type: ignore[attr-defined]
        raise
