"""The simulation finds every one of the defects in mutants: four of them here, all of them in the long run."""

from __future__ import annotations

import pytest

from tests.lab.simulation.mutants import (
    MUTANTS,
    Mutant,
    of_leases,
    of_the_broker,
    of_the_client,
    of_the_cluster,
    of_the_failures,
    of_the_store,
)
from tests.lab.simulation.mutants.hunting import MOST_SEEDS, hunt

QUICK = (
    of_the_store.recovery_numbers_queues_one_too_low,
    of_the_broker.arrival_wakes_nobody,
    of_the_client.commits_before_the_listener,
    of_the_cluster.rolled_back_is_committed,
)


@pytest.mark.parametrize("mutant", QUICK, ids=lambda mutant: mutant.__name__)
def test_a_defect_is_found(mutant: Mutant) -> None:
    assert hunt(mutant, range(4))[0] is not None


@pytest.mark.parametrize("name", ["all_but_the_last", "all_but_the_oldest"])
def test_a_defect_of_leases_is_found(name: str) -> None:
    (mutant,) = [mutant for mutant in of_leases.MUTANTS if mutant.__name__ == name]
    assert hunt(mutant, [2])[0] == 2


def test_a_broker_that_takes_messages_while_its_disk_fails_is_found() -> None:
    assert hunt(of_the_failures.a_failed_part_refuses_nothing, [6])[0] == 6


@pytest.mark.long
@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.__name__)
def test_every_defect_is_found(mutant: Mutant) -> None:
    assert hunt(mutant, range(MOST_SEEDS))[0] is not None
