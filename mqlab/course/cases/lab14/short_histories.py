"""Short histories for lab14.first_wrong_step: a few rows each, in which a sentence of the rules decides.

    short_histories(seed) ─▶ [("a short history, nothing is wrong", rows), …]
    over_a_power_cut(seed) ─▶ rows, for lab14.follow

The sound ones look as if something were wrong. Each of the others breaks one rule, at its last row, where an answer
that takes another broker, group or member for the right one sees nothing. Numbers and steps follow from the seed.
"""

from __future__ import annotations

import random
from typing import Any

from mqlab.course.cases.lab14.book import MOST_RETRIES, Row


class HistoryRows:
    """Rows of two brokers and two members of billing, one after the other."""

    def __init__(self, seed: int, name: str) -> None:
        self.rng = random.Random(f"lab14 {name} {seed}")
        self.step, self.base = self.rng.randrange(100, 300), self.rng.randrange(3, 60)
        self.size = self.rng.randrange(200, 900)
        self.queue = f"orders broker-a {self.rng.randrange(2)}"
        self.log: dict[str, int] = {}
        self.rows: list[Row] = []

    def happens(self, node: str, what: str, **values: Any) -> None:
        """One row, some steps later."""
        self.step += self.rng.randrange(1, 6)
        self.rows.append({"step": self.step, "ms": self.step * 7, "node": node, "what": what, **values})

    def stores(self, offset: int, name: str, queue: str = "") -> None:
        """A unit at the end of the queue's broker's log."""
        queue = queue or self.queue
        broker = queue.split()[1]
        start = self.log.setdefault(broker, self.rng.randrange(0, 9_000) if broker == "broker-a" else 0)
        self.log[broker] = start + self.size
        values = {"queue": queue, "offset": offset, "start": start, "end": start + self.size, "id": name}
        self.happens(broker, "message.stored", **values)

    def flushes(self, broker: str = "broker-a") -> None:
        """All of a broker's log is on its disk."""
        self.happens(broker, "store.flushed", end=self.log[broker])

    def told(self, offset: int, status: str, name: str, queue: str = "") -> None:
        """What the producer is told."""
        self.happens("shop-1", "message.sent", queue=queue or self.queue, offset=offset, status=status, id=name)

    def pulls(self, member: str, begin: int, end: int) -> None:
        """A pull that leaves nothing out."""
        reader = {"group": "billing", "queue": self.queue}
        self.happens(member, "message.pulled", **reader, first=begin, next=end, offsets=list(range(begin, end)))

    def of_queue(self, node: str, what: str, group: str = "billing", **values: Any) -> None:
        """A row of a group and the queue: added, dropped, an offset."""
        self.happens(node, what, group=group, queue=self.queue, **values)


def legal(seed: int) -> list[Row]:
    """A producer is told that the disk was too slow; a message is dead after its last retry; a member's pull begins
    again, and a later owner begins before the place to which the first one had come.
    """
    history = HistoryRows(seed, "short")
    base = history.base
    history.stores(base, "B0")
    history.flushes()
    history.told(base, "SEND_OK", "B0")
    history.stores(base + 1, "B1")
    history.told(base + 1, "FLUSH_DISK_TIMEOUT", "B1")
    history.flushes()
    history.of_queue("billing-1", "queue.added", next=0)
    history.pulls("billing-1", base, base + 2)
    history.pulls("billing-1", base + 1, base + 2)  # the answer to a pull of before
    history.happens("broker-a", "message.sent_back", group="billing", id="B1", retries=MOST_RETRIES)
    history.happens("broker-a", "message.dead", group="billing", id="B1", retries=MOST_RETRIES + 1)
    history.of_queue("billing-1", "offset.updated", offset=base + 1)
    history.of_queue("broker-a", "offset.committed", offset=base + 1)
    history.of_queue("billing-1", "queue.dropped")
    history.of_queue("billing-2", "queue.added", next=base + 1)
    history.pulls("billing-2", base + 1, base + 2)
    for number in range(2, 5):
        history.stores(base + number, f"B{number}")
        history.flushes()
    history.pulls("billing-2", base + 2, base + 5)
    history.happens("billing-2", "fault.killed")
    history.of_queue("billing-1", "queue.added", next=base + 1)
    history.pulls("billing-1", base + 4, base + 5)  # an operator has set the group's offset meanwhile
    return history.rows


def legal_with_two_brokers(seed: int) -> list[Row]:
    """The second broker's log is longer; one offset is in two queues; members begin anywhere after a power cut, a kill,
    an added queue alone and a dropped queue alone; a smaller offset is committed.
    """
    history = HistoryRows(seed, "two brokers")
    base, other = history.base, history.queue.replace("broker-a", "broker-b")
    history.stores(base, "A0")
    history.flushes()
    for number in range(20):  # its log becomes longer than that of the first one
        history.stores(base + number, f"B{number}", other)
    history.flushes("broker-b")
    history.told(base, "SEND_OK", "A0")
    history.told(base + 19, "SEND_OK", "B19", other)
    history.stores(base, "C0", history.queue[:-1] + "7")  # its offset is that of A0, and the disk does not have it
    history.told(base, "SEND_OK", "A0")
    history.told(base - 1, "SEND_OK", "A-1")  # stored before these rows begin
    history.of_queue("billing-1", "offset.updated", offset=base + 3)
    history.of_queue("broker-a", "offset.committed", offset=base + 3)
    history.of_queue("billing-2", "offset.updated", offset=base + 1)
    history.of_queue("broker-a", "offset.committed", offset=base + 2)
    history.pulls("billing-1", base, base + 1)
    history.happens("billing-1", "fault.powered_off")
    history.pulls("billing-1", base + 3, base + 4)
    history.of_queue("billing-1", "queue.added", next=base)
    history.pulls("billing-1", base + 6, base + 7)
    history.of_queue("billing-1", "queue.dropped")
    history.pulls("billing-1", base + 9, base + 10)
    history.happens("billing-1", "fault.killed")
    history.pulls("billing-1", base + 12, base + 13)
    return history.rows


