"""The store: one directory, its files, and what can be asked of them.

Mirrors: org.apache.rocketmq.store.DefaultMessageStore. Lab 01 puts and gets, looks at the files and breaks them.

    put ──▶ commit log ──(dispatch)──▶ consume queues, index ──▶ get, query, search
                 │                            │
                 └─────────── flusher ────────┘──▶ disk          retention takes the oldest files away again

    state       what all parts share       admission     whether puts are accepted     reader      get
    life        load, start, shutdown      dispatching   when the log is dispatched    lookups     by key, time, place
    retention   which files are deleted    flusher       when bytes are synced         replica_waits

Left out: compaction, light and batch queues, DLedger, tiered store.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any

from mqlab.errors import StoreError, UsageError
from mqlab.rocketmq.ports import Clock, Files, Note
from mqlab.rocketmq.promises import Promise
from mqlab.rocketmq.store.admission import Admission
from mqlab.rocketmq.store.commitlog import UnitTooLarge
from mqlab.rocketmq.store.config import StoreConfig
from mqlab.rocketmq.store.dispatch import Arrival, Dispatcher
from mqlab.rocketmq.store.dispatching import Dispatching
from mqlab.rocketmq.store.flush import Flusher
from mqlab.rocketmq.store.get_result import GetResult, QueryResult
from mqlab.rocketmq.store.getting import MAX_PULL_BYTES, MessageFilter, Reader, TagCodes
from mqlab.rocketmq.store.life import NEW, OPEN, StoreLife
from mqlab.rocketmq.store.lookups import Lookups
from mqlab.rocketmq.store.put_checks import INNER_NUM, WAIT_FALSE, batch_refusal_of, record_of, refusal_of
from mqlab.rocketmq.store.put_result import PUT_OK, PutResult, not_appended
from mqlab.rocketmq.store.reading.index_table import END_OF_TIME_MS
from mqlab.rocketmq.store.recovery.recovery import RecoveryReport
from mqlab.rocketmq.store.replica_waits import ReplicaWaits, both_safe
from mqlab.rocketmq.store.retention import Retention
from mqlab.rocketmq.store.state import StoreState
from mqlab.rocketmq.wire.host import Host
from mqlab.rocketmq.wire.message import Message
from mqlab.rocketmq.wire.properties import value_of
from mqlab.rocketmq.wire.property_names import UNIQ_KEY
from mqlab.rocketmq.wire.record import Record
from mqlab.rocketmq.wire.record_layout import MAX_PROPERTIES
from mqlab.rocketmq.wire.sys_flag import INNER_BATCH, TRANSACTION_PREPARED
from mqlab.rocketmq.wire.units import CqUnit

CHECKED_TOPICS_LIMIT = 10_000
_UNIQ_KEY = UNIQ_KEY.encode("ascii")


class MessageStore(AbstractContextManager["MessageStore"]):
    """A store directory, opened for writing by this process alone.

    Under a broker: ``load``, ``start``, then deadlines of ``clock`` drive it (``auto_dispatch`` False: the
    caller dispatches). ``MessageStore.open`` makes one that drives itself. Mirrors DefaultMessageStore.
    """

    def __init__(
        self,
        directory: str,
        *,
        files: Files,
        clock: Clock,
        config: StoreConfig | None = None,
        store_host: Host = ("127.0.0.1", 10911),
        note: Note | None = None,
        note_messages: bool = True,
        memory_bytes: int | None = None,
        auto_dispatch: bool = True,
        process_id: int = 0,
    ) -> None:
        config = config if config is not None else StoreConfig()
        self.directory = directory
        self.files = files
        self.clock = clock
        self.store_host = store_host
        self.on_append: Callable[[], None] | None = None  # called after each append while a copy of the log is sent
        self._note = note if note_messages else None
        self._max_body = config.max_message_size
        self._checked_topics: set[str] = set()

        # 1. What all parts share.
        self.state = state = StoreState(directory, files, clock, note, config, NEW, clock.now_ms())
        self.commit_log = state.commit_log
        self.queues = state.queues
        self.index = state.index
        self.checkpoint = state.checkpoint
        self.deleted_topics, self.failures = state.deleted_topics, state.failures

        # 2. The parts, bottom up: each is handed the state and the parts that it calls.
        self.admission = Admission(state)
        self.dispatcher = Dispatcher(state, self._note)
        self.flusher = Flusher(state, self.dispatcher)
        self.dispatching = Dispatching(state, self.dispatcher, self.flusher, auto_dispatch=auto_dispatch)
        self.retention = Retention(state, on_disk_full=self.admission.set_disk_full)
        self.replica_waits = ReplicaWaits(state)
        self.reader = Reader(state, memory_bytes)
        self.lookups = Lookups(state)
        self.life = StoreLife(
            state,
            self.dispatcher,
            self.flusher,
            self.dispatching,
            self.retention,
            self.replica_waits,
            self.admission,
            process_id,
        )

    @classmethod
    def open(
        cls,
        directory: str,
        *,
        memory: int | None = None,
        dispatch: bool = True,
        store_host: Host = ("127.0.0.1", 10911),
        **settings: Any,
    ) -> MessageStore:
        """Open a directory with real files and the real clock: locks, recovers, and needs no driver.

        ``settings`` are StoreConfig's; sizes of existing files win over them. ``dispatch=False``: only ``dispatch()``
        dispatches. Raises StoreError when the directory is in use or its files do not belong together.
        """
        from mqlab.rocketmq.store.standalone import standalone_store

        return standalone_store(cls, str(directory), memory, dispatch, store_host, settings)

    def load(self) -> RecoveryReport:
        """Lock the directory, find its files, recover. Raises StoreError when it is in use or its files do not fit."""
        return self.life.load()

    def start(self) -> None:
        """Begin to take messages: the abort file is there until a clean shutdown."""
        self.life.start()

    def shutdown(self) -> None:
        """Dispatch and flush everything, close the files; the abort file is removed if nothing is missing."""
        self.life.shutdown()

    def __exit__(self, *error: object) -> None:
        self.life.shutdown()

    @property
    def recovery_report(self) -> RecoveryReport:
        """What the load found and did."""
        return self.life.report

    @property
    def config(self) -> StoreConfig:
        """The settings in use; sizes are those of the files. To replace them changes what every part reads."""
        return self.state.config

    @config.setter
    def config(self, config: StoreConfig) -> None:
        self.state.config = config

    def put(self, message: Record | Message, *, queue_id: int | None = None) -> PutResult:
        """Append one message; it becomes visible by dispatch and durable by the flush policy (``wait_durable``).

        The record is not changed: its place and store time are in the result. Where RocketMQ answers with a status,
        nothing is raised. Mirrors asyncPutMessage.
        """
        # 1. Whether it may be stored. A topic that was accepted before is not checked again, other limits are.
        record = message if isinstance(message, Record) else record_of(message, queue_id, self.store_host, self.clock)
        topic, properties = record.topic, record.properties
        if not self.admission.is_open:
            return self.admission.refusal()
        if (
            topic not in self._checked_topics
            or len(record.body) > self._max_body
            or len(properties) > MAX_PROPERTIES
            or record.sys_flag & INNER_BATCH
            or INNER_NUM in properties
        ):
            refusal = refusal_of(record, self._max_body)
            if refusal is not None:
                return refusal
            if len(self._checked_topics) >= CHECKED_TOPICS_LIMIT:
                self._checked_topics.clear()
            self._checked_topics.add(topic)

        # 2. Its number in the queue. Half and rolled back messages are in no queue: they get none.
        next_offsets = self.queues.next_offsets
        key = (topic, record.queue_id)
        is_numbered = not record.sys_flag & TRANSACTION_PREPARED  # the bit is set in rolled back messages, too
        queue_offset = next_offsets.get(key, 0) if is_numbered else 0
        timestamp = self.clock.now_ms()
        try:
            physical_offset, size = self.commit_log.append(record, queue_offset, timestamp)
        except (UnitTooLarge, UsageError, OSError, MemoryError) as error:
            self.admission.append_failed(error)
            return not_appended(error)
        if is_numbered:
            next_offsets[key] = queue_offset + 1

        # 3. The answer, and what follows an append.
        wait = WAIT_FALSE not in properties
        result = PutResult(PUT_OK, physical_offset, size, queue_offset, timestamp, record.store_host, wait)
        self._appended(timestamp, record, result)
        return result

    def put_batch(self, records: list[Record]) -> PutResult:
        """Append several messages of one queue side by side in one file, or none of them. Mirrors asyncPutMessages."""
        if not self.admission.is_open:
            return self.admission.refusal()
        refusal = batch_refusal_of(records, self._max_body)
        if refusal is not None:
            return refusal
        first, next_offsets = records[0], self.queues.next_offsets
        key = (first.topic, first.queue_id)
        queue_offset = next_offsets.get(key, 0)
        timestamp = self.clock.now_ms()  # one time for all: consumers see them stored together
        try:
            offsets = self.commit_log.append_batch(records, queue_offset, timestamp)
        except (UnitTooLarge, UsageError, OSError, MemoryError) as error:
            self.admission.append_failed(error)
            return not_appended(error)
        next_offsets[key] = queue_offset + len(records)
        wait, size = WAIT_FALSE not in first.properties, offsets.pop() - offsets[0]
        result = PutResult(PUT_OK, offsets[0], size, queue_offset, timestamp, first.store_host, wait, tuple(offsets))
        self._appended(timestamp, first, result)
        return result

    def append_block(self, physical_offset: int, block: bytes) -> bool:
        """A slave takes a piece of its master's log, as it is; what it brings is dispatched like a put.

        False when it does not belong at this log's end or no file can hold it. Mirrors appendToCommitLog.
        """
        state = self.state
        if state.phase != "running":
            return False
        try:
            if not self.commit_log.append_block(physical_offset, block):
                state.problem("replication", f"{len(block)} bytes do not fit here", physical_offset=physical_offset)
                return False
        except (OSError, MemoryError) as error:
            self.admission.append_failed(error)
            return False
        self._appended(self.clock.now_ms())
        return True

    def _appended(self, now_ms: int, record: Record | None = None, result: PutResult | None = None) -> None:
        """What follows every append: a flush is armed, slaves are served, the journal gets a note, dispatch is armed.

        Each of these may arm a timer of the same millisecond; such timers go off in this order.
        """
        if not self.flusher.is_armed:
            self.flusher.after_put()
        if self.on_append is not None:
            self.on_append()
        if self._note is not None and record is not None and result is not None:
            self._note(
                "message.stored",
                topic=record.topic,
                queue_id=record.queue_id,
                queue_offset=result.queue_offset,
                physical_offset=result.physical_offset,
                size=result.size,
                count=result.message_count,
                msg_id=value_of(record.properties, _UNIQ_KEY) or result.offset_msg_id,
            )
        if not self.dispatching.is_armed:
            self.dispatching.after_append(now_ms)

    def wait_durable(self, result: PutResult) -> Promise[str]:
        """Resolves to PUT_OK, FLUSH_DISK_TIMEOUT or FLUSH_SLAVE_TIMEOUT. Mirrors handleDiskFlushAndHA."""
        if result.physical_offset < 0:
            return Promise.of(result.status)
        config = self.state.config
        answer = self.flusher.wait(result)
        if config.in_sync_replicas > 1 and config.broker_role == "SYNC_MASTER" and result.wait_store_msg_ok:
            answer = both_safe(answer, self.replica_waits.wait(result))
        if self.dispatching.driver is not None:
            self.dispatching.driver(self.clock.now_ms())
        return answer

    def dispatch(self, max_units: int | None = None) -> int:
        """Dispatch what is confirmed, at most this many units. Returns how many."""
        return self.dispatching.dispatch(max_units)

    @property
    def on_arrival(self) -> Arrival | None:
        """Called for each dispatched unit: topic, queue id, next queue offset, tags code, store time, properties."""
        return self.dispatcher.on_arrival

    @on_arrival.setter
    def on_arrival(self, action: Arrival | None) -> None:
        self.dispatcher.on_arrival = action

    @property
    def confirm_offset(self) -> int:
        """Up to where messages may be dispatched: what is flushed under SYNC_FLUSH, else all (getConfirmOffset)."""
        return self.dispatching.confirm_offset

    @property
    def dispatch_behind_bytes(self) -> int:
        """How much of the log is not dispatched yet."""
        return self.dispatching.bytes_behind

    def get(
        self,
        topic: str,
        queue_id: int,
        queue_offset: int,
        max_nums: int = 32,
        *,
        sub_expression: str = "*",
        message_filter: MessageFilter | None = None,
        max_bytes: int = MAX_PULL_BYTES,
    ) -> GetResult:
        """Messages of a queue from an offset on. ``sub_expression``: tags as in a subscription, matched by hash only.

        Raises StoreError when the store is closed. Mirrors getMessage.
        """
        if self.state.phase not in OPEN:
            raise self._not_open()
        if message_filter is None and sub_expression != "*":
            message_filter = TagCodes(sub_expression)
        return self.reader.get(topic, queue_id, queue_offset, max_nums, message_filter, max_bytes)

    def query(
        self, topic: str, key: str, max_nums: int = 64, begin_ms: int = 0, end_ms: int = END_OF_TIME_MS
    ) -> QueryResult:
        """Messages under a key (or unique key) of a topic; hash collisions are among them. Mirrors queryMessage."""
        if self.state.phase not in OPEN:
            raise self._not_open()
        return self.lookups.query(topic, key, max_nums, begin_ms, end_ms)

    def min_offset(self, topic: str, queue_id: int) -> int:
        """The first queue offset that can be read."""
        return queue.min_queue_offset if (queue := self.queues.find(topic, queue_id)) else 0

    def max_offset(self, topic: str, queue_id: int) -> int:
        """The queue offset after the last dispatched message."""
        return queue.max_queue_offset if (queue := self.queues.find(topic, queue_id)) else 0

    def consume_queue_unit(self, topic: str, queue_id: int, queue_offset: int) -> CqUnit | None:
        """Where a queue's message is in the log, None when the queue has none at that offset."""
        return self.lookups.consume_queue_unit(topic, queue_id, queue_offset)

    def message_at(self, physical_offset: int) -> Record | None:
        """The message whose unit begins there; None when none does, or when its body does not match its check sum."""
        return self.lookups.message_at(physical_offset)

    def store_time_at(self, topic: str, queue_id: int, queue_offset: int) -> int | None:
        """When a queue's message was stored, ms; None when it is not there."""
        return self.lookups.store_time_at(topic, queue_id, queue_offset)

    def search_offset(self, topic: str, queue_id: int, timestamp_ms: int, boundary: str = "lower") -> int:
        """Lower: the first queue offset stored at that time or later; upper: the last not later. 0 without a queue."""
        return self.lookups.search_offset(topic, queue_id, timestamp_ms, boundary)

    def topics(self) -> dict[str, list[int]]:
        """Every topic that has queues here, with their ids."""
        return self.queues.topics()

    def _not_open(self) -> StoreError:
        return StoreError(f"{self.directory}: the store is {self.state.phase}", hint="open it with MessageStore.open")

    def delete_topic(self, topic: str) -> bool:
        """Delete a topic's queues; False when it has none. Its messages stay in the log until that is cleaned.

        A crash brings back at most those that recovery reads again, as in RocketMQ.
        """
        if topic not in self.queues.queues:
            return False
        self.deleted_topics.add(topic, self.commit_log.max_offset)
        return self.queues.delete_topic(topic)

    @property
    def min_physical_offset(self) -> int:
        return self.commit_log.min_offset

    @property
    def max_physical_offset(self) -> int:
        return self.commit_log.max_offset

    @property
    def flushed_offset(self) -> int:
        """Everything of the log before this survives a power cut."""
        return self.commit_log.flushed_where

    def is_resident(self, physical_offset: int) -> bool:
        """Whether a message counts as in memory: near enough to the log's end."""
        return self.commit_log.max_offset - physical_offset <= self.reader.memory_bound

    def __repr__(self) -> str:
        log = f"log {self.min_physical_offset}..{self.max_physical_offset} flushed {self.flushed_offset}"
        dispatched = f"dispatched {self.dispatcher.reput_from}"
        return f"<{type(self).__name__} {self.directory} {self.state.phase}: {log}, {dispatched}>"
