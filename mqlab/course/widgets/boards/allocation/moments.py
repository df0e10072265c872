"""The moments of a history under one strategy: who has which queue, and what each change moved.

at the beginning      billing-1 4, billing-2 4                  difference 0
billing-3 joins       billing-1 3, billing-2 3, billing-3 2     difference 1, moved 5, fewest moves 2
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from mqlab.course.widgets.boards.allocation.history import Change, words
from mqlab.course.widgets.boards.allocation.measures import Owners, counts_of, difference, fewest_moves, moved


@dataclass(frozen=True, slots=True)
class DivisionMoment:
    """The division after one change, or at the beginning; the numbers of moves compare it with the one before."""

    change: str
    members: Sequence[str]
    owners: Owners
    difference: int
    moved: int = 0
    fewest_moves: int = 0

    def queues_without_and_shared(self) -> dict[str, int]:
        """How many queues no member reads, and how many several members read."""
        return {
            "without owner": sum(not names for names in self.owners),
            "several owners": sum(len(names) > 1 for names in self.owners),
        }


def moments_of(
    changes: Sequence[Change], members: Sequence[Sequence[str]], owners: Sequence[Owners], per_topic: int
) -> Iterator[DivisionMoment]:
    """The moments from the members and owners of each; each topic's queues (``per_topic``) move on their own."""
    for number, now in enumerate(owners):
        uneven = difference(now, members[number])
        if not number:
            yield DivisionMoment("at the beginning", members[0], now, uneven)
            continue
        before, starts = owners[number - 1], range(0, len(now), per_topic)
        fewest = sum(fewest_moves(before[start : start + per_topic], members[number]) for start in starts)
        yield DivisionMoment(words(changes[number - 1]), members[number], now, uneven, moved(before, now), fewest)


class Moments:
    """All moments of one strategy, and what they come to."""

    def __init__(self, moments: Iterator[DivisionMoment]) -> None:
        self._moments = list(moments)

    @property
    def fairness(self) -> int:
        """The largest difference of queue counts."""
        return max(moment.difference for moment in self._moments)

    @property
    def moved(self) -> int:
        """Queues whose owner changed."""
        return sum(moment.moved for moment in self._moments)

    @property
    def fewest_moves(self) -> int:
        """Queues that had to change owner."""
        return sum(moment.fewest_moves for moment in self._moments)

    @property
    def churn(self) -> float | None:
        """Queues moved divided by the fewest moves; None if none had to move."""
        return self.moved / self.fewest_moves if self.fewest_moves else None

    def rows(self) -> list[dict[str, Any]]:
        """One row per moment."""
        rows = []
        for number, moment in enumerate(self._moments):
            counts = counts_of(moment.owners, moment.members)
            rows.append(
                {
                    "moment": number,
                    "change": moment.change,
                    "queues of each": ", ".join(f"{name} {counts[name]}" for name in moment.members),
                    "difference": moment.difference,
                    "moved": moment.moved,
                    "fewest moves": moment.fewest_moves,
                    **moment.queues_without_and_shared(),
                }
            )
        return rows

    def figures(self) -> dict[str, Any]:
        """The whole history as one row; of the queues without an owner those at the end count."""
        churn = self.churn
        return {
            "fairness": self.fairness,
            "moved": self.moved,
            "fewest moves": self.fewest_moves,
            "churn": None if churn is None else round(churn, 2),
            **self._moments[-1].queues_without_and_shared(),
        }
