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
    """What a list of findings is worth beside the truth. Findings that are named twice count once."""

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


def recalled(found: Sequence[Hashable], truth: Collection[Hashable], decoys: Collection[Hashable] = ()) -> Recalled:
    """Findings beside the truth and beside what only looked like it.

    >>> recalled(["stuck", "burst", "moon"], ["stuck", "reset"], ["burst"])
    Recalled(hits=('stuck',), missed=('reset',), decoys=('burst',), invented=('moon',))
    """
    once = list(dict.fromkeys(found))
    return Recalled(
        hits=tuple(one for one in once if one in truth),
        missed=tuple(one for one in truth if one not in once),
        decoys=tuple(one for one in once if one in decoys and one not in truth),
        invented=tuple(one for one in once if one not in truth and one not in decoys),
    )


def overlap(found: Interval, right: Interval) -> float:
    """The common part of two stretches of time over the whole of both; 0 for a stretch that ends before it begins.

    >>> overlap((600, 660), (615, 660))
    0.75
    """
    common = min(found[1], right[1]) - max(found[0], right[0])
    whole = max(found[1], right[1]) - min(found[0], right[0])
    return max(0.0, common / whole) if whole > 0 and found[1] >= found[0] else float(found == right)


def jaccard(found: Collection[Hashable], right: Collection[Hashable]) -> float:
    """The common members of two sets over all members of both; 1 for two empty sets.

    >>> jaccard({1, 2, 3}, {2, 3, 4})
    0.5
    """
    one, other = set(found), set(right)
    every = one | other
    return len(one & other) / len(every) if every else 1.0


def delay_ms(alarms: Sequence[int], begins_ms: int, until_ms: int) -> int | None:
    """How long after its beginning a harm was first reported; None where no alarm came before ``until_ms``.

    An alarm before the beginning is about something else.

    >>> delay_ms([100, 700, 900], 600, 1_200)
    100
    """
    reported = [moment for moment in alarms if begins_ms <= moment <= until_ms]
    return min(reported) - begins_ms if reported else None


def in_order(found: Sequence[Hashable], harm: Mapping[Hashable, float], tolerance: float = 0.2) -> bool:
    """Whether findings stand with the most harmful first; harms within ``tolerance`` of each other may change places.

    >>> in_order(["reset", "stuck"], {"reset": 100, "stuck": 110})
    True
    """
    harms = [harm[one] for one in found if one in harm]
    return all(later <= earlier * (1 + tolerance) for earlier, later in itertools.pairwise(harms))
