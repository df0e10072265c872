"""A journal as moments: the steps that a reader wants to see, as sentences, for all messages or for one.

Mirrors: the lines that RocketMQ writes to its client, broker and store logs. Lab 00 reads its first day this way.

    StepRecord 41 broker-a frame SEND_MESSAGE_V2        Moment(shop-1 ─▶ broker-a  "SEND_MESSAGE_V2")
      changes: message.stored queue_id=2 …         ->   Moment(broker-a  "stored at byte 0: entry 0 of orders 2")

Left out: frames that changed nothing that is shown, except requests whose answer is; ``space_time`` has every frame.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from mqlab.lab.runtime.collector import collecting_rarely
from mqlab.lab.views.timeline import Moment, MomentsOnDemand, Timeline
from mqlab.rocketmq.wire.names import RETRY_PREFIX, TRACE_TOPIC
from mqlab.rocketmq.wire.pop import offsets_of, real_topic

if TYPE_CHECKING:
    from mqlab.lab.runtime.journal import Change, Journal, StepRecord

SENTENCES: dict[str, tuple[str, str]] = {
    "message.sent": ("other", "{send_status}: entry {queue_offset} of {topic} {queue_id}"),
    "message.stored": ("stored", "stored at byte {physical_offset}"),
    "message.dispatched": ("stored", "{topic} {queue_id}: entry {queue_offset} points there"),
    "message.delivered_late": ("stored", "its delay is over"),
    "message.pulled": ("read", "got {count} of {topic} {queue_id}"),
    "message.polled": ("read", "its program takes {count} of {topic} {queue_id}"),
    "message.filtered": ("read", "filtered out by its tag"),
    "listener.started": ("read", "listener starts: {entries}"),
    "listener.returned": ("read", "{status}: {entries}"),
    "pull.held": ("held", "{group} waits for entry {queue_offset} of {topic} {queue_id}"),
    "pull.offset_moved": ("progress", "{topic} {queue_id} continues at entry {next_offset}"),
    "result.discarded": ("trouble", "result discarded"),
    "offset.updated": ("progress", "in memory: next of {topic} {queue_id} is {queue_offset}"),
    "offset.committed": ("progress", "{group}: next of {topic} {queue_id} is {queue_offset}"),
    "offset.reset": ("progress", "{group}: next of {topic} {queue_id} reset to {queue_offset}"),
    "offset.persisted": ("progress", "offsets written to {file}"),
    "message.sent_back": ("trouble", "sent back by {group}"),
    "message.dead": ("trouble", "to the dead letters of {group}"),
    "timer.rolled": ("stored", "not due yet: put into the timer topic again"),
    "timer.delivered": ("stored", "its time has come"),
    "timer.recalled": ("trouble", "recalled: its marker drops it"),
    "message.popped": ("read", "{group} pops entries of {topic}"),
    "message.acked": ("progress", "{group} acknowledged entry {queue_offset} of {topic} {queue_id}"),
    "message.invisible_time_changed": (
        "progress",
        "{group} keeps entry {queue_offset} of {topic} {queue_id} for longer",
    ),
    "pop.held": ("held", "{group} waits for messages of {topic}"),
    "message.revived": ("trouble", "lease of {group} over: stored again in {topic}"),
    "ha.requested": ("other", "a slave begins: sends it the log from byte {sends_from}"),
    "ha.block_appended": ("stored", "copied from byte {physical_offset}: {size} bytes of the log"),
    "ha.acknowledged": ("other", "its slave has the log up to byte {physical_offset}"),
    "ha.diverged": ("trouble", "own log ends at byte {own_offset}, the master's block begins at {physical_offset}"),
    "ha.lost": ("trouble", "replication link: {reason}"),
    "slave.synchronized": ("other", "took over {what} of its master"),
}
"""The change kinds of a day, with their look and their sentence; other kinds are in the journal only."""

STEP_SENTENCES: dict[str, tuple[str, str]] = {"fault": ("trouble", "{what}"), "mended": ("other", "{what}")}
MENDED = {"start": "started again", "heal": "partitions healed"}
LASTING = {"slow": "delay_ms", "skew_clock": "skew_ms", "disk_full": "used", "disk_fails": "at"}
"""Faults that last, each until this value is 0 or "nothing"."""
FRAME, HELD = "frame", ("pull.held", "pop.held")
Place = tuple[str, str, int]
REPLICATION = {
    "ha.requested": "HA report",
    "ha.acknowledged": "HA report",
    "ha.block_appended": "HA block",
    "ha.diverged": "HA block",
}
OF_PLACES = (
    "message.pulled",
    "message.dispatched",
    "message.popped",
    "message.acked",
    "message.invisible_time_changed",
)
OFFSET_KINDS = ("offset.updated", "offset.committed", "offset.reset")


@collecting_rarely()
def moments(
    journal: Journal, message: str | None = None, first_step: int = 0, last_step: int | None = None
) -> MomentsOnDemand:
    """What happened between two steps, in order: of one message (its msg_id) or of all.

    The request of a shown answer is shown too, also one that was held since before the message arrived or before the
    first step; the time called +0 is that of the first other moment.
    """
    last = len(journal) - 1 if last_step is None else last_step
    choose = _Follower(message) if message is not None else _Overview()
    return _chosen(journal, message, choose).moments(first_step, last, earlier=True)


def _chosen(journal: Journal, message: str | None, choose: _Follower | _Overview) -> _Collected:
    collected = _Collected(journal)
    shown_steps: set[int] = set()
    for record in collected.seen:
        if record.about is not None:
            collected.see(record)
        changes = [change for change in record.changes if change[0] in SENTENCES and choose(record, *change)]
        # The answer to a shown request is shown too, although it changes nothing about the message.
        reply = message is not None and record.cause in shown_steps and collected.is_answer(record)
        if changes or reply:
            collected.frame(record)
            shown_steps.add(record.step)
            collected.changes(record, changes)
        if record.kind == "fault":
            collected.faults(record)
    return collected


@collecting_rarely()
def space_time(
    journal: Journal,
    first_step: int = 0,
    last_step: int | None = None,
    *,
    only: Collection[str] = (),
    scale: str = "rows",
) -> Timeline:
    """Every frame between two steps as an arrow from node to node, and what it changed: the space-time diagram.

    ``only``: names of requests; other frames, and what they changed, are left out.
    """
    last = len(journal) - 1 if last_step is None else last_step
    collected = _Collected(journal)
    for record in collected.seen:
        if record.about is not None:
            collected.see(record)
            if only and collected.request_name(record) not in only:
                continue
        collected.frame(record)
        collected.changes(record, [change for change in record.changes if change[0] in SENTENCES])
        if record.kind == "fault":
            collected.faults(record)
    title = f"steps {max(first_step, journal.dropped)} to {last}"
    return Timeline(collected.moments(first_step, last), title=title, scale=scale)


class _Overview:
    """Chooses an overview: without trace messages, pulls that were held before, and offsets that did not move."""

    def __init__(self) -> None:
        self.held: set[tuple[Any, ...]] = set()

    def __call__(self, record: StepRecord, kind: str, values: Mapping[str, Any]) -> bool:
        queue = values.get("queue") or values.get("message_queue")
        topic = str(values.get("topic") or getattr(queue, "topic", ""))
        if topic == TRACE_TOPIC:
            return False
        if kind in OFFSET_KINDS:
            return bool(_offset(values) > max(values.get("before") or 0, 0) or kind == "offset.reset")
        if kind == "message.popped":
            self.held = {position for position in self.held if position[:3] != (record.node, values["group"], topic)}
        if kind in HELD:
            position = (record.node, values["group"], topic, values["queue_id"], values.get("queue_offset"))
            if position in self.held or topic.startswith(RETRY_PREFIX):
                return False
            self.held.add(position)
        return True


class _Collected:
    """Collects the items to show; it finds each frame's sender and the request that an answer belongs to."""

    def __init__(self, journal: Journal) -> None:
        self.seen = list(journal)
        self._first = journal.dropped
        self._framed: set[int] = set()  # the steps whose frame is shown
        self._held: set[int] = set()  # the steps of which it is shown that they held a pull
        self._lasting: set[tuple[str, str]] = set()  # node and fault, from its beginning to its end
        self._requests: dict[int, None] = {}  # the steps of requests to be shown because their answer is
        self._answered: dict[int, StepRecord] = {}  # step of a request -> the step in which it was answered
        self.asked: dict[tuple[str, str, int], StepRecord] = {}  # (requester, receiver, opaque) -> arrival
        self.items: list[tuple[StepRecord, str, Any]] = []  # (record, kind, values), or FRAME with (sender, asked)

    def see(self, record: StepRecord) -> None:
        """Note a step in which a frame arrived, in the order of the journal."""
        if not self.is_answer(record):
            self.asked[self._sender(record), record.node, record.about.opaque] = record
        elif (asked := self._request_of(record)) is not None:
            self._answered.setdefault(asked.step, self._cause(record) or record)

    def is_answer(self, record: StepRecord) -> bool:
        """True for a step in which an answer arrived: the lowest bit of its frame's flag marks it."""
        return record.about is not None and bool(record.about.flag & 1)

    def request_name(self, record: StepRecord) -> str:
        """The name of the request that arrived in this step, or whose answer did."""
        return _name((self.is_answer(record) and self._request_of(record)) or record)

    def frame(self, record: StepRecord) -> None:
        """Add the frame that arrived in this step, if there is one, with the node that sent it."""
        cause = self._cause(record)
        if cause is None or cause.node == record.node or not (record.about or _name(record)):
            return
        if record.step in self._framed:
            return
        asked = self._request_of(record) if self.is_answer(record) else None
        self._framed.add(record.step)
        self.items.append((record, FRAME, (cause.node, asked, cause)))
        if asked is not None:
            self._requests.setdefault(asked.step)

    def changes(self, record: StepRecord, changes: Sequence[Change]) -> None:
        """Add some changes of a step."""
        for kind, values in changes:
            self.items.append((record, kind, values))
            if kind in HELD:
                self._held.add(record.step)

    def faults(self, record: StepRecord) -> None:
        """Add the faults that the notebook caused or ended in this step; to end what did not last shows nothing."""
        for change in record.changes:
            what = change.kind.removeprefix("fault.")
            words, kind = MENDED.get(what, what.replace("_", " ")), "mended" if what in MENDED else "fault"
            if what in LASTING and change.values[LASTING[what]] not in (0, "nothing"):
                self._lasting.add((record.node, what))
            elif what in LASTING:
                if (record.node, what) not in self._lasting and not self._first:
                    continue
                self._lasting.discard((record.node, what))
                words, kind = f"{words}: over", "mended"
            self.items.append((record, kind, change.values | {"what": words}))

    def moments(self, first_step: int, last_step: int, *, earlier: bool = False) -> MomentsOnDemand:
        """All items between two steps, in order, with the requests of the answers among them.

        With ``earlier`` also those requests that arrived before the first step: a held pull is answered long after it.
        """
        # 1. Lanes and the time called +0 are those of what was chosen; requests that were held long come before.
        chosen = [item for item in self.items if first_step <= item[0].step <= last_step]
        answers = [values[1] for _, kind, values in chosen if kind == FRAME and values[1] is not None]
        asked = {request.step for request in answers} if earlier else set()
        start_ms = chosen[0][0].now_ms if chosen else None
        lanes: dict[str, None] = {}
        for record, kind, values in chosen:
            if kind == FRAME:
                lanes[values[0]] = None
            lanes[record.node] = None
        # 2. Each request whose answer is shown, and whether it was held.
        for step in self._requests:
            if step >= self._first:
                request = self.seen[step - self._first]
                self.frame(request)
                if step not in self._held:
                    self.changes(request, [change for change in request.changes if change.kind in HELD])
        # 3. In the order of the journal; the frame of a step comes before what it changed.
        self.items.sort(key=lambda item: 2 * item[0].step + (item[1] != FRAME))
        shown = [
            item if item[1] not in HELD else (*item[:2], (item[2], self._answered.get(item[0].step)))
            for item in self.items
            if first_step <= item[0].step <= last_step or (item[0].step in asked and item[1] in (FRAME, *HELD))
        ]
        return MomentsOnDemand(shown, _moment, lanes, start_ms=start_ms)

    def _request_of(self, answer: StepRecord) -> StepRecord | None:
        """The step in which the request of an answer arrived."""
        return self.asked.get((answer.node, self._sender(answer), answer.about.opaque))

    def _cause(self, record: StepRecord) -> StepRecord | None:
        """The step that sent a frame or armed an event; None for the notebook or a step that was dropped."""
        return self.seen[record.cause - self._first] if record.cause >= self._first else None

    def _sender(self, record: StepRecord) -> str:
        cause = self._cause(record)
        return cause.node if cause is not None else ""


