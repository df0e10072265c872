"""Kill every victim many times: ``python -m tests.lab.kills --times 100 [victim ...]``.

A line for each of them says what was left.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from tests.cluster.serving.test_under_fire import killed_under_load
from tests.lab.kills.grader import grader_killed
from tests.lab.kills.live import live_killed
from tests.lab.kills.threads import threads_killed
from tests.lab.kills.writer import writer_killed


def _spark(directory: Path, times: int, seed: int) -> str:
    from mqlab.data.spark import session
    from tests.data.spark.test_exactly_once import killed_again_and_again

    kills = 10  # a life of the job costs some ten seconds; its stores and its sink grow with each
    spark = session("local[2]")
    for number in range(max(1, times // kills)):
        folder = directory / str(number)
        folder.mkdir()
        killed_again_and_again(spark, folder, kills=kills, brokers=3, seed=seed + number)
    return "every message is in the sink once"


def _threads(directory: Path, times: int, seed: int) -> str:
    found = threads_killed(directory, times, seed)
    assert (found.lost, found.not_consumed) == (0, 0), found
    return f"{found.acknowledged:,} messages acknowledged, none lost, all consumed"


def _writer(directory: Path, times: int, seed: int) -> str:
    days, different = writer_killed(directory, times, seed)
    assert different == 0, f"{different} of {days} days differ"
    return f"{days} days written, all equal to the day of an unkilled writer"


def _grader(directory: Path, times: int, seed: int) -> str:
    classes, different, folders = grader_killed(directory, times, seed)
    assert (different, folders) == (0, 0), f"{different} reports differ, {folders} temporary folders are left"
    return f"{classes} classes graded, all reports equal to those of an unkilled grader"


def _live(directory: Path, times: int, seed: int) -> str:
    stored, is_equal = live_killed(directory, times, seed)
    assert is_equal, "the stores differ from those of a day without kills"
    return f"{stored:,} messages stored, the same as without kills"


def _server(directory: Path, times: int, seed: int) -> str:
    acknowledged, lost = killed_under_load(directory, times, seed)
    assert lost == 0, f"{lost} of {acknowledged} acknowledged messages are lost"
    return f"{acknowledged:,} messages acknowledged, none lost"


VICTIMS: dict[str, Callable[[Path, int, int], str]] = {
    "threads": _threads,
    "writer": _writer,
    "grader": _grader,
    "live": _live,
    "server": _server,
    "spark": _spark,
}


def main() -> int:
    """Kill the named victims, or all."""
    parser = argparse.ArgumentParser(prog="python -m tests.lab.kills", description=__doc__)
    parser.add_argument("victims", nargs="*", metavar="victim", help=" ".join(VICTIMS))
    parser.add_argument("--times", type=int, default=100)
    parser.add_argument("--seed", type=int, default=2)
    options = parser.parse_args()
    unknown = set(options.victims) - set(VICTIMS)
    if unknown:
        parser.error(f"no such victim: {', '.join(sorted(unknown))}; there are {', '.join(VICTIMS)}")
    broken = 0
    for name in options.victims or VICTIMS:
        began = time.monotonic()
        with tempfile.TemporaryDirectory(prefix=f"kills-{name}-") as folder:
            try:
                left = VICTIMS[name](Path(folder), options.times, options.seed)
            except AssertionError as error:
                broken += 1
                left = f"BROKEN: {error}"
        print(f"{name:<10}{options.times:>6} kills{time.monotonic() - began:>8.0f} s  {left}", flush=True)
    return 1 if broken else 0


if __name__ == "__main__":
    sys.exit(main())
