"""What both drivers have in common: machines with a clock, armed events, the ports of a node, the journal's records.

Mirrors: machines with a process each. ``mqlab.lab.runtime.sim`` and ``mqlab.lab.runtime.threads`` are the two worlds.

    World ── add_node(name) ─▶ Machine ── ports(machine) ─▶ Ports    what the code of a node is given
          ── arm(machine, due_ms, kind, action) ─▶ Event             how a world runs its events is the driver's own

Left out: how an event comes to run, and what a caller does while it waits.
"""

from __future__ import annotations

import random
from abc import ABC, abstractmethod
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any, Generic, Protocol, TypeVar

from mqlab.errors import UsageError
from mqlab.lab.runtime.journal import Change, Journal, StepRecord
from mqlab.rocketmq.machine.files import RealFiles
from mqlab.rocketmq.ports import Files, Ports, Workers
from mqlab.rocketmq.promises import Promise

if TYPE_CHECKING:
    from mqlab.lab.runtime.links import Links

DEFAULT_START_MS = 1_767_225_600_000  # 2026-01-01 00:00:00 UTC
Action = Callable[[], None]


def nothing() -> None:
    """The action of an event that has already happened or never will."""


class Event:
    """An armed step of one machine. ``periodic`` when it only keeps the world ticking (see PERIODIC_KINDS)."""

    __slots__ = ("action", "armed_by", "due_ms", "kind", "node", "pending", "periodic")

    def __init__(self, node: Machine, due_ms: int, kind: str, action: Action, armed_by: int, periodic: bool) -> None:
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
            self.action = nothing  # the event may stay in the heap: let go of what the action holds
            if not self.periodic:
                self.node.world.count_busy(-1)

    def __repr__(self) -> str:
        return f"<{self.kind} of {self.node.name} at {self.due_ms}>"


class Machine:
    """One machine with one process on it: name, address, clock skew, dead or alive. It is also its node's Clock port.

    ``incarnation`` counts restarts: what an earlier life armed never happens.
    """

    def __init__(self, world: World[Any], name: str, ip: str) -> None:
        self.world = world
        self.name = name
        self.ip = ip
        self.alive = True
        self.silent = False  # powered off: its peers are not informed
        self.incarnation = 0
        self.skew_ms = 0
        self.delay_ms = 0  # added to every frame that leaves or reaches this machine

    def now_ms(self) -> int:
        return self.world.now_ms + self.skew_ms

    def call_at(self, due_ms: int, action: Action, kind: str) -> Event:
        return self.world.arm(self, due_ms - self.skew_ms, kind, action)

    def call_later(self, delay_ms: int, action: Action, kind: str) -> Event:
        return self.world.arm(self, self.world.now_ms + delay_ms, kind, action)

    def __repr__(self) -> str:
        return f"<{self.name} {self.ip} {'up' if self.alive else 'down'}, life {self.incarnation}>"


def ip_of(index: int) -> str:
    """The address of the n-th machine of a world, counted from 0.

    >>> ip_of(0), ip_of(249), ip_of(250)
    ('10.0.0.1', '10.0.0.250', '10.0.1.1')
    """
    return f"10.0.{index // 250}.{index % 250 + 1}"


class EndingWorkers(Workers, Protocol):
    """The Workers port of a machine as its world sees it: its calls can be ended together with its process."""

    def end(self) -> None: ...

    def leave(self) -> None: ...


W = TypeVar("W", bound=EndingWorkers)


class World(ABC, Generic[W]):
    """Machines, links and a journal. The two drivers say how events run and how a caller waits."""

    network: Links
    is_simulated: bool
    now_ms: int  # the world's time, in ms since the epoch
    step_is_periodic: bool  # the step under way only keeps the world ticking; then the frames that it sends do, too

    def __init__(self, seed: int, journal_limit: int | None) -> None:
        self.seed = seed
        self.journal = Journal(journal_limit)
        self.nodes: dict[str, Machine] = {}
        self.workers: dict[str, W] = {}
        self.watchers: list[Callable[[StepRecord, Change], None]] = []  # called for every change
        self.on_change: dict[str, Callable[[StepRecord, dict[str, Any]], None]] = {}  # called for one kind of change
        self.busy = 0  # armed events that are not periodic
        self.outside = Machine(self, "lab", "10.255.255.254")  # no fault touches its events

    def add_node(self, name: str, files: Files, *, cores: int = 2) -> Ports:
        """Add a machine and return the ports of its process. UsageError when the name is taken."""
        if name in self.nodes:
            raise UsageError(f"a node named {name!r} exists already", hint="give the second one another name=")
        machine = Machine(self, name, ip_of(len(self.nodes)))
        self.nodes[name] = machine
        self.workers[name] = self.make_workers(machine, cores)
        return self.ports(machine, files)

    def forget_node(self, name: str) -> None:
        """Take the newest machine away because its process could not be made; its name is free again."""
        machine = self.nodes.pop(name)
        machine.alive = False
        self.network.drop_node(machine, silent=False)
        self.disarm(machine)
        self.workers.pop(name).end()

    def ports(self, machine: Machine, files: Files) -> Ports:
        """The ports of a machine's present life; a restarted process gets new ones."""
        return Ports(
            node=machine.name,
            ip=machine.ip,
            clock=machine,
            network=self.network.of(machine),
            files=files,
            workers=self.workers[machine.name],
            rng=random.Random(f"{self.seed}/{machine.name}/{machine.incarnation}"),
            note=partial(self.note, machine),
            annotate=self.annotate,
        )

    @abstractmethod
    def make_workers(self, machine: Machine, cores: int) -> W:
        """The Workers port of a new machine."""

    @abstractmethod
    def machine_files(self) -> RealFiles:
        """The files of a new machine. Its disk is a quarter full, however full the disk of this computer is."""

    @abstractmethod
    def arm(self, node: Machine, due_ms: int, kind: str, action: Action, *, periodic: bool | None = None) -> Event:
        """Let a machine do something at a moment. ``periodic`` is taken from the kind unless given."""

    @abstractmethod
    def disarm(self, node: Machine) -> None:
        """Cancel everything that a machine armed, because its process is gone."""

    @abstractmethod
    def count_busy(self, change: int) -> None:
        """Keep count of the armed events that are not periodic."""

    @abstractmethod
    def at(self, due_ms: int, action: Action) -> None:
        """Let the notebook act at a moment: the action may call, break and wait as it likes."""

    @abstractmethod
    def note(self, node: Machine, kind: str, /, **values: Any) -> None:
        """Add a change to the step under way; a call of the notebook opens a step of its own."""

    @abstractmethod
    def annotate(self, about: Any) -> None:
        """Record what the step under way is about: the frame that arrived."""

    @abstractmethod
    def open_call(self, node: Machine, kind: str = "call") -> StepRecord:
        """Open a record for something that the notebook does itself."""

    @abstractmethod
    def run_for_ms(self, ms: int) -> None:
        """Let a duration pass on this world's clock."""

    @abstractmethod
    def run_until(self, condition: Callable[[], bool], limit_ms: int, what: str) -> None:
        """Let time pass until a condition holds. LimitReached, which names ``what``, after ``limit_ms``."""

    @abstractmethod
    def wait_for(self, promise: Promise[Any]) -> None:
        """Block the calling thread until a promise is settled."""

    def is_quiet(self) -> bool:
        """Whether only periodic timers are left: nothing is on its way, parked, running or waiting to be retried."""
        return self.busy == 0

    @abstractmethod
    def stop(self) -> None:
        """End everything that runs by itself."""
