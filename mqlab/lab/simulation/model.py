"""What must hold when the dust has settled, judged from the programs' own notes and the bytes on the disks.

Mirrors: the checkers of Jepsen. ``lab.verify`` looks at the journal; this model does not.

    LOST          answered SEND_OK and in no log, or not delivered with success and not a dead letter
    PASSED        an offset was committed over a message that no listener had given back
    ORDER         an orderly group finished a message before an earlier one of its queue
    TOGETHER      two messages of one queue were in listeners of an orderly group at the same time
    TRIED         a retry before its delay, one too many, or a dead letter that was not tried often enough
    OWNERS        a queue that no member of a group has, or two of them
    EARLY         a delayed message was delivered before its time
    COPIES        answered SEND_OK although no slave had it, where one must
    SEEN          rolled back, not asked for, or in no log, and delivered
    TWICE, LATE   nothing failed, and a message is stored twice or waited long (mqlab.lab.simulation.calm)
    BEHIND        an offset is not at the end of its queue, or beyond it
    DISAGREE      a slave, a name server or a queue file says something other than its master
    BLIND, FAILED a part of a broker failed, and it took messages, or did not recover (.failed_parts)
    DAMAGED       a store contradicts itself
    HELD, COUNT, LEFT   leases that overlap, are counted wrong, or do not end (mqlab.lab.simulation.leases)
    VERIFY        lab.verify finds a message lost, skipped or stuck
    RAISED        a node's own code raised an error, which it turned into an answer
    ERROR, CRASH  the run ended with an error
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain
from typing import Any

from mqlab.lab.simulation.calm import is_calm, late, repeated, stalled
from mqlab.lab.simulation.failed_parts import failed_parts
from mqlab.lab.simulation.leases import wrong_leases
from mqlab.lab.simulation.notes import Notes, number_of
from mqlab.lab.simulation.plan import RunPlan
from mqlab.lab.simulation.scene import (
    AUDIT,
    BILLING,
    FIRST_RETRY_LEVEL,
    LEASED,
    LEASING,
    LEDGER,
    LEVELS_MS,
    MOST_RETRIES,
    ORDERS,
    PASSING,
    STEPS,
    TAGS,
)
from mqlab.lab.views.verdict import LOST, SKIPPED, STUCK
from mqlab.lab.world.lab import Lab
from mqlab.rocketmq.wire.message import MessageExt
from mqlab.rocketmq.wire.names import DLQ_PREFIX
from mqlab.rocketmq.wire.record import decode

GROUPS = {BILLING: ORDERS, AUDIT: ORDERS, LEDGER: STEPS}
ASKED_FOR = {AUDIT: TAGS[0]}


@dataclass(frozen=True, slots=True)
class Wrong:
    """A promise that was broken."""

    kind: str
    what: str
    for_good: bool = False
    """Whether no time can repair it."""

    def __str__(self) -> str:
        return f"{self.kind}: {self.what}"


def judge(lab: Lab, notes: Notes, plan: RunPlan) -> list[Wrong]:
    """Everything that is wrong at the end of a run."""
    evidence = Found(lab)
    return [
        *lost(evidence, notes),
        *passed(evidence, notes),
        *disordered(notes, plan),
        *seen(evidence, notes, plan),
        *tried(evidence, notes, plan),
        *early(evidence, notes, plan),
        *copied(notes),
        *owners(lab),
        *(Wrong(kind, what) for kind, what in _of_waits(lab, evidence, notes, plan)),
        *behind(lab),
        *disagreeing(lab, evidence),
        *damaged(lab),
        *verified(lab),
        *raised(lab),
    ]


def unsettled(lab: Lab, notes: Notes) -> bool:
    """Whether messages, offsets or routes may still be on their way."""
    evidence = Found(lab)
    waiting = (wrong for wrong in lost(evidence, notes) if not wrong.for_good)
    on_lease = lab.leases(LEASING)
    return any(True for _ in chain(waiting, behind(lab), disagreeing(lab, evidence), owners(lab), on_lease))


def _messages(lab: Lab, name: str) -> list[Any]:
    """What a master has stored: in RocketMQ's files, or in whatever form a learner's store has."""
    own = getattr(lab.handles[name].node.store, "memory", None)
    if own is None:
        return list(lab.store(name).messages())
    return [MessageExt.from_record(decode(unit), name) for _, unit in sorted(own.by_place.items())]


class Found:
    """The messages in the logs of the masters, read from their files."""

    def __init__(self, lab: Lab) -> None:
        self.lab = lab
        self.units = {
            handle.name: _messages(lab, handle.name) for handle in lab.handles.values() if handle.role == "broker"
        }

    def of(self, topic: str) -> list[tuple[str, Any]]:
        """(broker, message) of a topic in the order of each log."""
        return [(broker, unit) for broker, units in self.units.items() for unit in units if unit.topic == topic]

    def dead(self, group: str) -> set[int]:
        """The numbers of a group's dead letters."""
        return {number_of(unit.body) for _, unit in self.of(DLQ_PREFIX + group)}