class _Follower:
    """Chooses the changes that concern one message; it collects the places of its copies from them."""

    def __init__(self, msg_id: str) -> None:
        self.msg_id = msg_id
        self.places: dict[Place, int] = {}  # of its copies: queue -> queue offset

    def __call__(self, record: StepRecord, kind: str, values: Mapping[str, Any]) -> bool:
        if kind in OFFSET_KINDS:
            return bool(self.places) and self._is_passed(record, values)
        if values.get("msg_id") == self.msg_id:
            if kind == "message.stored":
                self.places[_place(record, values)] = values["queue_offset"]
            return True
        if self.msg_id in [message["msg_id"] for message in _carried(values)]:
            return True
        if kind not in OF_PLACES or not self.places:
            return False
        if kind == "message.popped":
            return self._is_popped(record, values)
        offsets = values["queue_offsets"] if kind == "message.pulled" else (values["queue_offset"],)
        return self.places.get(_place(record, values)) in offsets

    def _is_popped(self, record: StepRecord, values: Mapping[str, Any]) -> bool:
        return any(
            self.places.get((record.node, real_topic(values["topic"], values["group"], kind), queue_id)) in offsets
            for (kind, queue_id), offsets in offsets_of(values["offsets"]).items()
        )

    def _is_passed(self, record: StepRecord, values: Mapping[str, Any]) -> bool:
        position = self.places.get(_place(record, values))
        # Only the commit that crosses the message's place is about it.
        before = values.get("before")
        return position is not None and (before is None or before <= position) and bool(_offset(values) > position)


