"""The replay of a repair: what a plan would deliver, queue by queue, counted before anything is done.

    replay(facts, Plan({("billing", "broker-a", 3): 120}))

    billing broker-a 3     ██ 12 for the first time  ████████████████ 240 again
    billing dead letters   █ 6 for the first time

Nothing runs: the numbers come from the facts of the day. mqlab.data.traffic.playing.repairing carries a plan out.
"""

from __future__ import annotations

from typing import Any

from mqlab.counts import counted
from mqlab.data.traffic.day_facts import DayFacts
from mqlab.data.traffic.playing.repairing import Plan, preview
from mqlab.lab.views.picture import Canvas, Picture, text_pixels
from mqlab.lab.views.table import Table
from mqlab.lab.views.theme import AMBER, BLUE, INK, MUTED, RED

PARTS = (("first", "for the first time", BLUE), ("again", "again", RED), ("skipped", "passed over", AMBER))
BAR, ROW, TOP, MOST_ROWS = 320, 22, 50, 30
LETTERS = -1


class Replay(Picture):
    """A plan's deliveries; ``replay`` makes one. ``first``, ``again``, ``skipped`` are the sums, ``missing`` the
    messages that all traced groups together would still lack.
    """

    def __init__(self, facts: DayFacts, plan: Plan) -> None:
        self.plan = plan
        self._rows = preview(facts, plan)
        lacking = facts.life[facts.life["reads"] & (facts.life["successes"] == 0)]
        self.missing = max(0, len(lacking) - self.first)

    @property
    def first(self) -> int:
        """Deliveries of messages that their group had not consumed."""
        return int(self._rows["first"].sum())

    @property
    def again(self) -> int:
        """Deliveries of messages that their group had consumed: duplicates."""
        return int(self._rows["again"].sum())

    @property
    def skipped(self) -> int:
        """Messages that listeners would pass over."""
        return int(self._rows["skipped"].sum())

    @property
    def alt(self) -> str:
        return (
            f"The plan would deliver {counted(self.first, 'messages')} for the first time and {self.again:,} again, "
            f"pass over {self.skipped:,}, and leave {self.missing:,} undelivered"
        )

    def rows(self) -> list[dict[str, Any]]:
        """Queues with something to deliver, those with the most duplicates first."""
        busy = self._rows[self._rows[["first", "again", "skipped"]].sum(axis=1) > 0]
        ordered = busy.sort_values(
            ["again", "first", "group", "broker", "queue_id"], ascending=[False, False] + [True] * 3
        )
        return [
            {"place": _place(row["group"], row["broker"], row["queue_id"])} | {name: row[name] for name, _, _ in PARTS}
            for row in ordered.to_dict("records")
        ]

    def table(self) -> Table:
        """One row per queue with something to deliver."""
        return Table(
            self.rows(),
            columns=["place", "first", "again", "skipped"],
            title=self.alt,
            empty="the plan delivers nothing",
        )

    def text(self) -> str:
        return str(self.table())

    def svg(self) -> str:
        shown = self.rows()[:MOST_ROWS]
        left = 16 + max((text_pixels(row["place"]) for row in shown), default=120)
        most = max((row["first"] + row["again"] + row["skipped"] for row in shown), default=0) or 1
        canvas = Canvas(max(left + BAR + 190, text_pixels(self.alt) + 24), TOP + ROW * max(1, len(shown)) + 20)
        canvas.text(8, 18, self.alt, INK)
        across = 8
        for _, words, colour in PARTS:
            canvas.box(across, 28, 12, 12, colour)
            canvas.text(across + 18, 39, words, MUTED)
            across += 34 + text_pixels(words)
        for number, row in enumerate(shown):
            y, x = TOP + ROW * number, left
            canvas.text(8, y + 14, row["place"], INK)
            for name, words, colour in PARTS:
                long = BAR * row[name] // most
                if row[name]:
                    canvas.box(x, y + 3, max(2, long), ROW - 7, colour, title=f"{row[name]} {words}")
                    x += max(2, long) + 1
            numbers = ", ".join(f"{row[name]} {words}" for name, words, _ in PARTS if row[name])
            canvas.text(x + 6, y + 14, numbers, MUTED)
        more = len(self.rows()) - len(shown)
        if more:
            canvas.text(
                8, TOP + ROW * len(shown) + 14, f"… {more} more queue{'s' * (more > 1)}; .table() has all", MUTED
            )
        return canvas.svg()


def _place(group: str, broker: str, queue_id: int) -> str:
    return f"{group} dead letters of {broker}" if queue_id == LETTERS else f"{group} {broker} {queue_id}"


def replay(facts: DayFacts, plan: Plan) -> Replay:
    """What a plan would deliver, without doing it."""
    return Replay(facts, plan)