def lost(evidence: Found, notes: Notes) -> Iterator[Wrong]:
    """Acknowledged messages that are not stored, stored messages that a group did not get."""
    topics = (ORDERS, STEPS, PASSING, LEASED)
    stored = {topic: {number_of(unit.body) for _, unit in evidence.of(topic)} for topic in topics}
    for sent in notes.sent:
        topic = sent.event["topic"]
        if sent.at_ms <= notes.renewed_ms.get(topic, -1) or sent.event.get("end", "").endswith("rollback"):
            continue
        if sent.number not in stored[topic]:
            may_come = not sent.event.keys().isdisjoint(("delay", "end", "due"))
            what = f"message {sent.number} of {topic} was answered SEND_OK and is in no log"
            yield Wrong("LOST", what, for_good=not may_come)
    for group, topic in {**GROUPS, LEASING: LEASED}.items():
        if not any(h.role == "consumer" and h.node.group == group for h in evidence.lab.handles.values()):
            continue
        done = {call.number for call in notes.calls if call.group == group and call.good} | evidence.dead(group)
        for broker, unit in evidence.of(topic):
            asked = ASKED_FOR.get(group, unit.tags) == unit.tags
            if asked and number_of(unit.body) not in done:
                where = f"{topic} {broker} {unit.queue_id} offset {unit.queue_offset}"
                yield Wrong("LOST", f"message {number_of(unit.body)} ({where}) is stored, {group} never finished it")


def passed(evidence: Found, notes: Notes) -> Iterator[Wrong]:
    """Commits over a message that no listener had given back by then."""
    for group, topic in GROUPS.items():
        returned: dict[tuple[Any, ...], int] = {}
        for call in notes.calls:
            if call.group == group and (call.good if group == LEDGER else not call.reconsume_times):
                returned.setdefault(call.place, call.order)
        places = {(broker, unit.queue_id, unit.queue_offset): unit for broker, unit in evidence.of(topic)}
        checked: dict[tuple[str, int], int] = {}
        for commit in notes.commits:
            if (commit.group, commit.topic) != (group, topic):
                continue
            queue = (commit.broker, commit.queue_id)
            for offset in range(checked.get(queue, 0), commit.offset):
                unit = places.get((*queue, offset))
                if unit is None or ASKED_FOR.get(group, unit.tags) != unit.tags:
                    continue
                if returned.get((topic, *queue, offset), commit.order + 1) > commit.order:
                    what = f"{group} committed {commit.offset} of {topic} {commit.broker} {commit.queue_id}"
                    yield Wrong("PASSED", f"{what} before message {number_of(unit.body)} at {offset} came back")
            checked[queue] = max(checked.get(queue, 0), commit.offset)


