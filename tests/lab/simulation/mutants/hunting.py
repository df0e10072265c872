"""Runs seed after seed with a mutant in place, until a promise is broken."""

from __future__ import annotations

from collections.abc import Iterable

import pytest

from mqlab.lab.simulation import draw, run
from tests.lab.simulation.mutants.patching import Mutant

MOST_SEEDS = 120


def hunt(mutant: Mutant, seeds: Iterable[int]) -> tuple[int | None, str]:
    """The first seed that finds a mutant, and what it broke; None and "" if none does.

    Raises AssertionError for a seed that breaks a promise without the mutant as well, and for a mutant whose arguments
    are not those of what it replaces: nothing was found then.
    """
    seed, wrong = _first_broken(mutant, seeds)
    assert seed is None or not run(draw(seed)).wrong, f"seed {seed} breaks a promise without {mutant.__name__}, too"
    return seed, wrong


def _first_broken(mutant: Mutant, seeds: Iterable[int]) -> tuple[int | None, str]:
    with pytest.MonkeyPatch.context() as patch:
        mutant(patch)
        for seed in seeds:
            wrong = run(draw(seed)).wrong
            if wrong:
                broken = str(wrong[0]).partition("\n")[0]
                assert f"{mutant.__name__}()" not in broken, f"the mutant itself cannot be called: {broken}"
                return seed, broken
    return None, ""
