"""Pulls that found nothing yet: the broker holds them until a message comes or their time is over.

Mirrors: PullRequestHoldService, ManyPullRequest and PullRequest.

    topic, queue    held pull (next offset, filter, since)        is run again when
    orders 0        billing    7    tags paid    12:00:01         a message at offset 7 or later passes its filter
    orders 0        audit      7    *            12:00:04         at the next 5 s check, if its filter refused a message
    orders 1        billing    0    tags paid    12:00:01         at the first 5 s check after its 15 s are over

RocketMQ checks all held pulls every 5 s. Here each pull has one deadline on the same 5 s grid.

Left out: the second table for pulls that read cold data.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from mqlab.rocketmq.broker.tables.table import BrokerTable
from mqlab.rocketmq.ports import Clock, Deadline, next_on_grid
from mqlab.rocketmq.remoting.endpoint import Channel, Reply
from mqlab.rocketmq.state_table import StateTable
from mqlab.rocketmq.store.getting import MessageFilter
from mqlab.rocketmq.wire.command import RemotingCommand

CHECK_PERIOD_MS = 5_000

QueueKey = tuple[str, int]  # topic, queue id

HELD, DUE, WOKEN, ANSWERED, DROPPED = "HELD", "DUE", "WOKEN", "ANSWERED", "DROPPED"
ARRIVED, LOOK, CHECK, TIMEOUT = "arrived", "look again", "check", "timeout"
ANSWER, DROP = "answer", "drop"

HELD_PULL = StateTable(
    "the life of a held pull",
    HELD,
    [
        (HELD, ARRIVED, WOKEN),
        (HELD, LOOK, DUE),
        (HELD, TIMEOUT, WOKEN),
        (HELD, CHECK, WOKEN),  # only after the clock was set back: the time of the pull is over, but not by the clock
        (HELD, DROP, DROPPED),
        (DUE, ARRIVED, WOKEN),
        (DUE, LOOK, DUE),
        (DUE, CHECK, WOKEN),
        (DUE, TIMEOUT, WOKEN),
        (DUE, DROP, DROPPED),
        (WOKEN, ANSWER, ANSWERED),
    ],
)
"""``arrived``: a message that passes the filter. ``look again``: one that may not, so the next check runs the pull."""


@dataclass(slots=True, eq=False)
class HeldPull:
    """One waiting request: where it reads, how long it waits, and the functions that run and answer it."""

    topic: str
    queue_id: int
    queue_offset: int
    group: str
    request: RemotingCommand
    channel: Channel
    reply: Reply
    message_filter: MessageFilter
    held_at_ms: int
    timeout_ms: int
    run_again: Callable[[HeldPull], None] = field(repr=False)
    state: str = HELD
    deadline: Deadline | None = field(default=None, repr=False)


class HeldPulls(BrokerTable[QueueKey, list[HeldPull]]):
    """(topic, queue id) -> the pulls held for that queue, oldest first. Mirrors PullRequestHoldService.

    Each pull is run again once, after it has left the table, by the function that it carries.
    """

    def __init__(
        self,
        clock: Clock,
        max_offset: Callable[[str, int], int],
        *,
        check_period_ms: int = CHECK_PERIOD_MS,
        note: Callable[..., None] = lambda *_, **__: None,
    ) -> None:
        self._clock = clock
        self._max_offset = max_offset
        self._period_ms = check_period_ms
        self._origin_ms = clock.now_ms()
        self._note = note
        self._entries: dict[QueueKey, list[HeldPull]] = {}

    def hold(self, pull: HeldPull) -> None:
        """Hold a pull until a message arrives or its time is over. Mirrors suspendPullRequest."""
        self._entries.setdefault((pull.topic, pull.queue_id), []).append(pull)
        self._check_at(pull, pull.held_at_ms + pull.timeout_ms, "pull.hold")
        if self._max_offset(pull.topic, pull.queue_id) > pull.queue_offset:
            pull.state = HELD_PULL[pull.state, LOOK]  # there is a message although nothing was read
            self._check_at(pull, pull.held_at_ms, "pull.recheck")
        self._note(
            "pull.held", group=pull.group, topic=pull.topic, queue_id=pull.queue_id, queue_offset=pull.queue_offset
        )

    def arrived(
        self, topic: str, queue_id: int, next_queue_offset: int, tags_code: int, properties: Mapping[str, str] | None
    ) -> None:
        """A message can be read: run the pulls whose filter it passes, and the others at the next check.

        Mirrors notifyMessageArriving.
        """
        waiting = self._entries.get((topic, queue_id))
        if not waiting:
            return
        for pull in list(waiting):
            if next_queue_offset <= pull.queue_offset:
                continue  # the pull waits for a later message
            if self._passes(pull.message_filter, tags_code, properties):
                self._wake(pull, ARRIVED)
            else:
                pull.state = HELD_PULL[pull.state, LOOK]
                self._check_at(pull, self._clock.now_ms(), "pull.recheck")

    def drop(self, channel: Channel) -> None:
        """Drop the pulls of a closed channel: their client is gone."""
        for waiting in list(self._entries.values()):
            for pull in [held for held in waiting if held.channel is channel]:
                self._remove(pull, DROP)

    def clear(self) -> None:
        """Drop all pulls: the broker stops."""
        for waiting in list(self._entries.values()):
            for pull in list(waiting):
                self._remove(pull, DROP)

    def held(self) -> list[HeldPull]:
        """All held pulls."""
        return [pull for waiting in self._entries.values() for pull in waiting]

    def _passes(self, message_filter: MessageFilter, tags_code: int, properties: Mapping[str, str] | None) -> bool:
        if not message_filter.matches_code(tags_code):
            return False
        return properties is None or message_filter.matches_properties(properties)

    def _check_at(self, pull: HeldPull, due_ms: int, kind: str) -> None:
        # A pull has one deadline: the earliest check that was requested.
        due_ms = next_on_grid(due_ms, self._period_ms, self._origin_ms)
        if pull.deadline is not None:
            if pull.deadline.due_ms <= due_ms:
                return
            pull.deadline.cancel()
        pull.deadline = self._clock.call_at(due_ms, lambda: self._checked(pull), kind)

    def _checked(self, pull: HeldPull) -> None:
        pull.deadline = None
        if self._clock.now_ms() >= pull.held_at_ms + pull.timeout_ms:
            self._wake(pull, TIMEOUT)
        else:
            self._wake(pull, CHECK)  # its deadline was moved forward because of a message; a check asks no filter

    def _wake(self, pull: HeldPull, why: str) -> None:
        self._remove(pull, why)
        self._note("pull.woken", group=pull.group, topic=pull.topic, queue_id=pull.queue_id, why=why)
        pull.run_again(pull)

    def _remove(self, pull: HeldPull, event: str) -> None:
        pull.state = HELD_PULL[pull.state, event]
        if pull.deadline is not None:
            pull.deadline.cancel()
            pull.deadline = None
        waiting = self._entries.get((pull.topic, pull.queue_id), [])
        if pull in waiting:
            waiting.remove(pull)
        if not waiting:
            self._entries.pop((pull.topic, pull.queue_id), None)

    def __repr__(self) -> str:
        return f"<HeldPulls: {len(self.held())} pulls on {len(self._entries)} queues>"
