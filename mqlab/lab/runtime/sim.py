"""The simulated world: one heap of events, a virtual clock that jumps to the next, in-process links, seeded.

It takes the place of machines, their clocks and their network.

    heap: (due_ms, arming order, event)      event: node, kind, action, the step that armed it
    step(): pop the next event of a living node, set the clock, open a record, run the action, done

A handler runs to completion at one moment of virtual time; ties are broken by the order of arming.
The code of nodes takes no virtual time; only a listener's ``context.compute`` does.
"""

from __future__ import annotations

import importlib
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from heapq import heapify, heappop, heappush
from typing import TYPE_CHECKING, Any, ClassVar, Protocol

from mqlab.errors import LimitReached, UsageError
from mqlab.lab.runtime.collector import collecting_rarely
from mqlab.lab.runtime.crash_files import CrashFiles
from mqlab.lab.runtime.journal import NOTEBOOK, StepRecord, new_change
from mqlab.lab.runtime.kinds import PERIODIC_KINDS
from mqlab.lab.runtime.links import Links
from mqlab.lab.runtime.sim_workers import SimWorkers, current_listener, wait
from mqlab.lab.runtime.world import DEFAULT_START_MS, Action, Event, Machine, World, nothing
from mqlab.rocketmq.machine.files import RealFiles
from mqlab.rocketmq.promises import Promise

if TYPE_CHECKING:
    from mqlab.lab.runtime.line_watch import LineWatch

# The C functions themselves: those of signal make enums of the handlers, which costs as much as a whole frame.
set_handler = importlib.import_module("_signal").signal
handler_of = importlib.import_module("_signal").getsignal


LONGEST_CALL_MS = 3_600_000  # of virtual time: the longest call from a notebook
LEAST_SWEPT = 256  # events in the heap, before those that were cancelled are taken out of it


class Storyteller(Protocol):
    """Plays a story on a world and can be paused in the middle of it; implemented in mqlab.lab.world.story."""

    def is_paused(self) -> bool: ...

    def step(self) -> StepRecord | None: ...


