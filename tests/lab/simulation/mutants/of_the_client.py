"""Defects of the client: offsets, listeners, pulls, rebalance."""

from __future__ import annotations

from typing import Any

from mqlab.rocketmq.client.consuming import rebalance
from mqlab.rocketmq.client.consuming.concurrently import ConsumeConcurrently
from mqlab.rocketmq.client.consuming.offset_store import RemoteOffsetStore
from mqlab.rocketmq.client.consuming.orderly import ConsumeOrderly
from mqlab.rocketmq.client.consuming.process_queue import ProcessQueue
from mqlab.rocketmq.client.consuming.pull_loop import PullLoop
from mqlab.rocketmq.promises import Promise
from mqlab.rocketmq.wire import shares
from tests.lab.simulation.mutants.patching import Mutant, Patch, does_nothing, wrapped


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


def offset_is_moved_while_listeners_run(patch: Patch) -> None:
    def correct(self: Any, request: Any) -> None:
        self._state.offset_store.update_offset(request.queue, request.next_offset, increase_only=True)

    patch.setattr(PullLoop, "_correct_offset", correct)


def commits_queues_it_no_longer_has(patch: Patch) -> None:
    def persist_all(self: Any, queues: Any) -> None:
        for queue, offset in list(self._offsets.items()):
            self._commit(queue, offset)

    patch.setattr(RemoteOffsetStore, "persist_all", persist_all)
    does_nothing(patch, RemoteOffsetStore, "remove_offset")


def refused_in_order_is_finished(patch: Patch) -> None:
    patch.setattr(ConsumeOrderly, "_must_suspend", lambda *_: Promise.of(False))


def refused_in_order_is_not_put_back(patch: Patch) -> None:
    does_nothing(patch, ProcessQueue, "make_message_to_consume_again")


def two_tasks_on_a_queue(patch: Patch) -> None:
    patch.setattr(ConsumeOrderly, "enter", lambda *_: True)
    wrapped(patch, ProcessQueue, "put_message", lambda original, self, messages: original(self, messages) or True)


def the_newest_first_in_order(patch: Patch) -> None:
    def take(original: Any, self: Any, batch_size: int) -> Any:
        offset = self.msg_tree_map.last_offset()
        if offset is None:
            return original(self, batch_size)
        message = self.msg_tree_map.remove(offset)
        self.consuming_msg_orderly_tree_map.put(message)
        return [message]

    wrapped(patch, ProcessQueue, "take_messages", take)


def released_while_its_listener_runs(patch: Patch) -> None:
    def release(original: Any, self: Any, queue: Any, process_queue: Any) -> Any:
        process_queue.listener_running = False
        return original(self, queue, process_queue)

    wrapped(patch, ConsumeOrderly, "release", release)


def what_cannot_be_given_back_is_forgotten(patch: Patch) -> None:
    does_nothing(patch, ConsumeConcurrently, "resubmit_later")


def pull_skips_one(patch: Patch) -> None:
    def found(original: Any, self: Any, request: Any, result: Any, asked_ms: int) -> None:
        if len(result.msg_found_list or ()) > 1:
            result.msg_found_list.pop()
        original(self, request, result, asked_ms)

    wrapped(patch, PullLoop, "_found", found)


def a_failed_pull_ends_the_loop(patch: Patch) -> None:
    does_nothing(patch, PullLoop, "_failed")


def rebalance_drops_nothing(patch: Patch) -> None:
    patch.setattr(rebalance.Rebalance, "_drop", lambda *_: Promise.of(False))


def the_last_queue_belongs_to_nobody(patch: Patch) -> None:
    def block(original: Any, items: Any, number: int, count: int) -> Any:
        mine = original(items, number, count)
        return mine[:-1] if count > 1 and number == count - 1 and len(mine) > 1 else mine

    wrapped(patch, shares, "block", block)


MUTANTS: tuple[Mutant, ...] = (
    offset_ignores_what_is_under_way,
    commits_before_the_listener,
    offset_is_moved_while_listeners_run,
    commits_queues_it_no_longer_has,
    refused_in_order_is_finished,
    refused_in_order_is_not_put_back,
    two_tasks_on_a_queue,
    the_newest_first_in_order,
    released_while_its_listener_runs,
    what_cannot_be_given_back_is_forgotten,
    pull_skips_one,
    a_failed_pull_ends_the_loop,
    rebalance_drops_nothing,
    the_last_queue_belongs_to_nobody,
)
