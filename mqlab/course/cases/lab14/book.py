"""The rule book of lab 14: what the state of a cluster obeys at every step, and the first step at which it does not.

    breaches(rows)   every place where a rule is broken: Breach(rule, node, step), in the order of the steps

| rule | room | what must hold |
|---|---|---|
| acknowledged | store | what a producer was told SEND_OK is on the disk |
| dispatched | store | units get their queue entries in the order of the log, each of them, and only from the disk |
| numbered | store | the offsets of a queue have no gap, and none comes twice, also after a restart |
| committed | broker | a group's offset is one that a member had, and a member begins at one that was committed |
| locked | broker | a queue in order has one holder, as long as the holder lives |
| tried | broker | a message is dead after its last retry, and not before |
| finished | client | a member's offset passes no message that it was given and has not finished or given back |
| pulled | client | a pull begins where the last one ended or before, and leaves nothing out |
| in order | client | in order: one call at a time, and the next message only when the one before has succeeded |

Legal, and no breach: a delivery that comes again, a copy that a producer sent again, an offset that goes back after a
crash, numbers that are given again when a power cut took unacknowledged units.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

Row = dict[str, Any]
Breaks = Iterator[tuple[str, int]]
Place = tuple[str, str, str]
"""(member, group, queue)"""
ROOMS = {
    "acknowledged": "store",
    "dispatched": "store",
    "numbered": "store",
    "committed": "broker",
    "locked": "broker",
    "tried": "broker",
    "finished": "client",
    "pulled": "client",
    "in order": "client",
}
MOST_RETRIES = 2
ORDERLY = "ledger"
GOOD = ("CONSUME_SUCCESS", "SUCCESS")
DEATHS = ("fault.killed", "fault.powered_off")


@dataclass(frozen=True, slots=True)
class Breach:
    """A rule that is broken: by which node, at which step."""

    rule: str
    node: str
    step: int


def breaches(rows: Sequence[Row]) -> list[Breach]:
    """All breaches of all rules, in the order of their steps."""
    broken = [Breach(rule, node, step) for rule, check in RULES.items() for node, step in check(rows)]
    return sorted(broken, key=lambda breach: breach.step)


def broker_of(row: Row) -> str:
    """The broker of a row's queue."""
    return str(row["queue"].split()[1])


def acknowledged(rows: Sequence[Row]) -> Breaks:
    """A producer is told SEND_OK for a unit that is not on the disk."""
    end: dict[tuple[str, int], int] = {}
    on_disk: dict[str, int] = defaultdict(int)
    for row in rows:
        if row["what"] == "message.stored":
            end[row["queue"], row["offset"]] = row["end"]
        elif row["what"] == "store.flushed":
            on_disk[row["node"]] = row["end"]
        elif row["what"] == "message.sent" and row["status"] == "SEND_OK":
            broker = broker_of(row)
            if end.get((row["queue"], row["offset"]), 0) > on_disk[broker]:
                yield broker, row["step"]


def dispatched(rows: Sequence[Row]) -> Breaks:
    """A unit gets its entry before it is on the disk, or after a later one."""
    waiting: dict[str, dict[int, Row]] = defaultdict(dict)  # broker -> start of a unit -> its row
    on_disk: dict[str, int] = defaultdict(int)
    for row in rows:
        node = row["node"]
        if row["what"] == "message.stored":
            waiting[node][row["start"]] = row
        elif row["what"] == "store.flushed":
            on_disk[node] = row["end"]
        elif row["what"] == "fault.start":
            waiting[node].clear()  # recovery has dispatched what the log holds
        elif row["what"] == "message.dispatched":
            position = row["queue"], row["offset"]
            start = next(
                (begin for begin, unit in waiting[node].items() if (unit["queue"], unit["offset"]) == position), None
            )
            if start is None:
                continue
            unit = waiting[node].pop(start)
            if unit["end"] > on_disk[node] or any(begin < start for begin in waiting[node]):
                yield node, row["step"]


def numbered(rows: Sequence[Row]) -> Breaks:
    """A unit gets a number that is not the next one of its queue."""
    ends: dict[str, list[int]] = defaultdict(list)  # queue -> end of the unit with each number
    on_disk: dict[str, int] = defaultdict(int)
    for row in rows:
        if row["what"] == "store.flushed":
            on_disk[row["node"]] = row["end"]
        elif row["what"] == "fault.start":
            for queue, units in ends.items():
                if broker_of({"queue": queue}) == row["node"]:
                    # A power cut may have taken what was not on the disk; those numbers may be given again.
                    ends[queue] = [end if end <= on_disk[row["node"]] else -1 for end in units]
        elif row["what"] == "message.stored":
            units, number = ends[row["queue"]], row["offset"]
            if number > len(units) or any(end != -1 for end in units[number:]):
                yield row["node"], row["step"]
            ends[row["queue"]] = [*units[:number], *[0] * (number - len(units)), row["end"]]


def committed(rows: Sequence[Row]) -> Breaks:
    """A broker has, or gives, an offset that no member had."""
    had: dict[tuple[str, str], int] = defaultdict(int)
    stored: dict[tuple[str, str], int] = defaultdict(int)
    for row in rows:
        if row["what"] not in ("offset.updated", "offset.committed", "queue.added"):
            continue
        key = row["group"], row["queue"]
        if row["what"] == "queue.added":
            if row["next"] > stored[key]:
                yield broker_of(row), row["step"]
        elif row["what"] == "offset.updated":
            had[key] = max(had[key], row["offset"])
        else:
            if row["offset"] > had[key]:
                yield row["node"], row["step"]
            stored[key] = max(stored[key], row["offset"])


