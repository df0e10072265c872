"""Runs one rebuilt notebook with nbval, and reports what each cell displayed instead of nbval's verdict.

A pytest plugin around nbval's own items; started by mqlab.course.grading.running.execute.

    nbval's way                                  here
    one time limit for all cells                 one limit per cell, by its role
    a dead kernel is noticed at that limit       noticed within a second
    verdict: did an error arrive?                verdict: data of type VERDICT that trusted cells displayed

Outputs are not compared (--nbval-lax): a rebuilt notebook has none.
"""

from __future__ import annotations

import contextlib
import io
import json
import os
import time
from collections.abc import Callable, Generator
from dataclasses import dataclass, field
from pathlib import Path
from queue import Empty
from typing import Any

import pytest

from mqlab.course.grading.running.kernel import VERDICT
from mqlab.course.grading.running.kernel_copy import KernelCopy
from mqlab.course.grading.submissions.rebuild import ROLE

SLICE_SECONDS = 1.0
STOPPED = ("KeyboardInterrupt", "CheckInterrupted")  # errors of a cell that was interrupted when its time was over


class KernelDied(Exception):
    """The trusted kernel has ended."""


@dataclass(slots=True)
class CellRun:
    """The outcome of one cell: its verdicts, or the error it ended with."""

    role: str
    exercise: str
    error: str = ""
    timed_out: bool = False
    kernel_died: bool = False
    verdicts: list[dict[str, Any]] = field(default_factory=list)


@dataclass(slots=True)
class Engine:
    """The plugin: time limits by role in seconds; ``runs`` has one entry per cell that was begun."""

    limits: dict[str, float]
    deadline: float
    runs: list[CellRun] = field(default_factory=list)

    @pytest.hookimpl(hookwrapper=True)
    def pytest_runtest_call(self, item: pytest.Item) -> Generator[None, Any, None]:
        """Around each of nbval's cells."""
        cell: Any = item
        # 1. Give the cell the time limit of its role, or what is left for the whole notebook.
        marks = cell.cell.metadata.get(ROLE, {})
        run = CellRun(marks.get("role", "demo"), marks.get("exercise", ""))
        self.runs.append(run)
        limit = min(self.limits.get(run.role, self.limits["demo"]), max(self.deadline - time.monotonic(), 1.0))
        cell.config.option.nbval_cell_timeout = limit
        _watch(cell.parent.kernel)
        # 2. nbval runs the cell here.
        outcome = yield
        # 3. Collect the verdicts, which only trusted cells can display, and the cell's error.
        for output in getattr(cell, "test_outputs", ()):
            data = output.get("data", {})
            if VERDICT in data:
                run.verdicts.append(data[VERDICT])
            if output.get("output_type") == "error":
                run.error = f"{output['ename']}: {output['evalue']}"
        # 4. nbval reports a timeout or a dead kernel only in the text of its failure.
        if outcome.excinfo is not None:
            failure = outcome.excinfo[1]
            run.kernel_died = isinstance(failure, KernelDied) or "Kernel dead" in str(failure)
            run.timed_out = "Timeout of" in str(failure) or run.error.startswith(STOPPED)
            run.error = run.error or str(failure).strip().splitlines()[0]


def _watch(kernel: Any) -> None:
    """Make nbval's waiting notice a dead kernel."""
    if getattr(kernel, "is_watched", False):
        return
    wait: Callable[..., None] = kernel.await_reply

    def await_reply(msg_id: str, timeout: float | None = None) -> None:
        end = time.monotonic() + (timeout if timeout is not None else 1e9)
        # Wait in short slices, and look after each whether the kernel is still alive.
        while True:
            try:
                return wait(msg_id, timeout=min(SLICE_SECONDS, max(end - time.monotonic(), 0.01)))
            except Empty:
                if not kernel.is_alive():
                    raise KernelDied("the kernel crashed") from None
                if time.monotonic() >= end:
                    raise

    kernel.await_reply = await_reply
    kernel.is_watched = True


def run_notebook(path: Path, engine: Engine, kernel: KernelCopy | None = None) -> str:
    """Run a notebook with nbval in this process; "" when all its cells were begun, else why not.

    Without a copy that waits to be its kernel, one is started.
    """
    if kernel is not None:
        from mqlab.course.grading.running.kernel_provisioner import use

        use(kernel)
    arguments = [
        str(path),
        "-p",
        "nbval.plugin",
        "--nbval-lax",
        "--nbval-current-env",
        "-q",
        "-p",
        "no:cacheprovider",
        "--capture=sys",
        "--assert=plain",
        f"--rootdir={path.parent}",
        "-c",
        os.devnull,
        "--disable-warnings",
        "--tb=no",
        "--no-header",
        "--no-summary",
        f"--confcutdir={path.parent}",  # or pytest would look at everything next to the folder, as many as /tmp has
        "-p",
        "no:unraisableexception",
        "-p",
        "no:threadexception",
    ]
    silence = io.StringIO()
    with contextlib.redirect_stdout(silence), contextlib.redirect_stderr(silence):
        code = pytest.main(arguments, plugins=[engine])
    # nbval may stop before the last cell: then a missing verdict is not the answer's fault.
    cells = len(json.loads(path.read_text("utf-8"))["cells"])
    if code not in (pytest.ExitCode.OK, pytest.ExitCode.TESTS_FAILED) or len(engine.runs) < cells:
        return f"nbval ended after {len(engine.runs)} of {cells} cells ({pytest.ExitCode(code).name})"
    return ""
