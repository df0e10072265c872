"""Processes for submissions: each a copy of one that has imported what all need, which takes longer than a small lab.

Used by mqlab.course.grading.running.gradebook.

    Copies ── a socket ──▶ the original: imports, then waits for requests, and grades nothing
      │                      └ for each request a copy, which waits for the end of its own copy and reports it
      │                          └ the submission's process: mqlab.course.grading.running.execute.main
      └───── an order, by its own pipe ─────▶

The class's seed is in the order, which the submission's process alone can read. When the gradebook is gone, the
original ends, for its socket does.
"""

from __future__ import annotations

import contextlib
import gc
import importlib
import os
import selectors
import signal
import socket
import subprocess
import sys
import tempfile
import threading
from typing import IO

from mqlab.course.grading.running.process_copy import ProcessCopy, copied
from mqlab.errors import MqlabError

NEEDED = (
    "mqlab.course.grading.running.execute",
    "mqlab.course.grading.running.kernel_provisioner",
    "nbval.plugin",
    "ipykernel.kernelspec",
    # What a kernel would import when it starts or runs its first cell:
    "ipykernel.debugger",
    "ipykernel.kernelapp",
    "IPython.core.completerlib",
    "IPython.core.debugger",
    "IPython.core.logger",
    "IPython.core.oinspect",
    "IPython.extensions.storemagic",
    "psutil",
    "tornado.platform.asyncio",
)
FOR_KERNELS = {
    "PYTHONHASHSEED": "0",  # set for a process when it starts
    "PYDEVD_DISABLE_FILE_VALIDATION": "1",  # or the debugger that ipykernel imports says that it may miss breakpoints
}
WORD_BYTES = 64_000
NUMBER_BYTES = 8
START_SECONDS = 120.0


class NoCopy(MqlabError):
    """No process for a submission: the machine has no room for one. This is never a submission's fault."""

    code = "copies"


class Copy:
    """The process of one submission. ``orders`` is the other end of its standard input."""

    def __init__(self, pid: int, orders: IO[bytes], words: IO[bytes], ended: IO[bytes]) -> None:
        self.pid = pid
        self.orders = orders
        self._words = words
        self._ended = ended
        self._code: int | None = None

    def wait(self, seconds: float) -> int:
        """Its exit code; minus a signal's number if one has ended it. TimeoutError if it goes on for so long."""
        if self._code is None:
            with selectors.DefaultSelector() as selector:
                selector.register(self._ended, selectors.EVENT_READ)
                if not selector.select(seconds):
                    raise TimeoutError(f"process {self.pid} continues")
            number = self._ended.read(NUMBER_BYTES)
            self._code = int.from_bytes(number, signed=True) if number else -signal.SIGKILL
        return self._code

    def last_word(self) -> str:
        """The last line that it wrote to its standard error; empty if there is none."""
        size = self._words.seek(0, os.SEEK_END)
        self._words.seek(max(size - WORD_BYTES, 0))
        lines = self._words.read().decode("utf-8", "replace").strip().splitlines()
        return lines[-1] if lines else ""

    def kill(self) -> None:
        """Kill it, and the kernel that it started; does nothing if it has ended."""
        if self._code is None:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(self.pid, signal.SIGKILL)

    def close(self) -> None:
        """Close what leads to it. A process that has not ended ends then."""
        for pipe in (self.orders, self._words, self._ended):
            with contextlib.suppress(OSError):
                pipe.close()


class Copies:
    """Makes processes for submissions, for several threads. The original is started for the first of them."""

    def __init__(self) -> None:
        self._turn = threading.Lock()
        self._original: subprocess.Popen[bytes] | None = None
        self._requests: socket.socket | None = None

    def make(self) -> Copy:
        """A process that waits for its order. NoCopy if none can be made."""
        words = tempfile.TemporaryFile()  # noqa: SIM115 - closed with its copy
        order, orders = os.pipe()
        ended, end = os.pipe()
        ours = os.fdopen(orders, "wb"), words, os.fdopen(ended, "rb")
        try:
            with self._turn:
                return Copy(self._asked(order, words.fileno(), end), *ours)
        except BaseException:
            for file in ours:
                file.close()
            raise
        finally:
            os.close(order)
            os.close(end)

    def close(self) -> None:
        """End the original. Its copies go on."""
        with self._turn:
            if self._requests is not None and self._original is not None:
                self._requests.close()
                self._original.wait()
            self._requests = self._original = None

    def _asked(self, *pipes: int) -> int:
        """The process that gets some pipes, by its number."""
        # 1. The original, if it is not there yet, or is no longer.
        if self._requests is None or self._original is None or self._original.poll() is not None:
            self._requests, theirs = socket.socketpair()
            self._requests.settimeout(START_SECONDS)
            with theirs:
                words = [sys.executable, "-m", __name__, str(theirs.fileno())]
                self._original = subprocess.Popen(
                    words,
                    stdin=subprocess.DEVNULL,
                    stdout=subprocess.DEVNULL,
                    start_new_session=True,
                    pass_fds=[theirs.fileno()],
                    env={**os.environ, **FOR_KERNELS},
                )
        # 2. The submission's process itself answers, when it has a session of its own and can be killed.
        try:
            socket.send_fds(self._requests, [b"."], list(pipes))
            number = self._requests.recv(NUMBER_BYTES)
        except OSError as error:
            raise NoCopy(f"a process for a submission could not be started: {error}") from error
        if not number:
            raise NoCopy(f"a process for a submission could not be started: exit code {self._original.wait()}")
        return int.from_bytes(number)


def become_a_copy(requests: socket.socket) -> bool:
    """The work of the original. True in the process of a submission; False when no more are wanted."""
    # 1. What all submissions need is imported once, and no copy looks for garbage in it.
    gc.disable()
    for name in (*NEEDED, *_plugins_of_pytest()):
        importlib.import_module(name)
    importlib.import_module("nbformat.validator").get_validator(4, 5)  # made from its schema once, too
    gc.freeze()
    gc.enable()
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # no process waits for those that wait
    while True:
        wish, pipes, _, _ = socket.recv_fds(requests, 1, 3)
        if not wish:
            return False
        if copied() is None:
            order, words, end = pipes
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            submission = copied()
            if submission is not None:
                _wait_for(submission, end, [requests.fileno(), order, words])
            # 2. Here goes on the process of one submission, as if it were started by itself.
            os.setsid()
            os.dup2(order, 0)
            os.dup2(words, 2)
            requests.send(os.getpid().to_bytes(NUMBER_BYTES))
            for pipe in pipes:
                os.close(pipe)
            requests.close()
            return True
        for pipe in pipes:
            os.close(pipe)


def _wait_for(process: ProcessCopy, end: int, others: list[int]) -> None:
    """Report how a process ends, and end."""
    for other in others:
        os.close(other)
    code = process.wait()
    with contextlib.suppress(BrokenPipeError):
        os.write(end, code.to_bytes(NUMBER_BYTES, signed=True))
    os._exit(0)


def _plugins_of_pytest() -> list[str]:
    from _pytest.config import default_plugins

    return [f"_pytest.{name}" for name in default_plugins]


if __name__ == "__main__":
    if become_a_copy(socket.socket(fileno=int(sys.argv[1]))):
        from mqlab.course.grading.running.execute import main
        from mqlab.course.grading.running.kernel_copy import KernelCopy

        main(KernelCopy())
