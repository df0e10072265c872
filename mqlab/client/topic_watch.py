"""Tells a program when the queues of a topic change, by looking at its route now and then.

Mirrors: registerTopicMessageQueueChangeListener of DefaultLitePullConsumerImpl. Lab 06.

    start             10 s           40 s           70 s …
    remember queues   differ? tell   differ? tell

Left out: nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from mqlab.client.background import background, told
from mqlab.client.timers import Periodic
from mqlab.ports import Ports
from mqlab.promises import Flow, Promise, flow
from mqlab.wire.message import MessageQueue

FIRST_CHECK_MS = 10_000

TopicListener = Callable[[str, list[MessageQueue]], object]


class TopicWatch:
    """Listeners by topic and the queues they were told of last. ``fetch`` asks for a topic's queues."""

    def __init__(self, ports: Ports, period_ms: int, fetch: Callable[[str], Promise[list[MessageQueue]]]) -> None:
        self._ports = ports
        self._fetch = fetch
        self._listeners: dict[str, TopicListener] = {}
        self._queues: dict[str, list[MessageQueue]] = {}
        self._timer = Periodic(ports.clock, "client.topic_check", period_ms, self._tick)

    def add(self, topic: str, listener: TopicListener) -> None:
        """Have ``listener(topic, queues)`` called when the topic's queues differ from the last look."""
        self._listeners[topic] = listener

    @flow
    def start(self) -> Flow[None]:
        """Take the first look, and arm the next ones if anybody listens."""
        for topic in self._listeners:
            self._queues[topic] = yield self._fetch(topic)
        if self._listeners:
            self._timer.start(FIRST_CHECK_MS)

    def stop(self) -> None:
        """Look no more."""
        self._timer.stop()

    def _tick(self) -> None:
        background(self._ports, self._look(), "topic check")

    @flow
    def _look(self) -> Flow[None]:
        for topic, listener in list(self._listeners.items()):
            queues = yield self._fetch(topic)
            if queues != self._queues.get(topic):
                self._queues[topic] = queues
                told(self._ports, "topic listener", partial(listener, topic, queues))

    def __repr__(self) -> str:
        return f"<TopicWatch {len(self._listeners)} topics>"
