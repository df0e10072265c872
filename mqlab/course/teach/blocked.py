"""Ends a check whose answer waits in real time for something that only the simulation could bring.

Listeners of a Lab take turns in one thread, so a lock that another listener holds is never released while one waits:

    listener 1: lock.acquire()  context.sleep("1s") ─▶ listener 2: lock.acquire() ─▶ nothing goes on any more

    a thread looks twice a second: the same line of the learner's for 6 s, and no processor time used
        ─▶ SIGINT, twice, to the thread that waits ─▶ KeyboardInterrupt there ─▶ the check says which line, what to use

The learner's line may wait itself or in the standard library: a lock, a queue, a future, a process, time.sleep. Where
another thread of the process computes meanwhile, it may be the one that is waited for, so a minute passes first.

A browser has one thread: nothing watches there.
On Windows a wait for a lock cannot be interrupted from inside; the learner's own interrupt is told the same words.
"""

from __future__ import annotations

import linecache
import os
import signal
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

from mqlab.browser import IN_BROWSER
from mqlab.lab.runtime.sim_workers import called_in_threads, is_watched_sleep

WAITS_S = 6.0  # longer than SQLite waits for a lock before it raises
LOOK_EVERY_S = 0.5
BUSY_SHARE = 0.02
"""A thread that used more than this share of the time computes."""
READY_SHARE = 0.5
"""So does a thread that could have run for this share of it. A busy machine may have given it none."""
SCHEDULED = "/proc/self/task/{}/schedstat"  # Linux: ns on a processor, ns ready to run without one, turns
LONGER = 10
"""So many times as long may a thread wait while others compute."""

OF_PYTHON = os.path.dirname(threading.__file__) + os.sep
INSTALLED = tuple(os.sep + name + os.sep for name in ("site-packages", "dist-packages"))

RULE = (
    "Your code waits in real time, and the simulation stands still meanwhile: what it waits for cannot happen. Locks, "
    "queues and events of Python do not know the Lab's time"
)
FOUND = f"this line waited for {WAITS_S:g} s of real time or longer"
USE = 'with lab.resource("name", slots=1): … is a lock in the Lab\'s time, and context.sleep("1s") is a sleep in it'
THREAD_RULE = (
    "Your code started a thread of Python, and a thread does not know the Lab's time: it cannot call handle, sleep or "
    "compute. context.start runs a function at the same time, and result() waits for it"
)
THREAD_FOUND = "a call in a thread of Python"
THREAD_USE = "work = context.start(function, …), then work.result()"


@dataclass(frozen=True, slots=True)
class Place:
    """The learner's line at which a thread waits."""

    function: str
    line: int
    text: str

    def __str__(self) -> str:
        return f"line {self.line} of {self.function}" + (f": {self.text}" if self.text else "")


class ThreadWatch:
    """While it is open, threads that need the Lab end without a traceback; ``place`` is the learner's line."""

    def __init__(self, is_theirs: Callable[[str], bool]) -> None:
        self._is_theirs = is_theirs
        self._hook: Callable[[threading.ExceptHookArgs], object] = threading.excepthook

    def __enter__(self) -> ThreadWatch:
        called_in_threads.clear()
        self._hook, threading.excepthook = threading.excepthook, self._quiet
        return self

    def __exit__(self, *error: object) -> None:
        threading.excepthook = self._hook

    def _quiet(self, failed: threading.ExceptHookArgs) -> None:
        if not called_in_threads:  # a mistake of the learner's own
            self._hook(failed)

    @property
    def place(self) -> Place | None:
        """The line in the thread; None if no thread has called the Lab."""
        return next(filter(None, (place_of(frame, self._is_theirs) for frame in called_in_threads)), None)


def place_of(frame: FrameType | None, is_theirs: Callable[[str], bool]) -> Place | None:
    """The learner's line nearest to a frame; None if there is none."""
    while frame is not None and not is_theirs(frame.f_code.co_filename):
        frame = frame.f_back
    if frame is None:
        return None
    text = linecache.getline(frame.f_code.co_filename, frame.f_lineno).strip()
    return Place(frame.f_code.co_name, frame.f_lineno, text)