def disordered(notes: Notes, plan: RunPlan) -> Iterator[Wrong]:
    """What an orderly group finished out of order, or had in two listeners at once.

    After a fault two members may believe for a while that they own a queue: a broker's locks end with its process.
    A member that leaves gives its locks back and waits for no listener (awaitTerminationMillisWhenShutdown is 0).
    """
    calm = is_calm(plan.events) and not any(event["do"] == "leave" for event in plan.events)
    last: dict[tuple[Any, ...], int] = {}
    done: set[tuple[Any, ...]] = set()
    running: dict[tuple[Any, ...], int] = {}
    for call in notes.calls:
        if call.group != LEDGER:
            continue
        queue, offset = call.place[:3], call.place[3]
        key = queue if calm else (*queue, call.node)
        if call.began < running.get(key, 0):
            yield Wrong("TOGETHER", f"{call.node} had two messages of {' '.join(map(str, queue))} at the same time")
        running[key] = call.order
        if call.good and call.place not in done:
            done.add(call.place)
            if offset < last.get(queue, -1):
                yield Wrong(
                    "ORDER", f"{call.group} finished {offset} of {' '.join(map(str, queue))} after {last[queue]}"
                )
            last[queue] = max(last.get(queue, -1), offset)


def seen(evidence: Found, notes: Notes, plan: RunPlan) -> Iterator[Wrong]:
    """Messages that a listener should not have seen."""
    tags = {unit.properties.get("UNIQ_KEY", ""): unit for _, unit in evidence.of(ORDERS)}
    rolled_back = {
        number_of(unit.body) for unit in tags.values() if bytes(unit.body).split(b"|")[3].endswith(b"rollback")
    }
    for number in sorted(rolled_back):
        yield Wrong("SEEN", f"message {number} was rolled back and is in {ORDERS}")
    wanted = {number_of(unit.body) for _, unit in evidence.of(ORDERS) if unit.tags == ASKED_FOR[AUDIT]}
    known = {number_of(unit.body) for _, unit in evidence.of(ORDERS)}
    for call in notes.calls:
        if call.group == AUDIT and call.number in known - wanted:
            yield Wrong("SEEN", f"{AUDIT} got message {call.number}, whose tag it did not ask for")
    # Under synchronous flushing a message can be read when it is on the disk, so a power cut takes none that was read.
    stored = known | {number_of(unit.body) for _, unit in evidence.of(STEPS)}
    for call in notes.calls if plan.world["sync_flush"] else ():
        if call.place[0] in (ORDERS, STEPS) and call.number not in stored:
            yield Wrong("SEEN", f"{call.group} got message {call.number} of {call.place[0]}, which is in no log")


def _of_waits(lab: Lab, evidence: Found, notes: Notes, plan: RunPlan) -> Iterator[tuple[str, str]]:
    waits = chain(repeated(evidence.units, plan.events), late(lab, plan.events), stalled(lab), failed_parts(lab))
    return chain(waits, wrong_leases(lab, notes, plan.members, plan.events))


def _right_clocks(plan: RunPlan) -> bool:
    return not any(event["do"] == "skew_clock" for event in plan.events)


def early(evidence: Found, notes: Notes, plan: RunPlan) -> Iterator[Wrong]:
    """Delayed messages that a listener got before their delay was over."""
    born_ms = {number_of(unit.body): unit.born_timestamp for _, unit in evidence.of(ORDERS)}
    delayed = [event for event in plan.events if event["do"] == "send" and "delay" in event]
    delays_ms = {event["number"]: LEVELS_MS[event["delay"] - 1] for event in delayed}
    for call in notes.calls if _right_clocks(plan) else ():
        waited_ms = call.began_ms - born_ms.get(call.number, call.began_ms)
        if call.number in delays_ms and call.number in born_ms and waited_ms < delays_ms[call.number]:
            what = f"{call.group} got message {call.number} {waited_ms} ms after it was sent"
            yield Wrong("EARLY", f"{what}, its delay is {delays_ms[call.number]} ms")


