"""Defects that a client may have: offsets, pulls, order.

Each is a slip that a real client has had: the offset that follows the last result instead of the smallest
one under way, a queue in order that gets a second thread. Which one a cluster has is drawn from the cluster's name.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from mqlab.lab.simulation.planted.fitting import CLIENT, Change, Defect
from mqlab.rocketmq.client.consuming.concurrently import ConsumeConcurrently
from mqlab.rocketmq.client.consuming.orderly import ConsumeOrderly
from mqlab.rocketmq.promises import Promise


def _concurrently(service: Any) -> Any:
    return service if isinstance(service, ConsumeConcurrently) else None


def _orderly(service: Any) -> Any:
    return service if isinstance(service, ConsumeOrderly) else None


def _pull_loop(node: Any) -> Any:
    return getattr(node, "pull_loop", None)


def _follows_the_last(original: Any, self: Any, messages: Any, process_queue: Any, queue: Any) -> None:
    original(self, messages, process_queue, queue)
    if messages and not process_queue.dropped:
        after = max(message.queue_offset for message in messages) + 1
        self.state.offset_store.update_offset(queue, after, increase_only=True)


def _before_the_call(original: Any, self: Any, messages: Any, process_queue: Any, queue: Any, *rest: Any) -> None:
    if messages:
        self.state.offset_store.update_offset(queue, messages[-1].queue_offset + 1, increase_only=True)
    original(self, messages, process_queue, queue, *rest)


def _refused_is_done(original: Any, self: Any, failed: Any, *rest: Any) -> Any:
    if any(message.reconsume_times for message in failed):
        return []
    return (yield from original(self, failed, *rest))


def _not_given_back_is_done(original: Any, self: Any, failed: Any, *rest: Any) -> Any:
    yield from original(self, failed, *rest)
    return []


def _goes_on_behind(original: Any, self: Any, request: Any, error: Any) -> None:
    request.next_offset += 1
    original(self, request, error)


def _all_but_the_last(original: Any, self: Any, request: Any, result: Any, asked_ms: int) -> None:
    if len(result.msg_found_list or ()) > 1:
        result.msg_found_list.pop()
    original(self, request, result, asked_ms)


def _passes_over(original: Any, self: Any, messages: Any, queue: Any) -> Any:
    if any(message.reconsume_times for message in messages):
        return Promise.of(False)
    return original(self, messages, queue)


def _taking(is_passed_over: Callable[[Any, Any], bool]) -> Change:
    """Take the next batch as if some of the messages were not there."""

    def next_batch(original: Any, self: Any, process_queue: Any, *rest: Any) -> Any:
        tree = process_queue.msg_tree_map
        passed_over = [message for message in tree.messages() if is_passed_over(message, tree)]
        if len(passed_over) == len(tree):
            passed_over = []
        for message in passed_over:
            tree.remove(message.queue_offset)
        messages = original(self, process_queue, *rest)
        for message in passed_over:
            tree.put(message)
        return messages

    return next_batch


_newest_first = _taking(lambda message, tree: message.queue_offset != tree.last_offset())
_refused_last = _taking(lambda message, tree: message.reconsume_times > 0)

DEFECTS = (
    Defect(CLIENT, "finished", _concurrently, {"remove": _follows_the_last}, in_service=True),
    Defect(CLIENT, "finished", _concurrently, {"submit": _before_the_call}, in_service=True),
    Defect(CLIENT, "finished", _concurrently, {"give_back": _refused_is_done}, in_service=True),
    Defect(CLIENT, "finished", _concurrently, {"give_back": _not_given_back_is_done}, in_service=True),
    Defect(CLIENT, "finished", _orderly, {"_must_suspend": _passes_over}, in_service=True),
    Defect(CLIENT, "pulled", _pull_loop, {"_failed": _goes_on_behind}),
    Defect(CLIENT, "pulled", _pull_loop, {"_found": _all_but_the_last}),
    Defect(CLIENT, "in order", _orderly, {"next_batch": _newest_first}, in_service=True),
    Defect(CLIENT, "in order", _orderly, {"next_batch": _refused_last}, in_service=True),
)
