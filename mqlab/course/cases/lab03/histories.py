"""Histories of a group: members join and leave, queues change hands; how fair that is, and how many had to move.

    walk(rng, 40)                    ─▶ the members after each change, sorted as RocketMQ sorts them
    owners_of(strategy, queues, …)   ─▶ queue -> member
    spread(members, owners)          ─▶ largest number of queues minus smallest
    had_to_move(owners, members)     ─▶ queues that cannot stay where they are if all shall be even afterwards

fairness and churn are judged with these, and so is sticky.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from mqlab.rocketmq.wire.java_hash import sorted_as_java
from mqlab.rocketmq.wire.message import MessageQueue

Owners = Mapping[Any, str]
FEWEST, MOST = 2, 8
JOINS = 0.35
"""The share of joins among changes that could be both: groups are small most of the time, as they are in production."""


def client_id(rng: random.Random, number: int) -> str:
    """An id that sorts anywhere among the others."""
    return f"10.0.{rng.randrange(256)}.{rng.randrange(256)}@billing-{number}"


def walk(rng: random.Random, changes: int, fewest: int = FEWEST, most: int = MOST) -> Iterator[list[str]]:
    """The members at the beginning, and after each change: one joins, or one leaves."""
    numbers = iter(range(changes + most))
    members = [client_id(rng, next(numbers)) for _ in range(rng.randint(fewest, fewest + 2))]
    yield sorted_as_java(members)
    for _ in range(changes):
        if len(members) <= fewest or (len(members) < most and rng.random() < JOINS):
            members.append(client_id(rng, next(numbers)))
        else:
            members.remove(rng.choice(members))
        yield sorted_as_java(members)


def owners_of(strategy: Any, queues: Sequence[MessageQueue], members: Sequence[str]) -> dict[MessageQueue, str]:
    """The owner of each queue, if all members use this strategy and know the same lists."""
    mine = {member: strategy.allocate("billing", member, queues, members) for member in members}
    return {queue: member for queue in queues for member in members if queue in mine[member]}


def counts(members: Sequence[str], owners: Owners) -> Counter[str]:
    """How many queues each member has; 0 for those that have none."""
    owned = Counter(dict.fromkeys(members, 0))
    owned.update(owners.values())
    return owned


def spread(members: Sequence[str], owners: Owners) -> int:
    """The largest number of queues that a member has, minus the smallest."""
    numbers = counts(members, owners).values()
    return max(numbers) - min(numbers)


def had_to_move(owners: Owners, members: Sequence[str]) -> int:
    """How many queues cannot stay with their owner if these members shall have even shares.

    >>> had_to_move({0: "a", 1: "a", 2: "b", 3: "b"}, ["a", "b", "c"])
    1
    """
    share, extra = divmod(len(owners), len(members))
    had = Counter(owner for owner in owners.values() if owner in members)
    kept = sum(min(number, share) for number in had.values())
    kept += min(extra, sum(number > share for number in had.values()))
    return len(owners) - kept


def moved(before: Owners, after: Owners) -> int:
    """How many queues have another owner than before."""
    return sum(owner != after.get(queue) for queue, owner in before.items())
