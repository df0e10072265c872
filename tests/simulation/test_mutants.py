"""The simulation finds every one of the defects in mutants.py: three of them here, all of them in the long run."""

from __future__ import annotations

import pytest

from mqlab.simulation import draw, run
from tests.simulation import mutants
from tests.simulation.mutants import MUTANTS, Mutant

MOST_SEEDS = 120
QUICK = (mutants.commits_before_the_listener, mutants.rolled_back_is_committed, mutants.retry_at_once)


def seed_that_finds(mutant: Mutant, seeds: int) -> int | None:
    with pytest.MonkeyPatch.context() as patch:
        mutant(patch)
        return next((seed for seed in range(seeds) if run(draw(seed)).wrong), None)


@pytest.mark.parametrize("mutant", QUICK, ids=lambda mutant: mutant.__name__)
def test_a_defect_is_found(mutant: Mutant) -> None:
    assert seed_that_finds(mutant, 6) is not None


@pytest.mark.long
@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.__name__)
def test_every_defect_is_found(mutant: Mutant) -> None:
    assert seed_that_finds(mutant, MOST_SEEDS) is not None
