"""A hash ring: the points of members, the arc that each point answers for, and where queues fall on it.

Mirrors: ConsistentHashRouter's sorted map, drawn as the circle that textbooks draw. Lab 03 draws it.

    an arc ends at its point and has the colour of the point's member; a queue belongs to the arc on which it is

Input is plain: points and queues with their hashes, 0 to 2**32 - 1. Left out: how a hash is computed.
"""

from __future__ import annotations

import bisect
import math
from collections.abc import Iterable

from mqlab.counts import counted
from mqlab.errors import UsageError
from mqlab.lab.views.owners_grid import MEMBER_COLOURS
from mqlab.lab.views.picture import Canvas, Look, Picture, text_pixels
from mqlab.lab.views.table import Table
from mqlab.lab.views.theme import INK, MUTED

AROUND = 1 << 32
CENTRE, RADIUS = 170, 120
STEPS = 240  # of the circle, for drawing
LABEL = 14  # pixels that a label needs in each direction


class HashRing(Picture):
    """``points``: (hash, member); ``queues``: (label, hash). Raises UsageError for a ring without points.

    >>> print(HashRing([(1 << 30, "a"), (1 << 31, "b")], [("0", 5), ("1", (1 << 30) + 1)]))
    a: 1 point, 75 % of the ring, queues 0
    b: 1 point, 25 % of the ring, queues 1
    """

    def __init__(
        self, points: Iterable[tuple[int, str]], queues: Iterable[tuple[str, int]] = (), *, title: str = ""
    ) -> None:
        self.points = sorted(points)
        if not self.points:
            raise UsageError("a ring without points has no owner", hint="virtual nodes: 1 or more per member")
        self.queues = list(queues)
        self.title = title
        self.members = list(dict.fromkeys(sorted(member for _, member in self.points)))

    def owner(self, value: int) -> str:
        """The member of the first point whose hash is not below this one; after the last point the first one's."""
        index = bisect.bisect_left(self.points, (value, ""))
        return self.points[index % len(self.points)][1]

    def shares(self) -> dict[str, float]:
        """The part of the ring that belongs to each member, 0 to 1."""
        shares = dict.fromkeys(self.members, 0.0)
        for number, (value, member) in enumerate(self.points):
            before = self.points[number - 1][0] - (AROUND if number == 0 else 0)
            shares[member] += (value - before) / AROUND
        return shares

    def owned(self, member: str) -> list[str]:
        """The labels of a member's queues."""
        return [label for label, value in self.queues if self.owner(value) == member]

    @property
    def alt(self) -> str:
        return (
            f"{self.title or 'Hash ring'}: "
            f"{counted(len(self.points), 'points')} of {counted(len(self.members), 'members')}, "
            f"{counted(len(self.queues), 'queues')}"
        )

    def table(self) -> Table:
        """One row per member: points, share (0 to 1), queues, which."""
        shares = self.shares()
        rows = []
        for member in self.members:
            mine = self.owned(member)
            points = sum(name == member for _, name in self.points)
            rows.append(
                {
                    "member": member,
                    "points": points,
                    "share": round(shares[member], 3),
                    "queues": len(mine),
                    "which": ", ".join(mine),
                }
            )
        return Table(rows, columns=["member", "points", "share", "queues", "which"], title=self.title)

    def _lines(self) -> list[str]:
        shares, lines = self.shares(), []
        for member in self.members:
            number = sum(name == member for _, name in self.points)
            points = f"{number} point{'s' if number > 1 else ''}"
            mine = " ".join(self.owned(member)) or "none"
            lines.append(f"{member}: {points}, {round(100 * shares[member])} % of the ring, queues {mine}")
        return lines

    def text(self) -> str:
        return "\n".join([*([self.title] if self.title else []), *self._lines()])

    def svg(self) -> str:
        top = 24 if self.title else 0
        lines = self._lines()
        wide = 2 * CENTRE + 20 + max(map(text_pixels, lines)) + 24
        canvas = Canvas(wide, max(top + 2 * CENTRE, top + 80 + 26 * len(lines)))
        if self.title:
            canvas.text(18, 26, self.title, bold=True)
        # 1. An arc for each point, from the point before it.
        for number, (value, member) in enumerate(self.points):
            before = self.points[number - 1][0] - (AROUND if number == 0 else 0)
            self._arc(canvas, before, value, self._colour(member), top)
        # 2. The points, and the queues inside.
        for value, member in self.points:
            canvas.mark(
                Look(self._colour(member), "circle" if len(self.points) <= 24 else "dot", member),
                *self._place(value, RADIUS, top),
            )
        taken: list[tuple[int, int]] = []
        for label, value in self.queues:
            canvas.mark(Look(INK, "square", label), *self._place(value, RADIUS - 22, top))
            x, y = self._free_place(value, taken, top)
            canvas.text(x, y + 4, label, anchor="middle", size=11)
        # 3. The owners.
        for number, (member, line) in enumerate(zip(self.members, lines, strict=True)):
            y = top + 60 + 26 * number
            canvas.mark(Look(self._colour(member), "circle", member), 2 * CENTRE + 6, y - 4)
            canvas.text(2 * CENTRE + 20, y, line)
        canvas.text(
            2 * CENTRE, top + 60 + 26 * len(lines) + 4, "circle: a point of a member; square: a queue", MUTED, size=11
        )
        return canvas.svg()

    def _colour(self, member: str) -> str:
        return MEMBER_COLOURS[self.members.index(member) % len(MEMBER_COLOURS)]

    @staticmethod
    def _place(value: int, radius: int, top: int) -> tuple[int, int]:
        """A hash on a circle: 0 is at the top, larger ones go round as a clock does."""
        angle = 2 * math.pi * value / AROUND
        return round(CENTRE + radius * math.sin(angle)), round(top + CENTRE - radius * math.cos(angle))

    def _free_place(self, value: int, taken: list[tuple[int, int]], top: int) -> tuple[int, int]:
        """Where a queue's label stands, further inside than ``taken`` ones that are close; it is added to them."""
        radius = RADIUS - 44
        x, y = self._place(value, radius, top)
        while radius > LABEL and any(abs(x - other) < LABEL and abs(y - height) < LABEL for other, height in taken):
            radius -= LABEL
            x, y = self._place(value, radius, top)
        taken.append((x, y))
        return x, y

    def _arc(self, canvas: Canvas, begin: int, end: int, shade: str, top: int) -> None:
        steps = max(2, (end - begin) * STEPS // AROUND)
        places = [self._place(begin + (end - begin) * step // steps, RADIUS + 8, top) for step in range(steps + 1)]
        canvas.path(places, shade)

    def __repr__(self) -> str:
        return f"<HashRing {self.alt}>"
