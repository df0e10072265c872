"""Where a learner's code runs in the simulation: each call of a listener is a coroutine of its own.

Mirrors: the consume thread pool (ThreadPoolExecutor ConsumeMessageThread_).

    submit ─▶ listener.start   a free thread begins the call, else the call waits in the queue
    the call sleeps, computes or sends ─▶ back to the world ─▶ listener.resume when its answer is there
    the call returns ─▶ on_done in the same step, the thread is free

greenlet switches between plain functions, so a listener is written as for a real thread. It can be interleaved or
killed only where it waits.
Left out: preemption.
"""

from __future__ import annotations

import sys
import threading
import time
import warnings
from collections import deque
from collections.abc import Callable
from types import CodeType, FrameType
from typing import TYPE_CHECKING, Any, TypeVar

from mqlab.errors import NodeDown, NodeLost, UsageError
from mqlab.lab.runtime.stacks import Stack, ThreadLocal, current_stack
from mqlab.rocketmq.promises import Promise

if TYPE_CHECKING:
    from mqlab.lab.runtime.sim import SimWorld
    from mqlab.lab.runtime.world import Machine

T = TypeVar("T")
CALL_LIMIT_MS = 3_600_000  # of virtual time; every call of RocketMQ's clients ends earlier
OnDone = Callable[[Any, BaseException | None], None]
called_in_threads: deque[FrameType] = deque(maxlen=100)
"""The callers of what works only in a listener, and was called in a thread of Python. A check empties and reads it."""


class SimWorkers:
    """The Workers port of one simulated node: its pools, its cores, its running calls."""

    def __init__(self, world: SimWorld, node: Machine, cores: int) -> None:
        self.world = world
        self.node = node
        self.cores = cores
        self._computing = 0
        self._core_queue: deque[tuple[int, Promise[None]]] = deque()
        self._running: list[ListenerCoroutine] = []
        self._pools: list[SimPool] = []

    def pool(self, name: str, size: int) -> SimPool:
        pool = SimPool(self, name, size)
        self._pools.append(pool)
        return pool

    def call(self, start: Callable[[], Promise[T]]) -> T:
        """Run ``start`` and block the caller only: a listener's coroutine, or the notebook, which plays the world."""
        caller = current_listener()
        if caller is not None:
            caller.must_be_up()
        if not self.node.alive:
            raise UsageError(f"{self.node.name} is down", hint=f'lab.start("{self.node.name}") brings it back')
        if caller is not None:
            return wait(caller, start())
        # The notebook called: play the world until the answer is there or this life of the node has ended.
        self.world.open_call(self.node)
        promise, life = start(), self.node.incarnation
        if not promise.done:
            self.world.run_until(
                lambda: promise.done or not self.node.alive or self.node.incarnation != life,
                CALL_LIMIT_MS,
                f"the answer to this call of {self.node.name}",
            )
        if not promise.done:
            raise NodeLost(f"{self.node.name} ended while this call waited for its answer")
        return promise.result()

    def sleep(self, ms: int) -> None:
        caller = _must_be_listener("sleep")
        slept: Promise[None] = Promise()
        due_ms = self.world.now_ms + max(int(ms), 0)
        self.world.arm(self.node, due_ms, "listener.waited", lambda: slept.resolve(None))
        wait(caller, slept)

    def compute(self, ms: int) -> None:
        caller = _must_be_listener("compute")
        computed: Promise[None] = Promise()
        if self._computing < self.cores:
            self._occupy_core(ms, computed)
        else:
            self._core_queue.append((ms, computed))
        wait(caller, computed)

    def end(self) -> None:
        """The process ended: raise NodeDown in every running call and empty the pools."""
        for pool in self._pools:
            pool.queue.clear()
        self._pools.clear()
        self._computing = 0
        self._core_queue.clear()
        running, self._running = self._running, []
        caller = current_listener()
        for coroutine in running:
            for end in coroutine.dies_with:
                end()
            if coroutine is not caller:  # that one killed its own process: see leave
                # It returns to the greenlet that ends it, which need not be the greenlet that played its last step.
                coroutine.carrier.parent = current_stack()
                coroutine.carrier.throw(NodeDown(f"{self.node.name} is down"))

    def leave(self) -> None:
        """Raise NodeDown in a call that has just ended its own process; do nothing for any other caller."""
        caller = current_listener()
        if caller is not None and caller.workers is self:
            caller.must_be_up()

    def run(self, call: Callable[[], Any], on_done: Callable[[Any, BaseException | None], None]) -> None:
        """Start a call as a coroutine, up to its first wait."""
        life = self.node.incarnation

        def body() -> None:
            value, error = None, None
            try:
                value = call()
            except NodeDown:
                return
            except KeyboardInterrupt:
                self._running.remove(coroutine)  # its greenlet ends here, there is nothing left to kill
                raise
            except Exception as failure:
                error = failure
            for end in coroutine.ends_with:
                end()
            if self.node.alive and self.node.incarnation == life:
                self._running.remove(coroutine)
                on_done(value, error)

        coroutine = ListenerCoroutine(self, body)
        self._running.append(coroutine)
        coroutine.go_on()

    def _occupy_core(self, ms: int, promise: Promise[None]) -> None:
        self._computing += 1

        def finished() -> None:
            self._computing -= 1
            promise.resolve(None)
            if self._core_queue:
                self._occupy_core(*self._core_queue.popleft())

        self.world.arm(self.node, self.world.now_ms + max(int(ms), 0), "listener.computed", finished)

    def __repr__(self) -> str:
        return f"<SimWorkers of {self.node.name}: {len(self._running)} running, {self._computing}/{self.cores} cores>"


