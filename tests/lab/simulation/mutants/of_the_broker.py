"""Defects of the broker: retries, delays, held pulls, members, locks."""

from __future__ import annotations

from typing import Any

from mqlab.rocketmq.broker import putting, send_back
from mqlab.rocketmq.broker.long_polling import DROP, HeldPulls
from mqlab.rocketmq.broker.schedule import Schedule
from mqlab.rocketmq.broker.tables import offsets
from mqlab.rocketmq.broker.tables.queue_locks import QueueLocks
from tests.lab.simulation.mutants.patching import Mutant, Patch, does_nothing, wrapped


def retry_at_once(patch: Patch) -> None:
    patch.setattr(send_back, "FIRST_RETRY_LEVEL", 1)


def one_retry_too_many(patch: Patch) -> None:
    wrapped(patch, send_back.SendBackHandler, "_max_tries", lambda original, *rest: original(*rest) + 1)


def dead_too_early(patch: Patch) -> None:
    wrapped(patch, send_back.SendBackHandler, "_max_tries", lambda original, *rest: original(*rest) - 1)


def given_back_and_not_stored(patch: Patch) -> None:
    patch.setattr(
        send_back.SendBackHandler, "consumer_send_msg_back", lambda self, channel, request, reply: request.reply()
    )


def retries_are_not_counted(patch: Patch) -> None:
    def copy(original: Any, record: Any, *rest: Any) -> Any:
        made = original(record, *rest)
        made.reconsume_times = record.reconsume_times
        return made

    wrapped(patch, send_back, "_copy", copy)


def delayed_message_skipped_at_start(patch: Patch) -> None:
    def first(original: Any, self: Any, queue_id: int, queue_offset: int) -> int:
        found = int(original(self, queue_id, queue_offset))
        return found + 1 if queue_offset and found == queue_offset else found

    wrapped(patch, Schedule, "_first_readable", first)


def delayed_by_a_level_too_few(patch: Patch) -> None:
    def form(original: Any, record: Any, level: int, *more: int) -> Any:
        return original(record, max(1, level - 2) if record.topic == "orders" else level, *more)

    wrapped(patch, putting, "delayed_form", form)


def a_level_delivers_nothing(patch: Patch) -> None:
    def deliver(original: Any, self: Any, parked: Any, queue_id: int) -> bool:
        if queue_id == 1:
            return True
        return bool(original(self, parked, queue_id))

    wrapped(patch, Schedule, "_deliver", deliver)


def arrival_wakes_nobody(patch: Patch) -> None:
    does_nothing(patch, HeldPulls, "arrived")


def a_held_pull_is_dropped(patch: Patch) -> None:
    def wake(original: Any, self: Any, pull: Any, why: str) -> None:
        if len(self.held()) > 3:
            self._remove(pull, DROP if pull.state != "WOKEN" else why)
        else:
            original(self, pull, why)

    wrapped(patch, HeldPulls, "_wake", wake)


def lock_is_given_to_everyone(patch: Patch) -> None:
    patch.setattr(QueueLocks, "try_lock", lambda self, group, queues, client_id: list(queues))


def lock_is_never_given_back(patch: Patch) -> None:
    does_nothing(patch, QueueLocks, "unlock")
    patch.setattr(QueueLocks, "_expired", lambda *_: False)


def lock_is_given_back_when_it_expires(patch: Patch) -> None:
    does_nothing(patch, QueueLocks, "unlock")


def offsets_of_the_file_are_one_too_large(patch: Patch) -> None:
    def parsed(original: Any, text: str) -> Any:
        version, table = original(text)
        return version, {key: {q: offset + 1 for q, offset in queues.items()} for key, queues in table.items()}

    wrapped(patch, offsets, "_parsed", parsed)


MUTANTS: tuple[Mutant, ...] = (
    retry_at_once,
    one_retry_too_many,
    dead_too_early,
    given_back_and_not_stored,
    retries_are_not_counted,
    delayed_message_skipped_at_start,
    delayed_by_a_level_too_few,
    a_level_delivers_nothing,
    arrival_wakes_nobody,
    a_held_pull_is_dropped,
    lock_is_given_to_everyone,
    lock_is_never_given_back,
    lock_is_given_back_when_it_expires,
    offsets_of_the_file_are_one_too_large,
)
