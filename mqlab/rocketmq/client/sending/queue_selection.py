"""Which queue a message goes to: round robin over what a route offers, and selectors that look at the message.

Mirrors: TopicPublishInfo, MQFaultStrategy.selectOneMessageQueue and the MessageQueueSelector classes.

    publish info of "orders"      broker-a:0 broker-a:1 broker-b:0 broker-b:1      counter 7 -> next: 8 % 4 = 0
    a retry after broker-a        the first of the next four that is not on broker-a: broker-b:0
    selector="HASH", arg=key      equal keys, equal queue;  selector="RANDOM": any queue;  or a function of your own

Left out: SelectMessageQueueByMachineRoom (RocketMQ's returns null) and a counter per thread (a client has one).
"""

from __future__ import annotations

import random  # as a type only: the numbers come from ports.rng
from collections.abc import Callable, Sequence
from typing import Any

from mqlab.errors import UsageError
from mqlab.rocketmq.client.sending.fault_strategy import FaultStrategy
from mqlab.rocketmq.wire.java_hash import string_hash
from mqlab.rocketmq.wire.message import Message, MessageQueue

COUNTER_MASK = 0x7FFFFFFF

QueueSelector = Callable[[Sequence[MessageQueue], Message, Any], MessageQueue | None]


class PublishInfo:
    """The writable queues of one topic and the counter of the round robin. Mirrors TopicPublishInfo."""

    __slots__ = ("counter", "has_route", "queues")

    def __init__(self, queues: Sequence[MessageQueue] = (), *, has_route: bool = False) -> None:
        self.queues = list(queues)
        self.has_route = has_route  # a route was found, though it may offer no writable queue
        self.counter: int | None = None  # the first choice sets it to a random number

    def next_queue(self, rng: random.Random) -> MessageQueue:
        """The next queue in turn."""
        if self.counter is None:
            self.counter = rng.randrange(COUNTER_MASK)
        self.counter = (self.counter + 1) & COUNTER_MASK
        return self.queues[self.counter % len(self.queues)]

    def reset_counter(self, rng: random.Random) -> None:
        """Go on at a random place of the round."""
        self.counter = rng.randrange(COUNTER_MASK)

    def __repr__(self) -> str:
        return f"<PublishInfo {len(self.queues)} queues>"


def select_queue(
    info: PublishInfo,
    rng: random.Random,
    *,
    last_broker: str | None = None,
    is_retry: bool = False,
    faults: FaultStrategy | None = None,
    now_ms: int = 0,
) -> MessageQueue:
    """The queue for the next attempt. ``faults`` is None when ``send_latency_fault_enable`` is off."""
    if faults is None:
        for _ in info.queues:
            queue = info.next_queue(rng)
            if queue.broker_name != last_broker:
                return queue
        return info.next_queue(rng)
    # Three rounds, each less choosy: a broker without penalty, one that answers at all, any.
    if is_retry:
        info.reset_counter(rng)
    return (
        _first_of_round(info, rng, lambda broker: broker != last_broker and faults.is_available(broker, now_ms))
        or _first_of_round(info, rng, lambda broker: broker != last_broker and faults.is_reachable(broker))
        or info.next_queue(rng)
    )


def _first_of_round(info: PublishInfo, rng: random.Random, is_good: Callable[[str], bool]) -> MessageQueue | None:
    for _ in info.queues:
        queue = info.next_queue(rng)
        if is_good(queue.broker_name):
            return queue
    return None


def java_hash_code(arg: object) -> int:
    """hashCode of what Java would be given: String, Integer or Long (by size), Boolean.

    >>> java_hash_code("order-1"), java_hash_code(10001), java_hash_code(-7), java_hash_code(1 << 32)
    (-1207111310, 10001, 6, 1)
    """
    if isinstance(arg, bool):
        return 1231 if arg else 1237
    if isinstance(arg, int):
        folded = (arg ^ (arg >> 32)) & 0xFFFFFFFF  # Long.hashCode; for a small number >= 0 Integer's is the same
        return folded - (1 << 32) if folded & 0x80000000 else folded
    return string_hash(str(arg))


def select_by_hash(queues: Sequence[MessageQueue], message: Message, arg: object) -> MessageQueue:
    """Equal keys, equal queue (while the number of queues stays). Mirrors SelectMessageQueueByHash.

    >>> queues = [MessageQueue("orders", "broker-a", number) for number in range(8)]
    >>> [select_by_hash(queues, None, key).queue_id for key in ("order-1", "order-2", "order-1001", -7)]
    [6, 5, 7, 6]
    """
    if arg is None:
        raise UsageError("a queue by hash needs something to hash", hint='selector="HASH", arg=message.keys')
    return queues[abs(java_hash_code(arg)) % len(queues)]


class SelectByRandom:
    """Any queue. Mirrors SelectMessageQueueByRandom; ``rng`` makes it repeatable."""

    def __init__(self, rng: random.Random) -> None:
        self._rng = rng

    def __call__(self, queues: Sequence[MessageQueue], message: Message, arg: object) -> MessageQueue:
        return queues[self._rng.randrange(len(queues))]


def selector_of(chosen: QueueSelector | str, rng: random.Random) -> QueueSelector:
    """A selector as something to call: "HASH", "RANDOM" or a function. UsageError for anything else."""
    if chosen == "HASH":
        return select_by_hash
    if chosen == "RANDOM":
        return SelectByRandom(rng)
    if isinstance(chosen, str) or not callable(chosen):
        raise UsageError(f"{chosen!r} is not a selector", hint='"HASH", "RANDOM", or a function (queues, message, arg)')
    return chosen
