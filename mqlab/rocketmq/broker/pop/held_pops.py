"""Pops and notifications that found nothing and are held until a message arrives or their time is over.

Mirrors: PopLongPollingService.

    key topic@group@queue as it was asked (-1: all queues)      oldest expiry first; notifications: youngest first
    a message arrives   one request of key -1, then one of its queue, of every group that ever polled the topic;
                        if its filter lets the message pass (every 800th message passes every filter)
    its time is over    50 ms before bornTime + pollTime, looked at every 20 ms
    woken               the whole request runs again, as a new one; a request that it wakes runs after it

A message that arrives in a v1 retry topic wakes no pop: RocketMQ cannot tell from its name which topic it belongs to.
"""

from __future__ import annotations

from bisect import insort
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from mqlab.rocketmq.broker.pop.checks import PopHeader
from mqlab.rocketmq.broker.state import BrokerState
from mqlab.rocketmq.ports import Deadline, next_on_grid
from mqlab.rocketmq.remoting.endpoint import Channel, Reply
from mqlab.rocketmq.remoting.requests import Answer, Refused
from mqlab.rocketmq.store.getting import MessageFilter
from mqlab.rocketmq.wire.command import RemotingCommand
from mqlab.rocketmq.wire.pop import normal_topic

CHECK_MS = 20
EARLY_MS = 50
HELD, FULL, TOO_LATE, NOT_WANTED = "HELD", "FULL", "TOO_LATE", "NOT_WANTED"


@dataclass(slots=True, eq=False)
class HeldRequest:
    """One request that waits. ``handler`` answers it, or holds it once more."""

    topic: str
    group: str
    queue_id: int
    expires_ms: int
    channel: Channel
    request: RemotingCommand
    reply: Reply
    handler: Callable[[Channel, RemotingCommand, Reply], Answer]
    message_filter: MessageFilter | None = None
    number: int = 0

    @classmethod
    def of(
        cls,
        header: PopHeader,
        channel: Channel,
        request: RemotingCommand,
        reply: Reply,
        handler: Callable[[Channel, RemotingCommand, Reply], Answer],
        message_filter: MessageFilter | None = None,
    ) -> HeldRequest:
        """A request with this header, held until its time to poll is over."""
        expires_ms = header.born_time + header.poll_time
        asked = (header.topic, header.group, header.queue_id, expires_ms)
        return cls(*asked, channel, request, reply, handler, message_filter)

    def run_again(self) -> None:
        """Run it as a new one. Mirrors wakeUp."""
        try:
            answer = self.handler(self.channel, self.request, self.reply)
        except Refused as refusal:
            answer = refusal.answer_to(self.request)
        if answer is not None:
            self.reply(answer)

    def __lt__(self, other: HeldRequest) -> bool:
        return (self.expires_ms, self.number) < (other.expires_ms, other.number)


