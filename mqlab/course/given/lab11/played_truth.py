"""What is true of a played day: every call of a listener and every message of a group, as the Lab saw them.

    journal of the Lab ── deliveries ──┐
    stores ── units, by their places ──┼── TrueCall   one per call with a message, and why it came again
    subscriptions, offsets ────────────┘   TrueLife   one per message and group: outcome, calls, times

The trace topic is never read, so a table that was made from the trace can be compared with this one.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from mqlab.course.given.lab11.played_day import NOTES, ORDERS, QUIET, READS
from mqlab.lab.inspector.inspector import StoreInspector
from mqlab.lab.world.lab import Lab
from mqlab.rocketmq.wire import names
from mqlab.rocketmq.wire import property_names as p
from mqlab.rocketmq.wire.message import MessageExt

SOON_MS = 60_000
# a discarded result: the queue went to another member during the call, which had succeeded (only mail has members)
STATUSES = {
    "CONSUME_SUCCESS": "SUCCESS",
    "RECONSUME_LATER": "FAILED",
    "RUNNING": "NO_RESULT",
    "RESULT_DISCARDED": "SUCCESS",
}
CAUSES = ("resend", "retry", "no_result", "soon", "late")

Place = tuple[str, str, int, int]
"""Broker, topic, queue id and queue offset of a unit."""


@dataclass(frozen=True, slots=True)
class TrueCall:
    """A call of a listener with one message. ``cause`` is empty for the first delivery, else one of CAUSES."""

    consumer_group: str
    msg_id: str
    keys: str
    client: str
    place: Place
    retry_times: int
    started_ms: int
    ended_ms: int | None
    status: str
    cause: str


@dataclass(frozen=True, slots=True)
class TrueLife:
    """A message in a group, None where no group reads its topic.

    ``outcome``: consumed, dead, pending, filtered, lost or waiting. A group without a trace has its real outcome here;
    ``traced`` is False then.
    """

    topic: str
    consumer_group: str | None
    msg_id: str
    keys: str
    tags: str
    members: int
    copies: int
    traced: bool
    outcome: str
    attempts: int
    successes: int
    failures: int
    no_results: int
    stored_ms: int
    consumed_ms: int | None
    again: Mapping[str, int]


def units_of(stores: Path) -> dict[Place, MessageExt]:
    """All units of the stores in a directory, by their places."""
    units = {}
    for store in sorted(path for path in stores.iterdir() if (path / "commitlog").is_dir()):
        inspector = StoreInspector(store)
        for unit in inspector.messages():
            units[store.name, unit.topic, unit.queue_id, unit.queue_offset] = unit
        inspector.close()
    return units


def true_calls(lab: Lab, units: Mapping[Place, MessageExt]) -> tuple[TrueCall, ...]:
    """Every call of every group, in the order in which they began."""
    calls = []
    for group in READS:
        before: dict[tuple[str, str], list[TrueCall]] = defaultdict(list)
        for row in lab.deliveries(group, absences=False):
            queue = row.message_queue
            position = (queue.broker_name, queue.topic, queue.queue_id, row.queue_offset)
            keys = units[position].keys or ""
            earlier = before[row.msg_id, keys]
            status = "EXCEPTION" if row.as_dict().get("error") else STATUSES[row.status]
            call = TrueCall(
                group,
                row.msg_id,
                keys,
                row.client,
                position,
                row.reconsume_times,
                row.started_ms,
                row.ended_ms,
                status,
                _cause(position, row.started_ms, earlier),
            )
            earlier.append(call)
            calls.append(call)
    return tuple(sorted(calls, key=lambda call: (call.started_ms, call.consumer_group, call.place)))


def _cause(position: Place, started_ms: int, earlier: Sequence[TrueCall]) -> str:
    """Why a message is delivered although calls with it began before."""
    here = [call for call in earlier if call.place == position]
    # 1. The first delivery of a unit: of a retry, of a second copy, or of another message of the same batch.
    if not here:
        if names.group_of(position[1]) is not None:
            return "retry"
        originals = {call.place[:3] for call in earlier if call.place[1] == position[1]}
        return "resend" if originals and position[:3] not in originals else ""
    # 2. The same unit again.
    if here[-1].ended_ms is None:
        return "no_result"
    if here[-1].status != "SUCCESS":
        return "retry"
    return "soon" if started_ms - here[-1].ended_ms <= SOON_MS else "late"


def true_lives(
    units: Mapping[Place, MessageExt], calls: Iterable[TrueCall], offsets: Mapping[tuple[str, str, str, int], int]
) -> tuple[TrueLife, ...]:
    """One row per message and group. ``offsets``: (broker, topic, group, queue id) -> the next offset to read."""
    # 1. The units that senders stored, by id and keys; a parked one counts while nothing else is stored of it.
    sent: dict[tuple[str, str], list[tuple[Place, MessageExt]]] = defaultdict(list)
    parked: dict[tuple[str, str], list[tuple[Place, MessageExt]]] = defaultdict(list)
    dead = set()
    for position, unit in units.items():
        same = (unit.msg_id, unit.keys or "")
        if unit.topic in (ORDERS, NOTES):
            sent[same].append((position, unit))
        elif unit.topic == names.SCHEDULE_TOPIC and unit.properties[p.REAL_TOPIC] == ORDERS:
            parked[same].append((position, unit))
        elif unit.topic.startswith(names.DLQ_PREFIX):
            dead.add((names.group_of(unit.topic), *same))
    # 2. The calls of each message and group.
    by_life: dict[tuple[str, str, str], list[TrueCall]] = defaultdict(list)
    for call in calls:
        by_life[call.consumer_group, call.msg_id, call.keys].append(call)
    # 3. One row per message and group that reads its topic.
    lives = []
    for same, originals in {**parked, **sent}.items():
        waiting = same not in sent
        for group in (None,) if originals[0][1].topic == NOTES else READS:
            mine = by_life[group, *same] if group else []
            lives.append(_life(group, same, originals, mine, waiting, (group, *same) in dead, offsets))
    return tuple(lives)


def _life(
    group: str | None,
    same: tuple[str, str],
    originals: Sequence[tuple[Place, MessageExt]],
    calls: Sequence[TrueCall],
    waiting: bool,
    dead: bool,
    offsets: Mapping[tuple[str, str, str, int], int],
) -> TrueLife:
    (broker, topic, queue_id, offset), first = min(
        originals, key=lambda original: (original[1].store_timestamp, original[0])
    )
    successes = [call.ended_ms for call in calls if call.status == "SUCCESS" and call.ended_ms is not None]
    wanted = READS.get(group or "", "*")
    # The first condition that holds decides.
    if waiting:
        outcome = "waiting"
    elif successes:
        outcome = "consumed"
    elif dead:
        outcome = "dead"
    elif calls or group is None or offset >= offsets.get((broker, topic, group, queue_id), 0):
        outcome = "pending"
    else:
        outcome = "lost" if wanted == "*" or first.tags in wanted.split(" || ") else "filtered"
    queues = {position[:3] for position, _ in originals}
    return TrueLife(
        topic=ORDERS if waiting else topic,
        consumer_group=group,
        msg_id=same[0],
        keys=same[1],
        tags=first.tags or "",
        members=1 if waiting else len(originals) // len(queues),
        copies=1 if waiting else len(queues),
        traced=group not in (None, QUIET),
        outcome=outcome,
        attempts=len(calls),
        successes=len(successes),
        failures=sum(call.status in ("FAILED", "EXCEPTION") for call in calls),
        no_results=sum(call.ended_ms is None for call in calls),
        stored_ms=first.store_timestamp,
        consumed_ms=min(successes, default=None),
        again={cause: count for cause in CAUSES if (count := sum(call.cause == cause for call in calls))},
    )
