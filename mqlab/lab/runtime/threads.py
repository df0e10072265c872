"""The same nodes in real time: one loop thread per node, real thread pools, real sockets.

Mirrors: one JVM per node. It shows that the code of nodes needs nothing of the simulation.

    other threads ──post──▶ node's heap of events ──its one loop thread──▶ handlers, deadlines, frames
    listeners run in a ThreadPoolExecutor and come back through the same heap

``speed`` makes the clock run faster than the wall's: 1000 turns a 10 s delay level into 10 ms.
Left out: determinism; interrupting a listener that never waits.
"""

from __future__ import annotations

import heapq
import itertools
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

from mqlab.errors import LimitReached, NodeDown
from mqlab.lab.runtime.journal import NOTEBOOK, StepRecord, new_change
from mqlab.lab.runtime.kinds import PERIODIC_KINDS
from mqlab.lab.runtime.sockets import SocketLinks
from mqlab.lab.runtime.waiting_callers import result_now, wait_for_step
from mqlab.lab.runtime.world import DEFAULT_START_MS, Action, Event, Machine, World
from mqlab.rocketmq.machine.files import LAB_DISK_USED, RealFiles
from mqlab.rocketmq.ports import Files, Ports
from mqlab.rocketmq.promises import Promise

T = TypeVar("T")


