"""A whole RocketMQ world to hold in one hand: name servers, brokers, clients, a clock, a network, and what happened.

Mirrors: a cluster with its machines; every lab begins with ``Lab()`` or ``play(story)``.

    lab = Lab(seed=7)                                 nameserver-1, broker-a, a virtual clock, a temporary directory
    producer = lab.producer("shop")                   each client is a node of its own: shop-1
    lab.run_for("10s"), lab.step(), lab.journal       play it and look

Left out: what the base classes have (client verbs, faults, traffic, looking).
"""

from __future__ import annotations

import inspect
import shutil
import tempfile
import weakref
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mqlab.durations import milliseconds
from mqlab.errors import UsageError
from mqlab.lab import clients, cluster
from mqlab.lab.deliveries import DeliveryBook
from mqlab.lab.faults import Faults
from mqlab.lab.handles import BROKERS, NodeHandle
from mqlab.lab.schedule import TrafficVerbs
from mqlab.lab.shared_resources import Database, Resource
from mqlab.lab.story import Story, StoryTeller
from mqlab.lab.what_happened import WhatHappened
from mqlab.runtime.files import RealFiles
from mqlab.runtime.journal import Journal, StepRecord
from mqlab.runtime.kinds import check_kind
from mqlab.runtime.sim import SimWorld
from mqlab.runtime.threads import ThreadWorld
from mqlab.runtime.world import DEFAULT_START_MS, World

if TYPE_CHECKING:
    from mqlab.lab.crashes import CrashPoint
    from mqlab.store import StoreInspector

Duration = str | int
Faulty = Mapping[int, Callable[["Lab"], Any]]


