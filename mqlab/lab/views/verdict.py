"""Named anomalies: did a group get every message once, in order, in time? If not, since which step, and why?

Mirrors: the checkers of Jepsen and Maelstrom, in the words that RocketMQ users know.

    LOST           confirmed past it (or past its last retry), given to a listener, never finished; or the log ended
                   before it after a power cut
    SKIPPED        confirmed past it, no listener ever got it though the group wants it
    DUPLICATED     finished more than once, or stored more than once by its producer and each of those finished
    REDELIVERED    given to a listener again after a delivery that did not succeed
    OUT_OF_ORDER   first finished after a later message of its queue
    STUCK          in a listener, or waiting though members are online, for longer than allowed
    LEASED_TWICE   given out on lease while another lease of it ran

A message that no subscription (tags or SQL) of the group asks for is not an anomaly. Dead letters are counted, not
judged. In a broadcasting group each member is judged by itself. If a journal dropped steps, the rest is judged and the
headline reports it. A message that a program takes by polling or pulling counts as finished then, because only the
program knows better. Without a subscription (assigned queues, single pulls) only queues that were pulled are judged.
A message that was popped is judged by its leases (mqlab.lab.views.histories.lease_verdict), not by offsets.
Left out: messages that were stored before the journal begins.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from markupsafe import Markup

from mqlab.counts import counted
from mqlab.durations import milliseconds
from mqlab.errors import UsageError
from mqlab.lab.runtime.collector import collecting_rarely
from mqlab.lab.views.group_subscriptions import Wish, is_wanted
from mqlab.lab.views.histories.lease_verdict import LEASED_TWICE, lease_findings
from mqlab.lab.views.histories.message_deliveries import (
    ACKNOWLEDGED,
    POLLED,
    DeliveryCall,
    MessageHistory,
    MessageReader,
)
from mqlab.lab.views.histories.message_history import GroupHistory
from mqlab.lab.views.table import Table
from mqlab.lab.views.view import View, folded_text
from mqlab.rocketmq.wire.message import MessageQueue

if TYPE_CHECKING:
    from mqlab.lab.runtime.journal import Change, StepRecord

LOST = "LOST"
SKIPPED = "SKIPPED"
DUPLICATED = "DUPLICATED"
REDELIVERED = "REDELIVERED"
OUT_OF_ORDER = "OUT_OF_ORDER"
STUCK = "STUCK"
KINDS = (LOST, SKIPPED, DUPLICATED, REDELIVERED, OUT_OF_ORDER, STUCK, LEASED_TWICE)
COLUMNS = ("kind", "msg_id", "message_queue", "queue_offset", "step", "now_ms", "node", "why")


@dataclass(frozen=True, slots=True)
class Anomaly:
    """One anomaly that begins at ``step``; ``led_to``: the steps that led to it, and ``step`` itself."""

    kind: str
    msg_id: str
    message_queue: MessageQueue
    queue_offset: int
    step: int
    now_ms: int
    node: str
    why: str
    led_to: tuple[StepRecord, ...]

    def steps(self) -> Table:
        """The steps that led to it: step, now_ms, node, what."""
        rows = [
            {"step": record.step, "now_ms": record.now_ms, "node": record.node, "what": what}
            for record in self.led_to
            for what in _descriptions(record, self)
        ]
        return Table(rows, columns=["step", "now_ms", "node", "what"], title=f"{self.kind} {self.msg_id}: {self.why}")


class Verdict(View):
    """The anomalies of a group's run, by the step in which they began; empty when there are none."""

    def __init__(
        self,
        group: str,
        anomalies: Sequence[Anomaly],
        messages: int,
        dead: int,
        dropped: int = 0,
        topics: Sequence[str] = (),
        stored_before: int = 0,
    ) -> None:
        self.group = group
        self.topics = tuple(topics)
        self.dropped = dropped
        self.stored_before = stored_before
        self.anomalies = sorted(
            anomalies, key=lambda anomaly: (anomaly.step, KINDS.index(anomaly.kind), anomaly.msg_id)
        )
        self.messages = messages
        self.dead = dead

    @property
    def is_clean(self) -> bool:
        """True when there is no anomaly."""
        return not self.anomalies

    @property
    def first(self) -> Anomaly | None:
        """The anomaly that began first."""
        return self.anomalies[0] if self.anomalies else None

    def of(self, kind: str) -> list[Anomaly]:
        """The anomalies of one kind. Raises UsageError for an unknown kind."""
        if kind not in KINDS:
            raise UsageError(f"no anomaly is called {kind!r}", hint=f"there are {', '.join(KINDS)}")
        return [anomaly for anomaly in self.anomalies if anomaly.kind == kind]

    def counts(self) -> dict[str, int]:
        """The number of anomalies of each kind; kinds without any are left out."""
        return {kind: len(self.of(kind)) for kind in KINDS if self.of(kind)}

    def table(self) -> Table:
        """One row per anomaly."""
        rows = [{name: getattr(anomaly, name) for name in COLUMNS} for anomaly in self.anomalies]
        return Table(rows, columns=COLUMNS, title=self._headline(), empty="nothing to name")

    def _headline(self) -> str:
        if not self.topics:
            return f"{self.group}: no such group subscribed to anything, so there is nothing to judge"
        by_kind = ", ".join(f"{count} {kind}" for kind, count in self.counts().items()) or "nothing is wrong"
        dead = f", {self.dead} dead" if self.dead else ""
        whole = f"{self.group}: {counted(self.messages, 'messages')}{dead}: {by_kind}"
        if self.dropped:
            whole += f" (the first {self.dropped} steps were dropped; messages stored in them are not judged)"
        elif self.stored_before:
            earlier = counted(self.stored_before, "deliveries")
            whole += f" (not judged: {earlier} of messages stored before the journal begins)"
        return whole

    def text(self) -> str:
        if self.first is None:
            return self._headline()
        return f"{self.table().text()}\n\nthe first of them:\n{self.first.steps().text()}"

    def html(self) -> Markup:
        if self.first is None:
            return Markup("<div><b>{}</b></div>").format(self._headline())
        steps = folded_text(f"how the first of them came about: {self.first.kind}", self.first.steps().text())
        return self.table().html() + steps

    def __iter__(self) -> Iterator[Anomaly]:
        return iter(self.anomalies)

    def __len__(self) -> int:
        return len(self.anomalies)

    def __repr__(self) -> str:
        return f"<Verdict {self._headline()}>"


