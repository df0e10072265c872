"""A learner's parts in the clients of a Lab: the cache of a queue, the division of queues, the fault strategy.

Each takes the place that a setting of the client has for it, and is watched there: the cache next to RocketMQ's own.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from mqlab.lab.parts.broken import anything, ask, broken, is_whole
from mqlab.lab.parts.folder import OwnParts
from mqlab.rocketmq.client.consuming.process_queue import ProcessQueue
from mqlab.rocketmq.wire.message import MessageExt, MessageQueue

SMALLEST_LEFT_RULE = "remove_message returns the smallest offset that is left: that is where the group may move to"
ONE_PAST_RULE = (
    "When nothing is left, remove_message returns one past the largest offset that was ever put in: the next to read"
)
EMPTY_RULE = "When the queue was empty already, there is no offset to move: remove_message returns -1"
OWNER_RULE = "Every queue of the list has one owner, and only members of the list are owners"
SHARES = "a dictionary: member -> list of its queues"


def client_settings(parts: OwnParts, kind: str) -> dict[str, Any]:
    """The settings by which a client of a kind ("producer", "consumer") gets these parts."""
    if kind == "producer":
        return {} if parts.strategy is None else {"mq_fault_strategy": WatchedFaults(parts.strategy())}
    settings: dict[str, Any] = {}
    if parts.process_queue is not None:
        settings["process_queue"] = watched_cache(parts.process_queue)
    if parts.sticky is not None:
        settings["allocate_message_queue_strategy"] = WatchedDivision(parts.sticky)
    return settings


class WatchedFaults:
    """A learner's fault strategy; what is not True or False stops the world."""

    def __init__(self, part: Any) -> None:
        self._part = part

    def is_available(self, broker_name: str, now_ms: int) -> bool:
        """The part's answer."""
        return self._truth("is_available", broker_name, now_ms)

    def is_reachable(self, broker_name: str) -> bool:
        """The part's answer."""
        return self._truth("is_reachable", broker_name)

    def update(self, broker_name: str, latency_ms: int, now_ms: int, *, isolation: bool, reachable: bool) -> None:
        """Tell the part of a send."""

        def update(*sent: Any) -> None:
            self._part.update(*sent, isolation=isolation, reachable=reachable)

        ask("MyFaults.update", update, broker_name, latency_ms, now_ms, fits=anything, form="nothing")

    def _truth(self, method: str, *arguments: Any) -> bool:
        asked = getattr(self._part, method)
        return bool(ask(f"MyFaults.{method}", asked, *arguments, fits=_is_truth, form="True or False"))


class WatchedDivision:
    """A learner's division of queues; a queue without an owner, or with two, stops the world."""

    name = "STICKY"

    def __init__(self, divide: Callable[..., Any]) -> None:
        self._divide = divide

    def allocate(
        self, group: str, client_id: str, queues: Sequence[MessageQueue], client_ids: Sequence[str]
    ) -> list[MessageQueue]:
        """The queues of one member."""
        shares = ask("sticky", self._divide, list(queues), list(client_ids), fits=_are_shares, form=SHARES)
        shared = [queue for share in shares.values() for queue in share]
        if sorted(shared) != sorted(queues) or set(shares) - set(client_ids):
            raise broken("sticky", OWNER_RULE, (list(queues), list(client_ids)), "each queue once", shares)
        return list(shares.get(client_id, ()))


def watched_cache(kind: Callable[[], Any]) -> Callable[[], Any]:
    """A learner's class of caches whose answers are compared with those of RocketMQ's own ProcessQueue."""

    def make() -> Any:
        cache, right = kind(), ProcessQueue()
        put, remove, clear = cache.put_message, cache.remove_message, cache.clear

        def put_message(messages: Sequence[MessageExt]) -> Any:
            right.put_message(messages)
            return ask("MyProcessQueue.put_message", put, messages, fits=anything, form="nothing")

        def remove_message(messages: Sequence[MessageExt]) -> Any:
            was_empty, expected = right.msg_count == 0, right.remove_message(messages)
            returned = ask("MyProcessQueue.remove_message", remove, messages, fits=is_whole, form="a whole number")
            if returned != expected:
                rule = EMPTY_RULE if was_empty else SMALLEST_LEFT_RULE if right.msg_count else ONE_PAST_RULE
                raise broken("MyProcessQueue.remove_message", rule, (messages,), expected, returned)
            return returned

        def clear_both() -> None:
            right.clear()
            clear()

        cache.put_message, cache.remove_message, cache.clear = put_message, remove_message, clear_both
        return cache

    return make


def _is_truth(value: object) -> bool:
    return isinstance(value, bool)


def _are_shares(value: Any) -> bool:
    return isinstance(value, dict) and all(isinstance(share, list | tuple) for share in value.values())
