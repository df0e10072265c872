"""Orderly pops: what of a queue is out, how often it was, and until when the queue is blocked by it.

Mirrors: ConsumerOrderInfoManager; file config/consumerOrderInfo.json.

    orders@billing  queue 0    offsets 5 6 7, acked -xx, popped at …077163 for 3000 ms, attempt a-4

    blocked      while one of them is neither acked nor visible again; the same attempt id gets the same ones again
    acked        the first one that is not is the committed offset
    counted      an offset that the pop before had, too, was consumed once more; the client sees it as reconsumeTimes
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from mqlab.errors import CorruptionError
from mqlab.rocketmq.signals import Signal
from mqlab.rocketmq.wire import java_json
from mqlab.rocketmq.wire.java_json import to_int, to_long
from mqlab.rocketmq.wire.pop import kind_of_topic

KEPT_MS = 24 * 3_600_000
NOT_POPPED, OTHER_POP = -1, -2


@dataclass(slots=True)
class OrderInfo:
    """The last orderly pop of one queue. Times are ms."""

    attempt_id: str | None
    pop_time: int
    invisible_time: int
    offsets: list[int]
    last_ms: int
    acked: int = 0
    consumed: dict[int, int] = field(default_factory=dict)
    next_visible: dict[int, int] = field(default_factory=dict)

    def visible_ms(self, queue_offset: int) -> int:
        """When a message that is out may be given again."""
        return self.next_visible.get(queue_offset, self.pop_time + self.invisible_time)

    def unacked(self) -> Iterator[int]:
        """The offsets without an ack."""
        return (offset for index, offset in enumerate(self.offsets) if not self.acked >> index & 1)

    def blocked_until(self, now_ms: int) -> int | None:
        """When the first message that is still out is visible again; None when nothing blocks."""
        return next((self.visible_ms(offset) for offset in self.unacked() if now_ms < self.visible_ms(offset)), None)

    def to_value(self) -> dict[str, Any]:
        """The entry as the file has it: offsets after the first are distances from it."""
        value: dict[str, Any] = {
            "a": self.attempt_id,
            "cm": self.acked,
            "i": self.invisible_time,
            "l": self.last_ms,
            "o": [self.offsets[0], *(offset - self.offsets[0] for offset in self.offsets[1:])] if self.offsets else [],
            "oc": dict(self.consumed),
            "ot": dict(self.next_visible) or None,
            "popTime": self.pop_time,
        }
        return {name: entry for name, entry in value.items() if entry is not None}

    @classmethod
    def from_value(cls, value: dict[str, Any]) -> OrderInfo:
        """Read an entry of the file."""
        stored = [to_long(offset) for offset in value.get("o") or []]
        offsets = stored[:1] + [stored[0] + distance for distance in stored[1:]]
        return cls(
            value.get("a"),
            to_long(value.get("popTime") or 0),
            to_long(value.get("i") or 0),
            offsets,
            to_long(value.get("l") or 0),
            to_long(value.get("cm") or 0),
            {to_long(offset): to_int(count) for offset, count in (value.get("oc") or {}).items()},
            {to_long(offset): to_long(time_ms) for offset, time_ms in (value.get("ot") or {}).items()},
        )


class OrderInfos:
    """``"topic@group"`` -> queue id -> its last orderly pop. ``changed`` follows every change."""

    def __init__(
        self, now_ms: Callable[[], int], *, is_known: Callable[[str, int], bool] = lambda topic, queue_id: True
    ) -> None:
        self._now_ms = now_ms
        self._is_known = is_known
        self.changed: Signal[[]] = Signal()
        self.unblocks_at: Signal[[str, str, int, int]] = Signal()
        self._entries: dict[str, dict[int, OrderInfo]] = {}
        self._is_used = False

    @property
    def is_used(self) -> bool:
        """Whether there ever was an orderly pop."""
        return self._is_used

    def get(self, topic: str, group: str, queue_id: int) -> OrderInfo | None:
        """The last orderly pop of a queue."""
        return self._entries.get(f"{topic}@{group}", {}).get(queue_id)

    def is_blocked(self, attempt_id: str | None, topic: str, group: str, queue_id: int, invisible_time: int) -> bool:
        """Whether a pop with this attempt id gets nothing from the queue. Mirrors checkBlock."""
        info = self.get(topic, group, queue_id)
        if info is None or (info.attempt_id is not None and info.attempt_id == attempt_id):
            return False
        if info.invisible_time <= 0:
            info.invisible_time = invisible_time
        return info.blocked_until(self._now_ms()) is not None

    def popped(
        self,
        attempt_id: str | None,
        topic: str,
        group: str,
        queue_id: int,
        pop_time: int,
        invisible_time: int,
        offsets: Sequence[int],
    ) -> str:
        """Remember a pop; returns its part of orderCountInfo. Mirrors update."""
        info = OrderInfo(attempt_id, pop_time, invisible_time, list(offsets), self._now_ms())
        before = self.get(topic, group, queue_id)
        if before is not None:
            if before.attempt_id is not None and before.attempt_id == attempt_id:
                info.consumed = before.consumed
            else:
                again = [offset for offset in offsets if offset in before.offsets]
                info.consumed = {offset: before.consumed.get(offset, 0) + 1 for offset in again}
        self._entries.setdefault(f"{topic}@{group}", {})[queue_id] = info
        self._is_used = True
        self._changed(topic, group, queue_id, info)
        kind = kind_of_topic(topic)
        parts = [f"{kind} qo{queue_id}%{offset} {count}" for offset, count in sorted(info.consumed.items())]
        least = min(info.consumed.values()) if len(info.consumed) == len(info.offsets) else 0
        return ";".join([*parts, f"{kind} {queue_id} {least}"])

    def acked(self, topic: str, group: str, queue_id: int, queue_offset: int, pop_time: int) -> int:
        """Note an ack; returns the offset to commit, NOT_POPPED or OTHER_POP. Mirrors commitAndNext."""
        info = self.get(topic, group, queue_id)
        if info is None:
            return queue_offset + 1
        if pop_time != info.pop_time:
            return OTHER_POP
        if queue_offset not in info.offsets:
            return NOT_POPPED
        info.acked |= 1 << info.offsets.index(queue_offset)
        self._changed(topic, group, queue_id, info)
        return next(info.unacked(), info.offsets[-1] + 1)

    def next_visible(
        self, topic: str, group: str, queue_id: int, queue_offset: int, pop_time: int, visible_ms: int
    ) -> None:
        """A consumer changed how long one message stays invisible. Mirrors updateNextVisibleTime."""
        info = self.get(topic, group, queue_id)
        if info is not None and info.pop_time == pop_time:
            info.next_visible[queue_offset] = visible_ms
            self._changed(topic, group, queue_id, info)

    def clear(self, topic: str, group: str, queue_id: int) -> None:
        """Nothing blocks the queue any more. Mirrors clearBlock."""
        if self._entries.get(f"{topic}@{group}", {}).pop(queue_id, None) is not None:
            self.changed()

    def _clean(self) -> None:
        """Remove entries of topics and queues that are gone, and those of a day ago. Mirrors autoClean."""
        for key in list(self._entries):
            topic = key.partition("@")[0]
            queues = self._entries[key]
            for queue_id in list(queues):
                if not self._is_known(topic, queue_id) or self._now_ms() - queues[queue_id].last_ms > KEPT_MS:
                    del queues[queue_id]
            if not queues:
                del self._entries[key]

    def _changed(self, topic: str, group: str, queue_id: int, info: OrderInfo) -> None:
        self.changed()
        until_ms = info.blocked_until(self._now_ms())
        if until_ms is not None:
            self.unblocks_at(topic, group, queue_id, until_ms)

    def encode(self) -> str:
        """The text of consumerOrderInfo.json."""
        self._clean()
        table = {
            key: {queue_id: info.to_value() for queue_id, info in queues.items()}
            for key, queues in self._entries.items()
        }
        return java_json.pretty({"table": table})

    def decode(self, text: str) -> None:
        """Use the entries of a file. Raises CorruptionError."""
        try:
            table = java_json.loads(text)["table"]
            self._entries = {
                key: {to_int(queue_id): OrderInfo.from_value(entry) for queue_id, entry in queues.items()}
                for key, queues in table.items()
            }
            self._is_used = True
        except (ValueError, TypeError, KeyError, AttributeError) as error:
            raise CorruptionError(
                "orderly pops cannot be read", expected='{"table":{"topic@group":{0:{…}}}}', found=error
            ) from error