def over_a_power_cut(seed: int) -> list[Row]:
    """The disk keeps A0 and A1 of three messages; A3 gets the number of A2. One pull and one call have all of them."""
    history = HistoryRows(seed, "over a power cut")
    base, queue = history.base, history.queue

    def dispatches(offset: int) -> None:
        history.happens("broker-a", "message.dispatched", queue=queue, offset=offset)

    for number in range(3):
        history.stores(base + number, f"A{number}")
        dispatches(base + number)
        if number < 2:
            history.flushes()
    history.happens("broker-a", "fault.powered_off")
    history.log["broker-a"] -= history.size
    history.happens("broker-a", "fault.start")
    history.stores(base + 2, "A3")
    history.flushes()
    dispatches(base + 2)
    history.pulls("billing-1", base, base + 3)
    call: Row = {"call": 1, "offsets": [base, base + 1, base + 2], "ids": ["A0", "A1", "A3"]}
    history.of_queue("billing-1", "listener.started", **call)
    history.of_queue("billing-1", "listener.returned", **call, status="CONSUME_SUCCESS")
    return history.rows


def told_before_the_flush(seed: int) -> list[Row]:
    """SEND_OK for a unit of the only broker, before its disk has it."""
    history = HistoryRows(seed, "told before the flush")
    history.stores(history.base, "A0")
    history.flushes()
    history.stores(history.base + 1, "A1")
    history.told(history.base + 1, "SEND_OK", "A1")
    return history.rows


def begins_too_far(seed: int) -> list[Row]:
    """A member leaves something out between two pulls, and keeps its queue meanwhile."""
    history = HistoryRows(seed, "begins too far")
    history.of_queue("billing-1", "queue.added", next=history.base)
    history.pulls("billing-1", history.base, history.base + 2)
    history.pulls("billing-1", history.base + 3, history.base + 5)
    return history.rows


def told_too_early(seed: int) -> list[Row]:
    """SEND_OK for a unit that is not on its broker's disk, while another broker's disk has more."""
    history = HistoryRows(seed, "told too early")
    base, other = history.base, history.queue.replace("broker-a", "broker-b")
    history.stores(base - 1, "B0", other)
    history.flushes("broker-b")
    history.stores(base, "B1", other)
    history.log["broker-a"] = 0
    for number in range(4):
        history.stores(base + 1 + number, f"A{number}")
    history.flushes()
    history.told(base, "SEND_OK", "B1", other)
    return history.rows


def another_groups_offset(seed: int) -> list[Row]:
    """A group's committed offset is one that only another group had."""
    history = HistoryRows(seed, "another group's offset")
    base = history.base
    history.of_queue("billing-1", "offset.updated", offset=base + 4)
    history.of_queue("audit-1", "offset.updated", group="audit", offset=base + 1)
    history.of_queue("broker-a", "offset.committed", offset=base + 4)
    history.of_queue("broker-a", "offset.committed", group="audit", offset=base + 1)
    history.of_queue("broker-a", "offset.committed", group="audit", offset=base + 4)
    return history.rows


def dead_too_early(seed: int) -> list[Row]:
    """A message is dead with the count of its last retry."""
    history = HistoryRows(seed, "dead too early")
    for retries in range(1, MOST_RETRIES):
        history.happens("broker-a", "message.sent_back", group="billing", id="B0", retries=retries)
    history.happens("broker-a", "message.dead", group="billing", id="B0", retries=MOST_RETRIES)
    return history.rows


def given_back_too_often(seed: int) -> list[Row]:
    """A message gets one retry more than there are."""
    history = HistoryRows(seed, "given back too often")
    for retries in range(1, MOST_RETRIES + 2):
        history.happens("broker-a", "message.sent_back", group="billing", id="B0", retries=retries)
    return history.rows


def goes_past(seed: int) -> list[Row]:
    """A member leaves something out between two pulls; the other one got the queue, lost it and died meanwhile."""
    history = HistoryRows(seed, "goes past")
    base = history.base
    history.of_queue("billing-1", "queue.added", next=base)
    history.pulls("billing-1", base, base + 2)
    history.of_queue("billing-2", "queue.added", next=base)
    history.pulls("billing-2", base, base + 6)
    history.of_queue("billing-2", "queue.dropped")
    history.happens("billing-2", "fault.killed")
    history.pulls("billing-1", base + 4, base + 6)
    return history.rows


def short_histories(seed: int) -> list[tuple[str, list[Row]]]:
    """What a check calls each of them, and its rows."""
    sound = "a short history, nothing is wrong"
    return [
        (sound, legal(seed)),
        (f"{sound}: two brokers", legal_with_two_brokers(seed)),
        ("a short history of one broker", told_before_the_flush(seed)),
        ("a short history of one member", begins_too_far(seed)),
        ("a short history of two brokers", told_too_early(seed)),
        ("a short history of two groups", another_groups_offset(seed)),
        ("a short history of a message that dies", dead_too_early(seed)),
        ("a short history of a message that fails", given_back_too_often(seed)),
        ("a short history of two members", goes_past(seed)),
    ]
