"""How much was stored and read lately: counters that are read over a minute, an hour and a day.

Mirrors: StatsItemSet and BrokerStatsManager, what mqadmin statsAll shows.

    counter            key                  counts
    TOPIC_PUT_NUMS     orders               messages stored
    GROUP_GET_NUMS     orders@billing       messages that pulls got
    SNDBCK_PUT_NUMS    orders@billing       failed messages given back

Each counter is a StatsItem (mqlab.rocketmq.stats_item): minute, hour and day.
Left out: log lines, the removal of idle items (off by default).
"""

from __future__ import annotations

from collections.abc import Callable

from mqlab.rocketmq import stats_item
from mqlab.rocketmq.stats_item import HOUR_MS, MINUTE_MS, StatsItem, StatsSnapshot
from mqlab.rocketmq.wire import names

TOPIC_PUT_NUMS = "TOPIC_PUT_NUMS"
TOPIC_PUT_SIZE = "TOPIC_PUT_SIZE"
QUEUE_PUT_NUMS = "QUEUE_PUT_NUMS"
QUEUE_PUT_SIZE = "QUEUE_PUT_SIZE"
QUEUE_GET_NUMS = "QUEUE_GET_NUMS"
QUEUE_GET_SIZE = "QUEUE_GET_SIZE"
GROUP_GET_NUMS = "GROUP_GET_NUMS"
GROUP_GET_SIZE = "GROUP_GET_SIZE"
GROUP_GET_LATENCY = "GROUP_GET_LATENCY"
TOPIC_PUT_LATENCY = "TOPIC_PUT_LATENCY"
SNDBCK_PUT_NUMS = "SNDBCK_PUT_NUMS"
SNDBCK2DLQ_TIMES = "SNDBCK2DLQ_TIMES"
BROKER_PUT_NUMS = "BROKER_PUT_NUMS"
BROKER_GET_NUMS = "BROKER_GET_NUMS"
BROKER_PUT_NUMS_WITHOUT_SYSTEM_TOPIC = "BROKER_PUT_NUMS_WITHOUT_SYSTEM_TOPIC"
BROKER_GET_NUMS_WITHOUT_SYSTEM_TOPIC = "BROKER_GET_NUMS_WITHOUT_SYSTEM_TOPIC"

PARTS_OF_KEYS: dict[str, tuple[str, ...]] = {
    TOPIC_PUT_NUMS: ("topic",),
    TOPIC_PUT_SIZE: ("topic",),
    QUEUE_PUT_NUMS: ("topic", "queue"),
    QUEUE_PUT_SIZE: ("topic", "queue"),
    QUEUE_GET_NUMS: ("topic", "queue", "group"),
    QUEUE_GET_SIZE: ("topic", "queue", "group"),
    GROUP_GET_NUMS: ("topic", "group"),
    GROUP_GET_SIZE: ("topic", "group"),
    GROUP_GET_LATENCY: ("queue", "topic", "group"),
    TOPIC_PUT_LATENCY: ("queue", "topic"),
    SNDBCK_PUT_NUMS: ("topic", "group"),
    SNDBCK2DLQ_TIMES: ("topic", "group"),
}
"""The parts of each counter's key, joined by "@". Counters of the whole broker have the cluster as their key."""

DAY_MS = 86_400_000
WINDOWS = {"statsMinute": MINUTE_MS, "statsHour": HOUR_MS, "statsDay": stats_item.DAY_MS}


class DayCount:
    """A total, and what it was at the last two midnights (UTC); both are 0 after a start. Times in ms.

    >>> count = DayCount(0); count.add(5, 1_000); count.add(2, DAY_MS); count.now, count.today, count.yesterday
    (7, 5, 0)
    """

    def __init__(self, now_ms: int) -> None:
        self._day = now_ms // DAY_MS
        self.now = 0
        self.today = 0
        self.yesterday = 0

    def add(self, count: int, now_ms: int) -> None:
        """Add to the total."""
        self.look(now_ms)
        self.now += count

    def look(self, now_ms: int) -> DayCount:
        """Record the total at the midnights since the last look; returns itself."""
        day = now_ms // DAY_MS
        if day > self._day:
            self.yesterday = self.today if day == self._day + 1 else self.now
            self.today = self.now
            self._day = day
        return self


