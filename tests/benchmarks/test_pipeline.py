"""The benchmark of the pipeline counts every process, also one without a waiter; core-seconds are not asserted."""

from __future__ import annotations

import subprocess
import sys

import pytest

from benchmarks import __main__ as benchmarks
from benchmarks import pipeline

GRANDCHILD = "import time\nwhile time.process_time() < 0.3: pass"
CHILD = f"""
import signal, subprocess, sys
signal.signal(signal.SIGCHLD, signal.SIG_IGN)
subprocess.run([sys.executable, "-c", {GRANDCHILD!r}])
"""


def test_a_process_that_nobody_waited_for_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pipeline, "LOOK_EVERY_S", 0.01)
    cores = pipeline.CoreSeconds()
    subprocess.run([sys.executable, "-c", CHILD], check=True)
    assert cores.spent() > 0.25


@pytest.mark.long
def test_two_runs_of_a_session_have_a_line_per_step(capfd: pytest.CaptureFixture[str]) -> None:
    arguments = ["-m", "benchmarks", "pipeline", "--messages", "3000", "--runs", "2"]
    subprocess.run([sys.executable, *arguments], check=True)
    lines = capfd.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines].count("life") == 2
    assert len([line for line in lines if line.startswith("  together")]) == 2
    assert "pipeline" in benchmarks.BENCHMARKS