def _place(record: StepRecord, values: Mapping[str, Any]) -> Place:
    """The queue that a change is about; a broker's change is about its own queue."""
    queue = values.get("queue") or values.get("message_queue")
    if queue is not None and hasattr(queue, "queue_id"):
        return queue.broker_name, queue.topic, queue.queue_id
    return values.get("broker_name", record.node), values.get("topic", ""), values.get("queue_id", -1)


def _offset(values: Mapping[str, Any]) -> Any:
    """The queue offset of a change, whose name also says whether it is committed."""
    return values["commit_offset"] if "commit_offset" in values else values["queue_offset"]


def plain(values: Mapping[str, Any]) -> dict[str, Any]:
    """The values of a change under the same names: topic and queue_id taken out of a queue, offsets as queue_offset."""
    named = dict(values)
    queue = named.get("queue") or named.get("message_queue")
    if queue is not None and hasattr(queue, "queue_id"):
        for name in ("topic", "broker_name", "queue_id"):
            named.setdefault(name, getattr(queue, name))
    if "commit_offset" in named:
        named.setdefault("queue_offset", named["commit_offset"])
    return named


def _carried(values: Mapping[str, Any]) -> Sequence[Mapping[str, Any]]:
    """The messages that a change lists (a listener's), not those that it only counts."""
    messages = values.get("messages")
    return messages if isinstance(messages, list) else ()


