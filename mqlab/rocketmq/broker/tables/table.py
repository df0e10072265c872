"""What the tables of a broker share: all may read them as mappings, only their own methods change them.

    class QueueLocks(Table[str, Mapping[MessageQueue, QueueLock]]):
        _entries: dict[str, dict[MessageQueue, QueueLock]]          the same, as the table itself may change it

Mirrors: the ConcurrentMap inside each of RocketMQ's managers.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, TypeVar, overload

K = TypeVar("K")
V = TypeVar("V")
T = TypeVar("T")


class BrokerTable(Mapping[K, V]):
    """A read-only view of ``_entries``, the dict that a subclass makes and changes.

    >>> class Stock(BrokerTable[str, int]):
    ...     def __init__(self) -> None:
    ...         self._entries = {"apples": 3}
    >>> stock = Stock()
    >>> stock["apples"], stock.get("pears"), stock.get("pears", 0), "pears" in stock, list(stock.items())
    (3, None, 0, False, [('apples', 3)])
    """

    _entries: Mapping[K, V]

    def __getitem__(self, key: K) -> V:
        return self._entries[key]

    def __iter__(self) -> Iterator[K]:
        return iter(self._entries)

    def __len__(self) -> int:
        return len(self._entries)

    # Mapping would make these of __getitem__ and an exception; every message looks into several tables.

    def __contains__(self, key: object) -> bool:
        return key in self._entries

    @overload
    def get(self, key: K, /) -> V | None: ...
    @overload
    def get(self, key: K, /, default: V | T) -> V | T: ...
    def get(self, key: K, /, default: Any = None) -> Any:
        """The entry of the key, or the default."""
        return self._entries.get(key, default)
