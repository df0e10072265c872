"""Changes of several steps: every step is taken, each outcome is kept, and a failure says what was done.

RocketMQ's mqadmin ends at the first step that fails, with the text of that failure alone.

    steps = Steps("delete_topic")
    steps.take("broker-a", lambda: admin.ask(...), at=address)      done, or the error is kept and the next step taken
    steps.finish()                                                  PartlyDone when some steps failed and others did not
    at_each("clean", admin.brokers(), lambda address: ...)          the same, one step per broker

A failure of all steps is the first error itself, with the other outcomes as notes. Left out: undoing what was done.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from typing import TypeVar

from mqlab.errors import MqlabError, PartlyDone, RemotingError, Step

T = TypeVar("T")
DONE = "done"


class Steps:
    """The steps of one change, as far as they were taken; ``name`` is the verb's."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.outcomes: list[Step] = []
        self._errors: list[MqlabError] = []
        self._silent: dict[str, None] = {}

    @property
    def failed(self) -> bool:
        """Whether a step was not done."""
        return any(not step.done for step in self.outcomes)

    def take(
        self, target: str, change: Callable[[], T], *, at: str = "", outcome: Callable[[T], str] | None = None
    ) -> T | None:
        """Take one step; its answer, or None when it failed. No step is taken ``at`` an address that did not answer.

        ``outcome`` puts the answer into words; "done" without it.
        """
        if at in self._silent:
            self.leave(target, f"not tried: {at} does not answer")
            return None
        try:
            answer = change()
        except MqlabError as error:
            if at and isinstance(error, RemotingError):
                self._silent[at] = None
            self._errors.append(error)
            self.leave(target, error.text)
            return None
        self.outcomes.append(Step(target, DONE if outcome is None else outcome(answer), True))
        return answer

    def take_each(self, places: Iterable[tuple[str, str]], change: Callable[[str], object]) -> None:
        """One step per (name, address)."""
        for target, address in places:
            self.take(target, partial(change, address), at=address)

    def leave(self, target: str, reason: str) -> None:
        """Note a step that was not done."""
        self.outcomes.append(Step(target, reason, False))

    def finish(self, hint: str = "call again: what is done is not done twice") -> None:
        """Raise PartlyDone when some steps failed and others did not; the first error when none was done."""
        if not self.failed:
            return
        if any(step.done for step in self.outcomes):
            raise PartlyDone(self.name, tuple(self.outcomes), hint=hint) from self._errors[0]
        error = self._errors[0]
        if len(self.outcomes) > 1:
            error.add_note(f"{self.name}: no step was done")
            for step in self.outcomes:
                error.add_note(f"  {step}")
        raise error


def at_each(name: str, places: Iterable[tuple[str, str]], change: Callable[[str], object]) -> None:
    """Take a change at each (name, address); see Steps.finish for what is raised."""
    steps = Steps(name)
    steps.take_each(places, change)
    steps.finish()
