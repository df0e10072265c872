"""Something that happens, and the functions that are called when it does.

    table.changed.subscribe(saver.save_soon)      a part subscribes to what was made before it
    table.changed()                               calls every subscriber, in the order in which they subscribed

The sender of a signal knows nothing of its subscribers, so nodes can be built from the tables upwards.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Generic, ParamSpec

P = ParamSpec("P")


class Signal(Generic[P]):
    """Calls its subscribers with the arguments that it is called with.

    >>> created: Signal[[str]] = Signal()
    >>> created.subscribe(print)
    >>> created("orders")
    orders
    """

    __slots__ = ("_subscribers",)

    def __init__(self) -> None:
        self._subscribers: list[Callable[P, object]] = []

    def subscribe(self, subscriber: Callable[P, object]) -> None:
        """Call this function as well, from the next signal on."""
        self._subscribers.append(subscriber)

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> None:
        for subscriber in self._subscribers:
            subscriber(*args, **kwargs)

    def __repr__(self) -> str:
        return f"<Signal with {len(self._subscribers)} subscribers>"
