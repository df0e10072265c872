"""A process that has imported what notebooks import, and runs them in copies of itself.

A kernel of its own costs a notebook two seconds of imports, a copy nothing. Its cells run in IPython's shell, as in a
kernel, but no messages are sent. tests.labs.notebooks starts it and gives it a line of JSON for each copy:

    test    a notebook's file and folder   ─▶  this process  ─▶ a copy: runs it, writes the file anew
            or a solution's and its lab's                     ─▶ a copy: runs both, side by side
    test    ◀─  the copy's exit code
"""

from __future__ import annotations

import importlib
import json
import os
import sys
import time
import traceback
from pathlib import Path

from tests import garbage

SECONDS = 600
"""For one notebook, on a busy machine."""

IMPORTED = (
    "IPython.core.interactiveshell", "ipykernel.kernelapp", "anywidget", "ipywidgets", "pandas",
    "pyarrow", "tqdm.auto", "mqlab.arrow", "mqlab.lab.cluster", "mqlab.store", "mqlab.teach",
    "mqlab.traffic.growth.live", "mqlab.traffic.playing", "mqlab.traffic.trouble.capstone", "mqlab.views.charts",
    "mqlab.views.verdict", "mqlab.widgets", "tests.labs.notebooks", "tests.labs.side_by_side",
)  # fmt: skip


def run(files: list[str], folders: list[str], answers: list[str] | None, passed_over: list[str]) -> None:
    """One notebook, or a solution and its lab with the names that its ``answers`` define."""
    from tests.labs import notebooks, side_by_side

    given = [notebooks.read(Path(file)) for file in files]
    notebooks.forget_the_learner()
    with notebooks.shell_of_this_process() as shell:
        if answers is None:
            os.chdir(folders[0])
            notebooks.execute_in(shell, given[0])
        else:
            side_by_side.run(shell, *given, (Path(folders[0]), Path(folders[1])), answers, passed_over)
    for file, notebook in zip(files, given, strict=True):
        notebooks.write(notebook, Path(file))


def exit_code(copy: int) -> int:
    """What the copy ended with; a copy that does not end is killed."""
    deadline = time.monotonic() + SECONDS
    while time.monotonic() < deadline:
        ended, status = os.waitpid(copy, os.WNOHANG)
        if ended:
            return os.waitstatus_to_exitcode(status)
        time.sleep(0.01)
    os.kill(copy, 9)
    return os.waitstatus_to_exitcode(os.waitpid(copy, 0)[1])


def main() -> None:
    for name in IMPORTED:
        importlib.import_module(name)
    garbage.collect_rarely()
    for line in iter(sys.stdin.readline, ""):
        copy = os.fork()
        if copy == 0:
            code = 1
            try:
                os.dup2(2, 1)  # what a notebook writes past Python's streams is no answer to the test
                run(**json.loads(line))
                code = 0
            except BaseException:
                traceback.print_exc()
            finally:
                os._exit(code)
        print(exit_code(copy), flush=True)


if __name__ == "__main__":
    main()
