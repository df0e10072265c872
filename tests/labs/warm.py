"""A process that has imported what notebooks import, and runs them in copies of itself.

A kernel of its own costs a notebook two seconds of imports, a copy nothing. Its cells run in IPython's shell, as in a
kernel, but no messages are sent. tests.labs.notebooks starts it and gives it a line of JSON for each copy:

    test    [[a notebook's file, where it runs], …]  ─▶  this process  ─▶ a copy: runs them, writes the files anew
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

SECONDS = 600
"""For one notebook, on a busy machine."""

IMPORTED = (
    "IPython.core.interactiveshell", "ipykernel.kernelapp", "anywidget", "ipywidgets", "pandas",
    "pyarrow", "tqdm.auto", "mqlab.arrow", "mqlab.lab.cluster", "mqlab.store", "mqlab.teach", "mqlab.traffic",
    "mqlab.views", "mqlab.widgets", "tests.labs.notebooks",
)  # fmt: skip


def run(notebook: str, folder: str) -> None:
    from tests.labs.notebooks import execute_in, forget_the_learner, read, shell_of_this_process, write

    os.chdir(folder)
    path = Path(notebook)
    forget_the_learner()
    with shell_of_this_process() as shell:
        write(execute_in(shell, read(path)), path)


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
    for line in iter(sys.stdin.readline, ""):
        copy = os.fork()
        if copy == 0:
            code = 1
            try:
                os.dup2(2, 1)  # what a notebook writes past Python's streams is no answer to the test
                for notebook, folder in json.loads(line):
                    run(notebook, folder)
                code = 0
            except BaseException:
                traceback.print_exc()
            finally:
                os._exit(code)
        print(exit_code(copy), flush=True)


if __name__ == "__main__":
    main()
