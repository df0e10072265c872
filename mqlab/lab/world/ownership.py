"""The owners of each queue of a group over time, read from the journal: for ``lab.queue_owners``.

    queue.added   queue.dropped              the rebalance of a member
    fault.killed  fault.powered_off          a process that ends drops nothing: its end ends what it owned
    member.left                              nor does one that is shut down: it tells the broker

Retry queues are left out: no reader waits for them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from mqlab.lab.runtime.journal import Journal
from mqlab.lab.views.queue_owners import GivenMessage, Ownership
from mqlab.rocketmq.wire.message import MessageQueue
from mqlab.rocketmq.wire.names import RETRY_PREFIX

if TYPE_CHECKING:
    from mqlab.lab.world.handles import NodeHandle

DEATHS = ("fault.killed", "fault.powered_off")
ENDS = ("queue.added", "queue.dropped", "member.left", *DEATHS)


def label(queue: MessageQueue, brokers: int = 1) -> str:
    """A queue's name in a picture; its broker is named if there are several.

    >>> label(MessageQueue("orders", "broker-a", 3)), label(MessageQueue("orders", "broker-a", 3), brokers=2)
    ('orders 3', 'orders broker-a 3')
    """
    return f"{queue.topic} {queue.queue_id}" if brokers == 1 else f"{queue.topic} {queue.broker_name} {queue.queue_id}"


def spans(journal: Journal, group: str, members: Mapping[str, NodeHandle], brokers: int) -> Iterator[Ownership]:
    """What each member owned, from when to when. ``members``: the handles of the group's consumers by name."""
    owned: dict[tuple[str, MessageQueue], int] = {}

    def end(keys: Iterable[tuple[str, MessageQueue]], now_ms: int) -> Iterator[Ownership]:
        for member, queue in list(keys):
            yield Ownership(label(queue, brokers), member, owned.pop((member, queue)), now_ms)

    for record in journal:
        for change in record.changes:
            if change.kind not in ENDS or change.values.get("group", group) != group:
                continue
            values, at_ms = change.values, record.now_ms
            if change.kind == "queue.added" and not values["queue"].topic.startswith(RETRY_PREFIX):
                owned[values["client"], values["queue"]] = at_ms
            elif change.kind == "queue.dropped":
                key = (values["client"], values["queue"])
                yield from end([key] if key in owned else [], at_ms)
            elif change.kind in DEATHS:
                yield from end([key for key in owned if key[0] == record.node], at_ms)
            elif change.kind == "member.left":
                gone = _who_left(values, members)
                yield from end([key for key in owned if key[0] in gone], at_ms)
    for (member, queue), from_ms in owned.items():
        yield Ownership(label(queue, brokers), member, from_ms, None)


def _who_left(values: Mapping[str, Any], members: Mapping[str, NodeHandle]) -> list[str]:
    """The node whose client id has left. Of several with one id, those that do not run any more."""
    names = [name for name, handle in members.items() if handle.node.client_id == values["client"]]
    if values["why"] != "unregistered":  # its process ended, or the broker lost sight of it while it runs
        return []
    return names if len(names) == 1 else [name for name in names if not members[name].node.is_running]


def calls(rows: Iterable[Any], brokers: int) -> Iterator[GivenMessage]:
    """The calls of listeners; ``rows`` are deliveries."""
    for row in rows:
        if row.started_ms is not None and not row.message_queue.topic.startswith(RETRY_PREFIX):
            yield GivenMessage(
                label(row.message_queue, brokers), row.client, row.queue_offset, row.started_ms, row.ended_ms
            )
