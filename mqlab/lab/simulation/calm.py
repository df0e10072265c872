"""What must also hold in a run in which nothing fails: each message is stored once, and nothing waits without a reason.

With faults both are too much to ask: a lost answer makes a producer send again, and a dead member's lock lives on for
a minute.

    TWICE    a message that was sent once is in the log twice
    LATE     a message was pulled long after it could be read, or a queue in order waited long for its next owner;
             or, with faults as well, a queue was not pulled for two minutes
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from mqlab.lab.simulation.notes import number_of
from mqlab.lab.simulation.scene import BILLING, LEDGER, ORDERS, STEPS
from mqlab.lab.world.lab import Lab

PULLED_WITHIN_MS = 6_000
"""A held pull is woken by the message; if its filter is not sure, it looks again after 5 s at the latest."""
HANDED_OVER_WITHIN_MS = 25_000
READERS = {ORDERS: BILLING, STEPS: LEDGER}

Queue = tuple[str, str, int]
Events = Sequence[Mapping[str, Any]]


def is_calm(events: Events) -> bool:
    """Whether nothing fails among a plan's events: every fault ends by itself, and so has a duration."""
    return not any("for" in event for event in events)


def repeated(units: dict[str, list[Any]], events: Events) -> Iterator[tuple[str, str]]:
    """Messages that are stored more than once in the topic to which they were sent."""
    if not is_calm(events):
        return
    first: dict[tuple[str, int], str] = {}
    for broker, of_broker in units.items():
        for unit in of_broker:
            if unit.topic not in READERS:
                continue
            where = f"{broker} {unit.queue_id} offset {unit.queue_offset}"
            number = number_of(unit.body)
            before = first.setdefault((unit.topic, number), where)
            if before != where:
                yield "TWICE", f"message {number} of {unit.topic} was sent once and is at {before} and at {where}"


def late(lab: Lab, events: Events) -> Iterator[tuple[str, str]]:
    """Messages that waited for their pull, and queues that waited for their next owner."""
    if not is_calm(events):
        return
    readable: list[tuple[int, Queue, int]] = []
    added: dict[Queue, list[int]] = {}
    dropped: dict[Queue, list[int]] = {}
    refused: dict[Queue, list[int]] = {}
    tables = {"queue.added": added, "queue.dropped": dropped, "pull.failed": refused}
    pulled: dict[Queue, list[tuple[int, int]]] = {}
    # 1. What the journal says of the two queues of work and their readers.
    for record in lab.journal:
        for change in record.changes:
            values = change.values
            if change.kind == "message.dispatched" and values["topic"] in READERS and record.node in lab.handles:
                if lab.handles[record.node].role == "broker":
                    queue_key = (values["topic"], record.node, values["queue_id"])
                    readable.append((record.now_ms, queue_key, values["queue_offset"]))
            elif change.kind in ("queue.added", "queue.dropped", "pull.failed", "message.pulled"):
                queue = values["queue"]
                if READERS.get(queue.topic) != values["group"]:
                    continue
                queue_key = (queue.topic, queue.broker_name, queue.queue_id)
                if change.kind == "message.pulled":
                    pulled.setdefault(queue_key, []).append((record.now_ms, values["next_offset"]))
                else:
                    tables[change.kind].setdefault(queue_key, []).append(record.now_ms)
    # 2. Each message: pulled soon after it could be read, or after its queue had an owner again. A broker refuses pulls
    #    of a member whose heartbeat with the newest subscription is still to come.
    for readable_ms, queue_key, queue_offset in readable:
        pulled_ms = next(
            (at_ms for at_ms, next_offset in pulled.get(queue_key, ()) if next_offset > queue_offset), None
        )
        if pulled_ms is None:
            continue  # no member has it: that is another promise
        began = [*added.get(queue_key, ()), *refused.get(queue_key, ())]
        owner_ms = max((at_ms for at_ms in began if at_ms <= pulled_ms), default=0)
        waited_ms = pulled_ms - max(readable_ms, owner_ms)
        if waited_ms > PULLED_WITHIN_MS:
            where = " ".join(map(str, queue_key))
            yield "LATE", f"entry {queue_offset} of {where} was pulled {waited_ms} ms after it could be read"
    # 3. Each queue in order: its next owner comes soon after the one before it has let go.
    for queue_key, moments in dropped.items():
        for at_ms in moments if queue_key[0] == STEPS else ():
            next_ms = next((added_ms for added_ms in added.get(queue_key, ()) if added_ms >= at_ms), None)
            if next_ms is not None and next_ms - at_ms > HANDED_OVER_WITHIN_MS:
                where = " ".join(map(str, queue_key))
                yield "LATE", f"{where} had no owner for {next_ms - at_ms} ms after {LEDGER} dropped it"


def stalled(lab: Lab) -> Iterator[tuple[str, str]]:
    """Queues whose owner did not pull them for two minutes. This holds with faults as well: none lasts so long.

    A queue in order that is taken away during a call, and given back before its end, stays dropped until its pull has
    expired; the rounds of such a member do not end balanced.
    """
    is_balanced: dict[str, bool] = {}
    for record in lab.journal:
        for change in record.changes:
            if change.kind == "rebalance.done":
                is_balanced[record.node] = change.values["balanced"]
            expired = change.kind == "queue.dropped" and change.values["reason"] == "pull expired"
            if expired and is_balanced.get(record.node, True):
                yield "LATE", f"{record.node} did not pull {change.values['queue']} for two minutes"
