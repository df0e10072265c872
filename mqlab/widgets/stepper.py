"""Go anywhere in a story: step forward, step back, jump; every stop is a replay of the story up to it.

Lab 00 steps through a message's day with it.

    stops   0 ── 1 ── 2 ── 3 ── … ── last        a stop after each step that changed something worth showing
    go_to(2)  =  play(story, seed=…, until_step=stops[2])      so going back is never an undo

Left out: how it looks (mqlab.widgets.explorer) and forks (faults= of play).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from mqlab.errors import UsageError
from mqlab.lab.lab import play
from mqlab.views.moments import moments
from mqlab.views.table import Table
from mqlab.views.timeline import Moment, Timeline, after

if TYPE_CHECKING:
    from mqlab.lab.lab import Lab
    from mqlab.lab.story import Story


class Stepper:
    """A story with a position in it. ``lab`` is the world at that position; other keywords are ``play``'s.

    ``position`` counts stops: 0 is before the first of them, ``len(stepper)`` the end of the story.
    """

    def __init__(self, story: Story, *, seed: int = 0, **settings: Any) -> None:
        self._story = story
        self._seed = seed
        self._settings = settings
        self.lab: Lab = play(story, seed=seed, **settings)
        self._moments = tuple(moments(self.lab.journal))
        self._steps = tuple(dict.fromkeys(m.step for m in self._moments if m.step is not None))
        self.position = len(self._steps)

    def __len__(self) -> int:
        return len(self._steps)

    @property
    def step_number(self) -> int:
        """The journal's number of the step just made, -1 before the first stop."""
        return self._steps[self.position - 1] if self.position else -1

    def go_to(self, position: int) -> Stepper:
        """Go to a stop (0 to ``len``). Raises UsageError outside. Replays the story unless it is there already."""
        if not 0 <= position <= len(self):
            raise UsageError(f"there is no stop {position}", hint=f"stops go from 0 to {len(self)}")
        if position != self.position:
            self.position = position
            # The whole story needs no step to stop at; it also runs what follows the last shown change.
            if position == len(self):
                self.lab = play(self._story, seed=self._seed, **self._settings)
            else:
                until = self.step_number + 1 if position else self._steps[0]
                self.lab = play(self._story, seed=self._seed, until_step=until, **self._settings)
        return self

    def first(self) -> Stepper:
        """Go to the beginning, before the first change that is shown."""
        return self.go_to(0)

    def back(self) -> Stepper:
        """Go one stop back; at the first this does nothing."""
        return self.go_to(max(self.position - 1, 0))

    def step(self) -> Stepper:
        """Go one stop forward; at the end this does nothing."""
        return self.go_to(min(self.position + 1, len(self)))

    def last(self) -> Stepper:
        """Go to the end of the story."""
        return self.go_to(len(self))

    def moments(self) -> tuple[Moment, ...]:
        """The moments up to the current stop."""
        return tuple(m for m in self._moments if m.step is not None and m.step <= self.step_number)

    def timeline(self, newest: int | None = None) -> Timeline:
        """The moments up to here as a picture, at most the ``newest`` moments; lanes are those of the whole story."""
        # Lanes and start of the whole story: columns and times must not move from stop to stop.
        lanes = tuple(dict.fromkeys(name for m in self._moments for name in (m.lane, m.to) if name))
        shown = self.moments()
        start_ms = self._moments[0].now_ms if self._moments else None
        return Timeline(shown if newest is None else shown[-newest:], lanes=lanes, start_ms=start_ms)

    @property
    def label(self) -> str:
        """The current stop in one line: its number, its time, and what just happened."""
        place = f"stop {self.position} of {len(self)}"
        shown = [m for m in self.moments() if m.step == self.step_number]
        if not shown:
            return f"{place}: nothing has happened yet"
        words = "; ".join(f"{m.lane} ▶ {m.to}: {m.text}" if m.to else f"{m.lane}: {m.text}" for m in shown)
        return f"{place}, {after(shown[0].now_ms - self._moments[0].now_ms)}, step {self.step_number}: {words}"

    def table(self) -> Table:
        """All stops, one row per stop, with a mark at the position: the text twin of the whole explorer."""
        rows = []
        for position, step in enumerate(self._steps, 1):
            shown = [m for m in self._moments if m.step == step]
            rows.append(
                {
                    "stop": position,
                    "here": "◀" if position == self.position else "",
                    "after": after(shown[0].now_ms - self._moments[0].now_ms),
                    "node": shown[-1].lane,
                    "what": "; ".join(m.text for m in shown),
                }
            )
        return Table(rows, title="The stops of this story", empty="a story without a stop")

    def __repr__(self) -> str:
        return f"<Stepper of {getattr(self._story, '__name__', 'a story')}, seed={self._seed}: {self.label}>"
