"""Boards in which a learner acts on a Lab: each action is a step that can be shown again, undone, and acted after.

    class LogXray(ActingBoard):
        beginning = "an empty store"          step 0, in words
        def new_world(self): ...              a Lab in which nothing was done yet
        def action(self, verb, arguments): …  an action; UsageError for one that does not exist
        def picture_of(self, world): ...      JSON: what the page shows of the Lab at a step
        def change(self, **settings): ...     the same board with other settings

A Lab cannot go back: for an action after an earlier step all steps up to it are done again in a new Lab. The same is
done when another thread acts than the one that made the Lab: JupyterLab answers a page in a thread of its own, and a
listener's call that waits (a greenlet) can go on only in the thread in which it began. The state ``position`` is the
step shown. The offset strip and the log X-ray are such boards.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Protocol, Self

from mqlab.course.widgets.frame.board import Board
from mqlab.errors import UsageError
from mqlab.lab.world.lab import Lab


class ActedWorld(Protocol):
    """A Lab and the actions done in it; ``code`` has the lines of each. After a refusal it must not be used again."""

    lab: Lab
    code: list[tuple[str, ...]]

    def do(self, action: Any) -> str: ...


@dataclass(frozen=True, slots=True)
class DoneAction:
    """An action that was done: its code, what happened in words, and what is shown after it."""

    action: Any
    code: tuple[str, ...]
    words: str
    picture: dict[str, Any]


def arguments_of(
    board: str, verb: str, arguments: Mapping[str, Any], defaults: Mapping[str, Mapping[str, Any]]
) -> dict[str, Any]:
    """An action's arguments, with the ``defaults`` of its verb. Raises UsageError for a verb or a name not among them.

    >>> arguments_of("the strip", "wait", {}, {"wait": {"duration": "1s"}})
    {'duration': '1s'}
    """
    if verb not in defaults:
        raise UsageError(f"{board} has no action {verb!r}", hint=f"actions: {', '.join(defaults)}")
    known = defaults[verb]
    unknown = sorted(arguments.keys() - known.keys())
    if unknown:
        raise UsageError(f"{verb} has no {unknown[0]!r}", hint=f"it has: {', '.join(known) or 'nothing'}")
    return {**known, **arguments}


class ActingBoard(Board):
    """Base of boards with actions. ``steps`` count from 0, the beginning."""

    state_defaults: ClassVar[Mapping[str, Any]] = {"position": 0}
    beginning: ClassVar[str]

    def new_world(self) -> ActedWorld:
        """A world in which nothing was done yet."""
        raise NotImplementedError

    def action(self, verb: str, arguments: Mapping[str, Any]) -> Any:
        """The action of a verb. Raises UsageError for verbs and arguments that do not exist."""
        raise NotImplementedError

    def picture_of(self, world: Any) -> dict[str, Any]:
        """JSON: what the page shows of the world as it is now."""
        raise NotImplementedError

    @property
    def position(self) -> int:
        """The step shown: 0 is the beginning."""
        position: int = self.state["position"]
        return min(max(position, 0), len(self.steps) - 1)

    @property
    def picture(self) -> dict[str, Any]:
        """What the page shows at the step shown."""
        return self.steps[self.position].picture

    @property
    def lab(self) -> Lab:
        """The Lab at the step shown, made again if the page has gone back."""
        self._go_live(self.position)
        lab: Lab = self._world.lab
        return lab

    def act(self, verb: str, arguments: Mapping[str, Any]) -> None:
        """Do one action after the step shown; later steps are dropped. Raises MqlabError when it cannot be done."""
        action = self.action(verb, arguments)
        self._go_live(self.position)
        del self.steps[self.position + 1 :]
        self._do(action)
        self.show_step(len(self.steps) - 1)

    def undo(self) -> Self:
        """Drop the step shown and all later ones. UsageError at the beginning."""
        if self.position == 0:
            raise UsageError(f"nothing to undo: this is {self.beginning}")
        position = self.position - 1
        del self.steps[position + 1 :]
        self.show_step(position)
        return self

    def change(self, **settings: Any) -> Self:
        """Begin again with other settings. UsageError for settings that the board does not have."""
        raise NotImplementedError

    def asked(self, name: str, arguments: Mapping[str, Any]) -> Any:
        """``do`` (verb, arguments), ``undo`` or ``change`` (settings), as the page asks; answers the position."""
        if name == "do":
            self.act(arguments["verb"], arguments.get("arguments", {}))
        elif name == "undo":
            self.undo()
        elif name == "change":
            self.change(**arguments)
        else:
            return super().asked(name, arguments)
        return {"position": self.position}

    def begin(self, actions: Sequence[Any]) -> None:
        """A new world, and all these actions done in it."""
        self._renew_world()
        self.steps = [DoneAction(None, (), self.beginning, self.picture_of(self._world))]
        for action in actions:
            self._do(action)

    def show_step(self, position: int) -> None:
        """Show a step in the page, with new data."""
        self.renew()
        self.set("position", position)

    def actions(self, position: int) -> list[Any]:
        """The actions of the steps up to one."""
        return [step.action for step in self.steps[: position + 1] if step.action is not None]

    def _renew_world(self) -> None:
        self._world, self._thread = self.new_world(), threading.get_ident()

    def _go_live(self, position: int) -> None:
        """Bring the world to a step: it is there, or the steps up to it are done again in a new one."""
        if len(self._world.code) != position or self._thread != threading.get_ident():
            self._renew_world()
            for action in self.actions(position):
                self._world.do(action)

    def _do(self, action: Any) -> None:
        try:
            words = self._world.do(action)
        except BaseException:
            # A refused action may have done a part of its work: the next one gets a world without it.
            self._renew_world()
            raise
        self.steps.append(DoneAction(action, self._world.code[-1], words, self.picture_of(self._world)))


def one_line(code: Sequence[str]) -> str:
    """Several lines of code as one.

    >>> one_line(("for n in range(2):", "    shop.send(n)", "lab.kill('broker-a')"))
    "for n in range(2): shop.send(n); lab.kill('broker-a')"
    """
    return "; ".join(line.strip() for line in code).replace(":; ", ": ")