class HeldPops:
    """The held requests of one kind. ``kind`` names the journal's steps."""

    def __init__(self, state: BrokerState, *, youngest_first: bool = False, kind: str = "pop.hold") -> None:
        self._state = state
        self._youngest_first = youngest_first
        self._kind = kind
        self._origin_ms = state.now_ms()
        self._held: dict[tuple[str, str, int], list[HeldRequest]] = {}
        self.groups: dict[str, dict[str, None]] = {}
        """The groups that ever polled a topic."""
        self._deadline: Deadline | None = None
        self._count = 0
        self._numbers = 0
        self._woken: deque[HeldRequest] = deque()
        self._is_running = False

    def hold(self, held: HeldRequest, poll_time_ms: int) -> str:
        """Hold a request, or say why not. Mirrors polling."""
        if poll_time_ms <= 0:
            return NOT_WANTED
        config = self._state.config
        self.groups.setdefault(held.topic, {})[held.group] = None
        if self._count >= config.max_pop_polling_size:
            return FULL
        if self._state.now_ms() > held.expires_ms - EARLY_MS:
            return TOO_LATE
        waiting = self._held.setdefault((held.topic, held.group, held.queue_id), [])
        if len(waiting) > config.pop_polling_size:
            return FULL
        self._numbers += 1
        held.number = self._numbers
        insort(waiting, held)
        self._count += 1
        self._state.ports.note(
            "pop.held", group=held.group, topic=held.topic, queue_id=held.queue_id, expires_ms=held.expires_ms
        )
        self._arm()
        return HELD

    def polling(self, topic: str, group: str, queue_id: int) -> int:
        """How many requests of exactly this key are held."""
        return len(self._held.get((topic, group, queue_id), ()))

    def arrived(
        self, topic: str, queue_id: int, next_queue_offset: int, tags_code: int, properties: Mapping[str, str]
    ) -> None:
        """A message can be read. Mirrors notifyMessageArrivingWithRetryTopic."""
        if not self.groups:
            return
        notified = normal_topic(topic)
        every = self._state.config.pop_long_polling_force_notify_interval
        force = every > 0 and (next_queue_offset - 1) % every == 0
        for group in list(self.groups.get(notified, ())):
            for wanted in (-1, queue_id):
                self._wake((notified, group, wanted), tags_code, properties, force=force)

    def wake(self, topic: str, group: str, queue_id: int) -> bool:
        """Run one held request of a key again, whatever its filter."""
        return self._wake((topic, group, queue_id), 0, None, force=True)

    def wake_soon(self, topic: str, group: str, queue_id: int) -> None:
        """The same a millisecond later: at once, it would find what it found before."""

        def wake() -> None:
            self.wake(topic, group, queue_id)

        self._state.ports.clock.call_later(1, wake, self._kind)

    def drop(self, channel: Channel) -> None:
        """Drop the requests of a closed channel."""
        for key, waiting in list(self._held.items()):
            for held in [held for held in waiting if held.channel is channel]:
                self._remove(key, held)

    def clear(self) -> None:
        """Drop all requests: the broker stops."""
        self._held.clear()
        self._count = 0
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None

    def _wake(
        self, key: tuple[str, str, int], tags_code: int, properties: Mapping[str, str] | None, *, force: bool
    ) -> bool:
        waiting = self._held.get(key)
        if not waiting:
            return False
        held = waiting[-1 if self._youngest_first else 0]
        passes = held.message_filter
        if (
            not force
            and passes is not None
            and not (passes.matches_code(tags_code) and passes.matches_properties(properties or {}))
        ):
            return False
        self._run(key, held, "a message arrived")
        return True

    def _run(self, key: tuple[str, str, int], held: HeldRequest, why: str) -> None:
        self._remove(key, held)
        self._state.ports.note("pop.woken", group=held.group, topic=held.topic, queue_id=held.queue_id, why=why)
        self._woken.append(held)
        if self._is_running:
            return
        self._is_running = True
        try:
            while self._woken:
                self._woken.popleft().run_again()
        finally:
            self._is_running = False

    def _remove(self, key: tuple[str, str, int], held: HeldRequest) -> None:
        waiting = self._held[key]
        waiting.remove(held)
        self._count -= 1
        if not waiting:
            del self._held[key]

    def _arm(self) -> None:
        first_ms = min((waiting[0].expires_ms for waiting in self._held.values()), default=None)
        due_ms = None
        if first_ms is not None:
            due_ms = next_on_grid(max(first_ms - EARLY_MS + 1, self._state.now_ms() + 1), CHECK_MS, self._origin_ms)
        if self._deadline is not None:
            if self._deadline.due_ms == due_ms:
                return
            self._deadline.cancel()
            self._deadline = None
        if due_ms is not None:
            self._deadline = self._state.ports.clock.call_at(due_ms, self._expire, self._kind)

    def _expire(self) -> None:
        self._deadline = None
        now_ms = self._state.now_ms()
        for key, waiting in list(self._held.items()):
            for held in [held for held in waiting if now_ms > held.expires_ms - EARLY_MS]:
                if held in self._held.get(key, ()):  # the one before it may have woken it
                    self._run(key, held, "its time is over")
        self._arm()
