"""What a worker costs, measured by the judge outside it: processor time, the clock next to it, and files.

Used by mqlab.course.grading.judging.desk.

    meter.charge(call, exercise)     adds what the worker has used since the last look to both
    why_over(call, exercise, limits) "" or which limit is used up, in words

A busy machine gives an answer less processor time per second, so the limits count processor time. The clock is looked
at as well, because an answer that sleeps uses none; it may take ``clock_times`` as long. Processes that the worker
started count; one that ended and was not waited for does not, and the clock bounds those.
"""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from mqlab.course.grading.sandbox.limits import Limits

LOOK_SECONDS = 0.2
"""A look costs some milliseconds: calls that are shorter than this are charged together."""


@dataclass(slots=True)
class Spent:
    """Seconds of the worker: of its processor time, and on the clock."""

    processor: float = 0.0
    clock: float = 0.0


class Meter:
    """The processor time of one worker. ``read`` gives all that it has used so far, ``count_files`` its files."""

    def __init__(self, read: Callable[[], float], count_files: Callable[[], int] = lambda: 0) -> None:
        self._read = read
        self._count_files = count_files
        self.files = 0  # at the last look
        self._seen = read()
        self._since_look = 0.0
        self._turn_began = 0.0

    def begin(self) -> None:
        """It is the worker's turn: the clock runs."""
        self._turn_began = time.monotonic()

    def charge(self, *accounts: Spent) -> None:
        """Charge the time since ``begin`` or the last charge, and the processor time if it is time for a look."""
        now = time.monotonic()
        took, self._turn_began = now - self._turn_began, now
        self._since_look += took
        used = 0.0
        if self._since_look >= LOOK_SECONDS:
            seen, self._since_look = self._read(), 0.0
            used, self._seen = max(seen - self._seen, 0.0), seen
            self.files = self._count_files()
        for account in accounts:
            account.clock += took
            account.processor += used


def why_over(call: Spent, exercise: Spent, limits: Limits) -> str:
    """Which limit is used up, as a sentence part; "" while there is time left."""
    if call.processor > limits.seconds:
        return f"one call used more than {limits.seconds:g} s of processor time"
    if exercise.processor > limits.total_seconds:
        return f"its calls together used more than {limits.total_seconds:g} s of processor time"
    if call.clock > limits.clock_times * limits.seconds:
        return f"it gave no answer within {limits.clock_times * limits.seconds:g} s"
    if exercise.clock > limits.clock_times * limits.total_seconds:
        return f"its calls together took more than {limits.clock_times * limits.total_seconds:g} s"
    return ""


def processor_seconds(process: int) -> float:
    """The processor time of a process, of those below it, and of those that they have waited for."""
    import psutil

    total = 0.0
    with contextlib.suppress(psutil.Error):
        root = psutil.Process(process)
        for member in (root, *root.children(recursive=True)):
            with contextlib.suppress(psutil.Error):
                times = member.cpu_times()
                waited_for = getattr(times, "children_user", 0.0) + getattr(times, "children_system", 0.0)
                total += times.user + times.system + waited_for
    return total


def scratch_files(process: int) -> int:
    """How many files and folders are in the /tmp of a walled worker, seen from outside; 0 where that cannot be seen.

    ``process`` is bubblewrap's, which sees the machine's own /tmp; those below it see theirs.
    """
    import psutil

    used = [0]
    with contextlib.suppress(psutil.Error):
        for member in psutil.Process(process).children(recursive=True):
            with contextlib.suppress(OSError):
                its_root = Path("/proc", str(member.pid), "root")
                scratch = os.statvfs(its_root / "tmp")
                if scratch.f_fsid != os.statvfs("/tmp").f_fsid:
                    used.append(scratch.f_files - scratch.f_ffree)
    return max(used)
