"""One whole run per place at which a node can crash: before each of its steps, before each line of its listener.

It shows what "at least once" means, and whether a listener is idempotent.

    for lab in every_crash(story, node="billing-1", restart_after="1s"):
        assert paid(lab) == once            lab.crash_point is the place in this run
    for lab in every_crash(story, node="broker-a", how="power_off", broker={"flush_disk_type": "SYNC_FLUSH"}): ...

    calm_run ─▶ the points        crash_run(point) ─▶ its Lab        with_crash(point) ─▶ the story to play step by step

The first run has no crash: it counts the node's steps, the lines that its listeners run and, where these run in a
process of their own, what they ask of this one.
Left out: two crashes in one run.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from mqlab.durations import milliseconds
from mqlab.errors import UsageError
from mqlab.lab.runtime.line_watch import LineWatch
from mqlab.lab.world.lab import Lab
from mqlab.lab.world.state import CrashPoint
from mqlab.lab.world.story import Story, StoryTeller


def _with_its_disk(lab: Lab, node: str) -> None:
    lab.power_off(node)
    lab.lose_disk(node)


HOW: dict[str, Callable[[Lab, str], None]] = {"kill": Lab.kill, "power_off": Lab.power_off, "lose_disk": _with_its_disk}


def every_crash(
    story: Story,
    *,
    node: str,
    how: str = "kill",
    restart_after: str | int | None = "1s",
    only: Callable[[CrashPoint], bool] = lambda point: True,
    seed: int = 0,
    **settings: Any,
) -> Iterator[Lab]:
    """Yield one finished Lab per crash point of a node: it crashes there and is started again (``None``: it is not).

    ``how``: "kill" (its files keep what was written), "power_off" (they keep what was synced, and peers hear
    nothing), "lose_disk" (of a broker: like "power_off", and nothing is kept).
    ``lab.crash_point`` is the point; ``only`` selects points. Other keywords are those of Lab.
    UsageError when the node never acts. An error that leaves the story carries the crash point as a note.
    """
    _check(how)
    _, points = calm_run(story, node=node, seed=seed, **settings)
    for point in filter(only, points):
        yield crash_run(story, point, node=node, how=how, restart_after=restart_after, seed=seed, **settings)


def calm_run(story: Story, *, node: str, seed: int = 0, **settings: Any) -> tuple[Lab, list[CrashPoint]]:
    """The story without a crash: the finished Lab, and the places at which a node can crash in it.

    Raises UsageError when the node never acts, and under another driver than the simulated one.
    """
    if settings.get("driver", "sim") != "sim":
        raise UsageError("every_crash needs the simulated driver", hint="only there a run can be repeated")
    lab, watch = Lab(seed=seed, **settings), LineWatch(node)
    first_step = lab.journal.next_step  # earlier steps belong to the start of the Lab, not to the story
    _tell(story, lab, watch)
    steps = [
        record for record in lab.journal[first_step:] if record.node == node and record.kind not in ("call", "fault")
    ]
    if not steps:
        raise UsageError(f"{node!r} never acts in this story", hint=f"nodes: {', '.join(lab.handles)}")
    points = [CrashPoint("step", record.step, record.kind) for record in steps]
    points += [CrashPoint("line", number, where) for number, where in enumerate(watch.lines)]
    points += [CrashPoint("request", number, what) for number, what in enumerate(watch.requests)]
    return lab, points


def crash_run(
    story: Story,
    point: CrashPoint,
    *,
    node: str,
    how: str = "kill",
    restart_after: str | int | None = "1s",
    seed: int = 0,
    **settings: Any,
) -> Lab:
    """The finished Lab of one run in which the node crashes at one point. Arguments are those of ``every_crash``."""
    crashing = with_crash(story, point, node=node, how=how, restart_after=restart_after)
    lab = Lab(seed=seed, **settings)
    lab.crash_point = point
    try:
        _tell(crashing, lab, None)
    except Exception as error:
        error.add_note(f"in {getattr(story, '__name__', 'the story')}, seed={seed}: {node} ended by {how} {point}")
        raise
    return lab


def with_crash(
    story: Story, point: CrashPoint, *, node: str, how: str = "kill", restart_after: str | int | None = "1s"
) -> Story:
    """The same story with a crash of the node at one point: what ``play`` and a time machine need to show that run."""
    _check(how)
    crash = Crash(node, how, None if restart_after is None else milliseconds(restart_after))

    @functools.wraps(story)
    def crashing(lab: Lab, **parameters: Any) -> Any:
        world = lab.simulation("every_crash")
        if point.kind in ("line", "request"):
            world.line_watch = LineWatch(node, (point.kind, point.number), crash.after_this_step(lab))
        else:
            world.before_step = crash.before_step(lab, point.number, world.before_step)
        return story(lab, **parameters)

    return crashing


@dataclass(frozen=True, slots=True)
class Crash:
    """The crash of a node; called with the Lab at the crash point."""

    node: str
    how: str
    restart_after_ms: int | None

    def __call__(self, lab: Lab) -> None:
        HOW[self.how](lab, self.node)
        if self.restart_after_ms is not None:  # the restart is an event, so that the world goes on meanwhile
            lab.world.at(lab.now_ms + self.restart_after_ms, lambda: lab.start(self.node))

    def before_step(self, lab: Lab, number: int, then: Callable[[int], None] | None) -> Callable[[int], None]:
        """What the world calls before each step: the crash before step ``number``, and always ``then``."""

        def before(step: int) -> None:
            # The crash is a step of its own, so this number does not come again.
            if step == number:
                self(lab)
            if then is not None:
                then(step)

        return before

    def after_this_step(self, lab: Lab) -> Callable[[], None]:
        """The same for a listener in the middle of a step: the world crashes the node as soon as the step ends."""
        return lambda: lab.simulation("every_crash").between_steps.append(lambda: self(lab))


def _check(how: str) -> None:
    if how not in HOW:
        raise UsageError(f"unknown kind of crash {how!r}", hint="how is one of " + ", ".join(HOW))


def _tell(story: Story, lab: Lab, watch: LineWatch | None) -> None:
    world = lab.simulation("every_crash")
    world.line_watch = watch
    StoryTeller(world, {}, None).tell(story, lab)
