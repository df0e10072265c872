"""The life of a store: its directory is locked, loaded and recovered; it runs; it is closed.

Mirrors: DefaultMessageStore.load, start, shutdown and destroy. Lab 01 kills stores at every point of it.

    new ──▶ loading ──▶ loaded ──▶ running ──▶ closing ──▶ closed
            lock        recovered  abort file              everything is synced, the abort file is gone
               │                                    └────▶ aborted
               └──▶ failed                                 something could not be synced: the abort file stays,
                                                           and the next load recovers as after a crash

    lock  abort  checkpoint  commitlog/  consumequeue/<topic>/<queueId>/  index/  config/ (the broker's)

The timer wheel has a life of its own next to it (store/timer).
Left out: files of compaction, batch and light queues: they are left alone.
"""

from __future__ import annotations

from mqlab.errors import UsageError
from mqlab.rocketmq.ports import FileLock
from mqlab.rocketmq.state_table import StateTable
from mqlab.rocketmq.store.admission import Admission
from mqlab.rocketmq.store.dispatch import Dispatcher
from mqlab.rocketmq.store.dispatching import Dispatching
from mqlab.rocketmq.store.flush import Flusher
from mqlab.rocketmq.store.recovery.recovery import Recovery, RecoveryReport
from mqlab.rocketmq.store.replica_waits import ReplicaWaits
from mqlab.rocketmq.store.retention import Retention
from mqlab.rocketmq.store.state import StoreState

NEW, LOADED, RUNNING = "new", "loaded", "running"
OPEN = (LOADED, RUNNING)  # the files are there to be read
STORE_LIFE = StateTable(
    "the life of a store",
    NEW,
    [
        (NEW, "lock", "loading"),
        ("loading", "recover", LOADED),
        ("loading", "fail", "failed"),
        (LOADED, "start", RUNNING),
        (LOADED, "shut down", "closing"),
        (RUNNING, "shut down", "closing"),
        ("closing", "sync everything", "closed"),
        ("closing", "leave something", "aborted"),
    ],
)


class StoreLife:
    """Loads, starts and closes one store. ``report`` says what the last recovery found and did."""

    def __init__(
        self,
        state: StoreState,
        dispatcher: Dispatcher,
        flusher: Flusher,
        dispatching: Dispatching,
        retention: Retention,
        replica_waits: ReplicaWaits,
        admission: Admission,
        process_id: int,
    ) -> None:
        self._state = state
        self._dispatcher = dispatcher
        self._flusher = flusher
        self._dispatching = dispatching
        self._retention = retention
        self._replica_waits = replica_waits
        self._admission = admission
        self._process_id = process_id
        self._lock: FileLock | None = None
        self.report = RecoveryReport()

    def _move(self, event: str) -> None:
        state = self._state
        state.phase = STORE_LIFE[state.phase, event]
        self._admission.decide()

    def load(self) -> RecoveryReport:
        """Lock the directory, find its files, recover. Nothing is changed before the lock is held.

        Raises StoreError when another store has the directory open or files do not fit.
        """
        if self._state.phase != NEW:
            raise UsageError(f"this store was loaded before, it is {self._state.phase}", hint="make a new MessageStore")
        self._make_directory()
        if not self._state.keeps("lock_after_recovery"):
            self._take_lock()
        self._move("lock")
        try:
            self._recover()
        except BaseException:
            self._release_lock()
            self._move("fail")
            raise
        self._move("recover")
        return self.report

    def _make_directory(self) -> None:
        """Make the directory, and sync its name, so that a power cut does not remove it."""
        files, directory = self._state.files, self._state.directory
        missing = []
        path = directory
        while path and not files.exists(path):
            path = path.rpartition("/")[0]
            missing.append(path or ".")
        files.make_directory(directory)
        for parent in reversed(missing):
            files.sync_directory(parent)

    def _recover(self) -> None:
        state = self._state
        state.origin_ms = state.clock.now_ms()

        # 1. What is there: sizes first, because the files are mapped with them.
        state.take_sizes_of_files()
        state.checkpoint.load()
        report = self.report = RecoveryReport()
        report.clean_exit = not state.files.exists(f"{state.directory}/abort")
        state.commit_log.queue.load()
        state.queues.load()
        self._dispatcher.logics_msg_timestamp = state.checkpoint.logics_msg_timestamp
        if state.index is not None:
            report.index_files_deleted = state.index.load(report.clean_exit, state.checkpoint.index_msg_timestamp)
        report.problems += state.deleted_topics.load()

        # 2. What of it is whole.
        Recovery(state, self._dispatcher, report).run()

    def start(self) -> None:
        """Mark the store as running: the abort file is there until a clean shutdown."""
        state = self._state
        if state.phase != LOADED:
            raise UsageError(f"start() needs a store that was loaded, this one is {state.phase}")
        if self._lock is None:
            self._take_lock()

        # The abort file must be on the disk before the first put: else a crash would look like a clean stop.
        state.checkpoint.flush()
        state.files.write(f"{state.directory}/lock", b"lock", sync=True)
        state.files.write(f"{state.directory}/abort.bak", b"", sync=True)
        state.files.write(f"{state.directory}/abort", str(self._process_id).encode(), sync=True)
        state.files.sync_directory(state.directory)

        self._move("start")
        self._retention.arm()
        self._dispatching.arm()

    def shutdown(self) -> None:
        """Dispatch and flush everything, close the files; the abort file is removed if nothing is missing."""
        self._dispatching.close()
        state = self._state
        if state.phase not in OPEN:
            return
        was_running = state.phase == RUNNING
        self._move("shut down")

        # 1. Flush first: under SYNC_FLUSH only what is flushed may be dispatched. What is dispatched is flushed again.
        self._flusher.sync_all()
        if self._dispatching.runs_at_close:
            state.failures.attempt("store.dispatch", lambda: self._dispatcher.run(self._dispatching.confirm_offset))
        is_complete = self._flusher.sync_all() and self._dispatching.bytes_behind == 0

        # 2. No timer goes off and no file is held open from here on.
        self._flusher.close()
        self._replica_waits.close()
        self._retention.close()
        state.failures.close()
        attempt = state.failures.attempt
        if state.index is not None:
            attempt("index", state.index.close)
        attempt("commitlog", state.commit_log.queue.close)
        attempt("consumequeue", state.queues.close)

        # 3. Only a store that lacks nothing may look like one that was stopped cleanly.
        if was_running and is_complete:
            is_complete = attempt("abort", self._remove_abort_file)
        self._move("sync everything" if is_complete else "leave something")
        self._release_lock()

    def _remove_abort_file(self) -> None:
        files, directory = self._state.files, self._state.directory
        files.remove(f"{directory}/abort")
        files.sync_directory(directory)

    def _take_lock(self) -> None:
        self._lock = self._state.files.lock(f"{self._state.directory}/lock")

    def _release_lock(self) -> None:
        if self._lock is not None:
            self._lock.release()
            self._lock = None

    def __repr__(self) -> str:
        return f"<StoreLife {self._state.phase}>"