class Carrier(Stack):
    """Runs one call after another, since a new greenlet costs more than a call. It holds no world between two calls.

    One that began while a profiler or a tracer was on (``%prun``, a check of forbidden names) runs one call only: in
    Python 3.11 a greenlet keeps the mark that calls are to be reported, and a call of C after the profiler's end would
    be reported to nobody, which ends the process.
    """

    def __init__(self) -> None:
        super().__init__(self._calls)
        self.coroutine: ListenerCoroutine | None = None

    def _calls(self) -> None:
        is_watched = sys.getprofile() is not None or sys.gettrace() is not None
        while (coroutine := self.coroutine) is not None:
            coroutine.body()
            del coroutine.body, coroutine  # the body refers to its coroutine: break the cycle
            self.coroutine = None
            if is_watched:
                return
            _of_this_thread.waiting.append(self)
            assert self.parent is not None
            self.parent.switch()


class _Carriers(ThreadLocal):  # type: ignore[misc]  # one of two classes
    """A greenlet never leaves the thread it began in."""

    def __init__(self) -> None:
        self.waiting: list[Carrier] = []


_of_this_thread = _Carriers()


class ListenerCoroutine:
    """One call of a listener: it stops at a wait and goes on in a later step."""

    def __init__(self, workers: SimWorkers, body: Callable[[], None]) -> None:
        self.workers = workers
        self.life = workers.node.incarnation
        self.body = body
        self.dies_with: list[Callable[[], None]] = []  # functions that close connections, called when the process ends
        self.ends_with: list[Callable[[], None]] = []  # called when the call itself ends
        self.carrier = _of_this_thread.waiting.pop() if _of_this_thread.waiting else Carrier()
        self.carrier.coroutine = self

    def must_be_up(self) -> None:
        """Raise NodeDown if the process that this call runs in has ended."""
        node = self.workers.node
        if not node.alive or node.incarnation != self.life:
            raise NodeDown(f"{node.name} is down")

    def go_on(self) -> None:
        """Run to the next wait or to the end, then return to the code that plays the world now."""
        carrier, watch = self.carrier, self.workers.world.line_watch
        carrier.parent = current_stack()
        real_sleep, time.sleep = time.sleep, _watched_sleep(time.sleep)
        try:
            if watch is None:
                carrier.switch()
            else:
                with watch.watching(self):
                    carrier.switch()
        finally:
            time.sleep = real_sleep


def current_listener() -> ListenerCoroutine | None:
    """The listener call that is running now, None when it is the notebook or a node's handler."""
    current = current_stack()
    return current.coroutine if isinstance(current, Carrier) else None


def _must_be_listener(what: str) -> ListenerCoroutine:
    caller = current_listener()
    if caller is None and threading.current_thread() is not threading.main_thread():
        called_in_threads.append(sys._getframe(2))
        raise UsageError(
            f"context.{what} was called in a thread of Python, which does not know the Lab's time",
            hint="context.start(function, ...) runs a function at the same time",
        )
    if caller is None:
        raise UsageError(f"context.{what} works only in a listener; a notebook lets time pass with lab.run_for(...)")
    caller.must_be_up()
    return caller


def wait(caller: ListenerCoroutine, promise: Promise[T]) -> T:
    """Suspend a call until a promise is settled; the call goes on in a new step of its node."""
    if not promise.done:
        node, hub = caller.workers.node, caller.carrier.parent
        assert hub is not None

        def resume(_: object) -> None:
            node.world.arm(node, node.world.now_ms, "listener.resume", caller.go_on)

        promise.then(resume, resume)
        hub.switch()
        caller.must_be_up()
    return promise.result()


class SimPool:
    """A fixed number of simulated threads with an unbounded queue; see mqlab.rocketmq.ports.Pool."""

    def __init__(self, workers: SimWorkers, name: str, size: int) -> None:
        self.workers = workers
        self.name = name
        self.size = size
        self.running = 0
        self.queue: deque[tuple[Callable[[], Any], OnDone]] = deque()
        self._closed = False

    @property
    def waiting(self) -> int:
        return len(self.queue)

    def submit(self, call: Callable[[], Any], on_done: OnDone) -> None:
        if self._closed:
            return
        self.queue.append((call, on_done))
        self._take_up()

    def shutdown(self) -> None:
        """Accept no more calls; those that run go on to their end."""
        self._closed = True
        self.queue.clear()

    def _take_up(self) -> None:
        while self.running < self.size and self.queue:
            self.running += 1
            call, on_done = self.queue.popleft()
            world, node = self.workers.world, self.workers.node

            def start(call: Callable[[], Any] = call, on_done: OnDone = on_done) -> None:
                self.workers.run(call, lambda value, error: self._done(on_done, value, error))

            world.arm(node, world.now_ms, "listener.start", start)

    def _done(self, on_done: OnDone, value: Any, error: BaseException | None) -> None:
        self.running -= 1
        on_done(value, error)
        self._take_up()

    def __repr__(self) -> str:
        return f"<pool {self.name} {self.running}/{self.size} running, {self.waiting} waiting>"


def _watched_sleep(real_sleep: Callable[[Any], None]) -> Callable[[Any], None]:
    """time.sleep with a warning in a listener, where it would stop the whole world; the warning says what to write."""

    def sleep_of_a_listener(seconds: Any) -> None:
        if current_listener() is not None:  # other threads of this process sleep as they like
            warnings.warn(
                f"time.sleep({seconds!r}) in a listener stops the whole simulation and passes no virtual time: "
                f'write context.sleep("{round(float(seconds) * 1000)}ms")',
                stacklevel=2,
            )
        real_sleep(seconds)

    return sleep_of_a_listener


def is_watched_sleep(code: CodeType) -> bool:
    """Whether a frame with this code stands between a listener's line and the real time.sleep."""
    return code.co_name == "sleep_of_a_listener" and code.co_filename == __file__
