"""All mutants in one run, as a table: which seed found it, how long that took, which promise it broke."""

from __future__ import annotations

import sys
import time

from tests.lab.simulation.mutants import MUTANTS
from tests.lab.simulation.mutants.hunting import MOST_SEEDS, hunt


def main(words: list[str]) -> int:
    """Hunt all mutants, or those with one of the words in their names; 1 if one was not found."""
    missed = 0
    print("| defect | seed | s | the promise that broke |\n|---|---|---|---|")
    for mutant in MUTANTS:
        name = mutant.__name__.replace("_", " ")
        if words and not any(word in name for word in words):
            continue
        began = time.process_time()
        seed, wrong = hunt(mutant, range(MOST_SEEDS))
        took = time.process_time() - began
        missed += seed is None
        print(f"| {name} | {'-' if seed is None else seed} | {took:.1f} | {wrong or 'NOT FOUND'} |", flush=True)
    print(f"\n{missed} not found within {MOST_SEEDS} seeds" if missed else "\nall were found")
    return 1 if missed else 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
