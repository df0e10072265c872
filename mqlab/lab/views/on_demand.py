"""A long sequence whose items are made when they are read: a day may have a million, but a picture shows eighty.

Timelines and their tables are such sequences.

    OnDemand([1, 2, 3], make)       len 3, nothing made
      [1] ─▶ make(2)    [:2] ─▶ [make(1), make(2)]    for … ─▶ one after another

Left out: a cache of the items that were made.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, Generic, TypeVar, overload

T = TypeVar("T")


class OnDemand(Sequence[T], Generic[T]):
    """``make`` applied to each of ``items``, each time it is read.

    >>> numbers = OnDemand(range(1000), lambda number: number * number); len(numbers), numbers[30], numbers[-2:]
    (1000, 900, [996004, 998001])
    """

    def __init__(self, items: Sequence[Any], make: Callable[[Any], T]) -> None:
        self._items = items
        self._make = make

    @overload
    def __getitem__(self, index: int) -> T: ...
    @overload
    def __getitem__(self, index: slice) -> list[T]: ...
    def __getitem__(self, index: int | slice) -> T | list[T]:
        if isinstance(index, slice):
            return [self._make(item) for item in self._items[index]]
        return self._make(self._items[index])

    def __iter__(self) -> Iterator[T]:
        return map(self._make, self._items)

    def __len__(self) -> int:
        return len(self._items)
