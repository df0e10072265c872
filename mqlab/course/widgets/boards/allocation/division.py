"""What is divided among the members of a group, and the owners that a strategy of mqlab.rocketmq.client.allocate gives.

    Queues(8, ("broker-a",), topics=2)        the queues of each topic, sorted as a client gets them
    Dividing(queues, members, …)              one strategy object per member, as each process has its own
    dividing.owners("AVG", 10, ["c1", "c2"])  the owners of every queue: each member asks for itself

Nothing is divided here: every owner is the answer of a strategy to one member. Left out: the retry topic.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from inspect import Parameter, signature
from typing import Any

from mqlab.course.widgets.frame.whole_numbers import must_be_whole
from mqlab.errors import UsageError
from mqlab.rocketmq.client.allocate import STRATEGY_NAMES, AllocateStrategy, ConsistentHash, md5_u32, strategy
from mqlab.rocketmq.wire.java_hash import sorted_as_java
from mqlab.rocketmq.wire.message import MessageQueue

GROUP = "billing"
TOPICS = ("orders", "payments", "parcels", "invoices", "returns", "letters", "prices", "stock")
HIGHEST = {"queues": 64, "brokers": 6, "topics": len(TOPICS)}
MOST_QUEUES, MOST_VIRTUAL_NODES = 128, 500
hashed = functools.lru_cache(maxsize=100_000)(md5_u32)


@dataclass(frozen=True, slots=True)
class BoardQueues:
    """The queues: how many each topic has on each broker. Raises UsageError for numbers out of range."""

    queues: int = 8
    brokers: tuple[str, ...] = ("broker-a",)
    topics: int = 1

    def __post_init__(self) -> None:
        for name, value in (("queues", self.queues), ("brokers", len(self.brokers)), ("topics", self.topics)):
            must_be_whole(name, value, 1, HIGHEST[name])
        count = self.queues * len(self.brokers) * self.topics
        if count > MOST_QUEUES:
            raise UsageError(f"{count} queues are too many for one board", hint=f"at most {MOST_QUEUES} in all")

    def of_topics(self) -> list[list[MessageQueue]]:
        """The queues of each topic in the order of the client's route."""
        return [
            sorted(MessageQueue(topic, broker, number) for broker in self.brokers for number in range(self.queues))
            for topic in TOPICS[: self.topics]
        ]

    def all(self) -> list[MessageQueue]:
        """The queues of all topics, topic by topic."""
        return [queue for queues in self.of_topics() for queue in queues]


def broker_names(brokers: int | Sequence[str]) -> tuple[str, ...]:
    """Names of brokers, given as their number or by name.

    >>> broker_names(2), broker_names(["room1@broker-a"])
    (('broker-a', 'broker-b'), ('room1@broker-a',))
    """
    if isinstance(brokers, str):
        raise UsageError(f"brokers is a number or a list of names, got {brokers!r}", hint=f"brokers=[{brokers!r}]")
    if not isinstance(brokers, int):
        if len(set(brokers)) < len(brokers):
            raise UsageError(f"two brokers have one name: {list(brokers)}")
        return tuple(brokers)
    must_be_whole("brokers", brokers, 1, HIGHEST["brokers"])
    return tuple(f"broker-{letter}" for letter in "abcdef"[:brokers])


class Rooms:
    """In which room a broker and a member are: the resolver of MACHINE_ROOM_NEARBY.

    A broker ``room1@broker-a`` is in room1; one without "@" is a room of its own. A member without a given room takes
    the brokers' rooms in turn, in the order in which the board first saw it.
    """

    def __init__(self, brokers: Sequence[str], named: Mapping[str, str], known: Sequence[str]) -> None:
        self.names = list(dict.fromkeys(broker.partition("@")[0] for broker in brokers))
        turns = {member: self.names[index % len(self.names)] for index, member in enumerate(known)}
        self.of_member = {**turns, **named}

    def broker_deploy_in(self, queue: MessageQueue) -> str:
        """The room of a queue's broker."""
        return queue.broker_name.partition("@")[0]

    def consumer_deploy_in(self, client_id: str) -> str:
        """The room of a member."""
        return self.of_member[client_id]


