"""The two ways of dividing a list by averaging, used by consumers that divide queues themselves and by brokers.

Mirrors: the arithmetic of AllocateMessageQueueAveragely and AllocateMessageQueueAveragelyByCircle.

    8 queues, 3 members     first      second     third
    block                   0 1 2      3 4 5      6 7
    dealt                   0 3 6      1 4 7      2 5
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

T = TypeVar("T")


def block(items: Sequence[T], position: int, members: int) -> list[T]:
    """The contiguous share of the member at a position; the first members get one more if it is uneven.

    >>> [block("abcdefgh", position, 3) for position in range(3)]
    [['a', 'b', 'c'], ['d', 'e', 'f'], ['g', 'h']]
    """
    share, extra = divmod(len(items), members)
    start = position * share + min(position, extra)
    return list(items[start : start + share + (1 if position < extra else 0)])


def dealt(items: Sequence[T], position: int, members: int) -> list[T]:
    """Every n-th item from the member's position on, as cards are dealt.

    >>> [dealt("abcdefgh", position, 3) for position in range(3)]
    [['a', 'd', 'g'], ['b', 'e', 'h'], ['c', 'f']]
    """
    return list(items[position::members])