@collecting_rarely()
def verify(
    journal: Iterable[StepRecord],
    group: str,
    *,
    stuck_after: str | int = "1m",
    broadcasting: bool | None = None,
    wishes: Mapping[str, Iterable[Wish]] | None = None,
) -> Verdict:
    """Find the anomalies of a group in a journal, in time linear in its length.

    ``broadcasting``: every member should get everything (default: from the heartbeats). ``wishes``: topic -> what the
    group subscribed to before the journal begins; only a journal that dropped steps needs it.
    """
    # 1. The history of every message, from one pass over the journal.
    history = GroupHistory(journal, group, wishes=wishes, broadcasting=broadcasting)
    read = [(message, history.readers(message)) for message in history.messages if history.concerns(message)]
    # 2. Anomalies of single messages, then those that need several messages.
    judge = _Judge(history, milliseconds(stuck_after), _copies(message for message, _ in read))
    anomalies = [anomaly for message, readers in read for anomaly in judge.of(message, readers)]
    anomalies += judge.stored_again()
    anomalies += judge.out_of_order(read)
    dead = sum(message.dead is not None for message, _ in read)
    topics = list(history.subscriptions)
    return Verdict(group, anomalies, len(read), dead, history.dropped, topics, history.stored_before)


def _copies(messages: Iterable[MessageHistory]) -> dict[tuple[str, str, int], list[MessageHistory]]:
    """(unique id, topic, number in its batch) -> the entries that are one message, stored more than once.

    Messages of one batch have one id; they follow each other and have the same stored record.
    """
    entries: dict[tuple[str, str, int], list[MessageHistory]] = {}
    before, number = None, 0
    for message in messages:
        number = number + 1 if before is message.stored else 0
        before = message.stored
        entries.setdefault((message.msg_id, message.place[0].topic, number), []).append(message)
    return entries


