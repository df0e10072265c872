"""`mqlab console` as a process of its own, for tests that ask it and tests that look at its page."""

from __future__ import annotations

import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

END_SECONDS = 120


@contextmanager
def serving(directory: Path) -> Iterator[tuple[str, str]]:
    """The address and the token of a console. It must end by Ctrl-C with exit code 0 and say nothing else."""
    command = [sys.executable, "-m", "mqlab.cli", "console", str(directory), "--no-browser"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        found = None
        while found is None:
            line = process.stdout.readline()
            assert line, process.communicate()[1]
            found = re.search(r"(http://127\.0\.0\.1:\d+)/\?token=(\w+)", line)
        yield found[1], found[2]
        process.send_signal(signal.SIGINT)
        _, said = process.communicate(timeout=END_SECONDS)
        assert (process.returncode, said) == (0, "Ending.\n")
    finally:
        process.kill()
