"""Counts the lines of a learner's own files while one node's listeners run, and can act before one of them.

Mirrors: nothing in RocketMQ. ``every_crash`` kills a node before each line of its listener with it.

    coroutine of the node ──▶ sys.settrace ──▶ reached("pay line 7") ──▶ number 12? act()

Left out: lines of the package, of the standard library and of installed packages.
"""

from __future__ import annotations

import os
import sys
import sysconfig
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import CodeType, FrameType
from typing import TYPE_CHECKING, Any

import greenlet

if TYPE_CHECKING:
    from mqlab.runtime.sim_workers import ListenerCoroutine

# Whose code is not a learner's, as beginnings of file names; "<string>": methods that dataclasses make.
_OTHERS_CODE = (
    f"{Path(__file__).parents[1]}{os.sep}",  # with its end: a learner's folder may be called mqlab-notes
    *(f"{sysconfig.get_path(name)}{os.sep}" for name in ("stdlib", "platstdlib", "purelib", "platlib")),
    "<frozen",
    "<string>",
)
_INSTALLED = (f"{os.sep}site-packages{os.sep}", f"{os.sep}dist-packages{os.sep}")


class LineWatch:
    """Counts the lines of the learner's own files that one node's listeners run, and acts before one of them.

    Lines are counted in the files that define the listeners (a notebook cell is a file).
    """

    def __init__(self, node: str, before_line: int | None = None, act: Callable[[], None] = lambda: None) -> None:
        self.node = node
        self.lines: list[str] = []
        self._before_line = before_line
        self._act = act

    @contextmanager
    def watching(self, coroutine: ListenerCoroutine) -> Iterator[None]:
        """Trace what a coroutine runs from here to its next wait."""
        if coroutine.workers.node.name != self.node:
            yield
            return
        before = sys.gettrace()
        sys.settrace(self._called)
        try:
            yield
        finally:
            sys.settrace(before)

    def _called(self, frame: FrameType, event: str, argument: Any) -> Any:
        return self._line if _is_learners(frame.f_code) else None

    def _line(self, frame: FrameType, event: str, argument: Any) -> Any:
        if event == "line":
            self.reached(f"{frame.f_code.co_name} line {frame.f_lineno}")
        return self._line

    def reached(self, where: str) -> None:
        """A listener is about to run this line: count it, and if it is the one, act. NodeDown when that was a kill."""
        number = len(self.lines)
        self.lines.append(where)
        if number == self._before_line:
            self._act()
            coroutine = greenlet.getcurrent()
            assert coroutine.parent is not None
            coroutine.parent.switch()  # the world kills the node; NodeDown is raised here


def _is_learners(code: CodeType) -> bool:
    name = code.co_filename
    return not name.startswith(_OTHERS_CODE) and not any(folder in name for folder in _INSTALLED)