class _Judge:
    """Applies the definitions at the top of this file to each message."""

    def __init__(
        self, history: GroupHistory, stuck_after_ms: int, copies: dict[tuple[str, str, int], list[MessageHistory]]
    ) -> None:
        self.history = history
        self.stuck_after_ms = stuck_after_ms
        self.copies = copies
        # A retry bears the id alone: which of several entries it was made of cannot be told.
        self.finished_by_copy = {
            id(entry)
            for entries in copies.values()
            if len(entries) > 1 and any(delivery.is_good for entry in entries for delivery in entry.deliveries)
            for entry in entries
        }

    def of(self, message: MessageHistory, readers: list[MessageReader]) -> Iterator[Anomaly]:
        if message.overwritten is not None:
            yield from self._overwritten(message, message.overwritten)
        for reader in readers:
            # An overwritten message was lost by the log, which is reported above, and not by a reader.
            if message.leases and message.overwritten is None and self.history.last is not None:
                for kind, begins, why in lease_findings(message, reader, self.history.last, self.stuck_after_ms):
                    yield _anomaly(kind, message, begins, why)
            elif message.overwritten is None and not reader.good:
                yield from self._lost(message, reader)
                yield from self._skipped(message, reader)
                yield from self._stuck(message, reader)
            yield from self._again(message, reader) if len(reader.deliveries) > 1 else ()

    def _overwritten(self, message: MessageHistory, at: StepRecord) -> Iterator[Anomaly]:
        if not any(delivery.is_good for delivery in message.deliveries):
            before = "the producer got SEND_OK" if message.acknowledged else "it was stored"
            yield _anomaly(LOST, message, at, f"{before}, the log ended before it after a power cut")

    def _lost(self, message: MessageHistory, reader: MessageReader) -> Iterator[Anomaly]:
        if message.dead or not reader.deliveries or reader.passed is None:
            return
        # A listener that is still running may finish it: that is not lost yet.
        if any(self._may_still_end(delivery) for delivery in reader.deliveries):
            return
        last = reader.deliveries[-1]
        if message.sent_back is None:
            whose = f"{reader.client}'s" if reader.client else "the group's"
            how = f"ended it with {last.status}" if last.status else "began it and did not finish"
            yield _anomaly(LOST, message, reader.passed, f"{last.client} {how}, {whose} offset went past it")
        elif id(message) in self.finished_by_copy:
            return
        elif message.retry is not None and message.retry_passed and message.sent_back.step < message.retry.step:
            why = "its last retry was not finished, the group's offset of the retry topic went past it"
            yield _anomaly(LOST, message, message.retry_passed, why)

    def _skipped(self, message: MessageHistory, reader: MessageReader) -> Iterator[Anomaly]:
        if reader.deliveries or reader.passed is None:
            return
        # A pull that went over it shows that the broker's filter left it out, which may be right.
        if reader.covered is None:
            if self._is_wanted(message) is not False:
                why = "the group's offset went past it, and it had not been pulled"
                yield _anomaly(SKIPPED, message, reader.passed, why)
        elif self._is_wanted(message):
            why = f"{reader.covered.node} pulled past it and gave it to no listener, but the group wants it"
            yield _anomaly(SKIPPED, message, reader.passed, why)

    def _is_wanted(self, message: MessageHistory) -> bool | None:
        """Whether some member's subscription is for the message; None when the journal does not show it."""
        members = self.history.subscriptions[message.place[0].topic].values()
        return is_wanted([wish for wishes in members for wish in wishes], message.properties) if members else None

    def _again(self, message: MessageHistory, reader: MessageReader) -> Iterator[Anomaly]:
        # Calls that ended, in that order: the second success is where the duplicate appears.
        deliveries, good = reader.deliveries, reader.good
        steps = [*message.steps, *self._ends_after(deliveries)]
        if len(good) > 1 and good[1].ended is not None:
            by = " and ".join(dict.fromkeys(delivery.client for delivery in good))
            polled = good[1].status in (POLLED, ACKNOWLEDGED)
            how = f"taken {len(good)} times by a program that pulls" if polled else f"finished {len(good)} times"
            yield _anomaly(DUPLICATED, message, good[1].ended, f"{how}, by {by}", steps)
        for before, after in pairwise(deliveries):
            if not before.is_good:
                how = before.status or "did not come back"
                why = f"redelivered, {len(deliveries)} times in all: {before.client} {how}"
                yield _anomaly(REDELIVERED, message, after.started, why, steps)
                return

    def _ends_after(self, deliveries: list[DeliveryCall]) -> list[StepRecord]:
        """The ends of nodes that had received a message: offsets that they had not committed are read again."""
        began = {delivery.started.node: delivery.started.step for delivery in reversed(deliveries)}
        return [end for end in self.history.ends if end.step > began.get(end.node, end.step)]

    def stored_again(self) -> Iterator[Anomaly]:
        """Of the copies of a message that one reader has finished, all but the first are duplicates.

        Its producer sent it again, not knowing that it was stored, or a broker delivered a delayed one again.
        """
        for copies in self.copies.values():
            done: dict[str, list[tuple[int, MessageHistory, StepRecord]]] = {}
            for copy in copies if len(copies) > 1 else ():
                for reader in self.history.readers(copy):
                    ended = reader.good[0].ended if reader.good else None
                    if ended is not None:
                        done.setdefault(reader.client, []).append((ended.step, copy, ended))
            for finished in done.values():
                for _, copy, ended in sorted(finished, key=lambda ending: ending[0])[1:]:
                    why = f"its producer stored it {len(copies)} times, under one unique id; {len(finished)} finished"
                    yield _anomaly(DUPLICATED, copy, ended, why, [step for other in copies for step in other.steps])

    def out_of_order(self, read: Iterable[tuple[MessageHistory, list[MessageReader]]]) -> Iterator[Anomaly]:
        """A message that was first finished after a later one of its queue was."""
        queues: dict[tuple[MessageQueue, str], list[tuple[int, StepRecord, MessageHistory]]] = {}
        for message, readers in read:
            for reader in readers:
                ended = reader.good[0].ended if reader.good else None
                if ended is not None:
                    queues.setdefault((message.place[0], reader.client), []).append((message.place[1], ended, message))
        for finished in queues.values():
            earliest: tuple[StepRecord, int] | None = None  # the first end among the later messages
            # From the newest message back: each is compared with the earliest end among all later ones.
            for offset, ended, message in sorted(finished, key=lambda ending: ending[0], reverse=True):
                if earliest is not None and earliest[0].step < ended.step:
                    why = f"finished after entry {earliest[1]} of its queue, which came later"
                    yield _anomaly(OUT_OF_ORDER, message, ended, why)
                if earliest is None or ended.step < earliest[0].step:
                    earliest = ended, offset

    def _may_still_end(self, delivery: DeliveryCall) -> bool:
        """A listener that did not come back, on a node that has not ended since."""
        ended = self.history.ended.get(delivery.started.node)
        return delivery.ended is None and (ended is None or ended.step < delivery.started.step)

    def _stuck(self, message: MessageHistory, reader: MessageReader) -> Iterator[Anomaly]:
        last = self.history.last
        if last is None or message.dead:
            return
        # Either a listener holds it for too long, or no member has fetched it for too long.
        for delivery in reader.deliveries:
            in_ms = last.now_ms - delivery.started.now_ms
            if self._may_still_end(delivery) and in_ms > self.stuck_after_ms:
                yield _anomaly(STUCK, message, delivery.started, f"in {delivery.client}'s listener for {in_ms} ms")
                return
        in_ms = last.now_ms - message.stored.now_ms
        waits = not reader.deliveries and reader.covered is None and reader.passed is None
        wanted = self.history.has_members() and self._is_wanted(message) is not False
        if waits and wanted and in_ms > self.stuck_after_ms:
            yield _anomaly(STUCK, message, message.stored, f"waits for {in_ms} ms though members are online")


