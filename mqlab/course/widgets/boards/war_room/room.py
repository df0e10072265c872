"""The war room: what a day's disks hold about one group, five minutes by five minutes, and findings noted at a moment.

    group [billing]   Moment ──────●────  14:35      the cursor goes through all charts at once
    stored      ▁▂▃▅▆█▆▃   called   ▁▂▃▅▁▁▆▃          what can be known at the end of each five minutes
    failed      ▁▁▁▁▁▁▁▁   again    ▁▁▁▁▁█▁▁
    waiting …   oldest …   running …
    [                ] [Note it]                      notes stay in state["notes"], for a cell to read

It draws no conclusion: it is the report of a day without its section of suspicions.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from markupsafe import Markup

from mqlab.course.widgets.frame.board import Board
from mqlab.data.traffic.day_facts import DayFacts
from mqlab.data.traffic.day_watch import STRETCH_MINUTES, watched
from mqlab.data.traffic.model import GROUPS
from mqlab.errors import UsageError
from mqlab.lab.views.picture import Canvas
from mqlab.lab.views.table import Table
from mqlab.lab.views.theme import BLUE, INK, MUTED, RULE
from mqlab.lab.views.view import image

LANES: Mapping[str, str] = {
    "stored": "messages stored",
    "called": "calls begun",
    "failed": "calls that failed",
    "again": "called again",
    "waiting": "not called yet",
    "oldest_s": "longest wait in s",
    "running_s": "longest call in s",
}
LONGEST = ("oldest_s", "running_s")
MINUTES = 24 * 60
LANE_PIXELS, WIDTH, LEFT = 34, 640, 150


class WarRoom(Board):
    """The explorer; ``war_room`` makes one. ``state``: group, minute (of the day, UTC), notes."""

    module, label = "war_room", "War room"
    state_defaults: ClassVar[Mapping[str, Any]] = {"group": GROUPS[0].name, "minute": 12 * 60, "notes": []}

    def __init__(self, facts: DayFacts, **state: Any) -> None:
        super().__init__(**state)
        self.state["notes"] = list(self.state["notes"])
        self._check_group(self.state["group"])
        self._lanes: dict[str, dict[str, list[int]]] = {group.name: {lane: [] for lane in LANES} for group in GROUPS}
        for moment in watched(facts):
            for group in GROUPS:
                rows = [row for row in moment.rows if row["group"] == group.name]
                for lane, values in self._lanes[group.name].items():
                    values.append((max if lane in LONGEST else sum)(row[lane] for row in rows))

    @staticmethod
    def _check_group(group: str) -> None:
        if group not in {group.name for group in GROUPS}:
            names = ", ".join(group.name for group in GROUPS)
            raise UsageError(f"the war room has no group {group!r}", hint=f"there are: {names}")

    def go(self, moment: str, group: str | None = None) -> WarRoom:
        """Move the cursor to a moment of the day ("14:35", UTC), and to a group."""
        hours, _, minutes = moment.partition(":")
        if not (hours.isdigit() and minutes.isdigit() and int(hours) * 60 + int(minutes) <= MINUTES):
            raise UsageError(f"{moment!r} is not a moment of a day", hint='such as "14:35"')
        if group is not None:
            self._check_group(group)
            self.set("group", group)
        self.set("minute", int(hours) * 60 + int(minutes))
        return self

    def note(self, words: str) -> WarRoom:
        """Note a finding at the cursor."""
        entry = {"minute": self.state["minute"], "group": self.state["group"], "words": words}
        self.set("notes", [*self.state["notes"], entry])
        return self

    def at(self, moment: str | None = None) -> dict[str, int]:
        """What can be known at the cursor, or at a moment, of the group."""
        if moment is not None:
            self.go(moment)
        stretch = min(max(self.state["minute"] // STRETCH_MINUTES - 1, 0), MINUTES // STRETCH_MINUTES - 1)
        return {lane: values[stretch] for lane, values in self._lanes[self.state["group"]].items()}

    def data(self) -> dict[str, Any]:
        """All groups' charts."""
        return {"lanes": self._lanes, "words": dict(LANES), "stretch": STRETCH_MINUTES, "minutes": MINUTES}

    def table(self) -> Table:
        """The hours of the group's day: sums of counts, and the longest waits."""
        lanes, of_an_hour = self._lanes[self.state["group"]], 60 // STRETCH_MINUTES
        rows = [
            {"from": f"{hour:02}:00"}
            | {
                lane: (max if lane in LONGEST else sum)(lanes[lane][hour * of_an_hour : (hour + 1) * of_an_hour])
                for lane in LANES
                if lane != "waiting"
            }
            | {"waiting": lanes["waiting"][(hour + 1) * of_an_hour - 1]}
            for hour in range(24)
        ]
        return Table(rows, columns=["from", *LANES], title=f"{self.state['group']}, hour by hour (UTC)")

    def notes(self) -> Table:
        """The findings noted so far."""
        rows = [
            {"at": clock(note["minute"]), "group": note["group"], "finding": note["words"]}
            for note in self.state["notes"]
        ]
        return Table(rows, columns=["at", "group", "finding"], title="Findings", empty="nothing noted yet")

    def readable(self) -> Markup:
        """The charts of the group with the cursor, and the table."""
        described = f"The day of {self.state['group']} in {len(LANES)} charts, cursor at {clock(self.state['minute'])}"
        return image(self.svg(), described) + self.table().html()

    def svg(self) -> str:
        """The charts as a picture."""
        lanes = self._lanes[self.state["group"]]
        canvas = Canvas(LEFT + WIDTH + 60, LANE_PIXELS * len(LANES) + 30)
        for number, (lane, words) in enumerate(LANES.items()):
            bottom, most = LANE_PIXELS * (number + 1), max(lanes[lane]) or 1
            canvas.text(8, bottom - 8, words, INK)
            canvas.line(LEFT, bottom, LEFT + WIDTH, bottom, RULE)
            points = [
                (LEFT + WIDTH * index // len(lanes[lane]), bottom - (LANE_PIXELS - 6) * value // most)
                for index, value in enumerate(lanes[lane])
            ]
            canvas.path(points, BLUE)
            canvas.text(LEFT + WIDTH + 6, bottom - LANE_PIXELS + 14, f"{max(lanes[lane]):,}", MUTED)
        across = LEFT + WIDTH * self.state["minute"] // MINUTES
        canvas.line(across, 2, across, LANE_PIXELS * len(LANES), INK, dashed=True)
        for hour in range(0, 25, 4):
            canvas.text(LEFT + WIDTH * hour // 24 - 14, LANE_PIXELS * len(LANES) + 18, f"{hour:02}:00", MUTED)
        return canvas.svg()


def war_room(facts: DayFacts, *, group: str = "billing", at: str = "12:00") -> WarRoom:
    """A day's facts in charts under one cursor, and findings. Raises UsageError for an unknown group or moment."""
    return WarRoom(facts, group=group).go(at)


def clock(minute: int) -> str:
    """A minute of the day as people say it.

    >>> clock(875)
    '14:35'
    """
    return f"{minute // 60:02}:{minute % 60:02}"
