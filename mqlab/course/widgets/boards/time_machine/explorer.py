"""The time machine: a story's stops under a slider, with its space-time picture, queues, offsets and bytes linked.

Labs end their reading parts with it.

    [Start] [Back] [Step] [End] [Play]   Stop ──●────────        the page has all stops: moving needs no kernel
    the story │ the fork                                         arrows from sending to arrival, held pulls as bars
    what ``show(lab)`` gives │ log and queues │ offsets │ bytes  one click lights up what belongs together
    orders [5]  seed [7]  [Play again]                           the story's own keywords
    [kill] [broker-a] [Make this fault]                          the kernel plays a fork next to the story

The kernel plays the story once and records every stop (mqlab.course.widgets.boards.time_machine.recording). A fork is
the same story with a fault; what differs first is marked in both pictures. A fault made in a fork gives a fork with
both, in the first one's place.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar

from markupsafe import Markup

from mqlab.course.widgets.boards.time_machine.forks import Fault, Fork, fault_of
from mqlab.course.widgets.boards.time_machine.recording import Show, StoryRecording
from mqlab.course.widgets.boards.time_machine.stepper import Stepper
from mqlab.course.widgets.frame.board import Board
from mqlab.errors import UsageError
from mqlab.lab.views.table import Table

if TYPE_CHECKING:
    from mqlab.lab.world.lab import Lab
    from mqlab.lab.world.story import Story

Knobs = Mapping[str, Sequence[Any]]
STORY, FORK = "story", "fork"


class Explorer(Board):
    """A story to move in. ``stepper`` is the controller; ``state`` has position, selection, branch, parameters, seed.

    ``lab`` is the world at the position, ``fork`` the Fork that was made last (None without one).
    """

    module = "time_machine"
    label = "Time machine"
    state_defaults: ClassVar[Mapping[str, Any]] = {
        "position": 0,
        "selection": [],
        "branch": STORY,
        "parameters": {},
        "seed": 0,
    }

    def __init__(
        self, story: Story, *, seed: int = 0, show: Show | None = None, knobs: Knobs | None = None, **settings: Any
    ) -> None:
        super().__init__(seed=seed)
        self._story = story
        self._show = show
        self._settings = settings
        self._knobs = _knobs(story, knobs or {})
        self.state["parameters"] = {knob["name"]: knob["value"] for knob in self._knobs}
        self.fork: Fork | None = None
        self._play()

    def _play(self) -> None:
        """Play and record the story with the parameters and the seed of the state."""
        parameters, seed = self.state["parameters"], self.state["seed"]
        progress = self._progress_of(getattr(self, "recording", None))
        self.recording = StoryRecording(
            self._story, seed=seed, show=self._show, parameters=parameters, progress=progress, **self._settings
        )
        story = partial(self._story, **parameters) if parameters else self._story
        self.stepper = Stepper(story, seed=seed, recording=self.recording, **self._settings).first()
        self.fork = None

    def _progress_of(self, before: StoryRecording | None) -> Callable[[int], None]:
        """A play is about as long as the one before it."""
        steps = before.lab.journal.next_step if before is not None else 0
        return lambda step: self.progress(min(step / steps, 1.0) if steps else 0.0)

    @property
    def lab(self) -> Lab:
        """The world at the position: replayed in the story, the end of the fork in a fork."""
        if self.state["branch"] == FORK and self.fork is not None:
            return self.fork.recording.lab
        return self.stepper.lab

    def data(self) -> Any:
        fork = self.fork
        shown = {"words": fork.words, "first": fork.first, "recording": fork.recording.data()} if fork else None
        seed = {"name": "", "label": "seed", "kind": "number", "value": self.state["seed"], "step": 1}
        values = self.state["parameters"]
        knobs = [knob | {"value": values[knob["name"]]} for knob in self._knobs]
        return {STORY: self.recording.data(), FORK: shown, "knobs": [*knobs, seed]}

    def table(self) -> Table:
        """All stops of the story, one row per stop, with a mark at the position."""
        return self.stepper.table()

    def text(self) -> str:
        return f"{self.stepper.label}\n{self.table()}"

    def readable(self) -> Markup:
        """The end of the story as a picture, and the table of all stops."""
        position = self.stepper.position
        picture = self.stepper.last().timeline().html()
        self.stepper.go_to(position)
        return picture + self.table().html()

    def state_changed(self, name: str, value: Any) -> None:
        if name == "position" and self.state["branch"] == STORY:
            self.stepper.go_to(min(max(int(value), 0), len(self.stepper)))

    def asked(self, name: str, arguments: Mapping[str, Any]) -> Any:
        if name == "play":
            return self.play_again(seed=int(arguments["seed"]), **arguments["parameters"])
        if name == "fork":
            return self._make_fork(arguments)
        if name == "forget":
            return self.forget_fork()
        if name == "lab":
            return {"words": self._bring_lab()}
        if name == "views":
            return self._views(int(arguments["position"]))
        return super().asked(name, arguments)

    def play_again(self, *, seed: int | None = None, **parameters: Any) -> None:
        """Play the story with other parameters or another seed. Raises UsageError for a parameter it does not have."""
        names = [knob["name"] for knob in self._knobs]
        unknown = sorted(parameters.keys() - set(names))
        if unknown:
            raise UsageError(f"the story has no parameter {unknown[0]!r}", hint=f"it has: {', '.join(names) or 'none'}")
        # The page may show the new values before they are played; a story that fails leaves the old ones.
        before = self.state["parameters"], self.state["seed"]
        self.set("parameters", {**self.state["parameters"], **parameters})
        self.set("seed", self.state["seed"] if seed is None else seed)
        try:
            self._play()
        except BaseException:
            self.set("parameters", before[0])
            self.set("seed", before[1])
            raise
        self._show_again(STORY, 0)

    def forget_fork(self) -> None:
        """Show the story alone."""
        self.fork = None
        self._show_again(STORY, self.stepper.position)

    def _make_fork(self, arguments: Mapping[str, Any]) -> None:
        shown = self.fork.recording if self.state["branch"] == FORK and self.fork is not None else self.recording
        position = min(max(int(arguments["position"]), 0), len(shown.steps))
        if shown is self.recording:
            self.stepper.go_to(position)
        self._fork_with(fault_of(shown, position, arguments))

    def _fork_with(self, fault: Fault) -> Fork:
        self.fork = Fork.of(
            self.recording,
            fault,
            story=self._story,
            parent=self.fork if self.state["branch"] == FORK else None,
            seed=self.state["seed"],
            show=self._show,
            parameters=self.state["parameters"],
            progress=self._progress_of(self.recording),
            **self._settings,
        )
        self._show_again(FORK, self.fork.position_of(fault.step))
        return self.fork

    def _bring_lab(self) -> str:
        if self.state["branch"] == FORK:
            return "explorer.lab is the end of the fork."
        lab = self.stepper.bring_lab(self.progress)
        return f"explorer.lab is the world at stop {self.stepper.position}, before step {lab.journal.next_step}."

    def _views(self, position: int) -> list[str]:
        """The views of a stop that was not recorded: from a replay of its own."""
        from mqlab.course.widgets.boards.time_machine.recording import view_text

        if self._show is None:
            return []
        here = self.stepper.position
        lab = self.stepper.go_to(position).bring_lab(self.progress)
        texts = [view_text(view) for view in self._show(lab)]
        self.stepper.go_to(here)
        return texts

    def _show_again(self, branch: str, position: int) -> None:
        """Other data for the page: first where it is to look, then what it shows."""
        self.set("selection", [])
        self.set("branch", branch)
        self.set("position", position)
        self.renew()


def explore(
    story: Story, *, seed: int = 0, show: Show | None = None, knobs: Knobs | None = None, **settings: Any
) -> Explorer:
    """Move through a story in a time machine. Other keywords are ``play``'s.

    ``show(lab)`` gives more views of each stop. Keywords of the story that have a default become controls;
    ``knobs={"threads": (1, 40)}`` gives limits to a number, ``{"policy": ["SYNC", "ASYNC", "NONE"]}`` choices.
    Raises UsageError for a knob that the story does not have.
    """
    return Explorer(story, seed=seed, show=show, knobs=knobs, **settings)


def _knobs(story: Story, limits: Knobs) -> list[dict[str, Any]]:
    """The controls of a story's keywords: name, label, kind, value, and min and max or choices."""
    parameters = list(inspect.signature(story).parameters.values())[1:]
    defaults = {
        parameter.name: parameter.default for parameter in parameters if parameter.default is not parameter.empty
    }
    unknown = sorted(limits.keys() - defaults.keys())
    if unknown:
        has = ", ".join(defaults) or "no keyword with a default"
        raise UsageError(f"the story has no parameter {unknown[0]!r}", hint=f"it has: {has}")
    knobs = []
    for name, value in defaults.items():
        if not isinstance(value, bool | int | float | str):
            continue
        kind = "check" if isinstance(value, bool) else "text" if isinstance(value, str) else "number"
        knob: dict[str, Any] = {"name": name, "label": name.replace("_", " "), "kind": kind, "value": value}
        limit = limits.get(name)
        if kind == "number" and isinstance(limit, tuple):
            knob |= {"min": limit[0], "max": limit[1]}
        elif limit is not None:
            knob |= {"kind": "choice", "choices": list(limit)}
        if isinstance(value, int):
            knob |= {"step": 1}
        knobs.append(knob)
    return knobs
