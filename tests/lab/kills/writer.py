"""`mqlab traffic` dies while it writes; the same command again ends with the same bytes."""

from __future__ import annotations

import hashlib
import random
import shutil
import time
from pathlib import Path

from tests.lab.kills.processes import run_until_killed

PATIENCE = 600
SMALL_FILES = ("commit_log_bytes=1048576", "consume_queue_bytes=20000", "hash_slot_num=5000", "index_num=60000")
DAY = ("--messages", "20000", "--brokers", "3", "--seed", "5", "--index", *(f"--set={one}" for one in SMALL_FILES))


def fingerprints(directory: Path) -> dict[str, str]:
    """Relative path -> digest of every file; the truth beside the directory is among them."""
    files = [path for path in directory.parent.rglob("*") if path.is_file()]
    return {str(path.relative_to(directory.parent)): hashlib.sha256(path.read_bytes()).hexdigest() for path in files}


def writer_killed(directory: Path, times: int, seed: int) -> tuple[int, int]:
    """Kill the writer so many times. Returns how many days were written, and how many differ."""
    rng, log = random.Random(seed), directory / "log.txt"
    words = ["-m", "mqlab.cli", "traffic", *DAY, "--out"]
    began = time.monotonic()
    assert run_until_killed([*words, str(directory / "whole" / "day")], log=log, seconds=PATIENCE) == 0, log.read_text()
    whole_seconds = time.monotonic() - began
    wanted = fingerprints(directory / "whole" / "day")
    kills = days = different = 0
    while kills < times:
        day = directory / "cut" / "day"
        while kills < times:
            if run_until_killed([*words, str(day)], log=log, seconds=rng.uniform(0.1, 1) * whole_seconds) is not None:
                break
            kills += 1
        else:  # a machine that has become busy would go on killing it for ever
            assert run_until_killed([*words, str(day)], log=log, seconds=PATIENCE) == 0, log.read_text()
        days += 1
        different += fingerprints(day) != wanted
        shutil.rmtree(day.parent)
    return days, different
