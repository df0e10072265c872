"""What RocketMQ's own classes answered: queues and members, and who owns each queue.

    vectors.json     60 lines, of RocketMQ 5.3.3: AllocateMessageQueueAveragely, ...ByCircle, ...ConsistentHash

A line has the members in order, and per strategy the number of each queue's owner among them. Queues are those of the
first so many BROKERS, sorted.

    drawn(rng)       another one, computed by mqlab's classes, which answer the 60 lines as RocketMQ's do

The lines are in the release, so a learner may have all of them: an answer is graded by drawn ones.
"""

from __future__ import annotations

import functools
import json
import random
from dataclasses import dataclass
from importlib import resources
from typing import Any

from mqlab.rocketmq.client import allocate
from mqlab.rocketmq.wire.message import MessageQueue

STRATEGIES = ("AVG", "AVG_BY_CIRCLE", "CONSISTENT_HASH")
VIRTUAL_NODES = (3, 10, 50)
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


def drawn(rng: random.Random) -> Vector:
    """A group that is in no file: topic, queues and members of the kind that the lines have."""
    topic = rng.choice(("orders", "t订单", "%RETRY%g")) + str(rng.randint(0, 10**6))
    brokers, numbers = BROKERS[: rng.randint(1, 4)], range(rng.randint(1, 9))
    queues = tuple(sorted(MessageQueue(topic, broker, number) for broker in brokers for number in numbers))
    members = tuple(sorted({client_id(rng) for _ in range(rng.randint(1, 12))}))
    virtual_nodes = rng.choice(VIRTUAL_NODES)
    return Vector(queues, members, virtual_nodes, owners_of(queues, members, virtual_nodes))


def client_id(rng: random.Random) -> str:
    """A client id of the kind that the lines have."""
    room, machine = rng.choice(("", "east-", "west-")), f"10.0.{rng.randint(0, 3)}.{rng.randint(1, 250)}"
    return f"{room}{machine}@{rng.randint(1_000, 9_999)}"


def owners_of(
    queues: tuple[MessageQueue, ...], members: tuple[str, ...], virtual_nodes: int
) -> dict[str, tuple[str, ...]]:
    """Name of a strategy -> the owner of each queue, as mqlab's classes have it."""
    owners = {}
    for name in STRATEGIES:
        options = {"virtual_node_cnt": virtual_nodes} if name == "CONSISTENT_HASH" else {}
        asked = allocate.strategy(name, **options)
        mine = {member: set(asked.allocate("g", member, queues, members)) for member in members}
        owners[name] = tuple(next(member for member in members if queue in mine[member]) for queue in queues)
    return owners