class SimWorld(World[SimWorkers]):
    """The whole simulation. Same seed and same calls give the same journal, to the byte.

    ``step()`` is the only way anything happens; everything else plays it until a condition holds. ``on_step`` is called
    before each step of every world: code that plays the stories of others can stop them there.
    """

    is_simulated = True
    on_step: ClassVar[Callable[[], None] | None] = None

    def __init__(
        self, *, seed: int = 0, start_ms: int = DEFAULT_START_MS, latency_ms: int = 1, journal_limit: int | None = None
    ) -> None:
        super().__init__(seed, journal_limit)
        self.now_ms = start_ms
        self.network = Links(self, latency_ms)
        self.before_step: Callable[[int], None] | None = None  # faults and until_step hook in here
        self.between_steps: list[Action] = []  # actions of the notebook for the time after the step under way
        self.storyteller: Storyteller | None = None
        self.line_watch: LineWatch | None = None
        self.step_is_periodic = False
        self._heap: list[tuple[int, int, Event]] = []
        self._sweep_at = LEAST_SWEPT
        self._armed = 0
        self._record: StepRecord | None = None
        self._inside_step = False
        self._interrupted = False

    def make_workers(self, machine: Machine, cores: int) -> SimWorkers:
        return SimWorkers(self, machine, cores)

    def machine_files(self) -> RealFiles:
        return CrashFiles()

    def arm(self, node: Machine, due_ms: int, kind: str, action: Action, *, periodic: bool | None = None) -> Event:
        """Put an event into the heap; an event that was due earlier is due now."""
        record = self._record
        if periodic is None:
            periodic = kind in PERIODIC_KINDS
        if due_ms < self.now_ms:
            due_ms = self.now_ms
        event = Event(node, due_ms, kind, action, NOTEBOOK if record is None else record.step, periodic)
        self._armed += 1
        if not periodic:
            self.busy += 1
        heap = self._heap
        heappush(heap, (due_ms, self._armed, event))
        if len(heap) >= self._sweep_at:  # most deadlines are cancelled long before they are due
            heap[:] = [entry for entry in heap if entry[2].pending]
            heapify(heap)
            self._sweep_at = max(2 * len(heap), LEAST_SWEPT)
        return event

    def count_busy(self, change: int) -> None:
        """Keep count of the armed events that are not periodic."""
        self.busy += change

    def disarm(self, node: Machine) -> None:
        """Cancel all events that a node armed, because its process is gone."""
        for _, _, event in self._heap:
            if event.node is node:
                event.cancel()

    def note(self, node: Machine, kind: str, /, **values: Any) -> None:
        """Add a change to the step under way; the notebook's own calls open one."""
        record = self._record or self.open_call(node)
        change = new_change((kind, values))
        if record.changes:
            record.changes.append(change)
        else:
            record.changes = [change]
        if kind in self.on_change:
            self.on_change[kind](record, values)
        for watcher in self.watchers:
            watcher(record, change)

    def annotate(self, about: Any) -> None:
        """Record what the step under way is about: the frame that arrived."""
        if self._record is not None:
            self._record.about = about

    def open_call(self, node: Machine, kind: str = "call") -> StepRecord:
        """Open a record for something the notebook does itself, between two steps; in a step (a listener that breaks
        something) it belongs to that step.
        """
        if self._inside_step and self._record is not None:
            return self._record
        self._record = self.journal.add(StepRecord(self.journal.next_step, self.now_ms, node.name, kind, NOTEBOOK))
        return self._record

    def step(self) -> StepRecord | None:
        """Run the next event and return its record; None when no event is left."""
        if self._inside_step:
            raise UsageError(
                "a step of the world cannot play the world",
                hint='a listener waits with context.sleep("1s"); only the notebook plays the world',
            )
        journal, heap = self.journal, self._heap
        if SimWorld.on_step is not None:
            SimWorld.on_step()
        if self.before_step is not None:
            self.before_step(journal.next_step)
        while heap:
            due_ms, _, event = heappop(heap)
            if not event.pending:  # cancelled, and not swept out of the heap
                continue
            action = event.action
            event.pending, event.action = False, nothing  # from here on it has happened
            if not event.periodic:
                self.busy -= 1
            if due_ms > self.now_ms:
                self.now_ms = due_ms
            record = StepRecord(journal.next_step, self.now_ms, event.node.name, event.kind, event.armed_by)
            journal.add(record)
            self._record, self._inside_step, self.step_is_periodic = record, True, event.periodic
            try:
                action()
            finally:
                self._record, self._inside_step, self.step_is_periodic = None, False, False
            while self.between_steps:
                self.between_steps.pop(0)()
            return record
        return None

    def at(self, due_ms: int, action: Action) -> None:
        """Let the notebook act at a moment, between two steps: it may call, break and wait as it likes."""
        self.arm(self.outside, due_ms, "lab.at", lambda: self.between_steps.append(action))

    def advance(self) -> StepRecord | None:
        """One step, inside the story when one is paused."""
        if self.storyteller is not None and self.storyteller.is_paused():
            return self.storyteller.step()
        return self.step()

    @property
    def next_due_ms(self) -> int | None:
        """When the next step is due; None when nothing is armed."""
        heap = self._heap
        while heap and not heap[0][2].pending:
            heappop(heap)
        return heap[0][0] if heap else None

    def upcoming(self, count: int) -> list[Event]:
        """The next events in the order in which they will happen, should nothing new be armed."""
        live = sorted((due, order, event) for due, order, event in self._heap if event.pending)
        return [event for _, _, event in live[:count]]

    def run_for_ms(self, ms: int) -> None:
        """Play everything that is due within a duration."""
        self.run_until_ms(self.now_ms + ms)

    def run_until_ms(self, end_ms: int) -> None:
        """Play everything due up to and including a moment, then set the clock to it."""
        advance = self.step if self.storyteller is None else self.advance
        with self.interruptible(), collecting_rarely():
            while (due := self.next_due_ms) is not None and due <= end_ms:
                advance()
                if self._interrupted:
                    self.check_interrupt()
        self.now_ms = max(self.now_ms, end_ms)

    def run_until(self, condition: Callable[[], bool], limit_ms: int, what: str) -> None:
        """Play until a condition holds; LimitReached after ``limit_ms`` of virtual time or when nothing is left."""
        end_ms = self.now_ms + limit_ms
        advance = self.step if self.storyteller is None else self.advance
        with self.interruptible(), collecting_rarely():
            while not condition():
                due = self.next_due_ms
                if due is None or due > end_ms:
                    if due is not None:
                        self.now_ms = end_ms
                    why = "nothing is left to happen" if due is None else f"{limit_ms} ms of virtual time passed"
                    raise LimitReached(
                        f"{what} was not reached: {why} (now {self.now_ms}, step {self.journal.next_step})",
                        hint="lab.upcoming(5) shows what is armed; limit= allows more time",
                    )
                advance()
                if self._interrupted:
                    self.check_interrupt()

    def wait_for(self, promise: Promise[Any]) -> None:
        """Wait for a promise: a listener leaves its coroutine, the notebook plays the world for an hour at most."""
        caller = current_listener()
        if caller is not None:
            wait(caller, promise)
        elif not promise.done:
            self.run_until(lambda: promise.done, LONGEST_CALL_MS, "the answer to this call")

    def stop(self) -> None:
        """Nothing runs by itself in a simulated world."""

    @contextmanager
    def interruptible(self) -> Iterator[None]:
        """Ctrl-C stops between two steps and leaves a world that can be looked at.

        A second Ctrl-C stops inside a step, which ends a listener that never returns.
        """
        if threading.current_thread() is not threading.main_thread():
            yield
            return

        def remember(signum: int, frame: object) -> None:
            if self._interrupted:
                self.check_interrupt()
            self._interrupted = True

        before = set_handler(signal.SIGINT, remember)
        try:
            yield
        finally:
            set_handler(signal.SIGINT, before)
            self.check_interrupt()

    def check_interrupt(self) -> None:
        """Raise the KeyboardInterrupt that arrived during the last step."""
        if self._interrupted:
            self._interrupted = False
            raise KeyboardInterrupt

    @staticmethod
    @contextmanager
    def ctrl_c_as_before() -> Iterator[None]:
        """Around a switch to or from a story, which may be paused while it is ``interruptible``."""
        if threading.current_thread() is not threading.main_thread():
            yield
            return
        before = handler_of(signal.SIGINT)
        try:
            yield
        finally:
            set_handler(signal.SIGINT, before)

    def __repr__(self) -> str:
        return f"<SimWorld seed={self.seed} now={self.now_ms} step={self.journal.next_step} nodes={len(self.nodes)}>"
