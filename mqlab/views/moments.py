"""The journal told as moments: which of its steps a reader wants to see, in what words, for all messages or for one.

Mirrors: what RocketMQ spreads over its client, broker and store logs. Lab 00 reads its first day this way.

    StepRecord 41 broker-a frame SEND_MESSAGE_V2        Moment(shop-1 ─▶ broker-a  "SEND_MESSAGE_V2")
      changes: message.stored queue_id=2 …         ->   Moment(broker-a  "stored at byte 0: entry 0 of orders 2")

Left out: frames that changed nothing that is shown (``space_time`` has every frame).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from mqlab.views.timeline import Moment, Timeline

if TYPE_CHECKING:
    from mqlab.runtime.journal import Change, Journal, StepRecord

SENTENCES: dict[str, tuple[str, str]] = {
    "message.stored": ("stored", "stored at byte {physical_offset}"),
    "message.dispatched": ("stored", "{topic} {queue_id}: entry {queue_offset} points there"),
    "message.delivered_late": ("stored", "its delay is over"),
    "message.pulled": ("read", "pulled {count} from {topic} {queue_id}"),
    "message.filtered": ("read", "filtered out by its tag"),
    "listener.started": ("read", "listener starts"),
    "listener.returned": ("read", "{status}"),
    "result.discarded": ("trouble", "result discarded"),
    "offset.updated": ("progress", "in memory: next of {topic} {queue_id} is {queue_offset}"),
    "offset.committed": ("progress", "{group}: next of {topic} {queue_id} is {queue_offset}"),
    "offset.reset": ("progress", "{group}: next of {topic} {queue_id} reset to {queue_offset}"),
    "offset.persisted": ("progress", "offsets written to {file}"),
    "message.sent_back": ("trouble", "sent back by {group}"),
    "message.dead": ("trouble", "to the dead letters of {group}"),
}
"""The change kinds of a day, with their look and their words; other kinds are left to the journal."""

STEP_SENTENCES: dict[str, tuple[str, str]] = {"fault": ("trouble", "{what}")}
OFFSET_KINDS = ("offset.updated", "offset.committed", "offset.reset")


def moments(journal: Journal, message: str | None = None, *, since_step: int = 0) -> list[Moment]:
    """What happened, in order: of one message (its msg_id) from its arrival on, or of all."""
    choose = _Follower(message) if message is not None else _everything
    found: list[Moment] = []
    shown_steps: set[int] = set()
    for record in journal:
        if record.step < since_step:
            continue
        told = [change for change in record.changes if change.kind in SENTENCES and choose(record, change)]
        answer = record.about is not None and record.about.flag & 1 and record.cause in shown_steps
        if record.about is not None and (told or (answer and message is not None)):
            found.extend(_arrow(journal, record))
        found.extend(_moment(record, change.kind, change.values) for change in told)
        if record.kind == "fault":
            found.extend(_moment(record, "fault", change.values | {"what": change.kind}) for change in record.changes)
        if told:
            shown_steps.add(record.step)
    return found


def space_time(journal: Journal, first_step: int = 0, last_step: int | None = None) -> Timeline:
    """Every frame between two steps as an arrow from node to node, and what it changed: the space-time diagram."""
    found: list[Moment] = []
    for record in journal:
        if record.step < first_step or (last_step is not None and record.step > last_step):
            continue
        if record.about is not None:
            found.extend(_arrow(journal, record))
        found.extend(_moment(record, c.kind, c.values) for c in record.changes if c.kind in SENTENCES)
    return Timeline(found, title=f"steps {first_step} to {last_step if last_step is not None else len(journal) - 1}")


def _everything(record: StepRecord, change: Change) -> bool:
    return True


class _Follower:
    """Chooses the changes that concern one message, learning on the way where its copies lie."""

    def __init__(self, msg_id: str) -> None:
        self.msg_id = msg_id
        self.places: dict[tuple[str, int], int] = {}  # (topic, queue id) -> queue offset
        self.batches: set[tuple[str, int]] = set()  # (node, batch) of listener calls that got it

    def __call__(self, record: StepRecord, change: Change) -> bool:
        values = plain(change.values)
        if change.kind in OFFSET_KINDS:
            return self._is_passed(values)
        if change.kind == "listener.returned":
            return (record.node, values.get("batch", -1)) in self.batches
        carried = [plain(message) for message in values.get("messages", ())]
        concerned = values.get("msg_id") == self.msg_id or any(m.get("msg_id") == self.msg_id for m in carried)
        if not concerned and "queue_offset" in values:
            place = self.places.get((values.get("topic", ""), values.get("queue_id", -1)))
            concerned = place == values["queue_offset"] and change.kind == "message.dispatched"
        if concerned and change.kind == "listener.started":
            self.batches.add((record.node, values.get("batch", -1)))
        if concerned and change.kind == "message.stored":
            self.places[values["topic"], values["queue_id"]] = values["queue_offset"]
        return concerned

    def _is_passed(self, values: Mapping[str, Any]) -> bool:
        place = self.places.get((values.get("topic", ""), values.get("queue_id", -1)))
        before = values.get("before")
        return place is not None and (before is None or before <= place) and values["queue_offset"] > place


def plain(values: Mapping[str, Any]) -> dict[str, Any]:
    """The values of a change with one spelling: topic and queue_id taken out of a queue, offsets as queue_offset."""
    found = dict(values)
    queue = found.get("queue") or found.get("message_queue")
    if queue is not None and hasattr(queue, "queue_id"):
        found.setdefault("topic", queue.topic)
        found.setdefault("broker_name", queue.broker_name)
        found.setdefault("queue_id", queue.queue_id)
    if "commit_offset" in found:
        found.setdefault("queue_offset", found["commit_offset"])
    return found


def _arrow(journal: Journal, record: StepRecord) -> Iterator[Moment]:
    """The frame that this step received, from the node that sent it."""
    sender = journal[record.cause].node if record.cause >= getattr(journal, "dropped", 0) else ""
    if sender and sender != record.node:
        text = record.about_text.rsplit(" #", 1)[0]
        yield Moment(record.now_ms, sender, "frame", text, to=record.node, step=record.step)


def _moment(record: StepRecord, kind: str, values: Mapping[str, Any]) -> Moment:
    look, sentence = SENTENCES.get(kind) or STEP_SENTENCES[kind]
    known = plain(values)
    if kind == "listener.returned" and known.get("status") in ("RECONSUME_LATER", "SUSPEND_CURRENT_QUEUE_A_MOMENT"):
        look = "trouble"
    known.setdefault("count", len(known.get("messages", ())))
    known.setdefault("file", str(known.get("path", "")).rsplit("/", 1)[-1])
    text = sentence.format_map(_Words(known))
    return Moment(record.now_ms, record.node, kind, text, look, step=record.step, values=tuple(_small(known)))


class _Words(dict[str, Any]):
    def __missing__(self, name: str) -> str:
        return "?"


def _small(values: Mapping[str, Any]) -> Iterable[tuple[str, object]]:
    """What is worth a cell of a table: numbers and short texts."""
    for name, value in values.items():
        if value is not None and isinstance(value, int | str) and value != "":
            yield name, value
