"""What RocketMQ's own classes answered: queues and members, and who owns each queue.

    vectors.json     60 lines, of RocketMQ 5.3.3: AllocateMessageQueueAveragely, ...ByCircle, ...ConsistentHash

A line has the members in order, and per strategy the number of each queue's owner among them. Queues are those of the
first so many BROKERS, sorted.
"""

from __future__ import annotations

import functools
import json
from dataclasses import dataclass
from importlib import resources
from typing import Any

from mqlab.wire.message import MessageQueue

BROKERS = ("east@broker-a", "west@broker-b", "east@broker-c", "west@broker-d")


@dataclass(frozen=True, slots=True)
class Vector:
    """One question to the classes, and their answers. ``owners``: name of a strategy -> the owner of each queue."""

    queues: tuple[MessageQueue, ...]
    members: tuple[str, ...]
    virtual_nodes: int
    owners: dict[str, tuple[str, ...]]

    def mine(self, strategy: str, member: str) -> list[MessageQueue]:
        """The queues of a member, in their order."""
        pairs = zip(self.queues, self.owners[strategy], strict=True)
        return [queue for queue, owner in pairs if owner == member]


@functools.cache
def vectors() -> tuple[Vector, ...]:
    """All of them."""
    text = resources.files(__package__).joinpath("vectors.json").read_text("utf-8")
    return tuple(_vector(line) for line in json.loads(text))


def _vector(line: dict[str, Any]) -> Vector:
    brokers, numbers = BROKERS[: line["brokers"]], range(line["queues_per_broker"])
    queues = sorted(MessageQueue(line["topic"], broker, number) for broker in brokers for number in numbers)
    members = tuple(line["client_ids"])
    owners = {name: tuple(members[number] for number in owned) for name, owned in line["owners"].items()}
    return Vector(tuple(queues), members, line["virtual_nodes"], owners)