def _anomaly(
    kind: str, message: MessageHistory, at: StepRecord, why: str, steps: Iterable[StepRecord] | None = None
) -> Anomaly:
    before = {record.step: record for record in (message.steps if steps is None else steps) if record.step <= at.step}
    led_to = tuple(before[step] for step in sorted(before))
    if at not in led_to:
        led_to = (*led_to, at)
    queue, offset = message.place
    return Anomaly(kind, message.msg_id, queue, offset, at.step, at.now_ms, at.node, why, led_to)


def _descriptions(record: StepRecord, anomaly: Anomaly) -> list[str]:
    """The changes of a step that concern a message, in a few words each."""
    said = [_words(change) for change in record.changes if _is_about(change.values, anomaly)]
    return said or [record.kind]


def _is_about(values: Mapping[str, Any], anomaly: Anomaly) -> bool:
    """False for the changes of a step that concern other messages."""
    notes = values.get("messages")
    if not isinstance(notes, list):
        return anomaly.msg_id in (values.get("msg_id") or anomaly.msg_id)
    return any(
        note["msg_id"] == anomaly.msg_id
        and (note["message_queue"] != anomaly.message_queue or note["queue_offset"] == anomaly.queue_offset)
        for note in notes
    )


def _words(change: Change) -> str:
    values = change.values
    queue = values.get("message_queue") or values.get("queue")
    where = f" {queue.topic} {queue.broker_name} {queue.queue_id}" if isinstance(queue, MessageQueue) else ""
    if not where and "topic" in values and "queue_id" in values:
        where = f" {values['topic']} {values['queue_id']}"
    if "next_offset" in values:
        offset = f"{values['from_offset']} to {values['next_offset'] - 1}"
    elif "commit_offset" in values:
        offset = f"next is {values['commit_offset']}"
    else:
        offset = "" if values.get("queue_offset") is None else f"{values['queue_offset']}"
        offset = f"next is {offset}" if offset and change.kind.startswith("offset.") else offset
    status = values.get("status") or values.get("send_status") or values.get("error") or ""
    return " ".join(f"{change.kind}{where} {offset} {status}".split())
