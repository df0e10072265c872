"""What the judge's own side may spend on one exercise: steps of simulated worlds, and processor time.

Used in the trusted kernel by mqlab.course.grading.running.kernel.

    with budget.charged():      every step of every world counts, and every second of this process's processor time
        judge(..)               over the budget: AnswerStopped("timeout", ..), wherever the judge's side is then

A story decides how long its Lab runs, so an answer could keep the judge busy without end. Virtual time is not charged:
a year in which nothing happens costs nothing.
mqlab.course.grading.running.meter charges the worker's own time. The clock charges nothing: it depends on the load.
"""

from __future__ import annotations

import contextlib
import signal
import threading
import time
from collections.abc import Iterator

from mqlab.course.grading.judging.loaded import AnswerStopped
from mqlab.course.grading.sandbox.limits import Limits
from mqlab.lab.runtime.sim import SimWorld

AGAIN_SECONDS = 0.5  # an exception that is raised in a finaliser is lost: the next one is not


class Budget:
    """One exercise's budget, over its public and hidden cases."""

    def __init__(self, exercise: str, limits: Limits) -> None:
        self.exercise = exercise
        self.steps_left = limits.lab_steps
        self.seconds_left = limits.lab_seconds
        self._limits = limits
        self._charging = False

    @contextlib.contextmanager
    def charged(self) -> Iterator[None]:
        """Charge everything that happens inside. AnswerStopped when the budget is used up."""
        self._must_be_left()
        began = time.process_time()
        before, SimWorld.on_step = SimWorld.on_step, self._step
        self._charging = True
        try:
            with self._alarm():
                yield
        finally:
            self._charging = False
            SimWorld.on_step = before
            self.seconds_left -= time.process_time() - began

    def _step(self) -> None:
        self.steps_left -= 1
        if self.steps_left < 0:
            self._must_be_left()

    def _must_be_left(self) -> None:
        if self.steps_left < 0:
            raise self._stopped(f"its Lab took more than {self._limits.lab_steps:,} steps")
        if self.seconds_left <= 0:
            raise self._stopped(f"its checks took more than {self._limits.lab_seconds:g} s of processor time")

    def _stopped(self, what: str) -> AnswerStopped:
        return AnswerStopped("timeout", f"{self.exercise}: {what}: does what it plays come to an end?")

    @contextlib.contextmanager
    def _alarm(self) -> Iterator[None]:
        """Interrupt this thread when the processor time is used up: one step alone can last for minutes."""
        # Only the main thread can receive signals; others are stopped by the number of steps alone.
        if threading.current_thread() is not threading.main_thread():
            yield
            return

        def over(number: int, frame: object) -> None:
            if self._charging:
                self.seconds_left = 0.0
                self._must_be_left()

        # SIGPROF counts processor time, so a busy machine does not cost an answer its points.
        before = signal.signal(signal.SIGPROF, over)
        signal.setitimer(signal.ITIMER_PROF, self.seconds_left, AGAIN_SECONDS)
        try:
            yield
        finally:
            self._charging = False
            signal.setitimer(signal.ITIMER_PROF, 0)
            signal.signal(signal.SIGPROF, before)
