"""What an asynchronous call gives back: a Promise that can be waited for.

Mirrors: the Future side of SendCallback.

    pending = producer.send_async(message)
    pending.then(lambda result: ..., lambda error: ...)       called when it is there
    pending.result()                                          waits for it, as producer.send does

Left out: waiting with a time limit of its own (the call has one).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from mqlab.rocketmq.ports import Workers
from mqlab.rocketmq.promises import Promise

T = TypeVar("T")


class Pending(Promise[T]):
    """A Promise whose ``result()`` waits: in a listener its thread, in a notebook by playing the world forward."""

    __slots__ = ("_workers",)

    def __init__(self, workers: Workers) -> None:
        super().__init__()
        self._workers = workers

    def result(self) -> T:
        """The value, waited for if need be; raises the error."""
        if not self.done:
            self._workers.call(lambda: self)
        return super().result()


def begin(workers: Workers, start: Callable[[], Promise[T]]) -> Pending[T]:
    """Start something on the node without waiting for its end."""
    started: Promise[Pending[T]] = Promise()

    def run() -> Promise[Pending[T]]:
        waiting: Pending[T] = Pending(workers)
        start().then(waiting.resolve, waiting.reject)
        started.resolve(waiting)
        return started

    return workers.call(run)
