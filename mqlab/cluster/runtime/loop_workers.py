"""The Workers port on an event loop: real thread pools for listeners; a caller blocks its thread until its answer.

Mirrors: the thread pools of the Java client, and a caller of its blocking methods.

    program's thread ── call(start) ─▶ loop: start() is a step of the node ── promise settled ─▶ thread goes on
    pool.submit(call, on_done)          call on a pool thread, on_done as a step of the node

Left out: simulated cores: ``compute`` and ``sleep`` take real time.
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

from mqlab.errors import NodeDown
from mqlab.lab.runtime.waiting_callers import result_now, wait_for_step
from mqlab.rocketmq.promises import Promise

T = TypeVar("T")


class LoopWorkers:
    """The Workers port of one node. After ``end`` every call raises NodeDown."""

    def __init__(self, loop: asyncio.AbstractEventLoop, loop_thread: Callable[[], int | None], node: str) -> None:
        self.cores = 1
        self.has_ended = False
        self._loop = loop
        self._loop_thread = loop_thread
        self._node = node
        self._ended = threading.Event()
        self._pools: list[LoopPool] = []

    def pool(self, name: str, size: int) -> LoopPool:
        """A thread pool whose results come back as steps of the node."""
        pool = LoopPool(self, f"{self._node}-{name}_", size)
        self._pools.append(pool)
        return pool

    def call(self, start: Callable[[], Promise[T]]) -> T:
        """Run ``start`` on the loop and wait for its promise. UsageError when the loop itself would have to wait."""
        if self.has_ended:
            raise NodeDown(f"{self._node} is closed")
        if threading.get_ident() == self._loop_thread():
            return result_now(start, self._node, "program")

        def as_step(step: Callable[[], Any]) -> None:
            try:
                self._loop.call_soon_threadsafe(step)
            except RuntimeError as error:  # the loop is closed
                raise NodeDown(f"{self._node} is closed") from error

        return wait_for_step(start, as_step, lambda: self.has_ended, f"{self._node} is closed", look_every_s=0.5)

    def post(self, action: Callable[[], Any]) -> None:
        """Run an action as a step of the node; nothing happens after the end."""
        if not self.has_ended:
            try:
                self._loop.call_soon_threadsafe(action)
            except RuntimeError:  # the loop was closed meanwhile
                return

    def sleep(self, ms: int) -> None:
        """Wait on the caller's thread. NodeDown when the node ends meanwhile."""
        if self._ended.wait(max(ms, 0) / 1_000):
            raise NodeDown(f"{self._node} is closed")

    def compute(self, ms: int) -> None:
        """Keep the caller's thread for a while."""
        time.sleep(max(ms, 0) / 1_000)

    def end(self) -> None:
        """The node is gone: no pool begins another call, and who waits is woken."""
        self.has_ended = True
        self._ended.set()
        for pool in self._pools:
            pool.shutdown()
        self._pools.clear()


class LoopPool:
    """A thread pool of fixed size; see mqlab.rocketmq.ports.Pool."""

    def __init__(self, workers: LoopWorkers, prefix: str, size: int) -> None:
        self.size = size
        self._workers = workers
        self._unfinished = 0
        self._begun = 0
        self._executor = ThreadPoolExecutor(size, thread_name_prefix=prefix)

    @property
    def running(self) -> int:
        return min(self._begun, self.size)

    @property
    def waiting(self) -> int:
        return self._unfinished - self.running

    def submit(self, call: Callable[[], T], on_done: Callable[[T | None, BaseException | None], None]) -> None:
        """Run a call on a thread of the pool; ``on_done(value, error)`` is a step of the node."""
        self._unfinished += 1

        def finished(value: T | None, error: BaseException | None) -> None:
            self._unfinished -= 1
            self._begun -= 1
            on_done(value, error)

        def work() -> None:
            self._begun += 1
            value: T | None = None
            error: BaseException | None = None
            try:
                value = call()
            except NodeDown:
                return
            except Exception as failure:
                error = failure
            self._workers.post(lambda: finished(value, error))

        self._executor.submit(work)

    def shutdown(self) -> None:
        """Begin no other call."""
        self._executor.shutdown(wait=False, cancel_futures=True)

    def __repr__(self) -> str:
        return f"<pool of {self.size}: {self.running} running, {self.waiting} waiting>"
