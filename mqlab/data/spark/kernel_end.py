"""When a notebook's kernel is asked to end, it stops its JVM first, so that its own clean-up runs.

So lab 10 removes the store that it wrote to the disk when its kernel ends.

    without this                                     with it
    ipykernel signals its children and waits for     the JVM gets its signal, ends within a second and is waited for;
    them; an ended JVM not waited for counts        then nothing is left to wait for, and the clean-up at exit
    for ever, and Jupyter kills the kernel           runs: temporary folders, the warehouse

Left out: kernels that are killed (nbval's are).
"""

from __future__ import annotations

import subprocess
from typing import Any

from mqlab.notebook import running_shell

SECONDS_TO_END = 2.0  # Jupyter gives a kernel 2.5 before its first signal


def end_with_the_kernel(jvm: subprocess.Popen[bytes]) -> None:
    """End the JVM when the notebook's kernel that started it is asked to end. Without a kernel this does nothing."""
    shell = running_shell()
    if shell is None or not hasattr(shell, "kernel"):
        return

    def end(change: Any) -> None:
        if not change["new"]:
            return
        jvm.terminate()
        # The wait must end before Jupyter kills the kernel, which would skip its clean-up.
        try:
            jvm.wait(SECONDS_TO_END)
        except subprocess.TimeoutExpired:
            jvm.kill()
            jvm.wait()

    shell.observe(end, names="exit_now")
