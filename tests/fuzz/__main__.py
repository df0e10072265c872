"""Many inputs for every reader: ``python -m tests.fuzz --inputs 1000000 [--seed 0]``.

The inputs are shared out; a slow reader gets fewer. A line per reader says how many it got, and how many it refused.
What breaks one is printed with its script, and the exit code is 1.
"""

from __future__ import annotations

import argparse
import random
import sys
import time
import traceback
from collections.abc import Sequence

from tqdm import tqdm

from tests.fuzz.mutations import from_script
from tests.fuzz.readers import READERS, Reader, store_readers
from tests.fuzz.requests import REQUESTS

LENGTHS = (1, 5, 5, 9, 9, 13, 17, 33)


def broken_by(reader: Reader, samples: Sequence[bytes], script: bytes) -> tuple[bool, str]:
    """Whether the reader refuses what the script makes, and the traceback of what it may not raise."""
    try:
        reader.read(from_script(samples, script))
    except reader.refuses:
        return True, ""
    except Exception:
        return False, traceback.format_exc()
    return False, ""


def tried(reader: Reader, inputs: int, seed: int) -> int:
    """How many of so many inputs broke a reader."""
    rng, samples, refused, broken = random.Random(f"{seed} {reader.name}"), reader.samples(), 0, 0
    began = time.perf_counter()
    for _ in tqdm(range(inputs), desc=reader.name, leave=False, disable=None):
        script = rng.randbytes(rng.choice(LENGTHS))
        refuses, problem = broken_by(reader, samples, script)
        refused += refuses
        if problem:
            broken += 1
            print(f"{reader.name}: {script.hex()}\n{problem}", file=sys.stderr)
    took = time.perf_counter() - began
    print(f"{reader.name:<42}{inputs:>10,} inputs{refused:>10,} refused{broken:>5} broke it{took:>8.1f} s", flush=True)
    return broken


def main() -> int:
    """Try every reader."""
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=__doc__)
    parser.add_argument("--inputs", type=int, default=1_000_000)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    every = (*READERS, *store_readers(), REQUESTS)
    shares = sum(1 / reader.slow for reader in every)
    broken = sum(tried(reader, max(1, round(options.inputs / reader.slow / shares)), options.seed) for reader in every)
    return 1 if broken else 0


if __name__ == "__main__":
    sys.exit(main())
