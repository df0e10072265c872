"""The official Python client with less to write, for tests."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from rocketmq import (
    ClientConfiguration,
    ConsumeResult,
    Credentials,
    FilterExpression,
    Message,
    MessageListener,
    Producer,
    PushConsumer,
    SimpleConsumer,
)

SECONDS = 15.0
REQUEST_S = 60  # the client's own is 3 s, which a busy machine needs for a first request


def configuration(endpoints: str, user: tuple[str, str] | None = None) -> ClientConfiguration:
    """Where the server is, and who asks."""
    credentials = Credentials(*user) if user else Credentials()
    return ClientConfiguration(endpoints, credentials, request_timeout=REQUEST_S)


def message(topic: str, body: bytes, **fields: Any) -> Message:
    """A message; ``properties`` is a dict, other fields are the client's own."""
    made = Message()
    made.topic, made.body = topic, body
    for name, value in fields.pop("properties", {}).items():
        made.add_property(name, value)
    for name, value in fields.items():
        setattr(made, name, value)
    return made


@contextmanager
def producer(endpoints: str, *topics: str, checker: Any = None, user: tuple[str, str] | None = None) -> Iterator[Any]:
    """A producer that has started."""
    made = (
        Producer(configuration(endpoints, user), topics, checker)
        if checker
        else Producer(configuration(endpoints, user), topics)
    )
    made.startup()
    try:
        yield made
    finally:
        made.shutdown()


@contextmanager
def simple(endpoints: str, group: str, **topics: str) -> Iterator[Any]:
    """A simple consumer whose settings have arrived. ``topics``: tags by topic."""
    made = SimpleConsumer(
        configuration(endpoints), group, {topic: FilterExpression(tags) for topic, tags in topics.items()}, 5
    )
    made.startup()
    try:
        yield made
    finally:
        made.shutdown()


class Listener(MessageListener):
    """Keeps what it consumes; ``fails(message)`` says what is to fail."""

    def __init__(self, fails: Callable[[Any], bool] = lambda message: False) -> None:
        self.seen: list[tuple[bytes, int]] = []
        self.at: list[float] = []
        self._fails = fails

    def consume(self, message: Any) -> ConsumeResult:
        """Called by the client for each message."""
        self.seen.append((bytes(message.body), message.delivery_attempt))
        self.at.append(time.monotonic())
        return ConsumeResult.FAILURE if self._fails(message) else ConsumeResult.SUCCESS

    @property
    def bodies(self) -> list[bytes]:
        """The bodies in the order in which they came."""
        return [body for body, _ in self.seen]


@contextmanager
def push(endpoints: str, group: str, listener: Listener, **topics: str) -> Iterator[Any]:
    """A push consumer that has started."""
    subscriptions = {topic: FilterExpression(tags) for topic, tags in topics.items()}
    made = PushConsumer(configuration(endpoints), group, listener, subscriptions)
    made.startup()
    try:
        yield made
    finally:
        made.shutdown()


def until(condition: Callable[[], Any], seconds: float = SECONDS) -> Any:
    """What the condition gives when it is true; AssertionError when it does not become true."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        found = condition()
        if found:
            return found
        time.sleep(0.01)
    raise AssertionError(f"not within {seconds} s")
