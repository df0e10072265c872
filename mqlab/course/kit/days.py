"""A day in a Lab as data: topics, groups, traffic, faults, one after the other. Demonstrations and cases use the same.

    Day((
        Topics(("orders",)),
        Reads("billing", "orders", Learner("pay")),       the learner's listener, in a consumer of billing
        Sends(orders),
        Waits("40s"),
        Restarts("billing-1"),                            killed, and started again three seconds later
        Waits("3m"),
    )).play(answers, seed) ─▶ Played: the Lab, what was sent, when nodes died

What is drawn by lot is drawn when the Day is made from its seed, so a Day tells what will happen.
"""

from __future__ import annotations

import inspect
import sqlite3
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from typing import Any, Protocol

from mqlab.course.teach.exercises import Answers
from mqlab.course.teach.lives import anew
from mqlab.errors import LimitReached
from mqlab.lab.world.lab import Lab, play
from mqlab.lab.world.story import Story
from mqlab.rocketmq.client.consuming.listener import as_call
from mqlab.rocketmq.wire.message import Message

RETRY_TOPIC_READ_AFTER = "25s"  # a new group reads its retry topic from its second rebalance on


class NotMade(Exception):
    """What a learner gave is not a listener: not what the function returned, or called with other arguments."""

    def __init__(self, name: str, found: object, rule: str = "", where: str = "", expected: str = "") -> None:
        super().__init__(name)
        self.name, self.found = name, found
        self.rule = rule or f"{name} returns a listener: the inner function"
        self.where, self.expected = where or "its result", expected or "a function"


class Sent(Protocol):
    """What a day sends: it knows its message."""

    def message(self) -> Message:
        """The message, made again."""


@dataclass(slots=True)
class Played:
    """A Lab during and after a day: the answers in it, what was sent by msg_id, the moments at which nodes died."""

    lab: Lab
    answers: Answers
    sent: dict[str, Any] = field(default_factory=dict)
    deaths_ms: list[int] = field(default_factory=list)
    producers: dict[str, Any] = field(default_factory=dict)

    def producer(self, group: str) -> Any:
        """The day's producer of a group, made when it is first asked for."""
        if group not in self.producers:
            self.producers[group] = self.lab.producer(group)
        return self.producers[group]

    def deliveries(self, group: str) -> list[Any]:
        """What the group's listeners were called with, in the order in which the calls began."""
        return list(self.lab.delivery_book.of(group))

    def until(self, condition: Callable[[], bool], limit: str) -> bool:
        """Play until a condition is true; False if it was not true within the limit."""
        try:
            self.lab.run_until(condition, limit=limit)
        except LimitReached:
            return False
        return True

    def die_and_restart(self, node: str, back_after: str = "3s") -> None:
        """A node's process is killed, and started again after a while."""
        self.deaths_ms.append(self.lab.now_ms)
        self.lab.kill(node)
        self.lab.run_for(back_after)
        self.lab.start(node)


class Act(Protocol):
    """One thing that happens in a day."""

    def act(self, played: Played) -> None:
        """Let it happen."""


class LabDatabases:
    """The part of a Lab that a process gets when it is started: the databases, and nothing else."""

    def __init__(self, lab: Lab) -> None:
        self.database = lab.database

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        raise AttributeError(f"an answer cannot use {type(self).__name__}.{name}; it has database")


def takes(function: Callable[..., Any], count: int) -> bool:
    """Whether a function can be called with so many arguments; True if that cannot be known."""
    try:
        inspect.signature(function).bind(*[None] * count)
    except TypeError:
        return False
    except ValueError:  # some functions of C have no signature
        return True
    return True


def parameters_of(function: Callable[..., Any]) -> str:
    """A function's parameters as they are written."""
    return str(inspect.signature(function))


def listener_of(name: str, function: Callable[..., Any], arguments: Sequence[Any], spelled: str, rule: str) -> Any:
    """The listener that a function makes of ``arguments``. NotMade if none; ``spelled``: the arguments as text."""
    if not takes(function, len(arguments)):
        raise NotMade(name, parameters_of(function), rule, "its arguments", spelled)
    listener = function(*arguments)
    if not callable(listener):
        raise NotMade(name, listener, rule)
    if not takes(listener, 2):
        raise NotMade(name, parameters_of(listener), rule, "the listener's arguments", "(messages, context)")
    return listener


def each_life(make: Callable[[], Any]) -> type:
    """A class for ``on_messages``: each life of the consumer has a listener of its own, made then."""

    class EachLife:
        def __init__(self) -> None:
            self.consume_message = as_call(make())

    return EachLife


