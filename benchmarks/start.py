"""What a start costs: the bare interpreter, a part of the standard library, `import mqlab`, and a Lab.

    python -m benchmarks start --repeat 7

Each is a process of its own, its processor time is that of the process and its children, and the least of all runs
counts. The reference is the bare interpreter; asyncio stands for an import of the standard library of some size.
"""

from __future__ import annotations

import argparse
import resource
import subprocess
import sys

GOAL_MS = 100
STARTS = {
    "the interpreter": "pass",
    "import asyncio": "import asyncio",
    "import mqlab": "import mqlab",
    "from mqlab import Lab; Lab()": "from mqlab import Lab; Lab()",
    "import pandas": "import pandas",
}


def processor_ms(code: str) -> float:
    """Processor time of one process that runs this code, in ms."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run([sys.executable, "-c", code], check=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return 1_000 * (after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)


def main(arguments: list[str]) -> None:
    """Parse the options, measure by turns, print the table."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks start", description=__doc__.splitlines()[0])
    parser.add_argument("--repeat", type=int, default=7, help="runs of each, by turns; the best counts")
    options = parser.parse_args(arguments)
    best = dict.fromkeys(STARTS, float("inf"))
    for _ in range(options.repeat):
        for name, code in STARTS.items():
            best[name] = min(best[name], processor_ms(code))
    bare, library = best["the interpreter"], best["import asyncio"]
    print(f"{'':<34}{'CPU ms':>8}  ratio to: the interpreter, import asyncio")
    for name, spent in best.items():
        print(f"{name:<34}{spent:>8.0f}{spent / bare:>10.1f}{spent / library:>8.1f}")
    print(f"goal for a Lab: {GOAL_MS} ms")