class OwnStrategy:
    """A learner's function as a strategy. It may take ``(group, client_id, queues, client_ids)``, the last three of
    them, or ``(queues, client_ids)``; the last form gives all owners at once: a mapping from member to queues.
    """

    def __init__(self, function: Callable[..., Any]) -> None:
        self.function = function
        self.name = getattr(function, "__name__", type(function).__name__)
        positional = (Parameter.POSITIONAL_ONLY, Parameter.POSITIONAL_OR_KEYWORD)
        parameters = signature(function).parameters.values()
        self._takes = sum(
            parameter.kind in positional and parameter.default is Parameter.empty for parameter in parameters
        )
        if self._takes not in (2, 3, 4):
            raise UsageError(
                f"{self.name} takes {self._takes} arguments",
                hint="allocate(group, client_id, queues, client_ids), or (client_id, queues, client_ids), or "
                "(queues, client_ids) that returns a mapping from member to queues",
            )

    def allocate(
        self, group: str, client_id: str, queues: Sequence[MessageQueue], client_ids: Sequence[str]
    ) -> list[MessageQueue]:
        """This member's queues."""
        if self._takes == 2:
            return list(self.function(list(queues), list(client_ids)).get(client_id, []))
        arguments = (group, client_id, list(queues), list(client_ids))
        return list(self.function(*arguments[4 - self._takes :]))


def own_strategy(strategy: Any) -> AllocateStrategy:
    """A learner's strategy: an object or a class with ``allocate``, or a function (see OwnStrategy)."""
    if isinstance(strategy, type):
        strategy = strategy()
    if callable(getattr(strategy, "allocate", None)):
        own: AllocateStrategy = strategy
        return own
    if not callable(strategy):
        names = ", ".join(STRATEGY_NAMES)
        raise UsageError(f"{strategy!r} is not an allocation strategy", hint=f"a function, or one of {names}")
    return OwnStrategy(strategy)


class Dividing:
    """Divides the queues among members with any strategy. ``config``: the list that each member was given by hand."""

    def __init__(
        self,
        queues: BoardQueues,
        rooms: Rooms,
        config: Mapping[str, Sequence[MessageQueue]],
        own: Any = None,
        consumeridcs: Sequence[str] | None = None,
    ) -> None:
        self.queues = queues
        self.rooms = rooms
        self.config = config
        self.own = None if own is None else own_strategy(own)
        with_room = [name.partition("@")[0] for name in queues.brokers if "@" in name]
        self.consumeridcs = list(dict.fromkeys(with_room)) if consumeridcs is None else list(consumeridcs)
        self._by_topic = queues.of_topics()

    @property
    def names(self) -> list[str]:
        """The strategies of this board; a learner's own is the last."""
        return [*STRATEGY_NAMES, *([own_name(self.own)] if self.own is not None else [])]

    def strategy_of(self, name: str, virtual_nodes: int, member: str) -> AllocateStrategy:
        """The strategy object of one member. UsageError for a name that the board does not have."""
        if name == "CONSISTENT_HASH":
            return ConsistentHash(virtual_nodes, hashed)
        if name == "MACHINE_ROOM":
            return strategy(name, consumeridcs=self.consumeridcs)
        if name == "MACHINE_ROOM_NEARBY":
            return strategy(name, inner="AVG", machine_room_resolver=self.rooms)
        if name == "CONFIG":
            return strategy(name, message_queue_list=self.config.get(member, ()))
        if self.own is not None and name == own_name(self.own):
            return self.own
        return strategy(name)

    def owners(self, name: str, virtual_nodes: int, members: Sequence[str]) -> list[tuple[str, ...]]:
        """The owners of every queue, topic by topic. UsageError when a learner's strategy cannot divide them."""
        client_ids = sorted_as_java(members)
        strategies = {member: self.strategy_of(name, virtual_nodes, member) for member in client_ids}
        owners: list[tuple[str, ...]] = []
        for queues in self._by_topic:
            of_queue: dict[MessageQueue, list[str]] = {queue: [] for queue in queues}
            for member, member_strategy in strategies.items():
                for queue in _asked(member_strategy, member, queues, client_ids):
                    # A configured list has queues of all topics: what is not of this topic is of no use here.
                    if queue in of_queue:
                        of_queue[queue].append(member)
                    elif name != "CONFIG":
                        raise UsageError(
                            f"{name} gives {member} {queue!r}", hint="it may give only queues that it was given"
                        )
            owners += [tuple(names) for names in of_queue.values()]
        return owners


def own_name(own: AllocateStrategy) -> str:
    """The name of a learner's strategy: its own, or that of its class; never one of RocketMQ's."""
    name = str(getattr(own, "name", type(own).__name__))
    return f"own {name}" if name in STRATEGY_NAMES else name


def _asked(
    asked: AllocateStrategy, member: str, queues: list[MessageQueue], client_ids: list[str]
) -> Sequence[MessageQueue]:
    """The answer of a strategy to one member, each queue once, as the client takes it."""
    try:
        return list(dict.fromkeys(asked.allocate(GROUP, member, list(queues), list(client_ids))))
    except UsageError:
        raise
    except Exception as error:
        raise UsageError(
            f"{own_name(asked)} raised {type(error).__name__}: {error}",
            hint=f"it was asked for the queues of {member} among {', '.join(client_ids)}; a real consumer would keep "
            "the queues that it has",
        ) from error