class ThreadWorld(World["ThreadWorkers"]):
    """A world in real time with the same verbs as SimWorld where they make sense.

    There is no ``step``: events run by themselves, and ``run_for`` and ``run_until`` only wait.
    """

    is_simulated = False
    network: SocketLinks

    def __init__(
        self,
        *,
        seed: int = 0,
        start_ms: int = DEFAULT_START_MS,
        latency_ms: int = 0,
        speed: float = 1.0,
        journal_limit: int | None = None,
    ) -> None:
        super().__init__(seed, journal_limit)
        self.journal.steps_overlap = True
        self.speed = speed
        self.network = SocketLinks(self, latency_ms)
        self.failures: list[BaseException] = []
        self._start_ms = start_ms
        self._began = time.monotonic()
        self._loops: dict[str, _Loop] = {}
        self._order = itertools.count()
        self._lock = threading.Lock()
        self._local = threading.local()
        self._loops["lab"] = _Loop(self, self.outside)

    @property
    def now_ms(self) -> int:  # type: ignore[override]  # a plain attribute in the other driver, read millions of times
        return self._start_ms + int((time.monotonic() - self._began) * 1000 * self.speed)

    def make_workers(self, machine: Machine, cores: int) -> ThreadWorkers:
        return ThreadWorkers(self, machine, cores)

    def machine_files(self) -> RealFiles:
        return RealFiles(disk_used=LAB_DISK_USED)

    def ports(self, machine: Machine, files: Files) -> Ports:
        """The ports of a machine's present life, with a fresh loop thread."""
        self._loops[machine.name] = _Loop(self, machine)
        return super().ports(machine, files)

    def arm(
        self,
        node: Machine,
        due_ms: int,
        kind: str,
        action: Action,
        *,
        periodic: bool | None = None,
        cause: int | None = None,
    ) -> Event:
        """Hand an event to a node's loop; callable from any thread. ``cause``: the step that armed it, if not this."""
        if periodic is None:
            periodic = kind in PERIODIC_KINDS
        event = Event(node, due_ms, kind, action, self.step_now if cause is None else cause, periodic)
        if not periodic:
            self.count_busy(1)
        loop = self._loops[node.name]
        with loop.wake:
            heapq.heappush(loop.heap, (due_ms, next(self._order), event))
            loop.wake.notify()
        return event

    def count_busy(self, change: int) -> None:
        """Keep count of armed or running events that are not periodic."""
        with self._lock:
            self.busy += change

    @property
    def step_now(self) -> int:
        """The step that the calling thread is in; NOTEBOOK outside of all."""
        record: StepRecord | None = getattr(self._local, "record", None)
        return record.step if record else NOTEBOOK

    @property
    def step_is_periodic(self) -> bool:  # type: ignore[override]  # as now_ms
        return bool(getattr(self._local, "periodic", False))

    def is_on_its_loop(self, node: Machine) -> bool:
        """Whether the calling thread is the one that runs the steps of a node."""
        return self._loops[node.name].thread is threading.current_thread()

    def disarm(self, node: Machine) -> None:
        """Cancel all events that a node armed and end its loop, because its process is gone."""
        loop = self._loops[node.name]
        with loop.wake:
            for _, _, event in loop.heap:
                event.cancel()
            loop.heap.clear()
            loop.running = False
            loop.wake.notify()

    def note(self, node: Machine, kind: str, /, **values: Any) -> None:
        """Add a change to the step of the calling thread."""
        record: StepRecord | None = getattr(self._local, "record", None)
        change = new_change((kind, values))
        with self._lock:
            if record is None:
                record = self._open(node, "call", NOTEBOOK)
            if record.changes:
                record.changes.append(change)
            else:
                record.changes = [change]
            if kind in self.on_change:
                self.on_change[kind](record, values)
            for watcher in self.watchers:
                watcher(record, change)

    def annotate(self, about: Any) -> None:
        """Record what the calling thread's step is about: the frame that arrived.

        A socket may deliver several frames at once: each is a step of its own, with the cause of the first.
        """
        record: StepRecord | None = getattr(self._local, "record", None)
        if record is not None and record.about is not None:
            with self._lock:
                record = self._open(self.nodes[record.node], record.kind, record.cause)
            self._local.record = record
        if record is not None:
            record.about = about

    def _open(self, node: Machine, kind: str, cause: int) -> StepRecord:
        return self.journal.add(StepRecord(self.journal.next_step, self.now_ms, node.name, kind, cause))

    def run_event(self, event: Event) -> None:
        """One step, on the loop thread of its node."""
        with self._lock:
            record = self._open(event.node, event.kind, event.armed_by)
        self._local.record, self._local.periodic = record, event.periodic
        try:
            event.action()
        except Exception as failure:  # an error in a node must not end its loop unnoticed: run_until raises it
            self.failures.append(failure)
        finally:
            self._local.record, self._local.periodic = None, False

    def at(self, due_ms: int, action: Action) -> None:
        """Let the notebook act at a moment, on a thread of its own: it may call, break and wait as it likes."""
        self.arm(self.outside, due_ms, "lab.at", lambda: threading.Thread(target=action, daemon=True).start())

    def open_call(self, node: Machine, kind: str = "call") -> StepRecord:
        """Open a record for something that the notebook does."""
        with self._lock:
            return self._open(node, kind, NOTEBOOK)

    def run_for_ms(self, ms: int) -> None:
        time.sleep(ms / 1000 / self.speed)

    def run_until(self, condition: Callable[[], bool], limit_ms: int, what: str) -> None:
        """Wait until a condition holds; LimitReached after ``limit_ms`` on this world's clock."""
        end_ms = self.now_ms + limit_ms
        while not condition():
            if self.failures:
                raise self.failures[0]
            if self.now_ms > end_ms:
                raise LimitReached(f"{what} was not reached within {limit_ms} ms")
            time.sleep(0.001)

    def wait_for(self, promise: Promise[Any]) -> None:
        """Block the calling thread until another one settles a promise."""
        while not promise.done:
            time.sleep(0.0005)

    def stop(self) -> None:
        """End all loops and pools."""
        for node in self.nodes.values():
            node.alive = False
            self.workers[node.name].end()
            self.disarm(node)
        self.disarm(self.outside)
        self.network.stop()

    def __repr__(self) -> str:
        return f"<ThreadWorld speed={self.speed} nodes={len(self.nodes)} steps={self.journal.next_step}>"


