"""How many messages a second `mqlab traffic` writes on one core, against copying and writing the same bytes.

    python -m benchmarks traffic --messages 300000 --repeat 2 [--clock cpu] [--profile] [--json FILE]

One broker's day with RocketMQ's default file sizes, without and with the key index. memcpy copies the day's log from
one array to another, a slice of the generator's size at a time; write puts such slices into a file. Both count the
messages whose bytes they move.
"""

from __future__ import annotations

import argparse
import cProfile
import json
import pstats
import shutil
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import asdict
from itertools import count
from pathlib import Path

import numpy as np

from benchmarks.timing import CLOCKS, Rate, best_rate, table
from mqlab.data.traffic import TrafficModel
from mqlab.data.traffic.model import Asked
from mqlab.data.traffic.writing.run import make_store

DAY = "a day, messages stored"
MEMCPY, WRITE = "memcpy of the log", "write of the log"
PLAIN, INDEXED = "mqlab traffic", "mqlab traffic --index"
SLICE_BYTES = 16 << 20


class TrafficBench:
    """All contenders on a day of ``messages``, in a directory of its own."""

    def __init__(self, directory: Path, messages: int, repeat: int, clock: str) -> None:
        self.directory, self.messages, self.repeat, self.clock = directory, messages, repeat, clock
        self._numbers = count()
        self.rates: list[Rate] = []
        self.log_bytes = make_store(self._asked(index=False), 0, str(directory / "first")).log_bytes
        shutil.rmtree(directory / "first")

    def _asked(self, *, index: bool) -> Asked:
        return Asked(self.messages, 1, 7, TrafficModel(index=index))

    def day(self, *, index: bool) -> Callable[[], object]:
        """A run that makes the day in a fresh directory; the one before it is removed."""
        shutil.rmtree(self.directory / "day", ignore_errors=True)
        return lambda: make_store(self._asked(index=index), 0, str(self.directory / "day"))

    def memcpy(self) -> Callable[[], object]:
        """A run that copies as many bytes as the log has."""
        source, target = np.ones(SLICE_BYTES, np.uint8), np.empty(SLICE_BYTES, np.uint8)

        def run() -> None:
            for _ in range(self.log_bytes // SLICE_BYTES + 1):
                target[:] = source

        return run

    def write(self) -> Callable[[], object]:
        """A run that writes as many bytes as the log has into one file, and syncs it."""
        piece = np.ones(SLICE_BYTES, np.uint8)
        path = self.directory / f"raw-{next(self._numbers)}"

        def run() -> None:
            with open(path, "xb", buffering=0) as file:
                for _ in range(self.log_bytes // SLICE_BYTES + 1):
                    file.write(piece.data)
            path.unlink()

        return run

    def measure(self) -> None:
        """Run every contender."""
        size = f"{self.log_bytes / self.messages:.0f} bytes a message"
        contenders: list[tuple[str, Callable[[], Callable[[], object]], str]] = [
            (MEMCPY, self.memcpy, size),
            (WRITE, self.write, ""),
            (PLAIN, lambda: self.day(index=False), ""),
            (INDEXED, lambda: self.day(index=True), ""),
        ]
        for name, prepare, note in contenders:
            rate = best_rate(self.messages, prepare, self.repeat, self.clock)
            self.rates.append(Rate(DAY, name, rate, note))
            print(f"{name}: {rate:,.0f} a second", file=sys.stderr)


def main(arguments: list[str]) -> None:
    """Parse the options, measure, print the table."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks traffic", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--messages", type=int, default=300_000)
    parser.add_argument("--repeat", type=int, default=2, help="runs of each; the best counts")
    parser.add_argument("--clock", choices=tuple(CLOCKS), default="wall", help="cpu: on a machine that others use too")
    parser.add_argument("--json", type=Path, help="write the rates to this file too")
    parser.add_argument("--profile", action="store_true", help="name functions instead of measuring rates")
    options = parser.parse_args(arguments)
    directory = Path(tempfile.mkdtemp(prefix="mqlab-bench-"))
    started = time.perf_counter()
    try:
        bench = TrafficBench(directory, options.messages, options.repeat, options.clock)
        if options.profile:
            profiler = cProfile.Profile()
            # A profile slows everything down, so no rates are measured with it.
            profiler.runcall(bench.day(index=False))
            pstats.Stats(profiler, stream=sys.stdout).sort_stats("tottime").print_stats(25)
            return
        bench.measure()
    finally:
        shutil.rmtree(directory, ignore_errors=True)
    print(f"{bench.messages:,} messages, {bench.log_bytes:,} bytes of log, best of {options.repeat}")
    print(table(bench.rates, MEMCPY, WRITE))
    print(f"\n{time.perf_counter() - started:.0f} s", file=sys.stderr)
    if options.json:
        options.json.write_text(json.dumps([asdict(rate) for rate in bench.rates], indent=1), "utf-8")
