"""check(id, more=20): after the public cases, as many cases from new seeds.

    lab00.find:  ████████     16/20       progress; Kernel > Interrupt stops it, and what was tried counts
    ✓ 20 of 20 other seeds hold            or the first that does not, with its seed

A seed that was found here can be tried again: it is in the case's name.
"""

from __future__ import annotations

import random
import sys
from collections.abc import Callable

from mqlab.course.teach.exercises import Case, Exercise
from mqlab.course.teach.said import Said

FIRST_SEED, LAST_SEED = 1_000, 999_999


def practise(asked: Exercise, count: int, judge: Callable[[Case], Said | None]) -> Said:
    """Judge the cases of ``count`` other seeds up to the first that does not hold. ``judge``: None if a case holds."""
    from tqdm import tqdm

    held, seeds = 0, random.sample(range(FIRST_SEED, LAST_SEED), count)
    bar = tqdm(seeds, desc=asked.id, unit="seed", file=sys.stdout, leave=False)
    try:
        for seed in bar:
            wrong = judge(asked.case(seed))
            if wrong is not None:
                before = ("held before it", f"{held} of {count} other seeds")
                return Said(wrong.state, wrong.headline, [*wrong.facts, before], wrong.note)
            held += 1
    except KeyboardInterrupt:
        note = "All that were tried hold." if held else "None was finished."
        return Said("note", f"{asked.id}: stopped after {held} of {count} other seeds", note=note)
    finally:
        bar.close()
    return Said("good", f"{asked.id}: {held} of {count} other seeds hold", note=asked.note)