class _Loop:
    """One node's mailbox: a heap of events and the one thread that runs them."""

    def __init__(self, world: ThreadWorld, node: Machine) -> None:
        self.world = world
        self.heap: list[tuple[int, int, Event]] = []
        self.wake = threading.Condition()
        self.running = True
        self.thread = threading.Thread(target=self._run, name=f"mqlab-{node.name}", daemon=True)
        self.thread.start()

    def _run(self) -> None:
        while (event := self._next()) is not None:
            self.world.run_event(event)
            if not event.periodic:
                self.world.count_busy(-1)

    def _next(self) -> Event | None:
        with self.wake:
            while self.running:
                if not self.heap:
                    self.wake.wait()
                    continue
                due_ms, _, event = self.heap[0]
                if not event.pending:
                    heapq.heappop(self.heap)
                    continue
                wait_ms = due_ms - self.world.now_ms
                if wait_ms > 0:
                    self.wake.wait(wait_ms / 1000 / self.world.speed)
                    continue
                heapq.heappop(self.heap)
                event.pending = False  # stays counted as busy until it has run
                return event
            return None


_of_this_thread = threading.local()  # workers: the owner of the pool that runs this thread's call


class ThreadWorkers:
    """The Workers port in real time: real pools; ``call`` hands its work to the node's loop and blocks its thread."""

    def __init__(self, world: ThreadWorld, node: Machine, cores: int) -> None:
        self.world = world
        self.node = node
        self.cores = cores
        self._core = threading.Semaphore(cores)
        self._pools: list[ThreadPool] = []

    def pool(self, name: str, size: int) -> ThreadPool:
        pool = ThreadPool(self, name, size)
        self._pools.append(pool)
        return pool

    def call(self, start: Callable[[], Promise[T]]) -> T:
        if not self.node.alive:
            raise NodeDown(f"{self.node.name} is down")
        if self.world.is_on_its_loop(self.node):  # a step of this node cannot wait for another step of it
            return result_now(start, self.node.name, "notebook")

        def as_step(step: Callable[[], Any]) -> None:
            self.world.arm(self.node, self.world.now_ms, "call", step)

        return wait_for_step(start, as_step, lambda: not self.node.alive, f"{self.node.name} is down", look_every_s=0.2)

    def sleep(self, ms: int) -> None:
        time.sleep(max(ms, 0) / 1000 / self.world.speed)
        if not self.node.alive:
            raise NodeDown(f"{self.node.name} is down")

    def compute(self, ms: int) -> None:
        with self._core:
            self.sleep(ms)

    def end(self) -> None:
        """The process ended: no pool begins another call."""
        for pool in self._pools:
            pool.shutdown()
        self._pools.clear()

    def leave(self) -> None:
        """Raise NodeDown in a call that has just ended its own process; do nothing for any other caller."""
        if getattr(_of_this_thread, "workers", None) is self and not self.node.alive:
            raise NodeDown(f"{self.node.name} is down")


class ThreadPool:
    """A real thread pool of fixed size; results come back as steps of the node."""

    def __init__(self, workers: ThreadWorkers, name: str, size: int) -> None:
        self.workers = workers
        self.name = name
        self.size = size
        self.running = 0
        self._submitted = 0
        self._executor = ThreadPoolExecutor(size, thread_name_prefix=f"{workers.node.name}-{name}_")

    @property
    def waiting(self) -> int:
        return self._submitted - self.running

    def submit(self, call: Callable[[], Any], on_done: Callable[[Any, BaseException | None], None]) -> None:
        world, node = self.workers.world, self.workers.node
        self._submitted += 1
        world.count_busy(1)

        def finished(value: Any, error: BaseException | None) -> None:
            self._submitted -= 1
            self.running -= 1
            on_done(value, error)

        def work() -> None:
            self.running += 1
            _of_this_thread.workers = self.workers
            value, error = None, None
            try:
                value = call()
            except Exception as failure:
                error = failure
            except NodeDown:
                return
            finally:
                if node.alive:
                    world.arm(node, world.now_ms, "listener.done", lambda: finished(value, error))
                world.count_busy(-1)

        self._executor.submit(work)

    def shutdown(self) -> None:
        self._executor.shutdown(wait=False, cancel_futures=True)

    def __repr__(self) -> str:
        return f"<pool {self.name} {self.running}/{self.size} running, {self.waiting} waiting>"
