"""What the parts of one store share: its ports, its settings, its files, and the phase of its life.

Mirrors: the fields of org.apache.rocketmq.store.DefaultMessageStore.

    ports      files  clock  note         the clock's actions are attempts, see mqlab.rocketmq.store.failures
    settings   config                     one value for all parts: replacing it changes what every part reads
    files      commit_log  queues  index  checkpoint  deleted_topics
    life       phase  origin_ms           see mqlab.rocketmq.store.life
    failures   which parts have failed

A part is handed this state and the services that it calls. No part knows the store itself.
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass, field

from mqlab.rocketmq.ports import Clock, Files, Note
from mqlab.rocketmq.store.checkpoint import Checkpoint
from mqlab.rocketmq.store.commitlog import CommitLog
from mqlab.rocketmq.store.config import StoreConfig
from mqlab.rocketmq.store.consume_queues import ConsumeQueues
from mqlab.rocketmq.store.failures import Failures
from mqlab.rocketmq.store.index_service import IndexService
from mqlab.rocketmq.store.reading.file_sizes import found_sizes
from mqlab.rocketmq.store.recovery.deleted_topics import DeletedTopics


@dataclass(slots=True, eq=False)
class StoreState:
    """The state of one store; ``origin_ms`` is when it was loaded: the grid of its timers begins there."""

    directory: str
    files: Files
    clock: Clock
    note: Note | None
    config: StoreConfig
    phase: str
    origin_ms: int
    failures: Failures = field(init=False)
    commit_log: CommitLog = field(init=False)
    queues: ConsumeQueues = field(init=False)
    index: IndexService | None = field(init=False)
    checkpoint: Checkpoint = field(init=False)
    deleted_topics: DeletedTopics = field(init=False)

    def __post_init__(self) -> None:
        files, directory, config = self.files, self.directory, self.config
        self.failures = Failures(self.clock, self.note)
        self.clock = self.failures.clock
        self.commit_log = CommitLog(files, f"{directory}/commitlog", config.mapped_file_size_commit_log)
        self.queues = ConsumeQueues(files, f"{directory}/consumequeue", config)
        self.checkpoint = Checkpoint(files, f"{directory}/checkpoint")
        self.deleted_topics = DeletedTopics(files, directory, self.clock, self.note)
        self.index = None
        if config.message_index_enable:
            self.index = IndexService(files, f"{directory}/index", config, self.clock, self.checkpoint)

    def take_sizes_of_files(self) -> None:
        """Replace the configured segment sizes by those of the files that are there, before any of them is loaded."""
        stored_sizes = found_sizes(self.files, self.directory)
        sizes: dict[str, int | None] = {
            "mapped_file_size_commit_log": stored_sizes.commit_log,
            "mapped_file_size_consume_queue": stored_sizes.consume_queue,
            "max_hash_slot_num": stored_sizes.hash_slot_num,
            "max_index_num": stored_sizes.index_num,
        }
        changes = {
            name: size for name, size in sizes.items() if size is not None and size != getattr(self.config, name)
        }
        if not changes:
            return
        if self.note is not None:
            # A setting that has no effect must not pass unseen.
            self.note("store.sizes_found", **changes)
        self.config = dataclasses.replace(self.config, **changes)  # type: ignore[arg-type]
        # These parts took their sizes from the old settings when they were made.
        self.commit_log.queue.file_size = self.config.mapped_file_size_commit_log
        self.queues.config = self.config
        if self.index is not None:
            self.index.config = self.config

    def keeps(self, sharp_edge: str) -> bool:
        """Whether the store keeps a fault of RocketMQ that mqlab repairs; see SHARP_EDGES."""
        return sharp_edge in self.config.sharp_edges

    def problem(self, where: str, reason: str, **details: object) -> None:
        """Record in the journal what is wrong with the store."""
        if self.note is not None:
            self.note("store.problem", where=where, **details, reason=reason)
