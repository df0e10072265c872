"""A fork: the same story with a fault, and the first moment in which it differs from the story.

    Fork.of(recording, 70, lambda lab: lab.kill("broker-a"), "kill broker-a before step 70", story=…, seed=…)
    .first    numbers of the first moments that differ, in the story and in the fork (None: there is none)

A fork of a fork has the faults of the first up to where it begins, and one more. What lies after that is left behind:
a fault later in the first fork is not in the second.

A moment is the same if time, lanes, kind and text are the same; steps are not compared, because the fault is a step of
its own. The fault's own moment counts as no difference.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from itertools import zip_longest
from typing import TYPE_CHECKING, Any

from mqlab.course.widgets.boards.time_machine.recording import StoryRecording
from mqlab.durations import milliseconds
from mqlab.errors import UsageError
from mqlab.lab.views.moments import FRAME

if TYPE_CHECKING:
    from mqlab.lab.views.timeline import Moment
    from mqlab.lab.world.lab import Lab
    from mqlab.lab.world.story import Story

FAULT_KINDS = ("fault", "mended")
CALLS = ("call", "fault")  # steps that a notebook's or a story's call opened: play cannot stop before them


@dataclass(frozen=True, slots=True)
class Fault:
    """What is done just before a step of a play, and its words."""

    step: int
    make: Callable[[Lab], Any]
    words: str


@dataclass(frozen=True, slots=True)
class Fork:
    """A story with faults, in their order: its recording, and where it differs first from the story."""

    recording: StoryRecording
    faults: tuple[Fault, ...]
    first: tuple[int | None, int | None]

    @classmethod
    def of(
        cls, recording: StoryRecording, fault: Fault, *, story: Story, parent: Fork | None = None, **settings: Any
    ) -> Fork:
        """Play the story with a fault more than ``parent`` has (None: the story). ``fault.step`` counts in the parent.

        Raises UsageError if the parent never reaches the step.
        """
        before = parent.recording if parent is not None else recording
        if fault.step >= before.lab.journal.next_step:
            raise UsageError("the story ends here: nothing follows that could change", hint="go back some stops")
        earlier = tuple(before for before in parent.faults if before.step < fault.step) if parent is not None else ()
        # A fault is made when an event is about to begin; another one before the same event is made with it.
        if earlier and fault.step <= _next_event(before, earlier[-1].step):
            fault = replace(fault, step=earlier[-1].step)
        faults = (*earlier, fault)
        forked = StoryRecording(story, faults=_by_step(faults), **settings)
        return cls(forked, faults, first_difference(recording.moments, forked.moments))

    @property
    def words(self) -> str:
        """All faults in words."""
        return "; then ".join(fault.words for fault in self.faults)

    def position_of(self, step: int) -> int:
        """The fork's stop at which the fault that was made before ``step`` has just happened."""
        return sum(1 for recorded in self.recording.steps if recorded <= step)


def _by_step(faults: tuple[Fault, ...]) -> dict[int, Callable[[Lab], Any]]:
    """The faults as ``play`` takes them: those of one step are made one after the other."""

    def all_of(step: int) -> Callable[[Lab], Any]:
        return lambda lab: [fault.make(lab) for fault in faults if fault.step == step]

    return {fault.step: all_of(fault.step) for fault in faults}


def first_difference(story: tuple[Moment, ...], fork: tuple[Moment, ...]) -> tuple[int | None, int | None]:
    """The numbers of the first moments that differ, None where one of them has no more moments; (None, None): none."""
    others = [index for index, moment in enumerate(fork) if moment.kind not in FAULT_KINDS]
    for index, other in zip_longest(range(len(story)), others):
        if index is None or other is None or _what(story[index]) != _what(fork[other]):
            return index, other
    return None, None


def _what(moment: Moment) -> tuple[Any, ...]:
    return moment.now_ms, moment.lane, moment.kind, moment.text, moment.to


def fault_of(recording: StoryRecording, position: int, arguments: Mapping[str, Any]) -> Fault:
    """The fault that the page asked for at a stop of a recording: kind, target, delay, back.

    Raises UsageError for a kind or a frame that does not exist.
    """
    kind, target = arguments["kind"], arguments["target"]
    if kind == "drop":
        return _drop(recording, int(target))
    # At the first position no step of the story was shown yet; the fault comes before the first that is.
    step = recording.steps[position - 1] + 1 if position else (recording.steps[0] if recording.steps else 0)
    step = _next_event(recording, step)
    back = str(arguments.get("back") or "").strip()
    after_ms = milliseconds(back) if back else None
    if kind == "slow":
        delay = arguments["delay"]
        milliseconds(delay)  # refused here rather than in the middle of the story
        return Fault(step, lambda lab: lab.slow(target, delay), f"slow {target} by {delay} before step {step}")
    if kind not in ("kill", "power_off"):
        raise UsageError(f"unknown kind of fault {kind!r}", hint="there is: kill, power_off, slow, drop")

    def end(lab: Lab) -> None:
        if kind == "kill":
            lab.kill(target)
        else:
            lab.power_off(target)
        if after_ms is not None:
            lab.at(lab.now_ms - lab.began_ms + after_ms, lambda: lab.start(target))

    words = {"kill": "kill", "power_off": "power off"}[kind]
    return Fault(step, end, f"{words} {target} before step {step}" + (f", start it after {back}" if back else ""))


def _drop(recording: StoryRecording, index: int) -> Fault:
    """Drop one frame: it is lost in the step that sends it, if no other takes the same way just before it."""
    if not 0 <= index < len(recording.moments) or recording.moments[index].kind != FRAME:
        raise UsageError(f"moment {index} is not a frame")
    moment = recording.moments[index]
    journal = recording.lab.journal
    record = journal[moment.step or 0]
    sender, receiver = moment.lane, moment.to or ""
    # A frame that a call has sent: the fault comes before the event before the call.
    step = record.cause
    while step > journal.dropped and journal[step].kind in CALLS:
        step -= 1
    if any(
        later.cause >= step and later.node == receiver and _sender(recording, later.cause) == sender
        for later in journal[step : record.step]
        if later.kind == "frame"
    ):
        raise UsageError(f"{sender} sends {receiver} another frame just before this one", hint="drop that one")
    words = f"drop {moment.text} from {sender} to {receiver}"
    return Fault(step, lambda lab: lab.drop(sender, receiver), words)


def _sender(recording: StoryRecording, step: int) -> str:
    return recording.lab.journal[step].node


def _next_event(recording: StoryRecording, step: int) -> int:
    """The first step from ``step`` on that play can stop before."""
    journal = recording.lab.journal
    while step < journal.next_step and journal[step].kind in CALLS:
        step += 1
    return step
