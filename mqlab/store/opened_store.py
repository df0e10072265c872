"""An opened store directory: its lock, its parts, its life from load to shutdown.

Mirrors: the first half of org.apache.rocketmq.store.DefaultMessageStore (load, start, shutdown). Lab 01 kills it.

    new ──load()──▶ loaded ──start()──▶ running ──shutdown()──▶ closed
         lock, files, recovery      abort file           all synced, abort file taken away, unlocked

    lock  abort  checkpoint  commitlog/  consumequeue/<topic>/<queueId>/  index/  config/ (the broker's)

Left out: files of the timer wheel, compaction, batch and light queues: they are left alone.
"""

from __future__ import annotations

import dataclasses
from types import TracebackType
from typing import Any, TypeVar

from mqlab.errors import StoreError, UsageError
from mqlab.inspector.file_sizes import found_sizes
from mqlab.ports import Clock, FileLock, Files, Note
from mqlab.store.checkpoint import Checkpoint
from mqlab.store.commitlog import CommitLog
from mqlab.store.config import StoreConfig
from mqlab.store.consume_queues import ConsumeQueues
from mqlab.store.dispatch import Arrival, Dispatcher
from mqlab.store.flush import Durability, Flusher
from mqlab.store.getting import Reader
from mqlab.store.index_service import IndexService
from mqlab.store.mapped_file import MappedFile
from mqlab.store.recovery.deleted_topics import DeletedTopics
from mqlab.store.recovery.recovery import Recovery, RecoveryReport
from mqlab.store.replica_waits import ReplicaWaits
from mqlab.store.retention import Retention
from mqlab.wire.host import Host

S = TypeVar("S", bound="OpenedStore")