def locked(rows: Sequence[Row]) -> Breaks:
    """A queue in order gets a second holder."""
    holder: dict[str, str] = {}
    for row in rows:
        if row["what"] == "queue.locked":
            if holder.get(row["queue"], row["member"]) != row["member"]:
                yield row["node"], row["step"]
            holder[row["queue"]] = row["member"]
        elif row["what"] == "queue.unlocked" and holder.get(row["queue"]) == row["member"]:
            del holder[row["queue"]]
        elif row["what"] in DEATHS:
            holder = {
                queue: member
                for queue, member in holder.items()
                if row["node"] not in (member, broker_of({"queue": queue}))
            }


def tried(rows: Sequence[Row]) -> Breaks:
    """A message is dead before its last retry, or gets one more."""
    for row in rows:
        too_early = row["what"] == "message.dead" and row["retries"] <= MOST_RETRIES
        if too_early or (row["what"] == "message.sent_back" and row["retries"] > MOST_RETRIES):
            yield row["node"], row["step"]


class Held:
    """What each member holds of each queue: the offsets that it was given and has not finished or given back.

    All of it is gone when the member gets or loses the queue, or dies: what a call of before returns does not count.
    """

    def __init__(self) -> None:
        self.given: dict[Place, set[int]] = defaultdict(set)
        self._seen: dict[Place, set[int]] = defaultdict(set)
        self._calls: dict[Place, set[int]] = defaultdict(set)
        self._failed: dict[str, list[tuple[Place, int]]] = defaultdict(list)
        self._owned: set[Place] = set()

    def see(self, row: Row) -> None:
        """Take a row into account."""
        what, reader = row["what"], (row["node"], row.get("group", ""), row.get("queue", ""))
        if what in DEATHS:
            for other in [other for other in self._owned if other[0] == row["node"]]:
                self._forget(other)
        elif what in ("queue.added", "queue.dropped"):
            self._forget(reader)
            if what == "queue.added":
                self._owned.add(reader)
        elif what == "message.pulled" and reader in self._owned:
            # An answer to a pull of before may bring the same messages again.
            self.given[reader] |= set(row["offsets"]) - self._seen[reader]
            self._seen[reader] |= set(row["offsets"])
        elif what == "listener.started":
            self._calls[reader].add(row["call"])
        elif what == "listener.returned" and row["call"] in self._calls[reader]:
            if row["status"] in GOOD:
                self.given[reader] -= set(row["offsets"])
            else:
                for offset, message in zip(row["offsets"], row["ids"], strict=True):
                    self._failed[message].append((reader, offset))
        elif what == "message.stored":  # a copy of what failed: it is given back
            for other, offset in self._failed.pop(row["id"], ()):
                self.given[other].discard(offset)

    def _forget(self, reader: Place) -> None:
        self._owned.discard(reader)
        for table in (self.given, self._seen, self._calls):
            table[reader].clear()
        for message, places in self._failed.items():
            self._failed[message] = [failure for failure in places if failure[0] != reader]


def finished(rows: Sequence[Row]) -> Breaks:
    """A member's offset passes a message that it was given and has not finished or given back."""
    held = Held()
    for row in rows:
        held.see(row)
        if row["what"] == "offset.updated":
            offsets = held.given[row["node"], row["group"], row["queue"]]
            if any(offset < row["offset"] for offset in offsets):
                yield row["node"], row["step"]


def pulled(rows: Sequence[Row]) -> Breaks:
    """A pull begins after the place where the last one ended, or leaves something out."""
    ended: dict[Place, int] = {}
    for row in rows:
        if row["what"] in ("queue.added", "queue.dropped"):
            ended.pop((row["node"], row["group"], row["queue"]), None)
        elif row["what"] in DEATHS:
            ended = {reader: end for reader, end in ended.items() if reader[0] != row["node"]}
        elif row["what"] == "message.pulled":
            reader = row["node"], row["group"], row["queue"]
            whole = list(range(row["first"], row["next"])) == row["offsets"]
            if not whole or row["first"] > ended.get(reader, row["first"]):
                yield row["node"], row["step"]
            ended[reader] = max(row["next"], ended.get(reader, 0))


def in_order(rows: Sequence[Row]) -> Breaks:
    """A call of a queue in order begins during another one, or before an earlier message has succeeded."""
    held = Held()
    running: dict[tuple[str, str], set[int]] = defaultdict(set)
    for row in rows:
        held.see(row)
        if row["what"] in DEATHS:
            for reader in running:
                if reader[0] == row["node"]:
                    running[reader].clear()
        elif row["what"] in ("listener.started", "listener.returned") and row["group"] == ORDERLY:
            calls = running[row["node"], row["queue"]]
            if row["what"] == "listener.returned":
                calls.discard(row["call"])
                continue
            earlier = held.given[row["node"], row["group"], row["queue"]]
            if calls or any(offset < min(row["offsets"]) for offset in earlier):
                yield row["node"], row["step"]
            calls.add(row["call"])


RULES: dict[str, Callable[[Sequence[Row]], Breaks]] = {
    "acknowledged": acknowledged,
    "dispatched": dispatched,
    "numbered": numbered,
    "committed": committed,
    "locked": locked,
    "tried": tried,
    "finished": finished,
    "pulled": pulled,
    "in order": in_order,
}
