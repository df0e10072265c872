"""A story is a function of a Lab that can stop at any step: the form of every demonstration, replay and fork.

A cell that plays a story gives the same result each time it runs.

    def story(lab): ...
    play(story, seed=7)                      to the end
    play(story, seed=7, until_step=1800)     stops before step 1800; lab.step(), lab.run_for(...) go on with it
    faults={1734: lambda lab: ...}           acts just before that step

The story runs as a coroutine: while it waits for the world, it can be paused at any step and resumed later.
Left out: saving a paused story; its seed and its function are enough to replay it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from mqlab.errors import UsageError
from mqlab.lab.runtime.stacks import Stack, current_stack

if TYPE_CHECKING:
    from mqlab.lab.runtime.journal import StepRecord
    from mqlab.lab.runtime.sim import SimWorld
    from mqlab.lab.world.lab import Lab

Story = Callable[["Lab"], Any]


class StoryTeller:
    """Runs one story over one simulated world, at most up to a given step at a time."""

    def __init__(self, world: SimWorld, faults: Mapping[int, Callable[[Lab], Any]], until_step: int | None) -> None:
        self._world = world
        self._faults = dict(faults)
        self._until_step = until_step
        self._coroutine: Stack | None = None
        self._lab: Lab | None = None
        world.before_step = self._before_step
        world.storyteller = self

    def is_paused(self) -> bool:
        """Whether the story has begun and not ended: the world then goes on inside it."""
        return self._coroutine is not None and not self._coroutine.dead and current_stack() is not self._coroutine

    def tell(self, story: Story, lab: Lab) -> None:
        """Start the story; returns at its end or at ``until_step``."""
        self._lab = lab
        self._coroutine = Stack(lambda: story(lab))
        with self._world.ctrl_c_as_before():
            self._coroutine.switch()
        if not self.is_paused():
            self._until_step = None

    def step(self) -> StepRecord | None:
        """Let a paused story's world make one step (with the story's calls to nodes before it)."""
        world = self._world
        before = world.journal.next_step
        self._until_step = before + 1
        while self.is_paused() and world.journal.next_step == before:
            assert self._coroutine is not None
            self._coroutine.parent = current_stack()
            with world.ctrl_c_as_before():
                self._coroutine.switch()
            if not self.is_paused():
                self._until_step = None
        return world.step() if world.journal.next_step == before else world.journal[before]

    def _before_step(self, step: int) -> None:
        fault = self._faults.pop(step, None)
        if fault is not None:
            assert self._lab is not None
            fault(self._lab)
        while self._until_step is not None and step >= self._until_step:
            if current_stack() is not self._coroutine or self._coroutine.parent is None:
                return
            with self._world.ctrl_c_as_before():
                self._coroutine.parent.switch()
            step = self._world.journal.next_step

    def check_steps(self) -> None:
        """UsageError for faults at steps before the story's first one, and for faults that cannot be called."""
        first = self._world.journal.next_step
        for step, fault in self._faults.items():
            if not callable(fault):
                raise UsageError(
                    f"the fault at step {step} is {fault!r}", hint="faults={30: lambda lab: lab.kill(...)}"
                )
        if self._faults and min(self._faults) < first:
            raise UsageError(
                f"a fault at step {min(self._faults)} is before the story: it begins at step {first}",
                hint="the steps before it start the name servers and brokers",
            )

    def check_faults_used(self) -> None:
        """UsageError for faults at steps that the story never reached."""
        if self._faults and not self.is_paused():
            late = min(self._faults)
            raise UsageError(
                f"the story ended at step {self._world.journal.next_step}, before the fault at step {late}",
                hint="lab.journal shows which step does what",
            )
