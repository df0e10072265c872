"""How near an answer comes to the truth, as numbers from 0 to 1, for answers that are found out and not computed.

mqlab.course.kit.scored makes exercises of them.

    findings    right, missing, invented, decoys: a wrong one costs what a right one earns
    intervals   overlap over union               10:00-11:00 against 10:15-11:00 is 0.75
    sets        Jaccard: common over all         {1, 2, 3} against {2, 3, 4} is 0.5
    alarms      seconds from the beginning of the harm to the first alarm; alarms on days on which nothing happened
"""

from __future__ import annotations

import itertools
from collections.abc import Collection, Hashable, Mapping, Sequence
from dataclasses import dataclass

Interval = tuple[int, int]


@dataclass(frozen=True, slots=True)
class Recalled:
    """What a list of findings is worth next to the truth. Findings that are named twice count once."""

    hits: tuple[Hashable, ...]
    missed: tuple[Hashable, ...]
    decoys: tuple[Hashable, ...]
    invented: tuple[Hashable, ...]

    @property
    def recall(self) -> float:
        """The share of the truth that was found; 1 where there was nothing to find."""
        there = len(self.hits) + len(self.missed)
        return len(self.hits) / there if there else 1.0

    @property
    def share(self) -> float:
        """What the findings are worth: each wrong one takes away what a right one earns, and none is below 0."""
        there = len(self.hits) + len(self.missed)
        return max(0.0, (len(self.hits) - len(self.decoys) - len(self.invented)) / there) if there else 0.0


def recalled(named: Sequence[Hashable], truth: Collection[Hashable], decoys: Collection[Hashable] = ()) -> Recalled:
    """Findings next to the truth and next to what only looked like it.

    >>> recalled(["stuck", "burst", "moon"], ["stuck", "reset"], ["burst"])
    Recalled(hits=('stuck',), missed=('reset',), decoys=('burst',), invented=('moon',))
    """
    once = list(dict.fromkeys(named))
    return Recalled(
        hits=tuple(name for name in once if name in truth),
        missed=tuple(name for name in truth if name not in once),
        decoys=tuple(name for name in once if name in decoys and name not in truth),
        invented=tuple(name for name in once if name not in truth and name not in decoys),
    )


def overlap(guess: Interval, right: Interval) -> float:
    """The common part of two stretches of time over the whole of both; 0 for a stretch that ends before it begins.

    >>> overlap((600, 660), (615, 660))
    0.75
    """
    common = min(guess[1], right[1]) - max(guess[0], right[0])
    whole = max(guess[1], right[1]) - min(guess[0], right[0])
    return max(0.0, common / whole) if whole > 0 and guess[1] >= guess[0] else float(guess == right)


def jaccard(named: Collection[Hashable], right: Collection[Hashable]) -> float:
    """The common members of two sets over all members of both; 1 for two empty sets.

    >>> jaccard({1, 2, 3}, {2, 3, 4})
    0.5
    """
    mine, other = set(named), set(right)
    every = mine | other
    return len(mine & other) / len(every) if every else 1.0


def delay_ms(alarms: Sequence[int], begins_ms: int, until_ms: int) -> int | None:
    """How long after its beginning a harm was first reported; None where no alarm came before ``until_ms``.

    An alarm before the beginning is about something else.

    >>> delay_ms([100, 700, 900], 600, 1_200)
    100
    """
    reported = [moment for moment in alarms if begins_ms <= moment <= until_ms]
    return min(reported) - begins_ms if reported else None


def in_order(named: Sequence[Hashable], harm: Mapping[Hashable, float]) -> bool:
    """Whether findings stand with the most harmful first; harms within a fifth of each other may change places.

    >>> in_order(["reset", "stuck"], {"reset": 100, "stuck": 110})
    True
    """
    harms = [harm[name] for name in named if name in harm]
    return all(later <= earlier * 1.2 for earlier, later in itertools.pairwise(harms))
