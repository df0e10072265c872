"""A value that arrives later, and straight-line code that waits for it without a thread.

Mirrors: ResponseFuture and CompletableFuture of the Java client.

    promise = remoting.invoke(address, command)          # Promise[RemotingCommand]
    promise.then(lambda answer: ..., lambda error: ...)

    @flow
    def start(self):                                     # a generator; calling it returns a Promise of what it returns
        route = yield self.route_of("orders")            # continues in the step in which the answer arrives
        return route.queues

Left out: cancellation (a killed node does not continue) and threads (a driver with threads wakes its waiters).
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Generator, Iterable
from typing import Any, Generic, ParamSpec, TypeVar

T = TypeVar("T")
P = ParamSpec("P")


class Promise(Generic[T]):
    """A value or an error, now or later. It settles once; callbacks run in the order in which they were added.

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
        self._callbacks: list[tuple[Callable[[T], Any] | None, Callable[[BaseException], Any] | None]] | None = None

    @classmethod
    def of(cls, value: T) -> Promise[T]:
        """A promise that has its value."""
        promise: Promise[T] = cls()
        promise.done, promise.value = True, value
        return promise

    @classmethod
    def failed(cls, error: BaseException) -> Promise[Any]:
        """A promise that has its error."""
        promise: Promise[Any] = cls()
        promise.reject(error)
        return promise

    def resolve(self, value: T) -> None:
        """Settle with a value; ignored if it is settled already (a late answer after a time-out)."""
        if self.done:
            return
        self.done, self.value = True, value
        callbacks, self._callbacks = self._callbacks, None
        for on_value, _ in callbacks or ():
            if on_value is not None:
                on_value(value)

    def reject(self, error: BaseException) -> None:
        """Settle with an error; ignored if it is settled already."""
        if self.done:
            return
        self.done, self.error = True, error
        callbacks, self._callbacks = self._callbacks, None
        for _, on_error in callbacks or ():
            if on_error is not None:
                on_error(error)

    def then(
        self, on_value: Callable[[T], Any] | None = None, on_error: Callable[[BaseException], Any] | None = None
    ) -> None:
        """Call one of the two when the promise settles, or at once if it is settled already."""
        if not self.done:
            if self._callbacks is None:
                self._callbacks = []
            self._callbacks.append((on_value, on_error))
        elif self.error is not None:
            if on_error is not None:
                on_error(self.error)
        elif on_value is not None:
            on_value(self.value)

    def result(self) -> T:
        """The value, or raise the error. For settled promises only."""
        if self.error is not None:
            raise self.error
        if not self.done:
            raise RuntimeError("this promise is not settled yet")
        return self.value

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
        under_way: _Flow[T] = _Flow(function(*args, **kwargs))
        # Runs at once, up to the first promise that is not settled.
        under_way.go_on(None)
        return under_way

    return started


class _Flow(Promise[T]):
    """One call of a flow: the promise of what its generator will return, and that generator."""

    __slots__ = ("_generator",)

    def __init__(self, generator: Generator[Promise[Any], Any, T]) -> None:
        self.done = False  # what Promise's constructor does, without a second call: flows are made for every frame
        self.value: T = None  # type: ignore[assignment]
        self.error = None
        self._callbacks = None
        self._generator = generator

    def go_on(self, value: Any, error: BaseException | None = None) -> None:
        """Run with the answer to the last ``yield``, to the next promise that is not settled or to the end."""
        generator = self._generator
        while True:
            try:
                waiting = generator.send(value) if error is None else generator.throw(error)
            except StopIteration as end:
                if self._callbacks is None and not self.done:
                    self.done, self.value = True, end.value
                else:
                    self.resolve(end.value)
                return
            except Exception as failure:
                self.reject(failure)
                return
            if not waiting.done:
                waiting.then(self.go_on, self._fail)
                return
            value, error = waiting.value, waiting.error  # a loop, not recursion: many may be settled already

    def _fail(self, error: BaseException) -> None:
        self.go_on(None, error)


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
        # The last one settles the result, whichever it is.
        left -= 1
        if left == 0:
            together.resolve(waited)

    for promise in waited:
        promise.then(one_settled, one_settled)
    return together
