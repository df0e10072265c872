"""A whole RocketMQ world in one object: name servers, brokers, clients, a clock, a network, and what happened.

Mirrors: a cluster with its machines. Every lab begins with ``Lab()`` or ``play(story)``.

    lab = Lab(seed=7)                                 nameserver-1, broker-a, a virtual clock, a temporary directory
    producer = lab.producer("shop")                   each client is a node of its own: shop-1
    lab.run_for("10s"), lab.step(), lab.journal       let time pass and look at what happened

The verbs are in groups (clients, faults, schedule, stored, what_happened); all of them work on one state (state.py).
"""

from __future__ import annotations

import shutil
import tempfile
import weakref
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mqlab.durations import milliseconds
from mqlab.errors import UsageError
from mqlab.lab.parts.folder import FOLDER, OwnParts, parts_in
from mqlab.lab.runtime.journal import StepRecord
from mqlab.lab.runtime.kinds import check_kind
from mqlab.lab.runtime.sim import SimWorld
from mqlab.lab.runtime.world import DEFAULT_START_MS, World
from mqlab.lab.world import cluster
from mqlab.lab.world.clients import ClientVerbs, shutdown_all
from mqlab.lab.world.faults import Faults
from mqlab.lab.world.handles import BROKERS
from mqlab.lab.world.schedule import ScheduleVerbs
from mqlab.lab.world.stored import StoredVerbs
from mqlab.lab.world.story import Story, StoryTeller
from mqlab.lab.world.what_happened import WhatHappened

if TYPE_CHECKING:
    from mqlab.lab.inspector import StoreInspector
    from mqlab.lab.world.shared_resources import Database, Resource

Duration = str | int
FaultsByStep = Mapping[int, Callable[["Lab"], Any]]


class Lab(ClientVerbs, Faults, ScheduleVerbs, StoredVerbs, WhatHappened):
    """A world of RocketMQ nodes. Raises UsageError for settings that do not exist, naming the nearest one.

    ``brokers`` and ``name_servers`` are counts or lists of names; ``broker`` and ``name_server`` hold settings by their
    RocketMQ names in snake_case. ``replicas`` is the number of slaves of each broker (broker-a-s1 …); they have the
    settings of ``broker``, overridden by those of ``replica``. ``stores`` maps a broker's name to an existing store
    directory, of which a copy is opened. ``client`` holds settings for all clients (message trace is on unless it has
    ``enable_trace=False``). A given ``directory`` is kept; without one the Lab has a temporary directory, which is
    removed together with the Lab object. ``driver`` is "sim" or "threads". ``parts``: a learner's own, such as
    ``mybroker.parts()``, in place of mqlab's; one that breaks a rule stops the world with BrokenPart.
    """

    bring_file = staticmethod(cluster.copy_writable)
    """How a file of a store given by ``stores=`` comes into the Lab's directory."""

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
        parts: OwnParts | None = None,
    ) -> None:
        # 1. Check the arguments before anything is created.
        names, servers = cluster.broker_names(brokers, stores), cluster.name_server_names(name_servers)
        latency_ms = cluster.latency(network)
        _check_numbers(replicas, journal_limit, speed)
        # 2. The directory comes first: the clock starts after the last timestamp of the stores that are copied there.
        own_directory = self._own_directory(directory)
        start_ms = cluster.bring_stores(stores, own_directory, self.bring_file) or DEFAULT_START_MS
        # 3. The world and the state. The state's delivery book must see the first change of the world.
        world = _world(driver, speed, seed=seed, start_ms=start_ms, latency_ms=latency_ms, journal_limit=journal_limit)
        client_settings = {"enable_trace": True, **(client or {})}
        super().__init__(
            world, own_directory, seed=seed, began_ms=start_ms, client_settings=client_settings, parts=parts
        )
        self.telling: Telling | None = None  # what play was called with
        # 4. The servers. Slaves come last because they learn from the name servers where their masters are.
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

    def broker(self, name: str = "broker-a") -> Any:
        """The handle of a broker. It has all attributes of Broker and survives kill and start."""
        return self.handle_of(name, *BROKERS)

    def slaves(self, broker: str = "broker-a") -> list[Any]:
        """The handles of a broker's slaves, by broker id."""
        name = self.handle_of(broker, *BROKERS).node.config.broker_name
        return [h for h in self.handles.values() if h.role == "slave" and h.node.config.broker_name == name]

    def name_server(self, name: str = "nameserver-1") -> Any:
        """A name server's handle."""
        return self.handle_of(name, "name server")

    def store(self, broker: str = "broker-a") -> StoreInspector:
        """A read-only view of a broker's store directory, whether the broker is running or not."""
        from mqlab.lab.inspector import StoreInspector

        return StoreInspector(self.handle_of(broker, *BROKERS).node.store.directory, owner=self)

    def create_topic(
        self,
        topic: str,
        *,
        read_queue_nums: int = 4,
        write_queue_nums: int = 4,
        perm: int = 6,
        brokers: Sequence[str] | str | None = None,
    ) -> None:
        """Create or change a topic on all brokers, or on those named, and wait until every name server has it."""
        cluster.create_topic(self, topic, read_queue_nums, write_queue_nums, perm, brokers)

    def resource(self, name: str, *, slots: int | None = None) -> Resource:
        """A shared resource to wait for, created when ``slots`` is given: ``with lab.resource("db"): …``."""
        if slots is not None:
            from mqlab.lab.world.shared_resources import Resource

            self.resources[name] = Resource(self.world, name, slots)
        if name not in self.resources:
            raise UsageError(f"there is no resource {name!r}", hint=f'first call lab.resource("{name}", slots=10)')
        return self.resources[name]

    def database(self, name: str) -> Database:
        """A SQLite database that all listeners can reach; its file survives kill and is in the Lab's directory."""
        from mqlab.lab.world.shared_resources import Database

        return Database(self.world, self.directory / f"{cluster.file_name(name, 'databases')}.sqlite")

    def step(self) -> StepRecord | None:
        """Let the next step happen and return its record; None when nothing is left to happen."""
        return self.simulation("step").advance()

    def run_for(self, duration: Duration) -> Lab:
        """Play everything that is due within a duration, and advance the clock by it."""
        self.world.run_for_ms(milliseconds(duration))
        return self

    def run_until(self, condition: str | Callable[..., Any], limit: Duration = "1h") -> Lab:
        """Play until a condition holds, or until a step or change of a kind happens. LimitReached after ``limit``.

        A condition with a parameter is called with this Lab.
        """
        if isinstance(condition, str):
            # A kind of change is seen by a watcher, a kind of step in the journal's last record.
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
            raise UsageError(
                f"{condition!r} is not a condition", hint='write lambda: …, or a kind such as "message.stored"'
            )
        else:
            what = getattr(condition, "__name__", "the condition")
            self.world.run_until(self.bound(condition), milliseconds(limit), what)
        return self

    def _last_step_is(self, kind: str, first: int) -> bool:
        last = self.journal.next_step - 1
        return last >= first and self.journal[last].kind == kind

    def run_until_quiet(self, limit: Duration = "1h") -> Lab:
        """Play until only periodic timers are left; LimitReached after ``limit``."""
        self.world.run_until(self.world.is_quiet, milliseconds(limit), "quiet (only periodic timers left)")
        return self

    def replay(self, *, until_step: int | None = None, faults: FaultsByStep | None = None) -> Lab:
        """A new Lab from this one's seed and story, in a directory of its own: its journal is equal to the byte.

        ``faults`` replace those of the first run. UsageError for a Lab that no story was played on.
        """
        if self.telling is None:
            raise UsageError("this Lab was not made by play(story)", hint="only a story can be replayed")
        telling = self.telling
        return play(
            telling.story,
            seed=self.seed,
            until_step=until_step,
            faults=telling.faults if faults is None else faults,
            **telling.settings,
        )

    def close(self) -> None:
        """Shut down every node that is up; a temporary directory is removed together with the Lab object."""
        shutdown_all(self)
        self.world.stop()

    def __enter__(self) -> Lab:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        nodes = ", ".join(handle.status for handle in self.handles.values())
        return f"<Lab seed={self.seed} now={self.now_ms} step={self.journal.next_step}: {nodes}>"


