"""One whole run per place at which a node could have died: before each of its steps, before each line of its listener.

Mirrors: nothing in RocketMQ; it is how "at least once" is shown and idempotent code is tried. Lab 04 and 08.

    for lab in every_crash(story, node="billing-1", restart_after="1s"):
        assert paid(lab) == once            lab.crash_point says where it died in this run
    for lab in every_crash(story, node="broker-a", how="power_off", broker={"flush_disk_type": "SYNC_FLUSH"}): ...

The first run has no crash and only counts: the node's steps, and the lines its listeners go through.
Left out: two crashes in one run (nest it in a story of your own).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from mqlab.durations import milliseconds
from mqlab.errors import UsageError
from mqlab.lab.lab import Lab
from mqlab.lab.state import CrashPoint
from mqlab.lab.story import Story, StoryTeller
from mqlab.runtime.line_watch import LineWatch


def _with_its_disk(lab: Lab, node: str) -> None:
    lab.power_off(node)
    lab.lose_disk(node)


HOW: dict[str, Callable[[Lab, str], None]] = {"kill": Lab.kill, "power_off": Lab.power_off, "lose_disk": _with_its_disk}


def every_crash(
    story: Story, *, node: str, how: str = "kill", restart_after: str | int | None = "1s",
    only: Callable[[CrashPoint], bool] = lambda point: True, seed: int = 0, **settings: Any,
) -> Iterator[Lab]:  # fmt: skip
    """Yield a finished Lab per crash point of a node, the node ended there and started again after a while (None: not).

    ``how``: "kill" (its files keep what was written), "power_off" (they keep what was synced, and peers hear
    nothing), "lose_disk" (of a broker: silence, and nothing is kept).
    ``lab.crash_point`` names the point; ``only`` chooses among the points. Keywords beyond these are Lab's.
    UsageError when the node never acts. An error that leaves the story carries the crash point as a note.
    """
    if how not in HOW:
        raise UsageError(f"a node cannot crash by {how!r}", hint="how is one of " + ", ".join(HOW))
    if settings.get("driver", "sim") != "sim":
        raise UsageError("every_crash needs the simulated driver", hint="only there a run can be told again")
    crash = Crash(node, how, None if restart_after is None else milliseconds(restart_after))
    watch = LineWatch(node)
    calm = Lab(seed=seed, **settings)
    first_step = calm.journal.next_step  # what came before is the Lab's own beginning, not the story's
    _tell(story, calm, watch, {})
    steps = [
        record for record in calm.journal[first_step:] if record.node == node and record.kind not in ("call", "fault")
    ]
    if not steps:
        raise UsageError(f"{node!r} never acts in this story", hint=f"nodes: {', '.join(calm.handles)}")
    points = [CrashPoint("step", record.step, record.kind) for record in steps]
    points += [CrashPoint("line", number, where) for number, where in enumerate(watch.lines)]
    for point in filter(only, points):
        lab = Lab(seed=seed, **settings)
        lab.crash_point = point
        try:
            if point.kind == "step":
                _tell(story, lab, LineWatch(node), {point.number: crash})
            else:
                _tell(story, lab, LineWatch(node, point.number, crash.after_this_step(lab)), {})
        except Exception as error:
            error.add_note(f"in {getattr(story, '__name__', 'the story')}, seed={seed}: {node} ended by {how} {point}")
            raise
        yield lab


@dataclass(frozen=True, slots=True)
class Crash:
    """What happens at a crash point; called with the Lab."""

    node: str
    how: str
    restart_after_ms: int | None

    def __call__(self, lab: Lab) -> None:
        HOW[self.how](lab, self.node)
        if self.restart_after_ms is not None:
            lab.world.at(lab.now_ms + self.restart_after_ms, lambda: lab.start(self.node))

    def after_this_step(self, lab: Lab) -> Callable[[], None]:
        """For a listener that is in the middle of a step: the world crashes the node as soon as it is left."""
        return lambda: lab.simulation("every_crash").between_steps.append(lambda: self(lab))


def _tell(story: Story, lab: Lab, watch: LineWatch, faults: dict[int, Callable[[Lab], Any]]) -> None:
    world = lab.simulation("every_crash")
    world.line_watch = watch
    StoryTeller(world, faults, None).tell(story, lab)
