"""Which member of a group reads which queue: six strategies that each member computes alone, from equal lists.

Mirrors: org.apache.rocketmq.client.consumer.rebalance.*.

    8 queues, 3 members     c0        c1         c2
    AVG                     0 1 2     3 4 5      6 7         contiguous blocks
    AVG_BY_CIRCLE           0 3 6     1 4 7      2 5         dealt one by one
    CONSISTENT_HASH         1         0 3 4 5 7  2 6         a ring of MD5 points: moves little, balances badly
    MACHINE_ROOM            only queues of brokers "room@name" whose room is listed
    MACHINE_ROOM_NEARBY     an inner strategy per room; rooms without members are shared by all
    CONFIG                  the list it was given, always

Strategies never sort: the rebalance hands them sorted lists, because agreement rests on equal input.

Left out: the Java logger argument and the namespace.
"""

from __future__ import annotations

import bisect
import hashlib
from collections.abc import Callable, Iterable, Sequence
from inspect import signature
from typing import Protocol, TypeVar

from mqlab.errors import UsageError
from mqlab.rocketmq.wire import shares
from mqlab.rocketmq.wire.java_hash import utf16_key
from mqlab.rocketmq.wire.message import MessageQueue

T = TypeVar("T")


class AllocateStrategy(Protocol):
    """What a strategy is: a name and one pure function. Mirrors AllocateMessageQueueStrategy."""

    name: str

    def allocate(
        self, group: str, client_id: str, queues: Sequence[MessageQueue], client_ids: Sequence[str]
    ) -> list[MessageQueue]: ...


def _may_allocate(client_id: str, queues: Sequence[MessageQueue], client_ids: Sequence[str]) -> bool:
    """False when this client is not in the list (no error: it gets nothing). Empty input raises UsageError."""
    if not client_id:
        raise UsageError(
            "client_id is empty", hint="pass the id of the client that asks, for example 10.0.0.5@billing-1"
        )
    if not queues:
        raise UsageError("queues is empty", hint="a topic without a readable queue cannot be allocated")
    if not client_ids:
        raise UsageError("client_ids is empty", hint="pass the ids of all members of the group")
    return client_id in client_ids


class Averagely:
    """Contiguous blocks; the first members get one more if it is uneven. AllocateMessageQueueAveragely."""

    name = "AVG"

    def allocate(
        self, group: str, client_id: str, queues: Sequence[MessageQueue], client_ids: Sequence[str]
    ) -> list[MessageQueue]:
        if not _may_allocate(client_id, queues, client_ids):
            return []
        return shares.block(queues, client_ids.index(client_id), len(client_ids))


class AveragelyByCircle:
    """Every n-th queue, as cards are dealt. AllocateMessageQueueAveragelyByCircle."""

    name = "AVG_BY_CIRCLE"

    def allocate(
        self, group: str, client_id: str, queues: Sequence[MessageQueue], client_ids: Sequence[str]
    ) -> list[MessageQueue]:
        if not _may_allocate(client_id, queues, client_ids):
            return []
        return shares.dealt(queues, client_ids.index(client_id), len(client_ids))


def md5_u32(key: str) -> int:
    """The first four bytes of the MD5 of the UTF-8 text, big-endian, unsigned. ConsistentHashRouter.MD5Hash.

    >>> md5_u32("MessageQueue [topic=TopicTest, brokerName=broker-a, queueId=0]")
    1987926524
    """
    return int.from_bytes(hashlib.md5(key.encode(), usedforsecurity=False).digest()[:4], "big")


class ConsistentHash:
    """A queue belongs to the next member's point on a ring of hashes. AllocateMessageQueueConsistentHash.

    ``virtual_node_cnt`` points per member (0: an empty ring, no member owns a queue).
    """

    name = "CONSISTENT_HASH"

    def __init__(self, virtual_node_cnt: int = 10, custom_hash_function: Callable[[str], int] | None = None) -> None:
        if virtual_node_cnt < 0:
            raise UsageError(f"virtual_node_cnt must be 0 or more, not {virtual_node_cnt}")
        self.virtual_node_cnt = virtual_node_cnt
        self.hash_function = custom_hash_function or md5_u32
        self._ring_of: tuple[tuple[str, ...], list[tuple[int, str]]] = ((), [])

    def ring(self, client_ids: Sequence[str]) -> list[tuple[int, str]]:
        """The points ``(hash, client_id)`` in ring order; of equal hashes the later insertion stays."""
        members = tuple(client_ids)
        if self._ring_of[0] != members:
            points: dict[int, str] = {}
            replicas: dict[str, int] = {}
            for member in members:  # a member listed twice goes on counting, as the Java router does
                first = replicas.get(member, 0)
                for number in range(first, first + self.virtual_node_cnt):
                    points[self.hash_function(f"{member}-{number}")] = member
                replicas[member] = first + self.virtual_node_cnt
            self._ring_of = (members, sorted(points.items()))
        return self._ring_of[1]

    def allocate(
        self, group: str, client_id: str, queues: Sequence[MessageQueue], client_ids: Sequence[str]
    ) -> list[MessageQueue]:
        if not _may_allocate(client_id, queues, client_ids):
            return []
        ring = self.ring(client_ids)
        if not ring:
            return []
        # The owner is the first point at or after the queue's hash; after the last point the ring begins again.
        hashes = [point for point, _ in ring]
        mine = []
        for queue in queues:
            index = bisect.bisect_left(hashes, self.hash_function(str(queue)))
            if ring[index % len(ring)][1] == client_id:
                mine.append(queue)
        return mine


