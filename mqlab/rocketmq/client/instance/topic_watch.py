"""Tells a program when the queues of a topic change, by looking at its route now and then.

Mirrors: registerTopicMessageQueueChangeListener of DefaultLitePullConsumerImpl.

    start             10 s           40 s           70 s …          a topic that is added later: the next of these
    remember queues   differ? call   differ? call
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from mqlab.rocketmq.client.instance.background import background, call_back
from mqlab.rocketmq.client.instance.timers import Periodic
from mqlab.rocketmq.ports import Ports, next_on_grid
from mqlab.rocketmq.promises import Flow, Promise, flow
from mqlab.rocketmq.wire.message import MessageQueue

FIRST_CHECK_MS = 10_000

TopicListener = Callable[[str, list[MessageQueue]], object]


class TopicWatch:
    """Listeners by topic, and the queues that each was called with last. ``fetch`` asks for a topic's queues."""

    def __init__(self, ports: Ports, period_ms: int, fetch: Callable[[str], Promise[list[MessageQueue]]]) -> None:
        self._ports = ports
        self._fetch = fetch
        self._listeners: dict[str, TopicListener] = {}
        self._queues: dict[str, list[MessageQueue]] = {}
        self._period_ms = period_ms
        self._first_check_ms: int | None = None  # None: not started
        self._timer = Periodic(ports.clock, "client.topic_check", period_ms, self._tick)

    def add(self, topic: str, listener: TopicListener) -> None:
        """Have ``listener(topic, queues)`` called when the topic's queues differ from the last look."""
        self._listeners[topic] = listener
        if self._first_check_ms is not None:
            background(self._ports, self._add_running(topic), "topic check")

    @flow
    def _add_running(self, topic: str) -> Flow[None]:
        self._queues[topic] = yield self._fetch(topic)
        self._arm()

    def _arm(self) -> None:
        """Look at the next of the fixed times; nothing changes when the timer runs already."""
        if self._first_check_ms is not None:
            now_ms = self._ports.clock.now_ms()
            due_ms = max(next_on_grid(now_ms, self._period_ms, self._first_check_ms), self._first_check_ms)
            self._timer.start(due_ms - now_ms)

    @flow
    def start(self) -> Flow[None]:
        """Take the first look, and arm the next ones if there are listeners."""
        self._first_check_ms = self._ports.clock.now_ms() + FIRST_CHECK_MS
        for topic in list(self._listeners):
            self._queues[topic] = yield self._fetch(topic)
        if self._listeners:
            self._arm()

    def stop(self) -> None:
        """Stop looking."""
        self._first_check_ms = None
        self._timer.stop()

    def _tick(self) -> None:
        background(self._ports, self._look(), "topic check")

    @flow
    def _look(self) -> Flow[None]:
        for topic, listener in list(self._listeners.items()):
            queues = yield self._fetch(topic)
            if queues != self._queues.get(topic):
                self._queues[topic] = queues
                call_back(self._ports, "topic listener", partial(listener, topic, queues))

    def __repr__(self) -> str:
        return f"<TopicWatch {len(self._listeners)} topics>"
