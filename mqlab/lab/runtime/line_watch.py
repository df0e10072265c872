"""Counts the lines of a learner's own files while one node's listeners run, and can act before one of them.

``every_crash`` uses it to kill a node before each line of its listener.

    coroutine of the node ──▶ sys.settrace ──▶ reached("pay line 7") ──▶ number 12? act()

Where the listener runs in another process, that process reports its lines, and the judge counts what the listener
asks of it as well: ``requested("commit")``. Whatever such a process hides, its requests are places to die.

Left out: lines of the package, of the standard library and of installed packages.
"""

from __future__ import annotations

import os
import sys
import sysconfig
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Any

from mqlab.lab.runtime.stacks import current_stack

if TYPE_CHECKING:
    from mqlab.lab.runtime.sim_workers import ListenerCoroutine

# File names of code that is not a learner's begin so.
_OTHERS_CODE = (
    f"{Path(__file__).parents[2]}{os.sep}",  # with its end: a learner's folder may be called mqlab-notes
    *(f"{sysconfig.get_path(name)}{os.sep}" for name in ("stdlib", "platstdlib", "purelib", "platlib")),
    *(f"{entry}{os.sep}" for entry in sys.path if entry.endswith(".zip")),  # a browser's standard library
    "<frozen",
)
NAMEDTUPLE = "namedtuple_"  # so begins the module's name in the code that collections.namedtuple makes
_INSTALLED = (f"{os.sep}site-packages{os.sep}", f"{os.sep}dist-packages{os.sep}")


class LineWatch:
    """Counts the lines of the learner's own files that one node's listeners run, and acts before one of them.

    Lines are counted in the files that define the listeners (a notebook cell is a file), ``requests`` by the judge.
    ``before``: the kind ("line" or "request") and number of the place to act at. ``kills``: the act kills the node as
    soon as the world has control; otherwise the listener goes on with the line after it.
    """

    def __init__(
        self,
        node: str,
        before: tuple[str, int] | None = None,
        act: Callable[[], None] = lambda: None,
        *,
        kills: bool = True,
    ) -> None:
        self.node = node
        self.lines: list[str] = []
        self.requests: list[str] = []
        self._before = before
        self._act = act
        self._kills = kills

    @contextmanager
    def watching(self, coroutine: ListenerCoroutine) -> Iterator[None]:
        """Trace the lines that a coroutine runs from here to its next wait."""
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
        return self._line if is_learners(frame) else None

    def _line(self, frame: FrameType, event: str, argument: Any) -> Any:
        if event == "line":
            self.reached(f"{frame.f_code.co_name} line {frame.f_lineno}")
        return self._line

    def reached(self, where: str) -> None:
        """Count a line that is about to run, and act before the chosen one; NodeDown if that killed the node."""
        self._count("line", self.lines, where)

    def requested(self, what: str) -> None:
        """The same for what a listener is about to get done by the judge."""
        self._count("request", self.requests, what)

    def _count(self, kind: str, places: list[str], where: str) -> None:
        here = kind, len(places)
        places.append(where)
        if here == self._before:
            self._act()
            if not self._kills:
                return
            coroutine = current_stack()
            assert coroutine.parent is not None
            coroutine.parent.switch()  # the world kills the node; NodeDown is raised here


def is_learners(frame: FrameType) -> bool:
    """Whether a frame runs a learner's own code, also where it is made of a text; not what dataclasses generate."""
    name = frame.f_code.co_filename
    if name == "<string>":
        generated = frame.f_code.co_name.startswith("__") or str(frame.f_globals.get("__name__")).startswith(NAMEDTUPLE)
        return not generated
    return not name.startswith(_OTHERS_CODE) and not any(folder in name for folder in _INSTALLED)