class Lab(clients.ClientVerbs, Faults, TrafficVerbs, WhatHappened):
    """A world of RocketMQ nodes. Raises UsageError for settings that do not exist, naming the nearest one.

    ``brokers`` and ``name_servers`` are counts or lists of names; ``broker`` and ``name_server`` hold settings by their
    RocketMQ names in snake_case; ``replicas`` slaves stand beside each broker (broker-a-s1 …), with the settings of
    ``broker`` and on top of them those of ``replica``; ``stores`` maps a broker's name to an existing store directory,
    of which a copy is opened; ``client`` holds settings for all clients (message trace is on unless it says
    ``enable_trace=False``); ``directory`` is kept, without one a temporary directory goes with the Lab. ``driver`` is
    "sim" or "threads".
    """

    def __init__(
        self,
        *,
        seed: int = 0,
        brokers: int | Sequence[str] = 1,
        name_servers: int | Sequence[str] = 1,
        replicas: int = 0,
        directory: str | Path | None = None,
        driver: str = "sim",
        broker: Mapping[str, Any] | None = None,
        replica: Mapping[str, Any] | None = None,
        name_server: Mapping[str, Any] | None = None,
        client: Mapping[str, Any] | None = None,
        network: Mapping[str, Duration] | None = None,
        memory: str | int | None = None,
        stores: Mapping[str, str | Path] | None = None,
        journal_limit: int | None = None,
        speed: float = 1.0,
    ) -> None:
        self.seed = seed
        self.client_settings = {"enable_trace": True, **(client or {})}
        names, servers = cluster.broker_names(brokers, stores), cluster.name_server_names(name_servers)
        latency_ms = cluster.latency(network)
        _check_numbers(replicas, journal_limit, speed)
        self.directory = self._own_directory(directory)
        start_ms = self.bring_stores(stores) or DEFAULT_START_MS
        self.world: World[Any]
        if driver == "sim":
            self.world = SimWorld(seed=seed, start_ms=start_ms, latency_ms=latency_ms, journal_limit=journal_limit)
        elif driver == "threads":
            self.world = ThreadWorld(
                seed=seed, start_ms=start_ms, latency_ms=latency_ms, speed=speed, journal_limit=journal_limit
            )
        else:
            raise UsageError(f"there is no driver {driver!r}", hint='drivers are "sim" and "threads"')
        self.began_ms = start_ms
        self.crash_point: CrashPoint | None = None  # where a run of every_crash killed its node
        self.telling: Telling | None = None  # how play told its story here
        self._resources: dict[str, Resource] = {}
        self.delivery_book = DeliveryBook()
        self.world.watchers.append(self.delivery_book.watch)
        self.files = RealFiles()
        self.handles: dict[str, NodeHandle] = {}
        try:
            cluster.start_name_servers(self, servers, name_server or {})
            cluster.start_brokers(self, names, broker or {}, memory)
            if replicas:
                cluster.start_slaves(self, names, replicas, {**(broker or {}), **(replica or {})}, memory)
        except BaseException:
            self.world.stop()
            raise

    def _own_directory(self, directory: str | Path | None) -> Path:
        if directory is not None:
            path = Path(directory).absolute()
            path.mkdir(parents=True, exist_ok=True)
            return path
        path = Path(tempfile.mkdtemp(prefix="mqlab-"))
        weakref.finalize(self, shutil.rmtree, path, ignore_errors=True)
        return path

    def bring_stores(self, stores: Mapping[str, str | Path] | None) -> int | None:
        """Copy the stores into the Lab's directory; when its clock starts, if they say that."""
        return cluster.bring_stores(stores, self.directory, cluster.copy_writable)

    def machine_files(self) -> RealFiles:
        """The files of a new broker's machine. Its disk is a quarter full, whatever the host's is."""
        return self.world.machine_files()

    # nodes -----------------------------------------------------------------------------------------------------

    def broker(self, name: str = "broker-a") -> Any:
        """A broker's handle, through which all of Broker's attributes are seen; it survives kill and start."""
        return self._handle(name, *BROKERS)

    def slaves(self, broker: str = "broker-a") -> list[Any]:
        """The handles of a broker's slaves, by broker id."""
        name = self._handle(broker, *BROKERS).node.config.broker_name
        return [h for h in self.handles.values() if h.role == "slave" and h.node.config.broker_name == name]

    def name_server(self, name: str = "nameserver-1") -> Any:
        """A name server's handle."""
        return self._handle(name, "name server")

    def store(self, broker: str = "broker-a") -> StoreInspector:
        """A read-only look into a broker's store directory, live or dead."""
        from mqlab.store import StoreInspector

        return StoreInspector(self._handle(broker, *BROKERS).node.store.directory)

    def _handle(self, name: str, *roles: str) -> NodeHandle:
        handle = self.handles.get(name)
        if handle is None or handle.role not in roles:
            known = [n for n, h in self.handles.items() if h.role in roles]
            raise UsageError(f"there is no {roles[0]} named {name!r}", hint=f"there are: {', '.join(known) or 'none'}")
        return handle

    def create_topic(
        self, topic: str, *, read_queue_nums: int = 4, write_queue_nums: int = 4, perm: int = 6,
        brokers: Sequence[str] | str | None = None,
    ) -> None:  # fmt: skip
        """Create or change a topic on all brokers, or on those named, and wait until every name server knows."""
        cluster.create_topic(self, topic, read_queue_nums, write_queue_nums, perm, brokers)

    # things shared by listeners ------------------------------------------------------------------------------------

    def resource(self, name: str, *, slots: int | None = None) -> Resource:
        """A shared thing to wait for, made when ``slots`` is given: ``with lab.resource("db"): …``."""
        if slots is not None:
            self._resources[name] = Resource(self.world, name, slots)
        if name not in self._resources:
            raise UsageError(f"there is no resource {name!r}", hint=f'make it first: lab.resource("{name}", slots=10)')
        return self._resources[name]

    def database(self, name: str) -> Database:
        """A SQLite database that all listeners can reach; its file survives kill and is in the Lab's directory."""
        return Database(self.world, self.directory / f"{cluster.file_name(name, 'databases')}.sqlite")

    # time ------------------------------------------------------------------------------------------------------

    @property
    def now_ms(self) -> int:
        """The world's time: ms since the epoch."""
        return self.world.now_ms

    def step(self) -> StepRecord | None:
        """Let the next thing happen; its record, or None when nothing is left."""
        return self.simulation("step").advance()

    def run_for(self, duration: Duration) -> Lab:
        """Play everything that is due within a duration."""
        self.world.run_for_ms(milliseconds(duration))
        return self

    def run_until(self, condition: str | Callable[..., Any], limit: Duration = "1h") -> Lab:
        """Play until a condition (called with this Lab, or with nothing) holds, or a step or change of a kind happens.

        LimitReached after ``limit``.
        """
        if isinstance(condition, str):
            kind, seen = condition, [False]
            check_kind(kind)

            def watch(record: StepRecord, change: Any) -> None:
                seen[0] = seen[0] or change.kind == kind

            first = self.journal.next_step
            self.world.watchers.append(watch)
            try:
                self.world.run_until(
                    lambda: seen[0] or self._last_step_is(kind, first), milliseconds(limit), f"a step of kind {kind!r}"
                )
            finally:
                self.world.watchers.remove(watch)
        elif not callable(condition):
            raise UsageError(f"{condition!r} is no condition", hint='lambda: …, or a kind such as "message.stored"')
        else:
            takes_lab = any(p.default is p.empty for p in inspect.signature(condition).parameters.values())
            holds = (lambda: condition(self)) if takes_lab else condition
            what = getattr(condition, "__name__", "the condition")
            self.world.run_until(holds, milliseconds(limit), what)
        return self

    def _last_step_is(self, kind: str, first: int) -> bool:
        last = self.journal.next_step - 1
        return last >= first and self.journal[last].kind == kind

    def run_until_quiet(self, limit: Duration = "1h") -> Lab:
        """Play until only periodic timers are left; LimitReached after ``limit`` with what is still armed."""
        self.world.run_until(self.world.is_quiet, milliseconds(limit), "quiet (only periodic timers left)")
        return self

    def simulation(self, verb: str) -> SimWorld:
        """The simulated world; UsageError for a verb that needs it under another driver."""
        if not isinstance(self.world, SimWorld):
            raise UsageError(f"lab.{verb} needs the simulated driver: real threads do not stop for a look")
        return self.world

    # what happened ---------------------------------------------------------------------------------------------

    @property
    def journal(self) -> Journal:
        """One record a step; see mqlab.runtime.journal."""
        return self.world.journal

    def replay(self, *, until_step: int | None = None, faults: Faulty | None = None) -> Lab:
        """A Lab rebuilt from this one's seed and story, in a directory of its own: the same journal, to the byte.

        ``faults`` replace those of the first telling. UsageError for a Lab that no story was played on.
        """
        if self.telling is None:
            raise UsageError("this Lab was not made by play(story)", hint="only a story can be told again")
        told = self.telling
        return play(
            told.story, seed=self.seed, until_step=until_step, faults=told.faults if faults is None else faults,
            **told.settings,
        )  # fmt: skip

    # ends ------------------------------------------------------------------------------------------------------

    def close(self) -> None:
        """Shut every living node down cleanly; a temporary directory goes with the Lab object."""
        clients.shutdown_all(self)
        self.world.stop()

    def __enter__(self) -> Lab:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        nodes = ", ".join(handle.status for handle in self.handles.values())
        return f"<Lab seed={self.seed} now={self.now_ms} step={self.journal.next_step}: {nodes}>"


