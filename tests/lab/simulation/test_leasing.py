"""Random days with timed messages and a popping group keep their promises; planted defects break them."""

from __future__ import annotations

import pytest

from mqlab.lab.simulation.leasing import draw_leasing, run_leasing
from mqlab.lab.simulation.planted import of_pop, of_the_timer
from mqlab.lab.simulation.planted.fitting import Defect

QUICK_SEEDS = range(6)
MOST_SEEDS = 40
DEFECTS = [*of_the_timer.DEFECTS, *of_pop.DEFECTS]
NAMES = [next(iter(defect.changes.values())).__name__ for defect in DEFECTS]


@pytest.mark.parametrize("seed", QUICK_SEEDS)
def test_a_sound_broker_keeps_its_promises(seed: int) -> None:
    assert run_leasing(seed) == []


@pytest.mark.long
@pytest.mark.parametrize("seed", range(6, 206))
def test_a_sound_broker_keeps_its_promises_on_many_days(seed: int) -> None:
    assert run_leasing(seed) == []


def test_a_day_follows_from_its_seed() -> None:
    assert draw_leasing(5) == draw_leasing(5) and draw_leasing(3).is_calm and not draw_leasing(4).is_calm


def test_there_are_eight_defects_of_the_timer_and_ten_of_pop() -> None:
    assert (len(of_the_timer.DEFECTS), len(of_pop.DEFECTS)) == (8, 10)


@pytest.mark.parametrize("defect", DEFECTS, ids=NAMES)
def test_every_planted_defect_is_found(defect: Defect) -> None:
    assert any(run_leasing(seed, defect.fit) for seed in range(MOST_SEEDS))
