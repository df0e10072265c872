"""The Spark pipeline on a generated day: core-seconds of all its processes, by step.

    python -m benchmarks pipeline --messages 1000000 --runs 1     cold: with the start of Spark
    python -m benchmarks pipeline --messages 60000 --runs 2       the second run finds a session and its workers warm

Driver, JVM and Python workers are counted together, so what else the machine does shows little. Without --runs it
measures both of these. From generation to report, by the clock, with ten million messages: make long, in
tests/data/spark/pipeline/test_generated_day.py. Goals: 60 core-seconds for the million, 12 for the second small day.
"""

from __future__ import annotations

import argparse
import contextlib
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

import psutil

BROKERS, SEED = 3, 7
BOTH = (("--messages=1000000", "--runs=1"), ("--messages=60000", "--runs=2"))  # each with a session of its own
LOOK_EVERY_S = 0.3


class CoreSeconds:
    """Processor time of this process and of all below it, from now on.

    Spark's daemon does not wait for its Python workers, so the system forgets what they used. Therefore every process
    is looked at several times a second, and what it had used when it was last seen counts.
    """

    def __init__(self) -> None:
        self._used: dict[tuple[int, float], float] = {}
        self._before = 0.0
        self._before = self.spent()
        threading.Thread(target=self._watch, daemon=True).start()

    def _watch(self) -> None:
        while True:
            self.spent()
            time.sleep(LOOK_EVERY_S)

    def spent(self) -> float:
        """Core-seconds since the beginning."""
        here = psutil.Process()
        for process in (here, *here.children(recursive=True)):
            with contextlib.suppress(psutil.NoSuchProcess):
                times = process.cpu_times()
                self._used[process.pid, process.create_time()] = times.user + times.system
        return sum(self._used.values()) - self._before


def main(arguments: list[str]) -> None:
    """Generate a day, run the pipeline on it, print a line per step."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks pipeline", description=__doc__.splitlines()[0])
    parser.add_argument("--messages", type=int, default=1_000_000)
    parser.add_argument("--runs", type=int, help="in one session")
    options = parser.parse_args(arguments)
    if options.runs is None:
        for both in BOTH:
            subprocess.run([sys.executable, "-m", "benchmarks", "pipeline", *both], check=True)
        return
    from mqlab.data.traffic import write

    with tempfile.TemporaryDirectory(prefix="mqlab-bench-") as folder:
        write(Path(folder) / "day", messages=options.messages, brokers=BROKERS, seed=SEED)
        cores = CoreSeconds()
        for number in range(options.runs):
            print(f"{options.messages:,} messages, run {number + 1} of a session", flush=True)
            measure(cores, Path(folder), number)


def measure(cores: CoreSeconds, folder: Path, number: int) -> None:
    """Run all steps once, and print what each cost."""
    began = last = cores.spent()
    clock = time.monotonic()

    def say(what: str, more: str = "") -> None:
        # Each line has the core-seconds since the line before it.
        nonlocal last
        now = cores.spent()
        print(f"  {what:<14}{now - last:>8.1f} core-s{more}", flush=True)
        last = now

    # Imported within the measurement, as the command imports it.
    from mqlab.data.spark import session
    from mqlab.data.spark.pipeline import run

    spark = session("local[2]")
    say("session")

    def tell(step: str, numbers: dict[str, float]) -> None:
        if numbers:
            say(step, f"{numbers['rows']:>12,.0f} rows")

    run(folder / "day", folder / f"out-{number}", spark=spark, tell=tell)
    print(f"  {'together':<14}{last - began:>8.1f} core-s, {time.monotonic() - clock:.0f} s by the clock", flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
