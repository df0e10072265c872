"""Real defects, put into mqlab's functions in memory: the simulation must find each of them.

Each mutant is a function of pytest's ``monkeypatch``. No file of the package knows of them.

    of_the_store      dispatch, queues, flushing, recovery        of_the_client   offsets, listeners, pulls, rebalance
    of_the_broker     retries, delays, pulls, members, locks      of_the_cluster  replication, transactions
    of_the_failures   parts of a broker that fail            of_leases       timed messages, POP

    python -m tests.lab.simulation.mutants          all of them, as a table
    python -m tests.lab.simulation.mutants lock     those whose name has "lock" in it
"""

from tests.lab.simulation.mutants import (
    of_leases,
    of_the_broker,
    of_the_client,
    of_the_cluster,
    of_the_failures,
    of_the_store,
)
from tests.lab.simulation.mutants.patching import Mutant

MUTANTS: tuple[Mutant, ...] = (
    *of_the_store.MUTANTS,
    *of_the_broker.MUTANTS,
    *of_the_client.MUTANTS,
    *of_the_cluster.MUTANTS,
    *of_the_failures.MUTANTS,
    *of_leases.MUTANTS,
)

__all__ = ["MUTANTS", "Mutant"]
