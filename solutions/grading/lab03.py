"""Hidden cases of lab 03: groups that no file of the release has, other histories.

The known-wrong answers are in wrong/lab03.*.diff, one file per exercise.
"""

from __future__ import annotations

import itertools
import random
from collections.abc import Callable

from mqlab.course.cases.lab03 import allocation
from mqlab.course.cases.lab03.vectors import Vector, drawn
from mqlab.course.kit import Variant, variants
from mqlab.course.teach.exercises import Call, Case

SEEDED = {
    "lab03.average": 3,
    "lab03.circle": 3,
    "lab03.ring": 3,
    "lab03.fairness": 3,
    "lab03.churn": 3,
    "lab03.sticky": 2,
    "lab03.twins": 2,
    "lab03.two_owners": 1,
}


def _of(strategy: str, fits: Callable[[Vector], bool]) -> Callable[[int], list[Call]]:
    """Six vectors of a kind, drawn from the class's seed, asked for each of their members."""

    def made(seed: int) -> list[Call]:
        rng = random.Random(f"lab03 hidden {strategy} {seed}")
        chosen = list(itertools.islice(filter(fits, (drawn(rng) for _ in itertools.count())), 6))
        return [call for vector in chosen for call in allocation.calls_of(strategy, [vector], rng, with_stranger=False)]

    return made


def _many_nodes(vector: Vector) -> bool:
    return vector.virtual_nodes == 50


FROM_SEED = {
    "lab03.average": variants(allocation.AVERAGE, Variant("fewer queues than members", _of("AVG", allocation.crowded))),
    "lab03.circle": variants(
        allocation.CIRCLE, Variant("fewer queues than members", _of("AVG_BY_CIRCLE", allocation.crowded))
    ),
    "lab03.ring": variants(allocation.RING, Variant("fifty virtual nodes", _of("CONSISTENT_HASH", _many_nodes))),
}
HIDDEN: dict[str, tuple[Case, ...]] = {}
