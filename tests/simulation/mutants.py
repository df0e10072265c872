"""Real defects, put into mqlab's functions in memory: the simulation must find each of them.

Each mutant is a function of pytest's ``monkeypatch``; ``MUTANTS`` names them. No file of the package knows of them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from mqlab.broker import send_back
from mqlab.broker.replication.slave_synchronize import SlaveSynchronize
from mqlab.broker.schedule import Schedule
from mqlab.broker.tables import offsets
from mqlab.broker.tables.queue_locks import QueueLocks
from mqlab.broker.transactions import Transactions
from mqlab.client.consuming import rebalance
from mqlab.client.consuming.concurrently import ConsumeConcurrently
from mqlab.client.consuming.orderly import ConsumeOrderly
from mqlab.client.consuming.process_queue import ProcessQueue
from mqlab.client.consuming.pull_loop import PullLoop
from mqlab.promises import Promise
from mqlab.store.consumequeue import ConsumeQueue
from mqlab.store.flush import Flusher
from mqlab.store.put_result import PUT_OK
from mqlab.store.recovery.recovery import Recovery

Patch = pytest.MonkeyPatch
Mutant = Callable[[Patch], None]


def wrapped(patch: Patch, owner: Any, name: str, change: Callable[..., Any]) -> None:
    """Replace a method by ``change(original, *arguments)``."""
    original = getattr(owner, name)
    patch.setattr(owner, name, lambda *arguments, **named: change(original, *arguments, **named))


def offset_ignores_what_is_under_way(patch: Patch) -> None:
    def remove(original: Any, self: Any, messages: Any) -> int:
        return -1 if original(self, messages) < 0 else self.queue_offset_max + 1

    wrapped(patch, ProcessQueue, "remove_message", remove)


def commits_before_the_listener(patch: Patch) -> None:
    def submit(original: Any, self: Any, messages: Any, process_queue: Any, queue: Any, *rest: Any) -> None:
        if messages:
            self.state.offset_store.update_offset(queue, messages[-1].queue_offset + 1)
        original(self, messages, process_queue, queue, *rest)

    wrapped(patch, ConsumeConcurrently, "submit", submit)


def refused_in_order_is_finished(patch: Patch) -> None:
    patch.setattr(ConsumeOrderly, "_must_suspend", lambda *_: Promise.of(False))


def lock_is_given_to_everyone(patch: Patch) -> None:
    patch.setattr(QueueLocks, "try_lock", lambda self, group, queues, client_id: list(queues))


def lock_is_never_given_back(patch: Patch) -> None:
    patch.setattr(QueueLocks, "unlock", lambda *_: None)
    patch.setattr(QueueLocks, "_expired", lambda *_: False)


def released_while_its_listener_runs(patch: Patch) -> None:
    def release(original: Any, self: Any, queue: Any, process_queue: Any) -> Any:
        process_queue.listener_running = False
        return original(self, queue, process_queue)

    wrapped(patch, ConsumeOrderly, "release", release)


def rebalance_drops_nothing(patch: Patch) -> None:
    patch.setattr(rebalance.Rebalance, "_drop", lambda *_: Promise.of(False))


def answered_before_the_disk(patch: Patch) -> None:
    patch.setattr(Flusher, "wait", lambda *_: Promise.of(PUT_OK))


def no_sync(patch: Patch) -> None:
    def sync_log(self: Any, least_pages: int = 0) -> bool:
        self._log.queue.flushed_where = self._log.max_offset
        for action in self.on_flushed:
            action()
        return True

    patch.setattr(Flusher, "sync_log", sync_log)


def recovery_dispatches_nothing(patch: Patch) -> None:
    wrapped(patch, Recovery, "_scan_file", lambda original, self, mapped, _: original(self, mapped, 1 << 60))


def recovery_cuts_the_last_unit(patch: Patch) -> None:
    def scan(original: Any, self: Any, *arguments: Any) -> int:
        end = original(self, *arguments)
        return int(self.report.last_unit_offset) if self.report.units_scanned > 1 else int(end)

    wrapped(patch, Recovery, "_scan", scan)


def retry_at_once(patch: Patch) -> None:
    patch.setattr(send_back, "FIRST_RETRY_LEVEL", 1)


def one_retry_too_many(patch: Patch) -> None:
    wrapped(patch, send_back.SendBack, "_max_tries", lambda original, *rest: original(*rest) + 1)


def dead_too_early(patch: Patch) -> None:
    wrapped(patch, send_back.SendBack, "_max_tries", lambda original, *rest: original(*rest) - 1)


def given_back_and_not_stored(patch: Patch) -> None:
    patch.setattr(send_back.SendBack, "consumer_send_msg_back", lambda self, channel, request, reply: request.reply())


def delayed_message_skipped_at_start(patch: Patch) -> None:
    def first(original: Any, self: Any, queue_id: int, queue_offset: int) -> int:
        found = int(original(self, queue_id, queue_offset))
        return found + 1 if queue_offset and found == queue_offset else found

    wrapped(patch, Schedule, "_first_readable", first)


def rolled_back_is_committed(patch: Patch) -> None:
    def end(original: Any, self: Any, channel: Any, request: Any, reply: Any) -> Any:
        request.ext_fields["commitOrRollback"] = "8"
        return original(self, channel, request, reply)

    wrapped(patch, Transactions, "end_transaction", end)


def slave_copies_no_offsets(patch: Patch) -> None:
    patch.setattr(SlaveSynchronize, "_copy", lambda *_: Promise.of(None))


def offsets_of_the_file_are_one_too_large(patch: Patch) -> None:
    def parsed(original: Any, text: str) -> Any:
        version, table = original(text)
        return version, {key: {q: offset + 1 for q, offset in queues.items()} for key, queues in table.items()}

    wrapped(patch, offsets, "_parsed", parsed)


def pull_skips_one(patch: Patch) -> None:
    def found(original: Any, self: Any, request: Any, result: Any, asked_ms: int) -> None:
        if len(result.msg_found_list or ()) > 1:
            result.msg_found_list.pop()
        original(self, request, result, asked_ms)

    wrapped(patch, PullLoop, "_found", found)


def tags_are_not_in_the_queue(patch: Patch) -> None:
    def put(original: Any, self: Any, physical_offset: int, size: int, tags_code: int, queue_offset: int) -> bool:
        return bool(original(self, physical_offset, size, tags_code + (self.topic == "orders"), queue_offset))

    wrapped(patch, ConsumeQueue, "put", put)


MUTANTS: tuple[Mutant, ...] = (
    offset_ignores_what_is_under_way, commits_before_the_listener, refused_in_order_is_finished,
    lock_is_given_to_everyone, lock_is_never_given_back, released_while_its_listener_runs, rebalance_drops_nothing,
    answered_before_the_disk, no_sync, recovery_dispatches_nothing, recovery_cuts_the_last_unit, retry_at_once,
    one_retry_too_many, dead_too_early, given_back_and_not_stored, delayed_message_skipped_at_start,
    rolled_back_is_committed, slave_copies_no_offsets, offsets_of_the_file_are_one_too_large, pull_skips_one,
    tags_are_not_in_the_queue,
)  # fmt: skip
