"""The messages of one owned queue that were pulled and are not finished: decides how far the offset may move.

Mirrors: ProcessQueue.

    pulled        2101 2102 2103 … 2200          queue_offset_max = 2200
    done               2102 2103 … 2200          smallest left = 2101: the offset stays 2101
    2101 done too                                nothing left: the offset is queue_offset_max + 1 = 2201

    put_message ─▶ msg_tree_map ─ take_messages (orderly) ─▶ consuming map ─ commit ─▶ gone
                        │                                        └─ rollback ─▶ back
                        └─ remove_message (concurrent) ─▶ gone

Left out: the two locks (a node runs one step at a time; ``listener_running``: an orderly batch is out) and POP.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from mqlab.errors import UsageError
from mqlab.rocketmq.state_table import StateTable
from mqlab.rocketmq.wire import property_names
from mqlab.rocketmq.wire.java_numbers import parse_long
from mqlab.rocketmq.wire.message import MessageExt

PULL_MAX_IDLE_TIME_MS = 120_000
REBALANCE_LOCK_MAX_LIVE_TIME_MS = 30_000
REBALANCE_LOCK_INTERVAL_MS = 20_000
MIB = 1024 * 1024

FREE, LOCKED, LEAVING, DROPPED = "FREE", "LOCKED", "LEAVING", "DROPPED"
OWNED_QUEUE = StateTable(
    "a queue that a consumer owns",
    FREE,
    [
        (FREE, "lock", LOCKED),
        (LOCKED, "lock", LOCKED),
        (LOCKED, "unlock", FREE),
        (FREE, "unlock", FREE),
        (FREE, "drop", DROPPED),
        (LOCKED, "drop", LEAVING),
        (LEAVING, "drop", LEAVING),
        (LEAVING, "lock", LEAVING),  # the answer of a renewal that was under way
        (LEAVING, "unlock", DROPPED),
        (DROPPED, "drop", DROPPED),
        (DROPPED, "unlock", DROPPED),
        (DROPPED, "lock", LEAVING),  # the broker gave it after all; the next renewal does not ask for it
    ],
)
_FLAGS = {FREE: (False, False), LOCKED: (False, True), LEAVING: (True, True), DROPPED: (True, False)}
_STATE_OF = {flags: state for state, flags in _FLAGS.items()}


def move(process_queue: Any, event: str) -> None:
    """Lock, unlock or drop an owned queue: sets ``dropped`` and ``locked``, also those of a learner's own class.

    A dropped queue is no longer pulled or consumed. One that was locked when it was dropped is LEAVING: its listener
    may still be running, and the lock is given back afterwards.
    """
    state = OWNED_QUEUE[_STATE_OF[bool(process_queue.dropped), bool(process_queue.locked)], event]
    process_queue.dropped, process_queue.locked = _FLAGS[state]


class MessageTree:
    """Messages by queue offset, with the smallest and the largest at hand. Stands in for Java's TreeMap.

    Offsets that were removed stay in the sorted list until they reach one of its ends.
    """

    __slots__ = ("_messages", "_offsets", "_start")

    def __init__(self) -> None:
        self._messages: dict[int, MessageExt] = {}
        self._offsets: list[int] = []
        self._start = 0

    def put(self, message: MessageExt) -> bool:
        """Add a message; True when its offset was not there."""
        offset = message.queue_offset
        new = offset not in self._messages
        self._messages[offset] = message
        if new:
            if not self._offsets or offset > self._offsets[-1]:
                self._offsets.append(offset)
            else:
                index = bisect_left(self._offsets, offset, self._start)
                if self._offsets[index] != offset:
                    insort(self._offsets, offset, self._start)
        return new

    def remove(self, queue_offset: int) -> MessageExt | None:
        """Take a message out; None when its offset is not there."""
        return self._messages.pop(queue_offset, None)

    def first_offset(self) -> int | None:
        """The smallest offset, None when empty."""
        if not self._messages:
            self.clear()
            return None
        while self._offsets[self._start] not in self._messages:
            self._start += 1
        if self._start > 1024:
            del self._offsets[: self._start]
            self._start = 0
        return self._offsets[self._start]

    def last_offset(self) -> int | None:
        """The largest offset, None when empty."""
        if not self._messages:
            self.clear()
            return None
        while self._offsets[-1] not in self._messages:
            self._offsets.pop()
        return self._offsets[-1]

    def first(self) -> MessageExt | None:
        """The message with the smallest offset."""
        offset = self.first_offset()
        return None if offset is None else self._messages[offset]

    def clear(self) -> None:
        """Remove everything."""
        self._messages.clear()
        self._offsets.clear()
        self._start = 0

    def __contains__(self, queue_offset: object) -> bool:
        return queue_offset in self._messages

    def __len__(self) -> int:
        return len(self._messages)

    def messages(self) -> list[MessageExt]:
        """All messages, smallest offset first."""
        return [self._messages[offset] for offset in sorted(self._messages)]


class ProcessQueue:
    """The messages that a consumer has cached of one queue. Offsets are queue offsets, sizes bytes of body, times ms.

    A learner's own class takes its place with the setting ``process_queue=``, see new_process_queue.
    """

    def __init__(self, now_ms: int = 0) -> None:
        self.msg_tree_map = MessageTree()
        self.consuming_msg_orderly_tree_map = MessageTree()
        self.msg_count = 0
        self.msg_size = 0
        self.queue_offset_max = 0
        self.msg_acc_cnt = 0
        self.dropped = False
        self.locked = False
        self.consuming = False
        self.listener_running = False
        self.try_unlock_times = 0
        self.last_pull_timestamp = now_ms
        self.last_consume_timestamp = now_ms
        self.last_lock_timestamp = now_ms

    def put_message(self, messages: Sequence[MessageExt]) -> bool:
        """Cache pulled messages. True when no orderly task works on this queue yet: one must be started."""
        for message in messages:
            if self.msg_tree_map.put(message):
                self.msg_count += 1
                self.msg_size += len(message.body)
                self.queue_offset_max = message.queue_offset
        if messages:
            newest = messages[-1]
            # How far behind the end of the queue this consumer is, for an operator.
            max_offset = newest.properties.get(property_names.MAX_OFFSET)
            behind = parse_long(max_offset) - newest.queue_offset if max_offset is not None else 0
            if behind > 0:
                self.msg_acc_cnt = behind
        dispatch = not self.consuming and bool(self.msg_tree_map)
        self.consuming = self.consuming or dispatch
        return dispatch

    def remove_message(self, messages: Iterable[MessageExt]) -> int:
        """Take finished messages out; returns where the group may move to: the smallest left, or one past the largest.

        -1 when nothing was cached.
        """
        # Already cleared, by a reset or another listener's end: then there is no offset to move.
        tree = self.msg_tree_map
        if not tree:
            return -1
        for message in messages:
            if tree.remove(message.queue_offset) is not None:
                self._uncount(message)
        smallest = tree.first_offset()
        return self.queue_offset_max + 1 if smallest is None else smallest

    def contains_message(self, message: MessageExt) -> bool:
        """True while the message's offset is cached and not taken."""
        return message.queue_offset in self.msg_tree_map

    def max_span(self) -> int:
        """Largest minus smallest cached offset, 0 when empty."""
        first, last = self.msg_tree_map.first_offset(), self.msg_tree_map.last_offset()
        return 0 if first is None or last is None else last - first

    def first_message(self) -> MessageExt | None:
        """The cached message with the smallest offset."""
        return self.msg_tree_map.first()

    def take_messages(self, batch_size: int) -> list[MessageExt]:
        """Move up to ``batch_size`` smallest messages to the consuming map (orderly). None left: consuming ends."""
        taken: list[MessageExt] = []
        while len(taken) < batch_size and (message := self.msg_tree_map.first()) is not None:
            self.msg_tree_map.remove(message.queue_offset)
            self.consuming_msg_orderly_tree_map.put(message)
            taken.append(message)
        if not taken:
            self.consuming = False
        return taken

    def commit(self) -> int:
        """Everything taken is finished; the offset after the largest of it. Raises UsageError when nothing is taken."""
        largest = self.consuming_msg_orderly_tree_map.last_offset()
        if largest is None:
            raise UsageError(
                "commit with no message taken", hint="a batch was committed already, or the queue was cleared"
            )
        for message in self.consuming_msg_orderly_tree_map.messages():
            self._uncount(message)
        self.consuming_msg_orderly_tree_map.clear()
        return largest + 1

    def rollback(self) -> None:
        """Put everything taken back."""
        for message in self.consuming_msg_orderly_tree_map.messages():
            self.msg_tree_map.put(message)
        self.consuming_msg_orderly_tree_map.clear()

    def make_message_to_consume_again(self, messages: Iterable[MessageExt]) -> None:
        """Put these taken messages back."""
        for message in messages:
            self.consuming_msg_orderly_tree_map.remove(message.queue_offset)
            self.msg_tree_map.put(message)

    def clear(self) -> None:
        """Remove everything cached and taken."""
        self.msg_tree_map.clear()
        self.consuming_msg_orderly_tree_map.clear()
        self.msg_count = self.msg_size = self.queue_offset_max = 0

    def is_pull_expired(self, now_ms: int) -> bool:
        """True when no pull was tried for more than two minutes: its pull loop is dead."""
        return is_pull_expired(self, now_ms)

    def is_lock_expired(self, now_ms: int) -> bool:
        """True when the broker's lock was last confirmed more than 30 s ago."""
        return now_ms - self.last_lock_timestamp > REBALANCE_LOCK_MAX_LIVE_TIME_MS

    @property
    def msg_size_mib(self) -> int:
        """Cached body bytes in whole MiB: what flow control compares."""
        return self.msg_size // MIB

    def _uncount(self, message: MessageExt) -> None:
        self.msg_count -= 1
        self.msg_size -= len(message.body)

    def __repr__(self) -> str:
        first, last = self.msg_tree_map.first_offset(), self.msg_tree_map.last_offset()
        cached = "empty" if first is None else f"{first}..{last}"
        marks = "".join(f" {name}" for name in ("dropped", "locked", "consuming") if getattr(self, name))
        return f"<ProcessQueue {self.msg_count} messages, {cached}, max {self.queue_offset_max}{marks}>"


