"""What the parts of the timer share: its files, its clocks, its settings, and the store that it puts into.

Mirrors: the fields of org.apache.rocketmq.store.timer.TimerMessageStore.

    read clock     the next moment to deliver                        read_ms
    write clock    now, rounded down to the precision                write_ms()
    queue offset   the next message of the timer topic to enqueue    queue_offset

A moment is due when the write clock has passed it: never before it, and at most one precision and a poll after it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from mqlab.rocketmq.ports import Clock, Files, Note, next_on_grid
from mqlab.rocketmq.store.config import StoreConfig
from mqlab.rocketmq.store.message_store import MessageStore
from mqlab.rocketmq.store.put_result import PutResult
from mqlab.rocketmq.store.timer.checkpoint import TimerCheckpoint
from mqlab.rocketmq.store.timer.metrics import TimerMetrics
from mqlab.rocketmq.store.timer.timer_log import TimerLog
from mqlab.rocketmq.store.timer.wheel import EMPTY_SLOT, TimerWheel
from mqlab.rocketmq.wire.names import TIMER_TOPIC
from mqlab.rocketmq.wire.record import Record

POLL_MS = 100  # at a precision of 1000 ms; the threads of a finer wheel look more often
TIMER_QUEUE = 0

Put = Callable[[Record], PutResult]


@dataclass(slots=True, eq=False)
class TimerState:
    """The state of one store's timer. Times are ms; ``origin_ms`` is its start, from where its polls count."""

    store: MessageStore
    files: Files
    clock: Clock
    note: Note
    put: Put
    origin_ms: int = 0
    read_ms: int = 0
    queue_offset: int = 0
    is_running: bool = False
    delivers: bool = True  # False on a slave: it fills its wheel and never reads it. Mirrors shouldRunningDequeue
    flushed_counters: tuple[int, int] = (0, 0)  # read clock and queue offset at the last change of the data version
    wheel: TimerWheel = field(init=False)
    log: TimerLog = field(init=False)
    checkpoint: TimerCheckpoint = field(init=False)
    metrics: TimerMetrics = field(init=False)

    def __post_init__(self) -> None:
        directory, config = self.store.directory, self.config
        self.wheel = TimerWheel(self.files, f"{directory}/timerwheel", config.timer_precision)
        self.log = TimerLog(self.files, f"{directory}/timerlog", config.mapped_file_size_timer_log)
        self.checkpoint = TimerCheckpoint(self.files, f"{directory}/config/timercheck", self.clock.now_ms())
        self.metrics = TimerMetrics(self.clock.now_ms)

    @property
    def config(self) -> StoreConfig:
        """The settings of the store."""
        return self.store.config

    @property
    def precision_ms(self) -> int:
        """How far apart the moments of the wheel are."""
        return self.wheel.precision_ms

    def floor(self, moment_ms: int) -> int:
        """The moment rounded down to the precision. Mirrors formatTimeMs."""
        return moment_ms // self.precision_ms * self.precision_ms

    def write_ms(self) -> int:
        """The write clock."""
        return self.floor(self.clock.now_ms())

    def scaled(self, ms: int) -> int:
        """A wait of RocketMQ's threads, which is shorter for a finer wheel."""
        return max(1, ms * self.precision_ms // 1000)

    def next_poll(self, earliest_ms: int) -> int:
        """The first moment from there on at which RocketMQ's threads would look."""
        return next_on_grid(max(earliest_ms, self.clock.now_ms()), self.scaled(POLL_MS), self.origin_ms)

    def next_slot_ms(self) -> int | None:
        """The next moment that has a slot, None without one."""
        return self.wheel.next_ms(self.read_ms)

    def catch_up(self) -> None:
        """Move the read clock over empty slots, up to the write clock; on a slave it stays where the master's was."""
        if self.delivers:
            due_ms = self.next_slot_ms()
            write_ms = self.write_ms()
            self.read_ms = max(self.read_ms, write_ms if due_ms is None else min(write_ms, due_ms))

    def enqueue_behind(self) -> int:
        """How many messages of the timer topic are not in the wheel yet."""
        return self.store.max_offset(TIMER_TOPIC, TIMER_QUEUE) - self.queue_offset

    def congestion(self, moment_ms: int) -> int:
        """How many messages wait for one moment. Mirrors getCongestNum."""
        return 0 if (slot := self.wheel.slot(moment_ms)) is EMPTY_SLOT else slot.num
