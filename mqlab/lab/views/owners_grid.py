"""The owner of each queue, moment after moment: one row per moment, one column per queue, what moved marked.

Mirrors: what an operator puts together from mqadmin's consumerStatus before and after a deployment. Lab 03 draws it.

                 0  1  2  3  4  5  6  7     queues of each member
    3 members    1  1  1  2  2  2  3  3     3 3 2
    4 joins      1  1  2* 2  3* 3  4* 4*    2 2 2 2     4 moved

Input is plain: a label and a mapping queue -> owner for each moment. Left out: when a queue moved (QueueOwners has it).
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from typing import Any

from mqlab.counts import counted
from mqlab.lab.views.picture import Canvas, Picture, text_pixels
from mqlab.lab.views.table import Table
from mqlab.lab.views.theme import AMBER, BLUE, GREEN, INK, MUTED, RED, RULE, VIOLET, colour

Moment = Sequence[Any]  # label, {queue: owner or None}, and the members that are there (default: who owns something)
MARGIN, ROW, GAP = 18, 30, 3
WIDEST_CELL, NARROWEST_CELL, MANY_QUEUES = 44, 22, 16
MEMBER_COLOURS = (BLUE, AMBER, GREEN, VIOLET, RED, INK)
NOBODY = "–"


def short_names(members: Sequence[str]) -> dict[str, str]:
    """Names that fit into a small box: what comes after the last "-" or "@", or numbers if those are not unique.

    >>> short_names(["10.0.0.4@billing-1", "10.0.0.5@billing-2"])
    {'10.0.0.4@billing-1': '1', '10.0.0.5@billing-2': '2'}
    """
    ends = [member.replace("@", "-").rpartition("-")[2] for member in members]
    fit = len(set(ends)) == len(ends) and all(1 <= len(end) <= 3 for end in ends)
    return {
        member: end if fit else str(number) for number, (member, end) in enumerate(zip(members, ends, strict=True), 1)
    }


class OwnersGrid(Picture):
    """Owners at each moment. A moment is (label, {queue: owner or None}), or (label, owners, members).

    The third says who is a member, so that one without a queue is counted as well. ``members``: all names, in the order
    of their colours and counts (default: as they are met). Without ``changes`` the rows are not one after the other,
    and nothing has moved.

    >>> print(OwnersGrid([("before", {0: "a-1", 1: "a-2"}), ("after", {0: "a-1", 1: "a-1"}, ["a-1", "a-2"])]))
            0   1
    before  1   2     1 1
    after   1   1*    2 0    1 moved
    """

    def __init__(
        self, moments: Iterable[Moment], *, members: Sequence[str] = (), title: str = "", changes: bool = True
    ) -> None:
        self.moments: list[tuple[str, dict[Hashable, str | None]]] = []
        self._present: list[set[str]] = []
        for label, owners, *there in moments:
            self.moments.append((label, dict(owners)))
            self._present.append({owner for owner in owners.values() if owner is not None}.union(*there))
        met = [owner for _, owners in self.moments for owner in owners.values() if owner is not None]
        named = sorted(name for there in self._present for name in there)
        self.members = list(dict.fromkeys([*members, *met, *named]))
        self.queues = list(dict.fromkeys(queue for _, owners in self.moments for queue in owners))
        self.title, self.changes = title, changes
        self._short = short_names(self.members)

    def counts(self, number: int) -> list[int]:
        """How many queues each member has that is there at a moment."""
        owners = list(self.moments[number][1].values())
        return [owners.count(member) for member in self.members if member in self._present[number]]

    def moved(self, number: int) -> list[Hashable]:
        """The queues that have another owner than at the moment before."""
        if number == 0 or not self.changes:
            return []
        before, now = self.moments[number - 1][1], self.moments[number][1]
        return [queue for queue in self.queues if queue in before and before[queue] != now.get(queue)]

    @property
    def alt(self) -> str:
        moved = sum(len(self.moved(number)) for number in range(len(self.moments)))
        words = (
            f"{counted(len(self.queues), 'queues')}, {counted(len(self.members), 'members')}, "
            f"{counted(len(self.moments), 'moments')}, {counted(moved, 'moves')}"
        )
        return f"{self.title or 'Owners of queues'}: {words}"

    def table(self) -> Table:
        """One row per moment and queue: moment, queue, owner, moved."""
        rows = [
            {"moment": label, "queue": queue, "owner": owners.get(queue), "moved": queue in self.moved(number)}
            for number, (label, owners) in enumerate(self.moments)
            for queue in self.queues
        ]
        return Table(rows, columns=["moment", "queue", "owner", "moved"], title=self.title)

    def _cell(self, number: int, queue: Hashable) -> str:
        owner = self.moments[number][1].get(queue)
        return NOBODY if owner is None else self._short[owner]

    def text(self) -> str:
        wide = max(len(label) for label, _ in self.moments)
        lines = [self.title] if self.title else []
        lines.append(f"{'':{wide}}  " + " ".join(f"{queue!s:<3}" for queue in self.queues))
        for number, (label, _) in enumerate(self.moments):
            moved = self.moved(number)
            cells = (self._cell(number, queue) + ("*" if queue in moved else "") for queue in self.queues)
            moves = f"    {len(moved)} moved" if number and self.changes else ""
            counts = " ".join(map(str, self.counts(number)))
            lines.append(f"{label:{wide}}  {' '.join(f'{cell:<3}' for cell in cells)}   {counts}{moves}")
        return "\n".join(line.rstrip() for line in lines)

    def svg(self) -> str:
        # 1. Measure.
        cell = WIDEST_CELL if len(self.queues) <= MANY_QUEUES else NARROWEST_CELL
        left = MARGIN + max(text_pixels(label) for label, _ in self.moments) + 14
        top = MARGIN + (24 if self.title else 0) + 18
        right = left + cell * len(self.queues) + 14
        legend = top + ROW * len(self.moments) + 18
        counts = [" ".join(map(str, self.counts(number))) for number in range(len(self.moments))]
        counts_width = max(map(text_pixels, counts)) + 14
        canvas = Canvas(max(right + counts_width + 90, self._legend_width()) + MARGIN, legend + 26)
        if self.title:
            canvas.text(MARGIN, MARGIN + 8, self.title, bold=True)
        # 2. The queues' names, then one row per moment.
        for column, queue in enumerate(self.queues):
            canvas.text(left + cell * column + cell // 2, top - 6, str(queue), MUTED, anchor="middle", size=11)
        for number, (label, owners) in enumerate(self.moments):
            y = top + ROW * number
            canvas.text(left - 14, y + ROW // 2 + 2, label, anchor="end")
            moved = self.moved(number)
            for column, queue in enumerate(self.queues):
                self._draw_cell(canvas, left + cell * column, y, cell - GAP, owners.get(queue), queue in moved)
            canvas.text(right, y + ROW // 2 + 2, counts[number])
            if number and self.changes:
                canvas.text(right + counts_width, y + ROW // 2 + 2, f"{len(moved)} moved", MUTED)
        # 3. The legend.
        self._draw_legend(canvas, legend)
        return canvas.svg()

    def _draw_cell(self, canvas: Canvas, x: int, y: int, wide: int, owner: str | None, moved: bool) -> None:
        border = RULE if owner is None else self.colour_of(owner)
        fill = colour("pale-amber") if moved else colour("wash")
        words = f"{owner or 'nobody'}{', moved' if moved else ''}"
        canvas.box(x, y, wide, ROW - 8, fill, border=border, round_by=3, thick=moved, title=words)
        name = NOBODY if owner is None else self._short[owner]
        canvas.text(
            x + wide // 2, y + ROW // 2 + 1, name, border if owner else MUTED, anchor="middle", bold=moved, halo=False
        )

    def colour_of(self, member: str) -> str:
        """The colour of a member; the seventh has the first one's again, its name tells them apart."""
        return MEMBER_COLOURS[self.members.index(member) % len(MEMBER_COLOURS)]

    def _words(self) -> list[tuple[str, str]]:
        known = [(self.colour_of(member), f"{self._short[member]}  {member}") for member in self.members]
        return [*known, (MUTED, "thick: moved")] if self.changes else known

    def _legend_width(self) -> int:
        return MARGIN + sum(text_pixels(words) + 24 for _, words in self._words())

    def _draw_legend(self, canvas: Canvas, y: int) -> None:
        x = MARGIN
        for shade, words in self._words():
            canvas.text(x, y, words, shade, size=11)
            x += text_pixels(words) + 24

    def __repr__(self) -> str:
        return f"<OwnersGrid {self.alt}>"
