"""A copy of this process, made by a fork: the one place where mqlab makes them.

    copy = copied()
    if copy is None:        here goes on the copy, with all that was imported and prepared
        …
    copy.wait(seconds)      here the original: the copy's exit code, minus a signal's number if one has ended it

Used for the processes of submissions and their kernels, the lives of an answer, and tests that share what is ready.
jupyter_client uses a copy as it uses a subprocess.Popen.
"""

from __future__ import annotations

import os
import signal
import subprocess
import time

POLL_SECONDS = 0.02


class ProcessCopy:
    """A copy as its original sees it."""

    args = ("a copy of this process",)
    stdin = stdout = stderr = None

    def __init__(self, pid: int) -> None:
        self.pid = pid
        self.returncode: int | None = None

    def poll(self) -> int | None:
        """Its exit code, minus a signal's number if one has ended it; None while it goes on."""
        return self.returncode if self.returncode is not None else self._ended(os.WNOHANG)

    def wait(self, timeout: float | None = None) -> int:
        """Its exit code, once it has ended. TimeoutExpired if it has not after that many seconds."""
        if timeout is None and self.returncode is None:
            self._ended(0)
        deadline = time.monotonic() + (timeout or 0.0)
        while (code := self.poll()) is None:
            if time.monotonic() >= deadline:
                raise subprocess.TimeoutExpired(self.args, timeout or 0.0)
            time.sleep(POLL_SECONDS)
        return code

    def _ended(self, how: int) -> int | None:
        ended, status = os.waitpid(self.pid, how)
        if ended:
            self.returncode = os.waitstatus_to_exitcode(status)
        return self.returncode

    def send_signal(self, number: int) -> None:
        """Send it a signal; does nothing if it has ended."""
        if self.poll() is None:
            os.kill(self.pid, number)

    def terminate(self) -> None:
        """Ask it to end."""
        self.send_signal(signal.SIGTERM)

    def kill(self) -> None:
        """Kill it."""
        self.send_signal(signal.SIGKILL)


def copied() -> ProcessCopy | None:
    """Make a copy of this process: returns None in the copy, which shares no thread with its original."""
    pid = os.fork()
    return ProcessCopy(pid) if pid else None