def _check_numbers(replicas: int, journal_limit: int | None, speed: float) -> None:
    if not isinstance(replicas, int) or replicas < 0:
        raise UsageError(f"a broker has 0 or more replicas, not {replicas!r}")
    if journal_limit is not None and (not isinstance(journal_limit, int) or journal_limit < 1):
        raise UsageError(
            f"journal_limit={journal_limit!r} keeps no step", hint="the number of steps to keep, or None: all"
        )
    if speed <= 0:
        raise UsageError(f"speed={speed} is no speed", hint="2 is twice as fast as the wall clock, 0.5 half as fast")


@dataclass(frozen=True, slots=True)
class Telling:
    """What play was given; with the Lab's seed it is all of a run. The directory is left out: each run has its own."""

    story: Story
    faults: Faulty | None
    settings: dict[str, Any]


def play(
    story: Story,
    *,
    seed: int = 0,
    until_step: int | None = None,
    faults: Faulty | None = None,
    **settings: Any,
) -> Lab:
    """Tell a story on a fresh Lab and give the Lab back: at its end, or stopped just before ``until_step``.

    ``faults`` maps step numbers to functions of the Lab, each called just before its step. Other keywords are Lab's.
    An error that leaves the story carries the seed and the step as a note.
    """
    if settings.get("driver", "sim") == "threads" and (until_step is not None or faults):
        raise UsageError("until_step and faults need the simulated driver", hint='driver="sim" is the default')
    lab = Lab(seed=seed, **settings)
    kept = {name: value for name, value in settings.items() if name != "directory"}
    lab.telling = Telling(story, dict(faults) if faults else None, kept)
    if not isinstance(lab.world, SimWorld):
        try:
            story(lab)
        except BaseException:
            lab.close()
            raise
        return lab
    teller = StoryTeller(lab.world, faults or {}, until_step)
    teller.check_steps()
    try:
        teller.tell(story, lab)
    except Exception as error:
        error.add_note(f"in {getattr(story, '__name__', 'the story')}, seed={seed}, step {lab.journal.next_step}")
        raise
    teller.check_faults_used()
    return lab
