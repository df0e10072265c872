"""The simulated world: one heap of events, a virtual clock that jumps to the next, in-process links, seeded.

Mirrors: nothing in RocketMQ; it stands where machines, their clocks and their network are. Every lab runs on it.

    heap: (due_ms, arming order, event)      event: node, kind, action, the step that armed it
    step(): pop the next event of a living node, set the clock, open a record, run the action, done

A handler runs to completion at one moment of virtual time; ties are broken by arming order.
Left out: CPU time of node code (it costs nothing; a listener's ``context.compute`` does).
"""

from __future__ import annotations

import importlib
import random
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from heapq import heappop, heappush
from typing import TYPE_CHECKING, Any, ClassVar, Protocol

from mqlab.errors import LimitReached, UsageError
from mqlab.ports import Files, Ports
from mqlab.promises import Promise
from mqlab.runtime.collector import collecting_rarely
from mqlab.runtime.journal import NOTEBOOK, Change, Journal, StepRecord
from mqlab.runtime.kinds import PERIODIC_KINDS
from mqlab.runtime.links import Links
from mqlab.runtime.sim_workers import SimWorkers

if TYPE_CHECKING:
    from mqlab.runtime.line_watch import LineWatch
    from mqlab.runtime.threads import ThreadWorld

# signal.signal itself: what stands before it makes enums of both handlers, which costs as much as a frame
set_handler = importlib.import_module("_signal").signal
DEFAULT_START_MS = 1_767_225_600_000  # 2026-01-01 00:00:00 UTC
Action = Callable[[], None]


def _nothing() -> None:
    """What an event does that has happened or never will."""


class Event:
    """An armed step of one node. ``periodic`` when it only keeps the world ticking (see PERIODIC_KINDS)."""

    __slots__ = ("action", "armed_by", "due_ms", "kind", "node", "pending", "periodic")

    def __init__(self, node: SimNode, due_ms: int, kind: str, action: Action, armed_by: int, periodic: bool) -> None:
        self.node = node
        self.due_ms = due_ms
        self.kind = kind
        self.action = action
        self.armed_by = armed_by
        self.periodic = periodic
        self.pending = True

    def cancel(self) -> None:
        """Make this never happen; harmless when it already has."""
        if self.pending:
            self.pending = False
            self.action = _nothing  # it may stand in the heap for long; what it was to do need not
            if not self.periodic:
                self.node.world.count_busy(-1)

    def __repr__(self) -> str:
        return f"<{self.kind} of {self.node.name} at {self.due_ms}>"


class SimNode:
    """One simulated machine with one process on it: name, address, clock skew, dead or alive.

    Also its Clock port. ``incarnation`` counts restarts: what an earlier life armed never happens.
    """

    def __init__(self, world: SimWorld | ThreadWorld, name: str, ip: str) -> None:
        self.world = world
        self.name = name
        self.ip = ip
        self.alive = True
        self.silent = False  # powered off: peers get no word
        self.incarnation = 0
        self.skew_ms = 0
        self.delay_ms = 0  # added to every frame that leaves or reaches this node

    def now_ms(self) -> int:
        return self.world.now_ms + self.skew_ms

    def call_at(self, due_ms: int, action: Action, kind: str) -> Event:
        return self.world.arm(self, due_ms - self.skew_ms, kind, action)

    def call_later(self, delay_ms: int, action: Action, kind: str) -> Event:
        return self.world.arm(self, self.world.now_ms + delay_ms, kind, action)

    def __repr__(self) -> str:
        return f"<{self.name} {self.ip} {'up' if self.alive else 'down'}, life {self.incarnation}>"


class Storyteller(Protocol):
    """What tells a story over a world and may stand in the middle of it; mqlab.lab.story has the one there is."""

    def is_paused(self) -> bool: ...

    def step(self) -> StepRecord | None: ...


def ip_of(index: int) -> str:
    """The address of the n-th node of a world, counted from 0.

    >>> ip_of(0), ip_of(249), ip_of(250)
    ('10.0.0.1', '10.0.0.250', '10.0.1.1')
    """
    return f"10.0.{index // 250}.{index % 250 + 1}"


