"""Where a read of queues begins or ends, as an option says it and as offsets of queues.

Mirrors: startingOffsets, endingOffsets and startingTimestamp of Spark's source for Kafka.

    earliest, latest                                        the first message that is still there; after the last
    {"orders": {"broker-a": {"0": 17, "1": "latest"}}}      these queues so, the others by the option's default
    2026-01-31T09:30:00                                     the first message stored at or after this time

Left out: -1 and -2 for latest and earliest.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

from mqlab.data.spark.log_places import EARLIEST, LATEST
from mqlab.data.spark.marks import Marked, mark_in, marked, offset_in
from mqlab.data.spark.option_values import time_of
from mqlab.errors import UsageError, did_you_mean
from mqlab.rocketmq.wire.message import MessageQueue

Bounds = Mapping[MessageQueue, tuple[int, int]]
Offsets = dict[MessageQueue, int]
OffsetsAsJson = dict[str, dict[str, dict[str, Marked]]]


@dataclass(frozen=True, slots=True)
class Places:
    """What an option said: ``named`` queues have an offset or a word, the others ``default`` or a time."""

    default: str
    at_ms: int | None = None
    named: Mapping[MessageQueue, int | str] = field(default_factory=dict)
    option: str = ""

    def offsets(self, bounds: Bounds, search: Callable[[Sequence[MessageQueue], int], Offsets]) -> Offsets:
        """The offset of every queue of ``bounds``; ``search`` finds those of a time.

        Raises UsageError for a queue that is not there and an offset beyond its end. An offset before the queue's first
        is kept: what it means is decided where it is read.
        """
        unknown = [queue for queue in self.named if queue not in bounds]
        if unknown:
            there = sorted(str(queue.queue_id) for queue in bounds if _beside(queue, unknown[0]))
            brokers = sorted({queue.broker_name for queue in bounds if queue.topic == unknown[0].topic})
            hint = f"queues there are {', '.join(there)}" if there else f"brokers are {', '.join(brokers)}"
            raise UsageError(f"{self.option}: there is no queue {unknown[0]!r}", hint=hint)
        offsets = dict(search(list(bounds), self.at_ms)) if self.at_ms is not None else {}
        for queue, (first, end) in bounds.items():
            target = self.named.get(queue, offsets.get(queue, self.default))
            offset = {EARLIEST: first, LATEST: end}[target] if isinstance(target, str) else target
            if offset > end:
                raise UsageError(f"{self.option}: {queue!r} ends at {end}, before {offset}", hint="or say latest")
            offsets[queue] = offset
        return offsets


def _beside(queue: MessageQueue, other: MessageQueue) -> bool:
    return (queue.topic, queue.broker_name) == (other.topic, other.broker_name)


def places_of(
    options: Mapping[str, str], offsets: str, timestamp: str, topics: Sequence[str], default: str
) -> Places | None:
    """The places of two options of which one can be given; None without either. Raises UsageError."""
    if offsets in options and timestamp in options:
        raise UsageError(f"{offsets} and {timestamp} both say where", hint="give one of them")
    at_ms = time_of(options, timestamp)
    if at_ms is not None:
        return Places(default, at_ms, option=timestamp)
    if offsets not in options:
        return None
    text = options[offsets].strip()
    if text.lower() in (EARLIEST, LATEST):
        return Places(text.lower(), option=offsets)
    expected = f'{EARLIEST}, {LATEST} or offsets such as {{"{topics[0]}": {{"broker-a": {{"0": 17}}}}}}'
    problem = UsageError(
        f"option {offsets} is {text!r}: expected {expected}",
        hint="topic, broker and queue id, each a text, then a number",
    )
    try:
        named = {queue: offset_in(target) for queue, target in _named(json.loads(text))}
    except (ValueError, TypeError, AttributeError):
        raise problem from None
    for queue, target in named.items():
        if queue.topic not in topics:
            raise UsageError(f"option {offsets} names {queue.topic!r}", hint=did_you_mean(queue.topic, topics))
        if not (target in (EARLIEST, LATEST) if isinstance(target, str) else type(target) is int and target >= 0):
            raise problem
    return Places(default, named=named, option=offsets)


def _named(value: Any) -> list[tuple[MessageQueue, Any]]:
    return [
        (MessageQueue(topic, broker, int(queue_id)), target)
        for topic, brokers in value.items()
        for broker, queues in brokers.items()
        for queue_id, target in queues.items()
    ]


def as_json(
    offsets: Mapping[MessageQueue, int], marks: Mapping[MessageQueue, int | None] = MappingProxyType({})
) -> OffsetsAsJson:
    """Offsets as an option has them, and, with the marks of queues, as Spark keeps them in a checkpoint.

    >>> as_json({MessageQueue("orders", "broker-a", 0): 17})
    {'orders': {'broker-a': {'0': 17}}}
    """
    nested: OffsetsAsJson = {}
    for queue in sorted(offsets):
        nested.setdefault(queue.topic, {}).setdefault(queue.broker_name, {})[str(queue.queue_id)] = marked(
            offsets[queue], marks.get(queue)
        )
    return nested


def from_json(nested: OffsetsAsJson) -> Offsets:
    """The offsets of a checkpoint."""
    return {queue: offset_in(value) for queue, value in _named(nested)}


def marks_from_json(nested: OffsetsAsJson) -> dict[MessageQueue, int]:
    """The marks of a checkpoint: of the queues that have one."""
    return {queue: mark for queue, value in _named(nested) if (mark := mark_in(value)) is not None}
