"""The kernel of a submission is a copy that waits; it finds what a kernel that starts by itself finds."""

from __future__ import annotations

import json
import os
import selectors
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from mqlab.course.grading.running.copies import FOR_KERNELS, Copies
from mqlab.course.grading.running.kernel_copy import KernelCopy

SECONDS = 120.0
TWO_KERNELS = """
import json, os, sys
from nbval.kernel import CURRENT_ENV_KERNEL_NAME, RunningKernel
from mqlab.course.grading.running.kernel_copy import KernelCopy
from mqlab.course.grading.running.kernel_provisioner import use

ASKED = '''
import json, os, sys, tempfile
environment = {name: value for name, value in os.environ.items() if name != "JPY_SESSION_NAME"}
print(json.dumps([
    os.getcwd(), environment, sys.path, tempfile.gettempdir(), hash("text"), __name__,
    os.getsid(0) == os.getpgid(0) == os.getpid(), os.getppid(), os.read(0, 1).decode(),
]))
'''

def said(kernel, code, wanted):
    asked = kernel.execute_cell_input(code, allow_stdin=False)
    kernel.await_reply(asked, timeout=60)
    while (message := kernel.get_message("iopub", timeout=60))["msg_type"] != wanted:
        pass
    return message["content"]

def facts_and_end(kernel):
    facts = json.loads(said(kernel, ASKED, "stream")["text"])
    # An interrupt reaches the kernel, and no other process.
    asked = kernel.execute_cell_input("print(1)\\nimport time\\ntime.sleep(60)", allow_stdin=False)
    while kernel.get_message("iopub", timeout=60)["msg_type"] != "stream":
        pass
    kernel.interrupt()
    kernel.await_reply(asked, timeout=60)
    error = ""
    while not error:
        error = kernel.get_message("iopub", timeout=60)["content"].get("ename", "")
    was_alive = kernel.is_alive()
    kernel.stop()
    return [*facts, error, was_alive, kernel.is_alive()]

def started():
    return RunningKernel(CURRENT_ENV_KERNEL_NAME, cwd=sys.argv[1], startup_timeout=60)

copy = KernelCopy()
os.environ["OF_THE_NOTEBOOK"], os.environ["TMPDIR"] = "yes", sys.argv[1]
use(copy)
first = started()
is_the_copy = first.km.provisioner.pid == copy.pid
facts = facts_and_end(first)
print(json.dumps([is_the_copy, copy.poll() is not None, facts, facts_and_end(started())]))
"""

KILLED_BESIDE_ITS_KERNEL = """
import os, signal, sys
from nbval.kernel import CURRENT_ENV_KERNEL_NAME, RunningKernel
from mqlab.course.grading.running.kernel_copy import KernelCopy
from mqlab.course.grading.running.kernel_provisioner import use

import ipykernel.kernelapp
copy = KernelCopy()
use(copy)
kernel = RunningKernel(CURRENT_ENV_KERNEL_NAME, cwd=sys.argv[1], startup_timeout=60)
print(copy.pid, flush=True)
os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.fixture(scope="module")
def two_kernels(tmp_path_factory: pytest.TempPathFactory) -> list[Any]:
    """Whether the first was the copy, whether it has ended, what it found, and what the second one found."""
    folder = tmp_path_factory.mktemp("notebook")
    done = subprocess.run(
        [sys.executable, "-c", TWO_KERNELS, str(folder)],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, **FOR_KERNELS},
        timeout=SECONDS,
        stdin=subprocess.DEVNULL,
    )
    assert done.returncode == 0, done.stderr
    found: list[Any] = json.loads(done.stdout)
    return found


def test_the_first_kernel_is_the_copy_and_it_ends(two_kernels: list[Any]) -> None:
    assert two_kernels[:2] == [True, True]


def test_it_finds_what_a_kernel_that_starts_by_itself_finds(two_kernels: list[Any]) -> None:
    first, second = two_kernels[2:]
    assert first == second
    assert first[1]["OF_THE_NOTEBOOK"] == "yes"
    assert first[-3:] == ["KeyboardInterrupt", True, False]


def ends(process: int) -> bool:
    """Whether a process has ended within a while."""
    try:
        descriptor = os.pidfd_open(process)
    except ProcessLookupError:
        return True
    try:
        with selectors.DefaultSelector() as selector:
            selector.register(descriptor, selectors.EVENT_READ)
            return bool(selector.select(SECONDS))
    finally:
        os.close(descriptor)


@pytest.mark.skipif(not Path("/proc/self/task").is_dir(), reason="needs Linux's /proc to find the process that waits")
def test_what_waits_in_vain_ends_with_the_submissions_process() -> None:
    copies = Copies()
    copy = copies.make()
    children = Path(f"/proc/{copy.pid}/task/{copy.pid}/children")
    while not (waiting := children.read_text("utf-8").split()):
        pass
    copy.kill()
    assert [ends(int(one)) for one in waiting] == [True]
    copy.close()
    copies.close()


def test_a_kernel_at_work_ends_with_the_submissions_process(tmp_path: Path) -> None:
    """A grader may be killed. ipykernel is imported before it is known whose kernel it will be."""
    done = subprocess.run(
        [sys.executable, "-c", KILLED_BESIDE_ITS_KERNEL, str(tmp_path)],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, **FOR_KERNELS},
        timeout=SECONDS,
        stdin=subprocess.DEVNULL,
    )
    assert done.returncode == -signal.SIGKILL, done.stderr
    assert ends(int(done.stdout))


def test_it_is_ended_and_waited_for_as_a_subprocess_is() -> None:
    kernel = KernelCopy()
    assert kernel.poll() is None
    with pytest.raises(subprocess.TimeoutExpired):
        kernel.wait(0)
    kernel.terminate()
    assert kernel.wait(SECONDS) == kernel.poll() == -signal.SIGTERM
    kernel.kill()  # no other process may have the number by now