class BrokerStats:
    """The counters of one broker by name and key, lost at a restart. Mirrors BrokerStatsManager."""

    def __init__(
        self, now_ms: Callable[[], int], cluster: str, *, is_system: Callable[[str], bool], detail: bool = True
    ) -> None:
        self._now_ms = now_ms
        self._cluster = cluster
        self._is_system = is_system
        self._detail = detail
        self._origin_ms = now_ms()
        self._items: dict[tuple[str, str], StatsItem] = {}
        self._of_puts: dict[tuple[str, int], tuple[list[StatsItem], list[StatsItem], bool]] = {}
        self._of_gets: dict[tuple[str, str], tuple[list[StatsItem], StatsItem, bool]] = {}
        self.puts_of_day = DayCount(self._origin_ms)
        self.gets_of_day = DayCount(self._origin_ms)

    def add(self, name: str, key: str, value: int, times: int = 1) -> None:
        """Add to the counter with this name and key."""
        self._item(name, key).add(value, times, self._now_ms())

    def _item(self, name: str, key: str) -> StatsItem:
        try:
            return self._items[name, key]
        except KeyError:
            item = self._items[name, key] = StatsItem(self._origin_ms, self._now_ms())
            return item

    def put(self, topic: str, queue_id: int, messages: int, size: int) -> None:
        """``messages`` messages of ``size`` bytes in all were stored in this queue.

        A delayed or half message counts for the topic in which it waits, and later for its own topic.
        """
        counted = self._of_puts.get((topic, queue_id))
        if counted is None:
            counted = self._of_puts[topic, queue_id] = self._put_items(topic, queue_id)
        now_ms = self._now_ms()
        of_messages, of_bytes, is_system = counted
        for item in of_messages:
            item.add(messages, 1, now_ms)
        for item in of_bytes:
            item.add(size, 1, now_ms)
        if not is_system:
            self.puts_of_day.add(messages, now_ms)

    def _put_items(self, topic: str, queue_id: int) -> tuple[list[StatsItem], list[StatsItem], bool]:
        """The counters of messages and of bytes that a put to this queue changes; whether its topic is the system's."""
        is_system = self._is_system(topic)
        of_messages = [self._item(TOPIC_PUT_NUMS, topic), self._item(BROKER_PUT_NUMS, self._cluster)]
        of_bytes = [self._item(TOPIC_PUT_SIZE, topic)]
        if self._detail:
            of_messages.append(self._item(QUEUE_PUT_NUMS, f"{topic}@{queue_id}"))
            of_bytes.append(self._item(QUEUE_PUT_SIZE, f"{topic}@{queue_id}"))
        if not is_system:
            of_messages.append(self._item(BROKER_PUT_NUMS_WITHOUT_SYSTEM_TOPIC, self._cluster))
        return of_messages, of_bytes, is_system

    def got(self, group: str, topic: str, messages: int, size: int) -> None:
        """Count a pull that was answered with messages."""
        counted = self._of_gets.get((topic, group))
        if counted is None:
            counted = self._of_gets[topic, group] = self._get_items(topic, group)
        now_ms = self._now_ms()
        of_messages, of_bytes, is_system = counted
        for item in of_messages:
            item.add(messages, 1, now_ms)
        of_bytes.add(size, 1, now_ms)
        if not is_system:
            self.gets_of_day.add(messages, now_ms)

    def _get_items(self, topic: str, group: str) -> tuple[list[StatsItem], StatsItem, bool]:
        """The counters of messages and the one of bytes that a pull of this group from this topic moves; the same."""
        key, is_system = f"{topic}@{group}", self._is_system(topic)
        of_messages = [self._item(GROUP_GET_NUMS, key), self._item(BROKER_GET_NUMS, self._cluster)]
        if not is_system:
            of_messages.append(self._item(BROKER_GET_NUMS_WITHOUT_SYSTEM_TOPIC, self._cluster))
        return of_messages, self._item(GROUP_GET_SIZE, key), is_system

    def delivered_late(self, queue_key: str, messages: int, size: int) -> None:
        """Count a message that the schedule has delivered; ``queue_key`` is ``topic@queue@group``."""
        topic, _, group = queue_key.split("@")
        self.add(QUEUE_GET_NUMS, queue_key, messages)
        self.add(QUEUE_GET_SIZE, queue_key, size)
        self.add(GROUP_GET_NUMS, f"{topic}@{group}", messages)
        self.add(GROUP_GET_SIZE, f"{topic}@{group}", size)

    def sent_back(self, group: str, first_topic: str, topic: str, queue_id: int, size: int) -> None:
        """Count a stored copy of a failed message; the counters of the whole broker count it when it is delivered."""
        self.add(SNDBCK_PUT_NUMS, f"{first_topic}@{group}", 1)
        if topic == names.SCHEDULE_TOPIC:
            self.add(TOPIC_PUT_NUMS, topic, 1)
            self.add(TOPIC_PUT_SIZE, topic, size)
            if self._detail:
                self.add(QUEUE_PUT_NUMS, f"{topic}@{queue_id}", 1)
                self.add(QUEUE_PUT_SIZE, f"{topic}@{queue_id}", size)

    def total(self, name: str, key: str) -> int:
        """The total of a counter since the broker started."""
        item = self._items.get((name, key))
        return 0 if item is None else item.value

    def minute_tps(self, name: str, key: str) -> float:
        """The average per second over the last minute, 0.0 if nothing was ever counted."""
        windows = self.snapshots(name, key)
        return 0.0 if windows is None else windows["statsMinute"].tps

    def snapshots(self, name: str, key: str) -> dict[str, StatsSnapshot] | None:
        """Minute, hour and day of one counter, None if nothing was ever counted."""
        item = self._items.get((name, key))
        if item is None:
            return None
        now_ms = self._now_ms()
        return {name: item.snapshot(period_ms, now_ms, with_now=False) for name, period_ms in WINDOWS.items()}

    def remove_topic(self, topic: str) -> None:
        """Remove the counters of a deleted topic. Mirrors onTopicDeleted."""
        self._remove("topic", topic)

    def remove_group(self, group: str) -> None:
        """Remove the counters of a deleted group. Mirrors onGroupDeleted."""
        self._remove("group", group)

    def _remove(self, part: str, value: str) -> None:
        for name, key in list(self._items):
            if (part, value) in zip(PARTS_OF_KEYS.get(name, ()), key.split("@"), strict=False):
                del self._items[name, key]
        self._of_puts.clear()
        self._of_gets.clear()

    def __repr__(self) -> str:
        return f"<BrokerStats: {len(self._items)} counters>"
