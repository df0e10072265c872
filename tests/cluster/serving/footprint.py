"""What a server's process holds: its own memory and descriptors, and whether they stay."""

from __future__ import annotations

import statistics
from pathlib import Path

import psutil


def anonymous_kb(pid: int) -> int:
    """The memory of a process without the pages of its files, which the system takes back when it needs them."""
    status = Path(f"/proc/{pid}/status").read_text("ascii")
    return int(status.split("RssAnon:")[1].split()[0])


def footprint(pid: int) -> tuple[float, int]:
    """Its own memory in MB, and how many descriptors it has besides those of the store's files, which become more."""
    process = psutil.Process(pid)
    return anonymous_kb(pid) / 1_000, process.num_fds() - len(process.open_files())


def assert_is_flat(samples: list[tuple[float, int]], factor: float) -> None:
    """Memory and descriptors of the second half are those of the first, up to a factor and two."""
    for values in zip(*samples, strict=True):
        early, late = (statistics.median(half) for half in (values[: len(values) // 2], values[len(values) // 2 :]))
        assert late < early * factor + 2, values
