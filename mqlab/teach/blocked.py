"""Ends a check whose answer waits in real time for something that only the simulation could bring.

Listeners of a Lab take turns in one thread, so a lock that another listener holds is never released while one waits:

    listener 1: lock.acquire()  context.sleep("1s") ─▶ listener 2: lock.acquire() ─▶ nothing goes on any more

    a thread looks twice a second: the same line of the learner's for 6 s, and no processor time used
        ─▶ SIGINT, twice, to the thread that waits ─▶ KeyboardInterrupt there ─▶ the check says which line, what to use

On Windows a wait for a lock cannot be interrupted from inside; the learner's own interrupt is told the same words.
"""

from __future__ import annotations

import linecache
import signal
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from types import FrameType
from typing import Any

WAITS_S = 6.0  # longer than SQLite waits for a lock before it raises
LOOK_EVERY_S = 0.5
BUSY_SHARE = 0.1
"""A thread that used less than this share of the time was waiting and not computing."""

RULE = (
    "Your code waits in real time, and the simulation stands still meanwhile: what it waits for cannot happen. Locks, "
    "queues and events of Python do not know the Lab's time"
)
FOUND = f"nothing went on for {WAITS_S:g} s of real time"
USE = 'with lab.resource("name", slots=1): … is a lock in the Lab\'s time, and context.sleep("1s") is a sleep in it'


@dataclass(frozen=True, slots=True)
class Place:
    """The learner's line at which a thread waits."""

    function: str
    line: int
    text: str

    def __str__(self) -> str:
        return f"line {self.line} of {self.function}" + (f": {self.text}" if self.text else "")


class BlockWatch:
    """While it is open, a wait in real time in the learner's code is interrupted; ``place`` then says where it was."""

    def __init__(self, is_theirs: Callable[[str], bool], waits_s: float) -> None:
        self.place: Place | None = None
        self._is_theirs = is_theirs
        self._waits_s = waits_s
        self._watched = threading.get_ident()
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._look, name="mqlab-block-watch", daemon=True)
        self._can_interrupt = threading.current_thread() is threading.main_thread() and hasattr(signal, "pthread_kill")
        self._before: Any = None

    def __enter__(self) -> BlockWatch:
        if self._can_interrupt:  # a process in the background of a shell ignores SIGINT
            self._before = signal.signal(signal.SIGINT, signal.default_int_handler)
        self._thread.start()
        return self

    def __exit__(self, *error: object) -> None:
        self._over.set()
        self._thread.join()
        if self._can_interrupt:
            signal.signal(signal.SIGINT, self._before)

    def _look(self) -> None:
        seen: tuple[int, int] | None = None
        since_s, used_s = 0.0, 0.0
        while not self._over.wait(min(LOOK_EVERY_S, self._waits_s)):
            frame = sys._current_frames().get(self._watched)
            if frame is None:
                return
            now_s, now_used_s, here = time.monotonic(), time.process_time(), (id(frame), frame.f_lasti)
            if here != seen or now_used_s - used_s > BUSY_SHARE * (now_s - since_s) + LOOK_EVERY_S * BUSY_SHARE:
                seen, since_s, used_s = here, now_s, now_used_s
            elif now_s - since_s >= self._waits_s:
                place = self._place_of(frame)
                if place is not None:
                    self.place = self.place or place
                    self._interrupt()

    def _place_of(self, frame: FrameType | None) -> Place | None:
        """The learner's line that waits, itself or through a library; None if the package waits."""
        while frame is not None:
            code = frame.f_code
            if self._is_theirs(code.co_filename):
                text = linecache.getline(code.co_filename, frame.f_lineno).strip()
                return Place(code.co_name, frame.f_lineno, text)
            if not _is_a_wait_of_python(code.co_filename):
                return None
            frame = frame.f_back
        return None

    def _interrupt(self) -> None:
        """A Lab ends its step at the first SIGINT, and a listener in the step at the second: one comes at each look."""
        if self._can_interrupt:
            signal.pthread_kill(self._watched, signal.SIGINT)


def _is_a_wait_of_python(filename: str) -> bool:
    """True for the modules of the standard library that wait for a learner's line, such as queue.get."""
    return filename in {module.__file__ for name in ("threading", "queue") if (module := sys.modules.get(name))}
