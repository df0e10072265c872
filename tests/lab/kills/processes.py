"""A process group that is killed with SIGKILL; nothing of it runs on."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

import psutil

GONE_SECONDS = 60


def run_until_killed(
    words: Sequence[str], *, log: Path, seconds: float, environment: Mapping[str, str] | None = None
) -> int | None:
    """Run Python with these words and kill it after so many seconds.

    What it prints goes to the log. Returns its exit code, or None if it was killed.
    """
    with log.open("ab") as said:
        process = subprocess.Popen(
            [sys.executable, *words],
            stdout=said,
            stderr=said,
            start_new_session=True,
            env={**os.environ, **(environment or {})},
        )
        try:
            return process.wait(seconds)
        except subprocess.TimeoutExpired:
            pass
    members = psutil.Process(process.pid).children(recursive=True)
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    _, left = psutil.wait_procs(members, timeout=GONE_SECONDS)
    assert not left, f"still running after the kill: {left}"
    return None
