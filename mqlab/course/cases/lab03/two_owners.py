"""lab03.two_owners: a story of the learner's own in which one stored message is with two members at a time.

    two_owners(lab)     topic, members and traffic are the learner's

Looked for: two deliveries of one queue entry, in one clustering group, both with reconsume_times 0, to two members, and
the second begins before the first has ended. Nothing dies, no offset is set back, no listener fails.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import combinations
from typing import Any

from mqlab.counts import counted
from mqlab.course.cases.forbids import FORBIDS
from mqlab.course.kit import World
from mqlab.course.kit.days import Day, Does, Played
from mqlab.course.kit.promises import finding_at, took_ms
from mqlab.course.teach.exercises import Finding
from mqlab.durations import calendar
from mqlab.lab.world.lab import Lab
from mqlab.rocketmq.client.settings import CLUSTERING

SUCCESSES = ("CONSUME_SUCCESS", "SUCCESS")
FAILS_RULE = "No listener fails in this story: each call returns CONSUME_SUCCESS (or SUCCESS)"
NOTHING_RULE = "No member got a message: the story needs a topic, a producer that sends, and members that have started"
ALONE_RULE = "Only one member of the group got messages: a second one must join while the first is at work"
IDLE_RULE = (
    "The second member got nothing: no queue with a message that is still to be read moved to it. Two members "
    "need two queues, and the first must still be at work on a message of the queue that moves"
)
NEVER_TWICE_RULE = (
    "Two members got no message in common. When a queue moves, its new owner begins at the offset that the old one has "
    "reported: at a message that is still in a listener, or that is not reported yet"
)
ONE_AFTER_THE_OTHER_RULE = (
    "One message went to two members, and the first call had ended before the second one began. A message is with two "
    "at a time if its first call takes longer than the queue needs to move"
)
COPIES_RULE = "Two stored messages with one key are two messages: it must be the same entry of the same queue"
BROADCAST_RULE = "With BROADCASTING every member gets every message, on purpose. This is about a clustering group"
GROUPS_RULE = "Two groups each get every message, as they should. Both members must be of one group"
RETRY_RULE = (
    "A retry is another stored message, with reconsume_times 1 or more. Here both deliveries have reconsume_times 0"
)


@dataclass(slots=True)
class OwnStory(Played):
    """The day that the learner's story was."""

    def rows(self) -> list[Any]:
        """All deliveries to listeners, of all groups, in the order in which they began."""
        received = [row for group in self.groups() for row in self.deliveries(group) if row.started_ms is not None]
        return sorted(received, key=lambda row: row.started_ms)

    def groups(self) -> list[str]:
        """The groups that have members."""
        members = [handle for handle in self.lab.handles.values() if handle.role == "consumer"]
        return list(dict.fromkeys(handle.node.group for handle in members))

    def members_of(self, group: str) -> int:
        """How many members of a group run."""
        handles = [handle for handle in self.lab.handles.values() if handle.role == "consumer"]
        return sum(handle.node.group == group and handle.is_up and handle.node.is_running for handle in handles)

    def is_clustering(self, name: str) -> bool:
        """Whether a member divides the queues with others."""
        return bool(self.lab.node_handle(name).node.config.message_model == CLUSTERING)


def day(seed: int) -> Day:
    """An empty Lab for the story."""
    return Day((Does(lambda played: played.answers["two_owners"](played.lab)),), kind=OwnStory)


def pairs(story: OwnStory) -> Iterator[tuple[Any, Any]]:
    """Two deliveries of one stored message to two members of one clustering group, both for the first time."""
    by_place: dict[tuple[Any, ...], list[Any]] = {}
    for row in story.rows():
        if row.reconsume_times == 0 and story.is_clustering(row.client):
            by_place.setdefault((row.group, row.message_queue, row.queue_offset), []).append(row)
    for rows in by_place.values():
        yield from ((first, other) for first, other in combinations(rows, 2) if first.client != other.client)


def overlaps(first: Any, second: Any, now_ms: int) -> bool:
    """Whether the second began before the first had ended."""
    ended_ms = first.ended_ms if first.ended_ms is not None else now_ms
    return bool(second.started_ms < ended_ms)


def _no_listener_fails(story: OwnStory) -> Finding | None:
    """Asked of the journal: a delivery whose result was discarded does not say what the listener returned."""
    for record, values in story.lab.journal.changes("listener.returned"):
        if values["status"] not in SUCCESSES:
            error = values.get("error")
            status = error.splitlines()[-1] if error else values["status"]
            where = f"a call of {record.node} that ended at {calendar(record.now_ms)}"
            return Finding(FAILS_RULE, where, "CONSUME_SUCCESS", status, step=record.step, lab=story.lab)
    return None


def _two_at_a_time(story: OwnStory) -> Finding | None:
    row_pairs = list(pairs(story))
    if any(overlaps(first, second, story.lab.now_ms) for first, second in row_pairs):
        return None
    rows = story.rows()
    if not rows:
        return Finding(NOTHING_RULE, "deliveries to listeners", "2 or more", 0, lab=story.lab)
    if row_pairs:
        first, second = row_pairs[0]
        where = f"{first.message_queue!r}, offset {first.queue_offset}: {first.client}, then {second.client}"
        expected = f"before {calendar(first.ended_ms)}, when the call of {took_ms(first):,} ms ended"
        return finding_at(story, second, ONE_AFTER_THE_OTHER_RULE, expected, calendar(second.started_ms), where)
    return _why_not(story, rows)


def _why_not(story: OwnStory, rows: list[Any]) -> Finding:
    """The nearest thing to what was looked for."""
    members = list(dict.fromkeys(row.client for row in rows))
    groups = list(dict.fromkeys(row.group for row in rows))
    where, expected = "deliveries of one queue entry to two members", "1 pair or more"
    if any(not story.is_clustering(name) for name in members):
        return Finding(BROADCAST_RULE, where, "CLUSTERING", "BROADCASTING", lab=story.lab)
    if len(members) == 1:
        rule = IDLE_RULE if story.members_of(groups[0]) > 1 else ALONE_RULE
        return Finding(rule, "members that got messages", "2 or more", members, lab=story.lab)
    if any(row.reconsume_times for row in rows):
        return Finding(RETRY_RULE, where, expected, "retries only", lab=story.lab)
    if len(groups) == len(members):
        return Finding(GROUPS_RULE, "groups of the two members", "one group", groups, lab=story.lab)
    keys = [row.msg_id for row in rows]
    if len(set(keys)) < len(keys):
        return Finding(COPIES_RULE, where, expected, "two entries with one id", lab=story.lab)
    return Finding(NEVER_TWICE_RULE, where, expected, f"{counted(len(rows), 'deliveries')}, no pair", lab=story.lab)


def seen(lab: Lab) -> int:
    """How many pairs a Lab has had that were at work at one time; for the lab's own cells."""
    story = OwnStory(lab, {})
    return sum(overlaps(first, second, lab.now_ms) for first, second in pairs(story))


TWO_OWNERS = World(
    "lab03.two_owners",
    "two_owners(lab)",
    points=4,
    about="a story of your own",
    day=day,
    seeds=(1, 2),
    promises=[_no_listener_fails, _two_at_a_time],
    forbids=FORBIDS["lab03.two_owners"],
)