class SimWorld:
    """The whole simulation. Same seed and same calls give the same journal, to the byte.

    ``step()`` is the only way anything happens; everything else plays it until a condition holds. ``on_step`` is called
    before each step of every world: who plays other people's stories can stop them there.
    """

    on_step: ClassVar[Callable[[], None] | None] = None

    def __init__(
        self, *, seed: int = 0, start_ms: int = DEFAULT_START_MS, latency_ms: int = 1, journal_limit: int | None = None
    ) -> None:
        self.seed = seed
        self.now_ms = start_ms
        self.journal = Journal(journal_limit)
        self.nodes: dict[str, SimNode] = {}
        self.network = Links(self, latency_ms)
        self.workers: dict[str, SimWorkers] = {}
        self.outside = SimNode(self, "lab", "10.255.255.254")  # whose events no fault touches
        self.watchers: list[Callable[[StepRecord, Change], None]] = []
        self.before_step: Callable[[int], None] | None = None  # faults and until_step hook in here
        self.between_steps: list[Action] = []  # what the notebook wants done after the step under way
        self.storyteller: Storyteller | None = None
        self.line_watch: LineWatch | None = None
        self.busy = 0  # armed events that are not periodic
        self.step_is_periodic = False  # the step under way only keeps the world ticking: so does what it sends
        self._heap: list[tuple[int, int, Event]] = []
        self._armed = 0
        self._record: StepRecord | None = None
        self._inside_step = False
        self._interrupted = False

    # nodes -----------------------------------------------------------------------------------------------------

    def add_node(self, name: str, files: Files, *, cores: int = 2) -> Ports:
        """A new machine; the ports its process gets. Node names are unique (UsageError)."""
        if name in self.nodes:
            raise UsageError(f"a node named {name!r} exists already", hint="give the second one another name=")
        node = SimNode(self, name, ip_of(len(self.nodes)))
        self.nodes[name] = node
        self.workers[name] = SimWorkers(self, node, cores)
        return self.ports(node, files)

    def forget_node(self, name: str) -> None:
        """Take the newest machine away: its process could not be made, and its name is free again."""
        node = self.nodes.pop(name)
        node.alive = False
        self.network.drop_node(node, silent=False)
        self.disarm(node)
        self.workers.pop(name).end()

    def ports(self, node: SimNode, files: Files) -> Ports:
        """The ports of a node's present life; a restarted process gets new ones."""
        seed = f"{self.seed}/{node.name}/{node.incarnation}"
        return Ports(
            node=node.name,
            ip=node.ip,
            clock=node,
            network=self.network.of(node),
            files=files,
            workers=self.workers[node.name],
            rng=random.Random(seed),
            note=lambda kind, /, **values: self.note(node, kind, values),
            annotate=self.annotate,
        )

    # what happens ----------------------------------------------------------------------------------------------

    def arm(self, node: SimNode, due_ms: int, kind: str, action: Action, *, periodic: bool | None = None) -> Event:
        """Put an event into the heap; what was due before now is due now."""
        record = self._record
        if periodic is None:
            periodic = kind in PERIODIC_KINDS
        if due_ms < self.now_ms:
            due_ms = self.now_ms
        event = Event(node, due_ms, kind, action, NOTEBOOK if record is None else record.step, periodic)
        self._armed += 1
        if not periodic:
            self.busy += 1
        heappush(self._heap, (due_ms, self._armed, event))
        return event

    def count_busy(self, change: int) -> None:
        """Keep count of the armed events that are not periodic."""
        self.busy += change

    def disarm(self, node: SimNode) -> None:
        """Nothing that a node armed will happen: its process is gone."""
        for _, _, event in self._heap:
            if event.node is node:
                event.cancel()

    def note(self, node: SimNode, kind: str, values: dict[str, Any]) -> None:
        """Add a change to the step under way; the notebook's own calls open one."""
        record = self._record or self.open_call(node)
        change = Change(kind, values)
        record.changes.append(change)
        for watcher in self.watchers:
            watcher(record, change)

    def annotate(self, about: Any) -> None:
        """Say what the step under way is about (the frame that arrived)."""
        if self._record is not None:
            self._record.about = about

    def open_call(self, node: SimNode, kind: str = "call") -> StepRecord:
        """Open a record for something the notebook does itself, between two steps; in a step (a listener that breaks
        something) it belongs to that step.
        """
        if self._inside_step and self._record is not None:
            return self._record
        self._record = self.journal.add(StepRecord(self.journal.next_step, self.now_ms, node.name, kind, NOTEBOOK))
        return self._record

    def step(self) -> StepRecord | None:
        """Let the next thing happen; None when nothing is left that could."""
        if self._inside_step:
            raise UsageError(
                "the world cannot be played from inside one of its steps",
                hint='a listener passes time with context.sleep("1s"); playing is the notebook\'s',
            )
        journal, heap = self.journal, self._heap
        if SimWorld.on_step is not None:
            SimWorld.on_step()
        if self.before_step is not None:
            self.before_step(journal.next_step)
        while heap:
            due_ms, _, event = heappop(heap)
            if not event.pending:
                continue
            action = event.action
            event.cancel()  # from here on it has happened
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

    # playing ---------------------------------------------------------------------------------------------------

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

    def run_until_ms(self, end_ms: int) -> None:
        """Play everything due up to and including a moment, then stand there."""
        with self.interruptible(), collecting_rarely():
            while (due := self.next_due_ms) is not None and due <= end_ms:
                self.advance()
                if self._interrupted:
                    self.check_interrupt()
        self.now_ms = max(self.now_ms, end_ms)

    def run_until(self, condition: Callable[[], bool], limit_ms: int, what: str) -> None:
        """Play until a condition holds; LimitReached after ``limit_ms`` of virtual time or when nothing is left."""
        end_ms = self.now_ms + limit_ms
        with self.interruptible(), collecting_rarely():
            while not condition():
                due = self.next_due_ms
                if due is None or due > end_ms:
                    if due is not None:
                        self.now_ms = end_ms
                    why = (
                        "nothing is left that could happen" if due is None else f"{limit_ms} ms of virtual time passed"
                    )
                    raise LimitReached(
                        f"{what} did not come true: {why} (now {self.now_ms}, step {self.journal.next_step})",
                        hint="lab.upcoming(5) shows what is armed; limit= allows more time",
                    )
                self.advance()
                if self._interrupted:
                    self.check_interrupt()

    def is_quiet(self) -> bool:
        """Only periodic timers are left: nothing is on its way, parked, running or waiting to be retried."""
        return self.busy == 0

    def play_until_settled(self, promise: Promise[Any], limit_ms: int = 3_600_000) -> None:
        """Play until a promise is settled; what a call from the notebook does while it blocks."""
        self.run_until(lambda: promise.done, limit_ms, "the answer to this call")

    @contextmanager
    def interruptible(self) -> Iterator[None]:
        """Ctrl-C stops between two steps and leaves a world that can be looked at.

        A second one stops inside a step: the way out of a listener that loops without end.
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

    def __repr__(self) -> str:
        return f"<SimWorld seed={self.seed} now={self.now_ms} step={self.journal.next_step} nodes={len(self.nodes)}>"