class BlockWatch:
    """While it is open, a wait in real time in the learner's code is interrupted; ``place`` then says where it was."""

    def __init__(self, is_theirs: Callable[[str], bool], waits_s: float) -> None:
        self.place: Place | None = None
        self._is_theirs = is_theirs
        self._waits_s = waits_s
        self._watched = threading.get_ident()
        self._native_id = 0 if IN_BROWSER else threading.get_native_id()
        self._over = threading.Event()
        self._sending = threading.Lock()
        self._thread = threading.Thread(target=self._look, name="mqlab-block-watch", daemon=True)
        self._before: Any = None
        self._can_interrupt = (
            threading.current_thread() is threading.main_thread()
            and hasattr(signal, "pthread_kill")
            and signal.getsignal(signal.SIGINT) is not None  # a handler that is not Python's could not be put back
        )

    def __enter__(self) -> BlockWatch:
        if self._can_interrupt:  # a process in the background of a shell ignores SIGINT
            self._before = signal.signal(signal.SIGINT, signal.default_int_handler)
        if not IN_BROWSER:
            self._thread.start()
        return self

    def __exit__(self, *error: object) -> None:
        try:
            self._end()
        except KeyboardInterrupt:
            if self.place is None:  # it is the learner's own, not the last one that the thread sent
                raise
            self._end()
        finally:
            if self._can_interrupt:
                signal.signal(signal.SIGINT, self._before)

    def _end(self) -> None:
        with self._sending:
            self._over.set()
        if not IN_BROWSER:
            self._thread.join()

    def _look(self) -> None:
        seen: tuple[int, int] | None = None
        own = _Busy(_time_of(self._watched), _readiness_of(self._native_id))
        all_threads = _Busy(time.process_time)
        since_s = time.monotonic()
        while not self._over.wait(min(LOOK_EVERY_S, self._waits_s)):
            frame = sys._current_frames().get(self._watched)
            if frame is None:
                return
            now_s, here = time.monotonic(), (id(frame), frame.f_lasti)
            if here != seen or own.in_the_last(now_s - since_s):
                seen, since_s = here, now_s
                own.begin()
                all_threads.begin()
                continue
            longest_s = self._waits_s * (LONGER if all_threads.in_the_last(now_s - since_s) else 1)
            where = self._place_of(frame) if now_s - since_s >= longest_s else None
            if where is not None:
                self.place = self.place or where
                self._interrupt()

    def _place_of(self, frame: FrameType | None) -> Place | None:
        """The learner's line that waits, itself or through a library; None if the package waits."""
        while frame is not None:
            code = frame.f_code
            if self._is_theirs(code.co_filename):
                return place_of(frame, self._is_theirs)
            if not _may_wait_for_them(code):
                return None
            frame = frame.f_back
        return None

    def _interrupt(self) -> None:
        """A Lab ends its step at the first SIGINT, and a listener in the step at the second: one comes at each look."""
        with self._sending:
            if self._can_interrupt and not self._over.is_set():
                signal.pthread_kill(self._watched, signal.SIGINT)


class _Busy:
    """Whether a clock of processor time went on since ``begin``, or one of the time in which it should have."""

    def __init__(self, clock: Callable[[], float], ready: Callable[[], float] = float) -> None:
        self._clock, self._ready = clock, ready
        self.begin()

    def begin(self) -> None:
        self._begun_s, self._ready_since_s = self._clock(), self._ready()

    def in_the_last(self, length_s: float) -> bool:
        return (
            self._clock() - self._begun_s > BUSY_SHARE * (length_s + LOOK_EVERY_S)
            or self._ready() - self._ready_since_s > READY_SHARE * length_s
        )


def _time_of(thread: int) -> Callable[[], float]:
    """The processor time of one thread; that of the process where the system does not tell it, as on macOS."""
    if not hasattr(time, "pthread_getcpuclockid"):
        return time.process_time
    clock = time.pthread_getcpuclockid(thread)
    return lambda: time.clock_gettime(clock)


def _readiness_of(native_id: int) -> Callable[[], float]:
    """The seconds in which a thread ran or was ready to run; nothing where the system does not tell."""
    counters = Path(SCHEDULED.format(native_id))

    def ready_s() -> float:
        ran_ns, waited_ns, _ = counters.read_text("ascii").split()
        return (int(ran_ns) + int(waited_ns)) / 1e9

    return ready_s if counters.exists() else float


def _may_wait_for_them(code: CodeType) -> bool:
    """True for the standard library and for the sleep that listeners get: a learner's line calls them, and waits."""
    name = code.co_filename
    return is_watched_sleep(code) or (
        name.startswith((OF_PYTHON, "<frozen ")) and not any(part in name for part in INSTALLED)
    )
