"""Work that a listener starts in addition to its own call: asynchronous calls, helpers, heartbeats.

Mirrors: what a listener hands to an ExecutorService or a CompletableFuture of its own; RocketMQ knows nothing of it.

    work = context.start(ship, order)     ─▶ work.started, a thread of its own in the same process
    return CONSUME_SUCCESS                   the offset may pass the message although the work is under way
    ship returns or raises                ─▶ work.ended; work.result() gives it to the caller
    the process dies                      ─▶ NodeDown in the work, as in a listener's call

Left out: pools of a limited size (a lab.resource limits what runs at once).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from mqlab.errors import UsageError
from mqlab.rocketmq.client.consuming.learners_traceback import learners_traceback
from mqlab.rocketmq.client.instance.pending import Pending
from mqlab.rocketmq.ports import Pool, Ports
from mqlab.rocketmq.promises import Promise

MANY = 1_000_000
"""Threads of the pool; one is made when no other is free, so no work ever waits for another."""


class WorkStarter:
    """Starts the work of one consumer's listener; the number counts from 1 in each life of the process."""

    def __init__(self, ports: Ports, group: str) -> None:
        self.ports = ports
        self.group = group
        self.under_way = 0
        self._count = 0
        self._pool: Pool | None = None

    def start(self, function: Callable[..., Any], args: tuple[Any, ...]) -> Pending[Any]:
        """Begin a function in a thread of its own. UsageError for anything that cannot be called."""
        if not callable(function):
            raise UsageError(
                f"context.start cannot call {function!r}",
                hint="give the function and its arguments apart: context.start(ship, order), not ship(order)",
            )
        workers = self.ports.workers
        return workers.call(lambda: Promise.of(self._begin(function, args)))

    def _begin(self, function: Callable[..., Any], args: tuple[Any, ...]) -> Pending[Any]:
        """On the node: number the work and hand it to a thread."""
        workers, note = self.ports.workers, self.ports.note
        pending: Pending[Any] = Pending(workers)
        self._count += 1
        self.under_way += 1
        name = str(getattr(function, "__name__", type(function).__name__))
        work = {"client": self.ports.node, "group": self.group, "work": self._count, "function": name}

        def call() -> Any:
            workers.call(lambda: Promise.of(note("work.started", **work)))
            return function(*args)

        def done(value: Any, error: BaseException | None) -> None:
            self.under_way -= 1
            note("work.ended", **work, error=None if error is None else learners_traceback(error))
            if error is None:
                pending.resolve(value)
            else:
                pending.reject(error)

        if self._pool is None:
            self._pool = workers.pool("Work_" + self.group, MANY)
        self._pool.submit(call, done)
        return pending

    def __repr__(self) -> str:
        return f"<WorkStarter of {self.group}: {self.under_way} under way>"
