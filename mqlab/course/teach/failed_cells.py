"""Which names a notebook's cells failed to define. A check reports the error and does not judge an older definition.

``check`` asks it before it judges an answer.

    cell "def read_unit(log, start): return ("    SyntaxError; read_unit stays what it was: nothing, or an older answer
    check("lab01.unit")                           "the cell that defines read_unit failed", the error and its line

A cell that was edited and not run again is unknown to the kernel.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

from mqlab.notebook import running_shell

DEFINED = re.compile(
    r"^(?:[ \t]*(?:async[ \t]+)?(?:def|class)[ \t]+|(?=\w+[ \t]*(?::[^=\n]*)?=[^=]))(\w+)", re.MULTILINE
)


def names_in(source: str) -> list[str]:
    """The names that a cell would define, even if the cell is not valid Python yet.

    >>> names_in("K = 2\\ndef twice(x):\\n    return (K * x")
    ['K', 'twice']
    """
    return DEFINED.findall(source)


class FailedCells:
    """Watches the cells of one notebook. ``errors`` maps a name to the error that kept it from being defined."""

    def __init__(self, names: Mapping[str, Any]) -> None:
        self.errors: dict[str, BaseException] = {}
        self._names = names
        self._before: dict[str, Any] = {}

    def before(self, info: Any) -> None:
        """IPython's pre_run_cell."""
        self._before = {name: self._names.get(name) for name in names_in(info.raw_cell)}

    def after(self, result: Any) -> None:
        """IPython's post_run_cell."""
        error = result.error_before_exec or result.error_in_exec
        # A name that still has its old value was not defined by a cell that failed.
        for name, value in self._before.items():
            if error is not None and self._names.get(name) is value:
                self.errors[name] = error
            else:
                self.errors.pop(name, None)
        self._before = {}


_watched: FailedCells | None = None


def watch_cells() -> None:
    """Start watching, once, if this process is a notebook's kernel."""
    global _watched
    shell = running_shell()
    if shell is None or _watched is not None:
        return
    _watched = FailedCells(shell.user_ns)
    shell.events.register("pre_run_cell", _watched.before)
    shell.events.register("post_run_cell", _watched.after)


def failure_of(names: Iterable[str]) -> tuple[str, BaseException] | None:
    """The first of the names that its last cell failed to define, with the error; None if all are defined."""
    failures = _watched.errors if _watched is not None else {}
    return next(((name, failures[name]) for name in names if name in failures), None)