@dataclass(frozen=True, slots=True)
class Learner:
    """The learner's name, as a listener. ``makes``: it is a function lab -> listener.

    ``each_life``: it is called in each life of the consumer, in its cell run again, so that nothing in memory survives.
    """

    name: str
    makes: bool = False
    each_life: bool = False

    def listener(self, played: Played) -> Any:
        """What the consumer gets. NotMade when the function does not return a listener."""
        if not self.makes:
            return self._with_its_form(played.answers[self.name], f"{self.name} is a listener")
        if not self.each_life:
            return self._made(played.answers[self.name], played.lab)
        databases = LabDatabases(played.lab)
        return each_life(lambda: self._made(anew(played.answers[self.name], self.name), databases))

    def _made(self, function: Callable[..., Any], lab: Lab | LabDatabases) -> Any:
        if not takes(function, 1):
            rule = f"{self.name} gets the lab and returns a listener: a function inside of it, (messages, context)"
            raise NotMade(self.name, parameters_of(function), rule, f"the arguments of {self.name}", "(lab)")
        listener = function(lab)
        if not callable(listener) and not callable(getattr(listener, "consume_message", None)):
            raise NotMade(self.name, listener)
        return self._with_its_form(listener, f"{self.name} returns a listener")

    def _with_its_form(self, listener: Any, what: str) -> Any:
        """The listener, if it can be called with messages and a context. NotMade if not."""
        method = getattr(listener, "consume_message", listener)
        own = 1 if isinstance(listener, type) and method is not listener else 0  # self, in a class
        if (isinstance(listener, type) and not own) or takes(method, 2 + own):
            return listener
        rule = f"{what}: it is called with a list of messages and a context, (messages, context)"
        raise NotMade(self.name, parameters_of(method), rule, "the listener's arguments", "(messages, context)")


@dataclass(frozen=True, slots=True)
class Topics:
    """Topics with so many queues each."""

    names: Sequence[str]
    queues: int = 1

    def act(self, played: Played) -> None:
        """Create them."""
        for name in self.names:
            played.lab.create_topic(name, read_queue_nums=self.queues, write_queue_nums=self.queues)


@dataclass(frozen=True, slots=True)
class DatabaseTables:
    """Tables in a group's database, as SQL."""

    group: str
    sql: str

    def act(self, played: Played) -> None:
        """Create them."""
        with closing(sqlite3.connect(played.lab.database(self.group).path)) as connection:
            connection.executescript(self.sql)


@dataclass(frozen=True, slots=True)
class Reads:
    """A consumer of a group, called group-1 unless named, played until it reads its retry topic too."""

    group: str
    topic: str
    listener: Learner | Callable[..., Any]
    name: str = ""
    orderly: bool = False
    settings: Mapping[str, Any] = field(default_factory=dict)
    ready_after: str = RETRY_TOPIC_READ_AFTER

    def act(self, played: Played) -> None:
        """Start it."""
        listener = self.listener.listener(played) if isinstance(self.listener, Learner) else self.listener
        consumer = played.lab.push_consumer(self.group, name=self.name or f"{self.group}-1", **self.settings)
        consumer.subscribe(self.topic, "*")
        (consumer.on_messages_orderly if self.orderly else consumer.on_messages)(listener)
        consumer.start()
        played.lab.run_for(self.ready_after)


@dataclass(frozen=True, slots=True)
class Sends:
    """Messages, one after the other; ``every`` is the pause between two."""

    messages: Sequence[Sent]
    every: str = ""
    producer: str = "shop"

    def act(self, played: Played) -> None:
        """Send them, and note what became which message."""
        shop = played.producer(self.producer)
        for sent in self.messages:
            played.sent[shop.send(sent.message()).msg_id] = sent
            if self.every:
                played.lab.run_for(self.every)


@dataclass(frozen=True, slots=True)
class Waits:
    """Virtual time that passes: "40s", or milliseconds."""

    duration: str | int

    def act(self, played: Played) -> None:
        """Let it pass."""
        played.lab.run_for(self.duration)


@dataclass(frozen=True, slots=True)
class Restarts:
    """A node that is killed and started again. With ``when`` it dies ``after`` that has become true, or not at all."""

    node: str
    when: Callable[[Played], bool] | None = None
    within: str = "60s"
    after: str | int = 0
    back_after: str = "3s"

    def act(self, played: Played) -> None:
        """Kill it and start it, if it is to happen."""
        when = self.when
        if when is not None and not played.until(lambda: when(played), self.within):
            return
        if self.after:
            played.lab.run_for(self.after)
        played.die_and_restart(self.node, self.back_after)


@dataclass(frozen=True, slots=True)
class Stops:
    """A client that is shut down in good order."""

    name: str

    def act(self, played: Played) -> None:
        """Shut it down."""
        played.lab.node_handle(self.name).shutdown()


@dataclass(frozen=True, slots=True)
class Does:
    """Anything that no other act says."""

    what: Callable[[Any], None]

    def act(self, played: Played) -> None:
        """Do it."""
        self.what(played)


@dataclass(frozen=True, slots=True)
class Day:
    """What happens, in this order. ``kind`` is Played or a lab's own kind of it; message trace is off."""

    acts: Sequence[Act]
    broker: Mapping[str, Any] = field(default_factory=dict)
    client: Mapping[str, Any] = field(default_factory=lambda: {"enable_trace": False})
    kind: type[Played] = Played

    def story(self, answers: Answers, plays: list[Played]) -> Story:
        """The day as a story; each time it is told, its object of ``kind`` is added to ``plays``."""

        def story(lab: Lab) -> None:
            plays.append(self.kind(lab, answers))
            for act in self.acts:
                act.act(plays[-1])

        return story

    @property
    def settings(self) -> dict[str, Any]:
        """The settings of the day's Lab."""
        return {"broker": dict(self.broker), "client": dict(self.client)}

    def play(self, answers: Answers, seed: int) -> Any:
        """The day, played with a learner's answers; an object of ``kind``."""
        plays: list[Played] = []
        play(self.story(answers, plays), seed=seed, **self.settings)
        return plays[0]
