"""A limit on asynchronous sends under way at once; further ones wait, and fail when their time is up.

Mirrors: the two semaphores of DefaultMQProducerImpl (enableBackpressureForAsyncMode, off by default).

    back_pressure_for_async_send_num     1024 sends      first this,
    back_pressure_for_async_send_size    100 MiB         then this; both are given back with the answer
    waited as long as the send may take                  "send message tryAcquire semaphoreAsyncNum timeout"

RocketMQ makes the caller wait; here what send_async gave back waits, since a node has no thread to block.

Left out: changing the two numbers while sends are under way.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

from mqlab.errors import RemotingError
from mqlab.rocketmq.ports import Clock, Deadline
from mqlab.rocketmq.promises import Flow, Promise, flow

T = TypeVar("T")

LEAST_SENDS = 10
LEAST_SIZE = 1024 * 1024


@dataclass(slots=True, eq=False)
class _Waiting:
    count: int
    granted: Promise[bool]
    deadline: Deadline


class Permits:
    """A fair semaphore in the node's own time: who came first is served first, even if the next one needs less."""

    def __init__(self, clock: Clock, count: int) -> None:
        self._clock = clock
        self._waiting: deque[_Waiting] = deque()
        self.free = count

    def acquire(self, count: int, limit_ms: int) -> Promise[bool]:
        """True when they are taken, False when they did not become free in time."""
        if limit_ms <= 0:
            return Promise.of(False)
        if not self._waiting and count <= self.free:
            self.free -= count
            return Promise.of(True)
        granted: Promise[bool] = Promise()
        waiting = _Waiting(count, granted, self._clock.call_later(limit_ms, lambda: give_up(), "send.permits"))

        def give_up() -> None:
            self._waiting.remove(waiting)
            granted.resolve(False)
            self._serve()

        self._waiting.append(waiting)
        return granted

    def release(self, count: int) -> None:
        """Give some back."""
        self.free += count
        self._serve()

    def _serve(self) -> None:
        while self._waiting and self._waiting[0].count <= self.free:
            first = self._waiting.popleft()
            first.deadline.cancel()
            self.free -= first.count
            first.granted.resolve(True)

    def __repr__(self) -> str:
        return f"<Permits {self.free} free, {len(self._waiting)} waiting>"


class BackPressure:
    """The two limits of one producer. ``sends`` counts requests, ``size`` bytes of body."""

    def __init__(self, clock: Clock, sends: int, size: int) -> None:
        self._clock = clock
        self.sends = Permits(clock, max(sends, LEAST_SENDS))
        self.size = Permits(clock, max(size, LEAST_SIZE))

    @flow
    def run(self, size: int, timeout_ms: int, send: Callable[[int], Promise[T]]) -> Flow[T]:
        """``send(time left in ms)`` within both limits. RemotingError (too_much_request) when they stay taken."""
        # Both permits are waited for within the send's own time limit; what is left of it is for the send.
        began_ms = self._clock.now_ms()
        if not (yield self.sends.acquire(1, timeout_ms)):
            raise _timeout("Num")
        try:
            if not (yield self.size.acquire(size, timeout_ms - (self._clock.now_ms() - began_ms))):
                raise _timeout("Size")
            try:
                answer: T = yield send(timeout_ms - (self._clock.now_ms() - began_ms))
                return answer
            finally:
                self.size.release(size)
        finally:
            self.sends.release(1)

    def __repr__(self) -> str:
        return f"<BackPressure sends {self.sends.free} free, size {self.size.free} free>"


def _timeout(which: str) -> RemotingError:
    return RemotingError(f"send message tryAcquire semaphoreAsync{which} timeout", code="too_much_request")
