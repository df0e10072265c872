"""The timer service of one broker: it fills the wheel from the timer topic and delivers what is due.

Mirrors: org.apache.rocketmq.store.timer.TimerMessageStore.

    load     after the store: files are read, slots revised           (recovery)
    start    polls count from here; what is due goes out at once
    arrived  a message became readable in the timer topic             (enqueuing, dequeuing, flushing arm their steps)
    stop     the check file is written for the last time

There is no step while nothing waits: the next slot is one deadline.
"""

from __future__ import annotations

from mqlab.rocketmq.ports import Clock, Files, Note
from mqlab.rocketmq.store.message_store import MessageStore
from mqlab.rocketmq.store.timer.delivering import Deliverer
from mqlab.rocketmq.store.timer.dequeuing import Dequeuer
from mqlab.rocketmq.store.timer.enqueuing import Enqueuer
from mqlab.rocketmq.store.timer.flushing import TimerFlusher
from mqlab.rocketmq.store.timer.metrics import TimerMetrics
from mqlab.rocketmq.store.timer.recovery import recover
from mqlab.rocketmq.store.timer.state import Put, TimerState
from mqlab.rocketmq.store.timer.wheel import TimerWheel


class TimerMessageStore:
    """The timed messages of one store."""

    def __init__(self, store: MessageStore, files: Files, clock: Clock, *, note: Note = lambda *_, **__: None) -> None:
        self.state = state = TimerState(store, files, clock, note, store.put)
        self._deliverer = Deliverer(state, self._go_on)
        self._enqueuer = Enqueuer(state, self._deliverer, self._changed)
        self._dequeuer = Dequeuer(state, self._deliverer, self._changed)
        self._flusher = TimerFlusher(state, self._deliverer)

    def load(self) -> None:
        """Read the files. Raises StoreError for files that do not belong there, CorruptionError for metrics."""
        recover(self.state)
        self._flusher.metrics_file.load_as(self.state.metrics.decode)

    def start(self, put: Put, *, delivers: bool) -> None:
        """Begin. ``put`` stores what leaves the wheel; ``delivers`` is False on a slave, which only fills its own."""
        state = self.state
        state.put = put
        state.delivers = delivers
        state.origin_ms = state.clock.now_ms()
        state.is_running = True
        state.flushed_counters = (state.read_ms, state.queue_offset)
        self._enqueuer.arm()
        self._dequeuer.arm()

    def stop(self) -> None:
        """End cleanly: everything goes to its file, if the timer was ever used."""
        state = self.state
        if not state.is_running:
            return
        self._enqueuer.stop()
        self._dequeuer.stop()
        if self.is_used:
            self._flusher.flush()
        state.is_running = False
        self._flusher.stop()
        self._deliverer.stop()
        state.wheel.close()
        state.log.queue.close()

    @property
    def is_used(self) -> bool:
        """Whether this store ever had a timed message; one that had none gets no files."""
        state = self.state
        return bool(len(state.wheel) or state.log.queue.mapped_files or state.queue_offset)

    def arrived(self) -> None:
        """A message of the timer topic became readable."""
        self._enqueuer.arm()

    def _changed(self) -> None:
        """The wheel or a clock has changed."""
        self._dequeuer.arm()
        self._flusher.arm()

    def _go_on(self) -> None:
        """A put that had to wait is done: go on where it stopped."""
        self._enqueuer.run()
        self._dequeuer.run()
        self._enqueuer.arm()

    @property
    def wheel(self) -> TimerWheel:
        """The slots."""
        return self.state.wheel

    @property
    def metrics(self) -> TimerMetrics:
        """How many messages of each topic wait."""
        return self.state.metrics

    def check_point(self) -> bytes:
        """The 56 bytes of the check point as of now; the answer to GET_TIMER_CHECK_POINT."""
        self._flusher.prepare_check_point()
        return self.state.checkpoint.encode()

    @property
    def is_waiting(self) -> bool:
        """Whether timed messages wait for the wheel or in it."""
        state = self.state
        return state.enqueue_behind() > 0 or state.next_slot_ms() is not None

    def take_over_check_point(self, data: bytes) -> bool:
        """A slave learns how far its master is; False if it knew. Mirrors SlaveSynchronize.syncTimerCheckPoint."""
        state = self.state
        before = state.checkpoint.encode()
        own = state.checkpoint.log_flushed, state.checkpoint.queue_offset
        state.checkpoint.decode(data)
        state.checkpoint.log_flushed, state.checkpoint.queue_offset = own
        state.read_ms = state.checkpoint.read_ms
        self._enqueuer.arm()
        self._flusher.arm()
        return state.checkpoint.encode() != before

    def take_over_metrics(self, text: str) -> bool:
        """A slave uses its master's counts; False if it has them already. Raises CorruptionError."""
        before = self.metrics.data_version
        self.metrics.decode(text)
        return self.metrics.data_version != before

    def behind_ms(self) -> int:
        """How far the read clock is behind: up to a precision while the timer keeps up."""
        self.state.catch_up()
        return self.state.write_ms() - self.state.read_ms

    def status(self) -> dict[str, int]:
        """The timer's lines of GET_BROKER_RUNTIME_INFO."""
        state = self.state
        state.catch_up()
        return {
            "timerReadBehind": (state.clock.now_ms() - state.read_ms) // 1000,
            "timerOffsetBehind": state.enqueue_behind(),
            "timerCongestNum": sum(slot.num for slot in state.wheel.pending(state.read_ms)),
        }

    def __repr__(self) -> str:
        state = self.state
        return f"<TimerMessageStore {state.store.directory} {len(state.wheel)} slots, next {state.next_slot_ms()}>"
