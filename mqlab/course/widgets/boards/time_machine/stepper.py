"""Go anywhere in a story: step forward, step back, jump; the world at a stop is a replay of the story up to it.

Lab 00 steps through a message's day with it.

    stops   0 ── 1 ── 2 ── 3 ── … ── last        a stop after each step that changed something worth showing
    go_to(2).lab  =  play(story, seed=…, until_step=stops[2])      so going back is never an undo

``lab`` is replayed when it is read: moving costs nothing.
Left out: how it looks (mqlab.course.widgets.boards.time_machine.explorer) and what is recorded for that
(mqlab.course.widgets.boards.time_machine.recording).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from mqlab.course.widgets.boards.time_machine.recording import StoryRecording
from mqlab.errors import UsageError
from mqlab.lab.views.table import Table
from mqlab.lab.views.timeline import Moment, Timeline, after
from mqlab.lab.world.lab import play

if TYPE_CHECKING:
    from mqlab.lab.world.lab import Lab
    from mqlab.lab.world.story import Story

STEPS_BETWEEN_REPORTS = 500


class Stepper:
    """A story with a position in it. ``lab`` is the world at that position; other keywords are ``play``'s.

    ``position`` counts stops: 0 is before the first of them, ``len(stepper)`` the end of the story. ``recording`` is a
    play of the same story that was recorded before; without one the story is played.
    """

    def __init__(
        self, story: Story, *, seed: int = 0, recording: StoryRecording | None = None, **settings: Any
    ) -> None:
        self._story = story
        self._seed = seed
        self._settings = settings
        whole = StoryRecording(story, seed=seed, **settings) if recording is None else recording
        self._moments, self._steps = whole.moments, whole.steps
        self._whole: Lab = whole.lab
        self._lab: Lab = whole.lab
        self._lab_position = self.position = len(self._steps)

    def __len__(self) -> int:
        return len(self._steps)

    @property
    def lab(self) -> Lab:
        """The world at the position. Replays the story unless it is there already."""
        return self.bring_lab()

    def bring_lab(self, progress: Callable[[float], None] | None = None) -> Lab:
        """The world at the position; ``progress`` is called with the share of the replay that is done, 0 to 1."""
        if self._lab_position != self.position:
            # The whole story needs no step to stop at; it also runs what follows the last shown change.
            if self.position == len(self):
                self._lab = self._whole
            else:
                until = self.step_number + 1 if self.position else self._steps[0]
                story = self._story if progress is None else _reporting(self._story, until, progress)
                self._lab = play(story, seed=self._seed, until_step=until, **self._settings)
            self._lab_position = self.position
        return self._lab

    @property
    def step_number(self) -> int:
        """The journal's number of the step just made, -1 before the first stop."""
        return self._steps[self.position - 1] if self.position else -1

    def go_to(self, position: int) -> Stepper:
        """Go to a stop (0 to ``len``). Raises UsageError outside."""
        if not 0 <= position <= len(self):
            raise UsageError(f"there is no stop {position}", hint=f"stops go from 0 to {len(self)}")
        self.position = position
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
        stop = f"stop {self.position} of {len(self)}"
        shown = [m for m in self.moments() if m.step == self.step_number]
        if not shown:
            return f"{stop}: nothing has happened yet"
        words = "; ".join(f"{m.lane} ▶ {m.to}: {m.text}" if m.to else f"{m.lane}: {m.text}" for m in shown)
        return f"{stop}, {after(shown[0].now_ms - self._moments[0].now_ms)}, step {self.step_number}: {words}"

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


def _reporting(story: Story, until: int, progress: Callable[[float], None]) -> Story:
    """The same story, which also tells how much of the way to a step is done."""

    def reporting(lab: Lab) -> Any:
        world = lab.simulation("explore")
        before_step = world.before_step

        def report(step: int) -> None:
            if step % STEPS_BETWEEN_REPORTS == 0:
                progress(min(step / max(until, 1), 1.0))
            if before_step is not None:
                before_step(step)

        world.before_step = report
        return story(lab)

    return reporting