NEEDED = (
    "put_message",
    "remove_message",
    "contains_message",
    "first_message",
    "max_span",
    "clear",
    "msg_count",
    "msg_size_mib",
)
KEPT_BY_THE_CONSUMER = {"dropped": False, "locked": False, "listener_running": False, "try_unlock_times": 0}
TIMES = ("last_pull_timestamp", "last_consume_timestamp", "last_lock_timestamp")


def is_pull_expired(process_queue: Any, now_ms: int) -> bool:
    """True when no pull was tried for two minutes. The consumer keeps that time, also in a learner's class."""
    return bool(now_ms - process_queue.last_pull_timestamp > PULL_MAX_IDLE_TIME_MS)


def new_process_queue(make: Callable[[], Any], now_ms: int) -> Any:
    """A process queue made by ``make()``: ProcessQueue, or a learner's class with the names in NEEDED.

    What the consumer itself keeps in it (dropped, locked, times) is set here. UsageError names what is missing.
    """
    queue = make()
    missing = [name for name in NEEDED if not hasattr(queue, name)]
    if missing:
        raise UsageError(
            f"{type(queue).__name__} is not a process queue: it lacks {', '.join(missing)}",
            hint="derive it from mqlab.rocketmq.client.consuming.process_queue.ProcessQueue, or write all of "
            + ", ".join(NEEDED),
        )
    for name, value in KEPT_BY_THE_CONSUMER.items():
        if not hasattr(queue, name):
            setattr(queue, name, value)
    for name in TIMES:
        setattr(queue, name, now_ms)
    return queue