class OpenedStore:
    """A store directory and its parts: commit_log, queues, index, checkpoint, dispatcher, flusher, reader."""

    def __init__(
        self, directory: str, *, files: Files, clock: Clock, config: StoreConfig | None = None,
        store_host: Host = ("127.0.0.1", 10911), note: Note | None = None, memory_bytes: int | None = None,
        auto_dispatch: bool = True, process_id: int = 0,
    ) -> None:  # fmt: skip
        self.directory = directory
        self.files = files
        self.clock = clock
        self.store_host = store_host
        self.auto_dispatch = auto_dispatch
        self.recovery_report = RecoveryReport()
        self._note = note
        self._memory_bytes = memory_bytes
        self._process_id = process_id
        self._lock: FileLock | None = None
        self._on_arrival: Arrival | None = None
        self._dispatches_at_close = auto_dispatch
        self._state = "new"
        self._is_writeable = True
        self._is_disk_full = False
        self._page_cache_busy = False
        self._accepts = False
        self._checked_topics: set[str] = set()
        self._build(config if config is not None else StoreConfig())

    def _build(self, config: StoreConfig) -> None:
        files, directory = self.files, self.directory
        self.config = config
        self._max_body = config.max_message_size
        self._confirms_flushed = config.is_sync_flush and config.broker_role != "SLAVE" and not config.read_un_committed
        self.commit_log = CommitLog(files, f"{directory}/commitlog", config.mapped_file_size_commit_log)
        self.queues = ConsumeQueues(files, f"{directory}/consumequeue", config)
        self.checkpoint = Checkpoint(files, f"{directory}/checkpoint")
        self.deleted_topics = DeletedTopics(files, directory)
        self.index = None
        if config.message_index_enable:
            self.index = IndexService(files, f"{directory}/index", config, self.clock, self.checkpoint)
        self.dispatcher = Dispatcher(self.commit_log, self.queues, self.index, config, self._note)
        self.dispatcher.on_arrival = self._on_arrival
        self.flusher = Flusher(
            self.clock, config, self.commit_log, self.queues, self.index, self.checkpoint, self.dispatcher, self._note
        )
        self.flusher.on_flushed = self._flushed
        self.retention = Retention(files, self.clock, config, self.commit_log, self.queues, self.index, self._note)
        self.replica_waits = ReplicaWaits(self.clock, config)
        self.retention.on_disk_full = self._set_disk_full
        self.commit_log.queue.on_full = self._log_file_is_full
        self.flusher.on_error = self._flush_failed
        self.reader = Reader(config, self.commit_log, self.queues, self._memory_bytes, self._note)

    def load(self) -> RecoveryReport:
        """Lock the directory, find its files, recover. Nothing is changed before the lock is held.

        Raises StoreError when another store has the directory open or files do not fit.
        """
        if self._state != "new":
            raise UsageError(f"this store was loaded already ({self._state})", hint="make a new MessageStore")
        self._make_directory()
        if "lock_after_recovery" not in self.config.sharp_edges:
            self._take_lock()
        try:
            return self._load()
        except BaseException:
            self._release_lock()
            raise

    def _make_directory(self) -> None:
        """Make the directory, and make sure that a power cut does not take it away again."""
        missing = []
        path = self.directory
        while path and not self.files.exists(path):
            path = path.rpartition("/")[0]
            missing.append(path or ".")
        self.files.make_directory(self.directory)
        for parent in reversed(missing):
            self.files.sync_directory(parent)

    def _load(self) -> RecoveryReport:
        self._build(self._with_found_sizes(self.config))
        report = self.recovery_report = RecoveryReport()
        report.clean_exit = not self.files.exists(f"{self.directory}/abort")
        self.commit_log.queue.load()
        self.queues.load()
        self.dispatcher.logics_msg_timestamp = self.checkpoint.logics_msg_timestamp
        if self.index is not None:
            report.index_files_deleted = self.index.load(report.clean_exit, self.checkpoint.index_msg_timestamp)
        report.problems += self.deleted_topics.load()
        Recovery(
            self.config, self.commit_log, self.queues, self.index, self.checkpoint, self.dispatcher,
            self.deleted_topics, report,
        ).run()  # fmt: skip
        self._state = "loaded"
        return report

    def _with_found_sizes(self, config: StoreConfig) -> StoreConfig:
        """The settings with the segment sizes of the files that are there."""
        found = found_sizes(self.files, self.directory)
        sizes: dict[str, Any] = {
            "mapped_file_size_commit_log": found.commit_log,
            "mapped_file_size_consume_queue": found.consume_queue,
            "max_hash_slot_num": found.hash_slot_num,
            "max_index_num": found.index_num,
        }
        changed = {name: size for name, size in sizes.items() if size is not None and size != getattr(config, name)}
        if changed and self._note is not None:
            self._note("store.sizes_found", **changed)
        return dataclasses.replace(config, **changed) if changed else config

    def start(self) -> None:
        """Mark the store as running: the abort file is there until a clean shutdown."""
        if self._state != "loaded":
            raise UsageError(f"start() needs a store that was loaded, this one is {self._state}")
        if self._lock is None:
            self._take_lock()
        self.checkpoint.flush()
        self.files.write(f"{self.directory}/lock", b"lock", sync=True)
        self.files.write(f"{self.directory}/abort.bak", b"", sync=True)
        self.files.write(f"{self.directory}/abort", str(self._process_id).encode(), sync=True)
        self.files.sync_directory(self.directory)
        self._state = "running"
        self._decide_to_accept()
        self.retention.arm()
        self._started()

    def shutdown(self) -> None:
        """Dispatch and flush everything, close the files; the abort file goes when nothing is missing."""
        if self._state in ("closed", "new"):
            return
        was_running, self._state = self._state == "running", "closed"
        self._decide_to_accept()
        self.flusher.sync_all()
        if self._dispatches_at_close:
            self.dispatcher.run(self.confirm_offset)
        complete = self.flusher.sync_all() and self.dispatch_behind_bytes == 0
        self.flusher.close()
        self.replica_waits.close()
        self.retention.close()
        if self.index is not None:
            self.index.close()
        self.commit_log.queue.close()
        self.queues.close()
        if was_running and complete:
            self.files.remove(f"{self.directory}/abort")
            self.files.sync_directory(self.directory)
        self._release_lock()

    def _take_lock(self) -> None:
        self._lock = self.files.lock(f"{self.directory}/lock")

    def _release_lock(self) -> None:
        if self._lock is not None:
            self._lock.release()
            self._lock = None

    def __enter__(self: S) -> S:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.shutdown()

    def _flush_failed(self, error: OSError) -> None:
        if self._note is not None:
            self._note("store.problem", where="flush", reason=str(error))
        if "flush_error_ignored" not in self.config.sharp_edges:
            self.is_writeable = False

    def _flushed(self) -> None:
        """What else happens when more of the log is synced."""

    def _started(self) -> None:
        """What else begins with ``start``."""

    @property
    def confirm_offset(self) -> int:
        """Up to where messages may be dispatched: what is flushed under SYNC_FLUSH, else all (getConfirmOffset)."""
        queue = self.commit_log.queue
        if self._confirms_flushed:
            return queue.flushed_where
        last = queue.mapped_files[-1] if queue.mapped_files else None  # what max_offset says, without its two calls
        return last.start_offset + last.wrote_position if last is not None else 0

    @property
    def dispatch_behind_bytes(self) -> int:
        """How much of the log is not dispatched yet."""
        return max(0, self.commit_log.max_offset - self.dispatcher.reput_from)

    @property
    def is_writeable(self) -> bool:
        """False when the disk is full or failed: puts answer SERVICE_NOT_AVAILABLE. Mirrors RunningFlags."""
        return self._is_writeable and not self._is_disk_full

    @is_writeable.setter
    def is_writeable(self, value: bool) -> None:
        self._is_writeable = value
        self._decide_to_accept()

    @property
    def page_cache_busy(self) -> bool:
        """A lab's fault: True makes puts answer OS_PAGE_CACHE_BUSY."""
        return self._page_cache_busy

    @page_cache_busy.setter
    def page_cache_busy(self, value: bool) -> None:
        self._page_cache_busy = value
        self._decide_to_accept()

    def _set_disk_full(self, full: bool) -> None:
        if full != self._is_disk_full:
            self._is_disk_full = full
            self._decide_to_accept()

    def _log_file_is_full(self, mapped: MappedFile) -> None:
        """Its age begins now, by the store's clock: retention goes by it."""
        self.files.set_modified_ms(mapped.path, self.clock.now_ms())
        self.retention.arm()

    def _decide_to_accept(self) -> None:
        is_master = self.config.broker_role != "SLAVE"
        writeable = self._is_writeable and not self._is_disk_full
        self._accepts = self._state == "running" and is_master and writeable and not self._page_cache_busy

    def _check_open(self) -> None:
        if self._state not in ("loaded", "running"):
            raise StoreError(f"{self.directory}: the store is {self._state}", hint="open it with MessageStore.open")

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

    def durability(self) -> Durability:
        """How far log, queues and checkpoint are written, and how far they would survive a power cut."""
        return self.flusher.durability()

    def is_resident(self, physical_offset: int) -> bool:
        """Whether a message counts as in memory: near enough to the log's end."""
        return self.commit_log.max_offset - physical_offset <= self.reader.memory_bound

    def __repr__(self) -> str:
        log = f"log {self.min_physical_offset}..{self.max_physical_offset} flushed {self.flushed_offset}"
        return f"<{type(self).__name__} {self.directory} {self._state}: {log}, dispatched {self.dispatcher.reput_from}>"