class ByMachineRoom:
    """Deals out the queues of brokers ``room@name`` of the listed rooms only. AllocateMessageQueueByMachineRoom.

    The member's own room plays no part; the remainder is taken from the tail.
    """

    name = "MACHINE_ROOM"

    def __init__(self, consumeridcs: Iterable[str]) -> None:
        if isinstance(consumeridcs, str):
            raise UsageError(f"consumeridcs is a list of rooms, not {consumeridcs!r}", hint=f"[{consumeridcs!r}]")
        self.consumeridcs = tuple(consumeridcs)

    def allocate(
        self, group: str, client_id: str, queues: Sequence[MessageQueue], client_ids: Sequence[str]
    ) -> list[MessageQueue]:
        if not _may_allocate(client_id, queues, client_ids):
            return []
        in_rooms = []
        for queue in queues:
            parts = queue.broker_name.split("@")
            if len(parts) == 2 and parts[0] in self.consumeridcs:
                in_rooms.append(queue)
        # Equal shares first, and one of the remaining queues at the end of the list, as in RocketMQ.
        share, extra = divmod(len(in_rooms), len(client_ids))
        position = client_ids.index(client_id)
        mine = in_rooms[position * share : (position + 1) * share]
        return mine + ([in_rooms[share * len(client_ids) + position]] if position < extra else [])


class MachineRoomResolver(Protocol):
    """Knows in which room a queue's broker and a member are. Mirrors AllocateMachineRoomNearby.MachineRoomResolver."""

    def broker_deploy_in(self, queue: MessageQueue) -> str: ...

    def consumer_deploy_in(self, client_id: str) -> str: ...


class MachineRoomNearby:
    """The inner strategy inside the own room, plus a share of each room in which no member lives."""

    def __init__(self, inner: AllocateStrategy | str, machine_room_resolver: MachineRoomResolver) -> None:
        if not inner or machine_room_resolver is None:
            raise UsageError("MACHINE_ROOM_NEARBY needs an inner strategy and a machine_room_resolver")
        self.inner = strategy(inner) if isinstance(inner, str) else inner
        self.resolver = machine_room_resolver
        self.name = f"MACHINE_ROOM_NEARBY-{self.inner.name}"

    def allocate(
        self, group: str, client_id: str, queues: Sequence[MessageQueue], client_ids: Sequence[str]
    ) -> list[MessageQueue]:
        if not _may_allocate(client_id, queues, client_ids):
            return []
        queues_in = _by_room(queues, self.resolver.broker_deploy_in, "queue")
        members_in = _by_room(client_ids, self.resolver.consumer_deploy_in, "client")
        my_room = self.resolver.consumer_deploy_in(client_id)
        mine: list[MessageQueue] = []
        # 1. The queues of the own room, shared with the members there.
        if my_room in queues_in:
            mine += self.inner.allocate(group, client_id, queues_in[my_room], members_in[my_room])
        # 2. Rooms without members are shared by all; in Java's order, as every member must find the same.
        for room in sorted(queues_in, key=utf16_key):
            if room != my_room and room not in members_in:
                mine += self.inner.allocate(group, client_id, queues_in[room], client_ids)
        return mine


def _by_room(things: Sequence[T], room_of: Callable[[T], str], what: str) -> dict[str, list[T]]:
    rooms: dict[str, list[T]] = {}
    for thing in things:
        room = room_of(thing)
        if not room:
            raise UsageError(f"no machine room for {what} {thing}", hint="the resolver must name a room for each")
        rooms.setdefault(room, []).append(thing)
    return rooms


class ByConfig:
    """The configured list as it is, for every topic, the retry topic too. AllocateMessageQueueByConfig."""

    name = "CONFIG"

    def __init__(self, message_queue_list: Iterable[MessageQueue]) -> None:
        self.message_queue_list = list(message_queue_list)

    def allocate(
        self, group: str, client_id: str, queues: Sequence[MessageQueue], client_ids: Sequence[str]
    ) -> list[MessageQueue]:
        return list(self.message_queue_list)


_BY_NAME: dict[str, Callable[..., AllocateStrategy]] = {
    "AVG": Averagely,
    "AVG_BY_CIRCLE": AveragelyByCircle,
    "CONSISTENT_HASH": ConsistentHash,
    "MACHINE_ROOM": ByMachineRoom,
    "MACHINE_ROOM_NEARBY": MachineRoomNearby,
    "CONFIG": ByConfig,
}
STRATEGY_NAMES = tuple(_BY_NAME)


def strategy(name: str, **options: object) -> AllocateStrategy:
    """A strategy by RocketMQ's name; options: ``virtual_node_cnt=``, ``consumeridcs=``, ``inner=`` and so on.

    >>> queues = [MessageQueue("orders", "broker-a", number) for number in range(8)]
    >>> [q.queue_id for q in strategy("AVG").allocate("g", "c1", queues, ["c0", "c1", "c2"])]
    [3, 4, 5]
    """
    if name not in _BY_NAME:
        raise UsageError(f"no allocation strategy is called {name!r}", hint="one of " + ", ".join(STRATEGY_NAMES))
    try:
        return _BY_NAME[name](**options)
    except TypeError as problem:
        # The constructor's own message names Python arguments only; list what this strategy needs.
        needed = ", ".join(f"{option}=..." for option in signature(_BY_NAME[name]).parameters)
        raise UsageError(
            f"strategy {name!r} cannot be made with {options}: {problem}",
            hint=f'strategy("{name}", {needed}) gives an object to use in place of the name'
            if needed
            else "it has no options",
        ) from problem
