"""The kernel of a submission: it, too, is a copy of the process that has imported what all need.

Used by mqlab.course.grading.running.copies, which makes it, and mqlab.course.grading.running.execute, which hands it to
nbval's run.

    the submission's process ── a fork, before it reads its order ──▶ a process that waits
      └ nbval asks jupyter_client for a kernel ── a line of JSON ───▶ it is the kernel

A kernel that starts by itself takes half a second of a processor, as long as many a lab is graded. This one gets what
Popen would give it: a session, an environment, a folder and standard streams of its own. It never sees the order.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
from typing import NoReturn

from mqlab.course.grading.running.process_copy import ProcessCopy, copied

LAUNCHER = "ipykernel_launcher"


class KernelCopy(ProcessCopy):
    """A process that waits until it is wanted as a kernel; it ends if the one that made it ends before."""

    def __init__(self) -> None:
        wish, self._wish = os.pipe()
        copy = copied()
        if copy is None:
            os.close(self._wish)
            _wait_and_be_a_kernel(wish)
        super().__init__(copy.pid)
        os.close(wish)
        self.is_wanted = False

    def start(self, command: list[str], environment: dict[str, str], folder: str) -> None:
        """Let it be the kernel that a command would start."""
        self.is_wanted = True
        arguments = command[command.index(LAUNCHER) + 1 :]
        environment = {**environment, "JPY_PARENT_PID": str(os.getpid())}
        with os.fdopen(self._wish, "w", encoding="utf-8") as pipe:
            json.dump([arguments, environment, folder], pipe)


def _wait_and_be_a_kernel(wish: int) -> NoReturn:
    # 1. A session of its own, and streams that lead nowhere: neither order nor words of the submission's process.
    os.setsid()
    nowhere = os.open(os.devnull, os.O_RDWR)
    for stream in (0, 1, 2):
        os.dup2(nowhere, stream)
    os.close(nowhere)
    # 2. Nothing comes if the submission needs no kernel, or its process is gone.
    with os.fdopen(wish, "rb") as pipe:
        wanted = pipe.read()
    if not wanted:
        os._exit(0)
    arguments, environment, folder = json.loads(wanted)
    # 3. The rest is what a process of its own would find, and what ipykernel_launcher does.
    os.environ.clear()
    os.environ.update(environment)
    tempfile.tempdir = None
    if sys.path[0] in ("", os.getcwd()):
        del sys.path[0]
    os.chdir(folder)
    sys.argv = [LAUNCHER, *arguments]
    from ipykernel import kernelapp

    # The kernel ends when its parent does. ipykernel reads its parent's number when it is imported, which was long ago.
    kernelapp.launch_new_instance(parent_handle=int(environment["JPY_PARENT_PID"]))
    sys.exit()
