"""What happens by the clock of a Lab: an action at a time, messages at a rate.

Mirrors: a load generator and an operator's calendar.

    lab.at("90s", action)                                   90 s after the Lab began
    lab.traffic(producer, rates=[("0s", 5), ("60s", 40)], message=lambda i: Message(…))
                                                            5 a second from now on, 40 a second from a minute on

Left out: random arrivals (draw ``rates`` from a seed of your own).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from mqlab.durations import milliseconds
from mqlab.errors import UsageError
from mqlab.lab.world.state import LabState
from mqlab.rocketmq.wire.message import Message


class Traffic:
    """Messages being sent at a changing rate: ``sent`` and ``failed`` count the answers; ``stop()`` ends it."""

    def __init__(
        self, state: LabState, producer: Any, rates: Sequence[tuple[int, float]], message: Callable[[int], Message]
    ):
        self._state = state
        self._producer = producer
        self._rates = list(rates)
        self._message = message
        self._begin_ms = state.now_ms
        self._next_ms = float(state.now_ms)
        self._stopped = False
        self.number = 0
        self.sent = 0
        self.failed = 0
        self._arm()

    def stop(self) -> None:
        """Send no more."""
        self._stopped = True

    def _rate_at(self, now_ms: float) -> tuple[float, float | None]:
        """The rate now and when it changes next."""
        rate, until = 0.0, None
        for since_ms, per_second in self._rates:
            if self._begin_ms + since_ms <= now_ms:
                rate = per_second
            else:
                until = float(self._begin_ms + since_ms)
                break
        return rate, until

    def _arm(self) -> None:
        rate, until = self._rate_at(self._next_ms)
        while rate <= 0:  # nothing to send until a rate is above 0, or never again
            if until is None:
                return
            self._next_ms = until
            rate, until = self._rate_at(until)
        world = self._state.world
        world.arm(world.outside, round(self._next_ms), "traffic.due", self._due)

    def _due(self) -> None:
        """Send the next message from the producer's node (it fails if the node is down), and arm the one after it."""
        if self._stopped:
            return
        number, self.number = self.number, self.number + 1
        world = self._state.world
        if self._producer.is_up:
            node = world.nodes[self._producer.name]
            world.arm(node, world.now_ms, "traffic.send", lambda: self._send(number))
        else:
            self.failed += 1
        rate, _ = self._rate_at(self._next_ms)
        self._next_ms += 1000 / rate
        self._arm()

    def _send(self, number: int) -> None:
        self._producer.send_async(self._message(number)).then(self._answered, self._not_sent)

    def _answered(self, _: object) -> None:
        self.sent += 1

    def _not_sent(self, _: object) -> None:
        self.failed += 1

    def __repr__(self) -> str:
        return f"<Traffic of {self._producer.name}: {self.sent} sent, {self.failed} failed>"


class ScheduleVerbs(LabState):
    """The verbs of a Lab that act by its clock."""

    def at(self, time: str | int, action: Callable[..., Any]) -> None:
        """Call an action when this time has passed since the Lab began. An action with a parameter gets this Lab."""
        due_ms = self.began_ms + milliseconds(time)
        if due_ms < self.now_ms:
            raise UsageError(
                f"{time!r} after the beginning is in the past: {self.now_ms - self.began_ms} ms have passed"
            )
        self.world.at(due_ms, self.bound(action))

    def traffic(
        self, producer: Any, *, rates: Sequence[tuple[str | int, float]], message: Callable[[int], Message]
    ) -> Traffic:
        """Send message(0), message(1), … at rates given as (from when after now, messages a second)."""
        if not rates:
            raise UsageError("traffic needs at least one rate", hint='rates=[("0s", 5)]')
        handle = self.node_handle(producer)
        if handle.role != "producer":
            raise UsageError(
                f"{handle.name} is a {handle.role}, not a producer", hint="traffic(lab.producer(...), ...)"
            )
        steps = sorted((milliseconds(since), float(per_second)) for since, per_second in rates)
        for _, per_second in steps:
            if not 0 <= per_second < float("inf"):
                raise UsageError(f"{per_second} is not a rate", hint="a rate is messages per second, 0 for none")
        return Traffic(self, handle, steps, message)
