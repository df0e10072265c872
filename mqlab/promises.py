"""A value that arrives later, and straight-line code that waits for it without a thread.

Mirrors: ResponseFuture and CompletableFuture of the Java client. Every lab uses them without seeing them.

    promise = remoting.invoke(address, command)          # Promise[RemotingCommand]
    promise.then(lambda answer: ..., lambda error: ...)

    @flow
    def start(self):                                     # a generator; calling it returns a Promise of what it returns
        route = yield self.route_of("orders")            # goes on in the step in which the answer arrives
        return route.queues

Left out: cancellation (a killed node simply never goes on) and threads (a driver that has them wakes waiters itself).
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Generator, Iterable
from typing import Any, Generic, ParamSpec, TypeVar

T = TypeVar("T")
P = ParamSpec("P")


class Promise(Generic[T]):
    """A value or an error that is there now or later. Settles once; callbacks run in the order they were added.

    >>> p = Promise(); seen = []
    >>> p.then(seen.append); p.resolve(7); seen
    [7]
    >>> Promise.of(3).value
    3
    """

    __slots__ = ("done", "error", "value", "_callbacks")

    def __init__(self) -> None:
        self.done = False
        self.value: T = None  # type: ignore[assignment]
        self.error: BaseException | None = None
        self._callbacks: list[tuple[Callable[[T], Any] | None, Callable[[BaseException], Any] | None]] = []

    @classmethod
    def of(cls, value: T) -> Promise[T]:
        """A promise that has its value."""
        promise: Promise[T] = cls()
        promise.resolve(value)
        return promise

    @classmethod
    def failed(cls, error: BaseException) -> Promise[Any]:
        """A promise that has its error."""
        """A promise that has its error already."""
        promise: Promise[Any] = cls()
        promise.reject(error)
        return promise

    def resolve(self, value: T) -> None:
        """Settle with a value; ignored when settled already (a late answer after a time-out)."""
        if self.done:
            return
        self.done, self.value = True, value
        self._run()

    def reject(self, error: BaseException) -> None:
        """Settle with an error; ignored when settled already."""
        if self.done:
            return
        self.done, self.error = True, error
        self._run()

    def then(
        self, on_value: Callable[[T], Any] | None = None, on_error: Callable[[BaseException], Any] | None = None
    ) -> None:
        """Call one of the two when settled, at once if it is settled already."""
        self._callbacks.append((on_value, on_error))
        if self.done:
            self._run()

    def result(self) -> T:
        """The value, or raise the error. For settled promises only."""
        if self.error is not None:
            raise self.error
        if not self.done:
            raise RuntimeError("this promise is not settled yet")
        return self.value

    def _run(self) -> None:
        callbacks, self._callbacks = self._callbacks, []
        for on_value, on_error in callbacks:
            if self.error is None:
                if on_value is not None:
                    on_value(self.value)
            elif on_error is not None:
                on_error(self.error)

    def __repr__(self) -> str:
        state = "waiting" if not self.done else f"failed {self.error!r}" if self.error else f"value {self.value!r}"
        return f"<Promise {state}>"


Flow = Generator[Promise[Any], Any, T]
"""What a generator for ``@flow`` is annotated with: ``def start(self) -> Flow[int]``."""


def flow(function: Callable[P, Generator[Promise[Any], Any, T]]) -> Callable[P, Promise[T]]:
    """Make a generator that yields promises into a function that returns a Promise of its return value.

    An error of a yielded promise is raised at its ``yield``; an error that leaves the generator settles the result.
    """

    @functools.wraps(function)
    def started(*args: P.args, **kwargs: P.kwargs) -> Promise[T]:
        outcome: Promise[T] = Promise()
        _advance(function(*args, **kwargs), outcome, None, None)
        return outcome

    return started


def _advance(
    generator: Generator[Promise[Any], Any, T], outcome: Promise[T], value: Any, error: BaseException | None
) -> None:
    while True:
        try:
            waiting = generator.send(value) if error is None else generator.throw(error)
        except StopIteration as end:
            outcome.resolve(end.value)
            return
        except Exception as failure:
            outcome.reject(failure)
            return
        if waiting.done:  # a loop, not recursion: a long run of ready promises must not deepen the stack
            value, error = waiting.value, waiting.error
            continue
        waiting.then(
            lambda answer: _advance(generator, outcome, answer, None),
            lambda failure: _advance(generator, outcome, None, failure),
        )
        return


def gather(promises: Iterable[Promise[T]]) -> Promise[list[Promise[T]]]:
    """A Promise of the same promises, all settled (failed ones included); order kept.

    >>> gather([Promise.of(1), Promise.of(2)]).value
    [<Promise value 1>, <Promise value 2>]
    """
    waited = list(promises)
    together: Promise[list[Promise[T]]] = Promise()
    left = len(waited)
    if not left:
        together.resolve(waited)

    def one_settled(_: object) -> None:
        nonlocal left
        left -= 1
        if left == 0:
            together.resolve(waited)

    for promise in waited:
        promise.then(one_settled, one_settled)
    return together
