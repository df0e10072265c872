"""One worker process seen from the judge: start it, send a line, wait for a line, end it.

Used by mqlab.course.grading.judging.desk only.

    exchange({"op": "call", ..}, may_go_on) ─▶ {"op": "return", ..}
                                            ─▶ Died("its process ended (signal 9 ..)")
                                            ─▶ TooSlow, Garbled

Reading and writing have an end, and a line has a maximum size: a worker may write nothing or too much, stop reading or
die, and the judge goes on.
Not here: what an answer is.
"""

from __future__ import annotations

import contextlib
import os
import selectors
import signal
import subprocess
import tempfile
import time
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import IO, Any

from mqlab.course.grading.running.meter import LOOK_SECONDS, Meter, processor_seconds, scratch_files
from mqlab.course.grading.sandbox import limits
from mqlab.course.grading.sandbox.handing import HandedOver
from mqlab.course.grading.sandbox.values import MAX_BYTES, Malformed, dump_line, load_line
from mqlab.course.grading.sandbox.walled import Sandbox, mirror_in
from mqlab.course.grading.sandbox.withheld import copied_without, withhold
from mqlab.errors import MqlabError

START_SECONDS = 60.0
CHUNK = 1 << 16


class Gone(Exception):
    """The worker cannot be used any more; the text gives the reason."""


class Died(Gone):
    """Its process ended by itself."""


class TooSlow(Gone):
    """Its time is used up; the text says which."""


class Overfull(Gone):
    """It keeps more files than it may."""


class Garbled(Gone):
    """It wrote something that a worker never writes."""


class Silent(Gone):
    """It hides from the judge what it runs."""


class NotStarted(MqlabError):
    """A worker did not start. This is never an answer's fault."""

    code = "worker"