def copied(notes: Notes) -> Iterator[Wrong]:
    """Messages that a master acknowledged although its slave could not have them."""
    for sent in notes.sent:
        if sent.is_without_copy:
            where = " ".join(map(str, sent.place))
            yield Wrong("COPIES", f"message {sent.number} ({where}) was answered SEND_OK and was in no slave's log")


def tried(evidence: Found, notes: Notes, plan: RunPlan) -> Iterator[Wrong]:
    """Retries that came too early or too often, and messages that were dead too early.

    A member that reaches no broker tries again by itself and counts that, too: tries are counted where nothing failed.
    """
    calm = is_calm(plan.events)
    right_clocks = _right_clocks(plan)
    ended: dict[tuple[str, int, int], int] = {}
    for call in notes.calls:
        if call.group in (LEDGER, LEASING):
            continue
        if calm and call.reconsume_times > MOST_RETRIES:
            yield Wrong("TRIED", f"{call.group} got message {call.number} for retry {call.reconsume_times}")
        before_ms = ended.get((call.group, call.number, call.reconsume_times - 1))
        # A listener that counts its own tries comes to numbers beyond the table; a broker takes its highest level then.
        level = min(FIRST_RETRY_LEVEL + call.reconsume_times - 1, len(LEVELS_MS))
        if right_clocks and before_ms is not None and call.began_ms - before_ms < LEVELS_MS[level - 1]:
            waited_ms = call.began_ms - before_ms
            yield Wrong("TRIED", f"{call.group} got message {call.number} again after {waited_ms} ms, level {level}")
        ended.setdefault((call.group, call.number, call.reconsume_times), call.ended_ms)
    for group in (BILLING, AUDIT):
        for number in sorted(evidence.dead(group)):
            if (group, number, MOST_RETRIES) not in ended:
                yield Wrong("TRIED", f"message {number} is a dead letter of {group} before its last retry")


def owners(lab: Lab) -> Iterator[Wrong]:
    """Queues without an owner, or with two."""
    for group, topic in GROUPS.items():
        working = [h for h in lab.handles.values() if h.role == "consumer" and h.node.group == group and h.is_running]
        for row in lab.progress(group) if working else ():
            if row.topic == topic and len(row.client.split(", ") if row.client else []) != 1:
                who = row.client or "nobody"
                yield Wrong("OWNERS", f"{who} has {row.topic} {row.broker} {row.queue_id} of {group}")


def behind(lab: Lab) -> Iterator[Wrong]:
    """Offsets that are not at the end of their queues."""
    for group in GROUPS:
        for row in lab.progress(group):
            if row.lag and row.topic != PASSING:
                where = f"{row.topic} {row.broker} {row.queue_id}"
                yield Wrong("BEHIND", f"{group} is at {row.consumer_offset} of {row.broker_offset} in {where}")


def disagreeing(lab: Lab, evidence: Found) -> Iterator[Wrong]:
    """Slaves against masters, name servers against each other, queues against the log."""
    servers = [handle for handle in lab.handles.values() if handle.role == "name server"]
    for topic in (ORDERS, STEPS, PASSING):
        routes = {
            server.name: [(name, server.routes.queue_data(topic, name)) for name in evidence.units]
            for server in servers
        }
        if len({repr(route) for route in routes.values()}) > 1:
            yield Wrong("DISAGREE", f"the name servers have different routes of {topic}: {routes}")
    for handle in lab.handles.values():
        if handle.role == "slave":
            yield from _slave(lab, handle, handle.node.config.broker_name)
    for broker, units in evidence.units.items():
        store = lab.broker(broker).store
        ends: dict[tuple[str, int], int] = {}
        for unit in units:
            ends[unit.topic, unit.queue_id] = unit.queue_offset + 1
        for (topic, queue_id), end in ends.items():
            if topic in (ORDERS, STEPS) and store.max_offset(topic, queue_id) != end:
                got = store.max_offset(topic, queue_id)
                yield Wrong("DISAGREE", f"{broker}: queue {topic} {queue_id} ends at {got}, the log says {end}")