def _world(driver: str, speed: float, **settings: Any) -> World[Any]:
    if driver == "sim":
        return SimWorld(**settings)
    if driver == "threads":
        from mqlab.lab.runtime.threads import ThreadWorld

        return ThreadWorld(speed=speed, **settings)
    raise UsageError(f"there is no driver {driver!r}", hint='drivers are "sim" and "threads"')


def _check_numbers(replicas: int, journal_limit: int | None, speed: float) -> None:
    if not isinstance(replicas, int) or replicas < 0:
        raise UsageError(f"replicas must be 0 or more, got {replicas!r}")
    if journal_limit is not None and (not isinstance(journal_limit, int) or journal_limit < 1):
        raise UsageError(
            f"journal_limit must be 1 or more, got {journal_limit!r}",
            hint="None keeps all steps",
        )
    if speed <= 0:
        raise UsageError(f"speed must be positive, got {speed}", hint="2 is twice as fast as real time")


@dataclass(frozen=True, slots=True)
class Telling:
    """What play was called with. Together with the seed it determines the run; each run has a directory of its own."""

    story: Story
    faults: FaultsByStep | None
    settings: dict[str, Any]


def play(
    story: Story,
    *,
    seed: int = 0,
    until_step: int | None = None,
    faults: FaultsByStep | None = None,
    mine: bool = False,
    **settings: Any,
) -> Lab:
    """Play a story on a new Lab and return the Lab: at the story's end, or stopped just before ``until_step``.

    ``faults`` maps step numbers to functions of the Lab, each called just before its step.
    ``mine``: play on your own parts, those kept in the folder mybroker here.
    All other keywords are those of Lab.
    An error that leaves the story carries the seed and the step as a note.
    """
    if settings.get("driver", "sim") == "threads" and (until_step is not None or faults):
        raise UsageError("until_step and faults need the simulated driver", hint='driver="sim" is the default')
    if mine:
        settings["parts"] = parts_in(Path(FOLDER))
    lab = Lab(seed=seed, **settings)
    kept = {name: value for name, value in settings.items() if name != "directory"}
    lab.telling = Telling(story, dict(faults) if faults else None, kept)
    if not lab.world.is_simulated:
        try:
            story(lab)
        except BaseException:
            lab.close()
            raise
        return lab
    teller = StoryTeller(lab.simulation("play"), faults or {}, until_step)
    teller.check_steps()
    try:
        teller.tell(story, lab)
    except Exception as error:
        error.add_note(f"in {getattr(story, '__name__', 'the story')}, seed={seed}, step {lab.journal.next_step}")
        raise
    teller.check_faults_used()
    return lab