class AnswerProcess:
    """A started worker. Every method but ``end`` raises Gone and ends the process when it cannot go on.

    ``forbids`` are names of mqlab that its answers must not use; see mqlab.course.grading.sandbox.withheld.
    """

    def __init__(self, sandbox: Sandbox, forbids: tuple[str, ...] = ()) -> None:
        self._buffer = b""
        self._folder = tempfile.TemporaryDirectory(prefix="mqlab-answers-")
        self._handed: HandedOver | None = None
        if sandbox.level == "bwrap" and sandbox.handing:
            self._handed = HandedOver(Path(sandbox.handing), mirror_in(Path(self._folder.name)))
        own = Path(self._folder.name)
        instead = withhold(forbids, own / "withheld")
        environment = sandbox.environment()
        if sandbox.level == "process" and instead:
            environment["PYTHONPATH"] = str(copied_without(instead, own / "package"))
        with tempfile.TemporaryFile() as words:  # what bubblewrap or Python report before the worker closes its stderr
            self._start(sandbox, words, sandbox.command(self._folder.name, instead=instead), environment)

    def _start(self, sandbox: Sandbox, words: IO[bytes], command: list[str], environment: dict[str, str]) -> None:
        # 1. A session of its own, so that ``end`` can kill everything the worker starts.
        self._process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=words,
            env=environment,
            cwd=self._folder.name,
            start_new_session=True,
        )
        # 2. Pipes that never block: a worker that does not read must not stop the judge.
        assert self._process.stdin is not None and self._process.stdout is not None
        self._to_worker, self._from_worker = self._process.stdin.fileno(), self._process.stdout.fileno()
        os.set_blocking(self._to_worker, False)
        os.set_blocking(self._from_worker, False)
        # One for the process's life, because an exercise waits for thousands of answers. select() is not used: it
        # takes small file numbers only, and a notebook with many Labs has many open files.
        self._answers = selectors.DefaultSelector()
        self._answers.register(self._from_worker, selectors.EVENT_READ)
        # 3. The first message has the limits. The worker sets them itself, after it has given up root.
        walled = sandbox.level == "bwrap"
        outside = limits.processes_outside(sandbox.user_id, own_namespace=walled and not sandbox.drops_root)
        hello = {
            "user_id": sandbox.user_id if walled and sandbox.drops_root else None,
            "walled": walled,
            "limits": asdict(sandbox.limits),
            "processes_outside": 0 if walled and sandbox.drops_root else outside,
        }
        self.meter = Meter(
            lambda: processor_seconds(self._process.pid), lambda: scratch_files(self._process.pid) if walled else 0
        )
        try:
            self.exchange(hello, within(START_SECONDS))
        except Gone as gone:
            words.seek(0)
            # Only the last line: it has the cause, the lines before it are a traceback.
            said = words.read(4_000).decode("utf-8", "replace").strip().splitlines()[-1:]
            raise NotStarted(f"a worker could not be started: {' '.join(said) or gone}") from gone

    def hand_over(self, values: Any) -> None:
        """Let the worker see the files whose paths are among the values of a call."""
        if self._handed is not None:
            self._handed.show(values)

    def exchange(self, message: dict[str, Any], may_go_on: Callable[[], None]) -> dict[str, Any]:
        """Send one message and wait for the reply. NotPlain if our message is too large; Gone as above.

        ``may_go_on`` is called again and again while the worker is waited for; it raises TooSlow to end that.
        """
        line = dump_line(message)
        try:
            self._write(line, may_go_on)
            return load_line(self._read_line(may_go_on))
        except Malformed as error:
            raise self._ended(Garbled(f"it wrote something other than an answer: {error}")) from error
        except Gone as gone:
            raise self._ended(gone) from None
        except BaseException:  # an interrupt between question and answer: the conversation cannot be taken up again
            self.end()
            raise

    def _write(self, line: bytes, may_go_on: Callable[[], None]) -> None:
        # A view, so that sending a large message in pieces does not copy the rest each time.
        view = memoryview(line)
        while view:
            try:
                view = view[os.write(self._to_worker, view[:CHUNK]) :]
            except BlockingIOError:
                _wait_for_room(self._to_worker)
                may_go_on()
            except BrokenPipeError:
                raise Died("") from None

    def _read_line(self, may_go_on: Callable[[], None]) -> bytes:
        while b"\n" not in self._buffer:
            if len(self._buffer) > MAX_BYTES:
                raise Garbled("it wrote a line that does not end")
            if not self._answers.select(LOOK_SECONDS):
                may_go_on()
                continue
            chunk = os.read(self._from_worker, CHUNK)
            if not chunk:
                raise Died("")
            self._buffer += chunk
        line, _, self._buffer = self._buffer.partition(b"\n")
        # A worker answers once and then waits, so a second line is forged.
        if self._buffer:
            raise Garbled("it wrote more than one answer")
        return line

    def _ended(self, gone: Gone) -> Gone:
        if not isinstance(gone, Died):
            self.end()
            return gone
        # The pipe closes a moment before the exit code is there.
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(1.0)
        code = self._process.poll()
        self.end()
        return Died(f"its process ended {_how(code)}")

    def end(self) -> None:
        """Kill the process and everything it started; does nothing if it has ended."""
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()
        self._answers.close()
        for stream in (self._process.stdin, self._process.stdout):
            with contextlib.suppress(OSError):
                assert stream is not None
                stream.close()
        with contextlib.suppress(OSError):
            self._folder.cleanup()

    @property
    def pid(self) -> int:
        return self._process.pid

    def __repr__(self) -> str:
        state = "running" if self._process.poll() is None else "ended"
        return f"<AnswerProcess {self._process.pid} {state}>"


def within(seconds: float) -> Callable[[], None]:
    """For ``exchange``: TooSlow after that many seconds on the clock."""
    deadline = time.monotonic() + seconds

    def may_go_on() -> None:
        if time.monotonic() > deadline:
            raise TooSlow(f"it gave no answer within {seconds:g} s")

    return may_go_on


def _wait_for_room(descriptor: int) -> None:
    """Wait until a full pipe has room again, or until it is time for a look."""
    with selectors.DefaultSelector() as selector:
        selector.register(descriptor, selectors.EVENT_WRITE)
        selector.select(LOOK_SECONDS)


def _how(code: int | None) -> str:
    """What an exit code means, as a sentence part; bubblewrap reports a signal of its child as 128 + signal."""
    if code is None:
        return "without a word"
    number = -code if code < 0 else code - 128 if code > 128 else 0
    with contextlib.suppress(ValueError):
        if number:
            return f"by {signal.Signals(number).name}" + (" (out of memory?)" if number == signal.SIGKILL else "")
    return f"with exit code {code}"