def _lost_frames(lab: Lab, sender: str, receiver: str) -> bool:
    """Whether a fault took frames out of this direction of a connection."""
    return any(
        change.kind == "frame.dropped" and record.node == sender and change.values["to"] == receiver
        for record in lab.journal
        for change in record.changes
    )


def _slave(lab: Lab, slave: Any, master: str) -> Iterator[Wrong]:
    own, other = slave.node.store, lab.broker(master).store
    if own.max_physical_offset == 0 and _lost_frames(lab, master, slave.name):
        return  # a slave compares its end with the master's only when it has something, and TCP loses no frame
    if own.max_physical_offset != other.max_physical_offset:
        ends = f"{own.max_physical_offset}, the master's at {other.max_physical_offset}"
        yield Wrong("DISAGREE", f"{slave.name}: its log ends at {ends}")
        return
    theirs = {unit.physical_offset: (unit.topic, bytes(unit.body)) for unit in lab.store(master).messages()}
    for unit in lab.store(slave.name).messages():
        if theirs.get(unit.physical_offset, ("", b"")) != (unit.topic, bytes(unit.body)):
            yield Wrong("DISAGREE", f"{slave.name}: the unit at {unit.physical_offset} is not its master's")
            return
    if own.min_physical_offset > other.min_physical_offset:
        return  # it began with an empty log: RocketMQ gives such a slave the newest log file, and nothing before it
    for topic in (ORDERS, STEPS):
        for queue_id in other.topics().get(topic, ()):
            if own.max_offset(topic, queue_id) != other.max_offset(topic, queue_id):
                yield Wrong("DISAGREE", f"{slave.name}: queue {topic} {queue_id} has another end than its master's")
    for group, topic in GROUPS.items():
        mine = slave.node.offset_table.queues_of(group, topic) or {}
        masters = lab.broker(master).offset_table.queues_of(group, topic) or {}
        if mine != masters:
            yield Wrong("DISAGREE", f"{slave.name}: offsets of {group} in {topic} are {mine}, its master's {masters}")


def damaged(lab: Lab) -> Iterator[Wrong]:
    """What the inspector finds in the files of a store, but for the topic that may have been deleted.

    Its units stay in the log without a queue, and a slave keeps the queue: SlaveSynchronize copies no deletion.
    """
    for handle in lab.handles.values():
        if handle.role in ("broker", "slave"):
            store = lab.store(handle.name)
            forgotten = [f" at {unit.physical_offset}:" for unit in store.messages() if unit.topic == PASSING]
            for problem in store.problems():
                text = str(problem)
                if PASSING not in text and not any(spot in text for spot in forgotten):
                    yield Wrong("DAMAGED", f"{handle.name}: {text}")


def verified(lab: Lab) -> Iterator[Wrong]:
    """What lab.verify finds of what must not be."""
    for group, topic in GROUPS.items():
        for anomaly in lab.verify(group, stuck_after="5m"):
            if anomaly.why.startswith("it was stored, the log ended"):
                continue  # no producer got SEND_OK
            if anomaly.kind in (LOST, SKIPPED, STUCK) and anomaly.message_queue.topic == topic:
                yield Wrong("VERIFY", f"{group}: {anomaly.kind} {anomaly.msg_id}: {anomaly.why} (step {anomaly.step})")


def raised(lab: Lab) -> Iterator[Wrong]:
    """Errors in the code of a node that became an answer or a line of its log."""
    for record in lab.journal:
        for change in record.changes:
            if change.kind in ("handler.failed", "callback.failed"):
                yield Wrong("RAISED", f"{record.node}, step {record.step}: {dict(change.values)}")
