"""The store: one directory, its files, and what can be asked of them.

Mirrors: org.apache.rocketmq.store.DefaultMessageStore. Lab 01 puts and gets, looks at the files and breaks them.

    put ──▶ commit log ──(dispatch)──▶ consume queues, index ──▶ get, query, search     (store_lookups)
                 │                            │
                 └─────────── flusher ────────┘──▶ disk          retention takes the oldest files away again

Left out: timer wheel, compaction, light and batch queues, DLedger, tiered store.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from mqlab.errors import UsageError
from mqlab.ports import Deadline
from mqlab.promises import Promise
from mqlab.store.commitlog import UnitTooLarge
from mqlab.store.dispatch import Arrival
from mqlab.store.put_checks import INNER_NUM, WAIT_FALSE, batch_refusal_of, refusal_of
from mqlab.store.put_result import (
    CREATE_MAPPED_FILE_FAILED,
    MESSAGE_ILLEGAL,
    OS_PAGE_CACHE_BUSY,
    PUT_OK,
    SERVICE_NOT_AVAILABLE,
    PutResult,
)
from mqlab.store.replica_waits import both_safe
from mqlab.store.store_lookups import StoreLookups
from mqlab.wire.host import Host
from mqlab.wire.message import Message
from mqlab.wire.property_names import UNIQ_KEY
from mqlab.wire.record import Record
from mqlab.wire.record_layout import MAX_PROPERTIES
from mqlab.wire.sys_flag import INNER_BATCH, TRANSACTION_PREPARED

DISPATCH_PERIOD_MS = 1
CHECKED_TOPICS_LIMIT = 10_000


class MessageStore(StoreLookups):
    """A store directory, opened for writing by this process alone.

    Under a broker: ``load``, ``start``, then deadlines of ``clock`` drive it (``auto_dispatch`` False: the
    caller dispatches). ``MessageStore.open`` makes one that drives itself. Mirrors DefaultMessageStore.
    """

    _drive: Callable[[int], None] | None = None
    _dispatch_deadline: Deadline | None = None
    on_append: Callable[[], None] | None = None  # told of each put and block while somebody copies the log

    @classmethod
    def open(
        cls, directory: str, *, memory: int | None = None, dispatch: bool = True,
        store_host: Host = ("127.0.0.1", 10911), **settings: Any,
    ) -> MessageStore:  # fmt: skip
        """Open a directory with real files and the real clock: locks, recovers, and needs no driver.

        ``settings`` are StoreConfig's; sizes of existing files win over them. ``dispatch=False``: only ``dispatch()``
        dispatches. Raises StoreError when the directory is in use or its files do not belong together.
        """
        from mqlab.store.standalone import standalone_store

        return standalone_store(cls, str(directory), memory, dispatch, store_host, settings)

    # ── putting ──

    def put(self, message: Record | Message, *, queue_id: int | None = None) -> PutResult:
        """Append one message; it becomes visible by dispatch and durable by the flush policy (``wait_durable``).

        The record is not changed: its place and store time are in the result. What RocketMQ answers by a status is not
        raised. Mirrors asyncPutMessage.
        """
        record = message if isinstance(message, Record) else self._record_of(message, queue_id)
        topic, properties = record.topic, record.properties
        if not self._accepts:
            return self._unavailable()
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
            self._remember(topic)
        next_offsets = self.queues.next_offsets
        key = (topic, record.queue_id)
        numbered = not record.sys_flag & TRANSACTION_PREPARED  # set in prepared and in rolled back messages
        queue_offset = next_offsets.get(key, 0) if numbered else 0
        timestamp = self.clock.now_ms()
        try:
            physical_offset, size = self.commit_log.append(record, queue_offset, timestamp)
        except (UnitTooLarge, UsageError) as error:
            return PutResult.refused(MESSAGE_ILLEGAL, str(error))
        except OSError as error:
            return PutResult.refused(CREATE_MAPPED_FILE_FAILED, str(error))
        if numbered:
            next_offsets[key] = queue_offset + 1
        wait = WAIT_FALSE not in properties
        result = PutResult(PUT_OK, physical_offset, size, queue_offset, timestamp, record.store_host, wait)
        if not self.flusher.is_armed:
            self.flusher.after_put()
        if self.on_append is not None:
            self.on_append()
        if self._note is not None:
            self._note_stored(record, result)
        if self._drive is not None:
            self._drive(timestamp)
        elif self._dispatch_deadline is None:
            self._arm_dispatch()
        return result

    def put_batch(self, records: list[Record]) -> PutResult:
        """Append several messages of one queue side by side in one file, or none of them. Mirrors asyncPutMessages."""
        if not self._accepts:
            return self._unavailable()
        refusal = batch_refusal_of(records, self._max_body)
        if refusal is not None:
            return refusal
        first = records[0]
        key = (first.topic, first.queue_id)
        queue_offset = self.queues.next_offsets.get(key, 0)
        timestamp = self.clock.now_ms()
        try:
            offsets = self.commit_log.append_batch(records, queue_offset, timestamp)
        except (UnitTooLarge, UsageError) as error:
            return PutResult.refused(MESSAGE_ILLEGAL, str(error))
        except OSError as error:
            return PutResult.refused(CREATE_MAPPED_FILE_FAILED, str(error))
        self.queues.next_offsets[key] = queue_offset + len(records)
        result = PutResult(
            PUT_OK, offsets[0], offsets[-1] - offsets[0], queue_offset, timestamp, first.store_host,
            WAIT_FALSE not in first.properties, tuple(offsets[:-1]),
        )  # fmt: skip
        if not self.flusher.is_armed:
            self.flusher.after_put()
        if self.on_append is not None:
            self.on_append()
        if self._note is not None:
            self._note_stored(first, result)
        if self._drive is not None:
            self._drive(timestamp)
        elif self._dispatch_deadline is None:
            self._arm_dispatch()
        return result

    def append_block(self, physical_offset: int, block: bytes) -> bool:
        """A slave takes a piece of its master's log, as it is; what it brings is dispatched like a put.

        False when it does not belong at this log's end or no file can hold it. Mirrors appendToCommitLog.
        """
        if self._state != "running":
            return False
        try:
            appended = self.commit_log.append_block(physical_offset, block)
        except OSError as error:
            self._note_problem("replication", physical_offset, str(error))
            return False
        if not appended:
            self._note_problem("replication", physical_offset, f"{len(block)} bytes do not fit at the log's end")
            return False
        if not self.flusher.is_armed:
            self.flusher.after_put()
        if self.on_append is not None:
            self.on_append()
        if self._dispatch_deadline is None:
            self._arm_dispatch()
        return True

    def _note_problem(self, where: str, physical_offset: int, reason: str) -> None:
        if self._note is not None:
            self._note("store.problem", where=where, physical_offset=physical_offset, reason=reason)

    def _remember(self, topic: str) -> None:
        """A checked topic is not checked again."""
        if len(self._checked_topics) >= CHECKED_TOPICS_LIMIT:
            self._checked_topics.clear()
        self._checked_topics.add(topic)

    def _record_of(self, message: Message, queue_id: int | None) -> Record:
        from mqlab.wire import properties

        if not isinstance(message, Message):
            raise UsageError(f"{message!r} is no message", hint='store.put(Message("orders", b"...", tags="paid"))')
        if queue_id is not None and (not isinstance(queue_id, int) or queue_id < 0):
            raise UsageError(f"queue_id={queue_id!r} is no queue", hint="queues are numbered from 0")
        return Record(
            message.topic, message.body, queue_id or 0, message.flag, properties=properties.encode(message.properties),
            born_timestamp=self.clock.now_ms(), born_host=(self.store_host[0], 0), store_host=self.store_host,
        )  # fmt: skip

    def _unavailable(self) -> PutResult:
        if self._state != "running":
            return PutResult.refused(SERVICE_NOT_AVAILABLE, f"the store is {self._state}, not running")
        if self.config.broker_role == "SLAVE":
            return PutResult.refused(SERVICE_NOT_AVAILABLE, "the store of a slave takes its master's log only")
        if not self.is_writeable:
            return PutResult.refused(SERVICE_NOT_AVAILABLE, "the store is not writeable: the disk is full or failed")
        return PutResult.refused(OS_PAGE_CACHE_BUSY, "the page cache is busy: the disk does not keep up")

    def _note_stored(self, record: Record, result: PutResult) -> None:
        assert self._note is not None
        self._note(
            "message.stored", topic=record.topic, queue_id=record.queue_id, queue_offset=result.queue_offset,
            physical_offset=result.physical_offset, size=result.size, count=result.message_count,
            msg_id=record.property_map.get(UNIQ_KEY) or result.offset_msg_id,
        )  # fmt: skip

    def wait_durable(self, result: PutResult) -> Promise[str]:
        """Resolves to PUT_OK, or to what took too long: FLUSH_DISK_TIMEOUT by the flush policy, FLUSH_SLAVE_TIMEOUT by
        the number of copies a SYNC_MASTER wants. Mirrors handleDiskFlushAndHA.
        """
        if result.physical_offset < 0:
            return Promise.of(result.status)
        answer = self.flusher.wait(result)
        if self.replica_waits.concern(result):
            answer = both_safe(answer, self.replica_waits.wait(result))
        if self._drive is not None:
            self._drive(self.clock.now_ms())
        return answer

    # ── dispatching ──

    def dispatch(self, max_units: int | None = None) -> int:
        """Dispatch what is confirmed, at most so many units; how many it was."""
        done = self.dispatcher.run(self.confirm_offset, max_units)
        if done:
            self.flusher.after_dispatch(done)
        return done

    @property
    def on_arrival(self) -> Arrival | None:
        """Called for each dispatched unit: topic, queue id, next queue offset, tags code, store time, properties."""
        return self._on_arrival

    @on_arrival.setter
    def on_arrival(self, action: Arrival | None) -> None:
        self._on_arrival = self.dispatcher.on_arrival = action

    def _arm_dispatch(self) -> None:
        if (
            self.auto_dispatch
            and self._dispatch_deadline is None
            and self._state == "running"
            and self.dispatcher.reput_from < self.confirm_offset
        ):
            self._dispatch_deadline = self.clock.call_later(DISPATCH_PERIOD_MS, self._timed_dispatch, "store.dispatch")

    def _timed_dispatch(self) -> None:
        self._dispatch_deadline = None
        before = self.dispatcher.reput_from
        self.dispatch()
        if self.dispatcher.reput_from != before:
            self._arm_dispatch()

    def _flushed(self) -> None:
        if self.config.is_sync_flush:
            self._arm_dispatch()

    def _started(self) -> None:
        self._arm_dispatch()

    def shutdown(self) -> None:
        """Dispatch and flush everything, close the files; the abort file goes when nothing is missing."""
        if self._dispatch_deadline is not None:
            self._dispatch_deadline.cancel()
        super().shutdown()

    def drive_by(self, run_due: Callable[[int], None], *, dispatch: bool) -> None:
        """Let every put flush (SYNC_FLUSH) and dispatch before it returns; ``run_due(now_ms)`` runs due timers."""

        def run_due_and_dispatch(now_ms: int) -> None:
            run_due(now_ms)
            self.dispatch()

        self._drive = run_due_and_dispatch if dispatch else run_due
        self._dispatches_at_close = dispatch
        self._drive(self.clock.now_ms())

    def delete_topic(self, topic: str) -> bool:
        """Delete a topic's queues; False when it has none. Its messages stay in the log until that is cleaned.

        A crash brings back at most those that recovery reads again, as in RocketMQ.
        """
        if topic not in self.queues.queues:
            return False
        self.deleted_topics.add(topic, self.commit_log.max_offset)
        return self.queues.delete_topic(topic)