def _moment(item: tuple[StepRecord, str, Any]) -> Moment:
    record, kind, values = item
    if kind == FRAME:
        return _frame(record, *values)
    if kind in HELD:
        values, answered = values
        until = (None, None) if answered is None else (answered.now_ms, answered.step)
        return replace(_change(record, kind, values), until_ms=until[0], until_step=until[1])
    return _change(record, kind, values)


def _frame(record: StepRecord, sender: str, asked: StepRecord | None, sent: StepRecord | None) -> Moment:
    text = _name(record)
    if asked is not None:
        text = f"{text.removesuffix(' answer')} to {_name(asked)}"
    when = (None, None) if sent is None else (sent.now_ms, sent.step)
    return Moment(
        record.now_ms, sender, FRAME, text, to=record.node, step=record.step, sent_ms=when[0], sent_step=when[1]
    )


def _name(record: StepRecord) -> str:
    """The frame's name without its number; a frame of a replication link is named by its effect."""
    if record.about is None and record.kind == "frame":
        return next((REPLICATION[change.kind] for change in record.changes if change.kind in REPLICATION), "")
    return record.about_text.rsplit(" #", 1)[0]


def _change(record: StepRecord, kind: str, values: Mapping[str, Any]) -> Moment:
    look, sentence = SENTENCES.get(kind) or STEP_SENTENCES[kind]
    known, raw = plain(values), plain(values)
    if kind == "listener.returned" and known.get("status") in ("RECONSUME_LATER", "SUSPEND_CURRENT_QUEUE_A_MOMENT"):
        look = "trouble"
    if kind == "message.sent" and values.get("send_status") is None:
        look, sentence = ("trouble", "not sent: {error}") if values.get("error") else ("other", "sent one way")
    carried = _carried(values)
    # A list of one message is about that message: its fields may appear in the sentence.
    if len(carried) == 1:
        raw = plain(carried[0]) | raw
        known |= raw
    known["entries"] = f"entry {known.get('queue_offset')}" if len(carried) == 1 else f"{len(carried)} messages"
    known.setdefault("count", len(carried) or known.get("messages", 0))
    known.setdefault("file", str(known.get("path", "")).rsplit("/", 1)[-1])
    text = sentence.format_map(_Words(known))
    return Moment(record.now_ms, record.node, kind, text, look, step=record.step, values=tuple(_small(raw)))


class _Words(dict[str, Any]):
    def __missing__(self, name: str) -> str:
        return "?"


def _small(values: Mapping[str, Any]) -> Iterable[tuple[str, object]]:
    """The values to show in a table: numbers and strings."""
    for name, value in values.items():
        if value is not None and isinstance(value, int | str) and value != "":
            yield name, value
