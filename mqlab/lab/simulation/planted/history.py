"""The history of a run as plain rows: what nodes noted about messages, offsets, calls and locks, step by step.

Mirrors: nothing of RocketMQ; the rows are a part of the journal's changes (mqlab.lab.runtime.kinds says what they
mean).

    {"step": 163, "ms": 2041, "node": "broker-a", "what": "message.dispatched",
     "queue": "orders broker-a 0", "offset": 0}

| what | the other keys |
|---|---|
| message.stored | queue, offset, start, end (bytes of the log), id |
| store.flushed | end: the log is on the disk up to this byte |
| message.dispatched | queue, offset |
| message.sent | queue, offset (where it is stored; a delayed message waits in SCHEDULE_TOPIC_XXXX), status, id |
| message.pulled | group, queue, first, next, offsets |
| listener.started | group, queue, call, offsets, ids |
| listener.returned | the same and status |
| result.discarded | group, queue, call, offsets, ids |
| message.sent_back, message.dead | group, id, retries: what the broker's copy counts |
| offset.updated, offset.committed | group, queue, offset: in the member's memory, in the broker's table |
| queue.added | group, queue, next: where the member begins |
| queue.dropped | group, queue |
| queue.locked, queue.unlocked | group, queue, member |
| fault.killed, fault.powered_off, fault.start | nothing: the node is the one that died or came back |

``ms`` counts from the beginning of the Lab. A queue is one word of three parts: topic, broker, number.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from mqlab.lab.world.lab import Lab
from mqlab.rocketmq.wire.ids import parse_offset_msg_id
from mqlab.rocketmq.wire.message import MessageQueue

Row = dict[str, Any]
Values = Mapping[str, Any]


def history(lab: Lab) -> list[Row]:
    """The rows of a Lab's journal, in order."""
    rows = []
    stored: dict[tuple[str, int], Row] = {}
    for record in lab.journal:
        for change in record.changes:
            make = MAKERS.get(change.kind)
            row = None if make is None else make(record.node, change.values)
            if row is not None:
                if change.kind == "message.stored":
                    stored[record.node, row["start"]] = row
                elif change.kind == "message.sent":
                    row.update(_place_in_the_log(change.values, stored))
                head = {"step": record.step, "ms": record.now_ms - lab.began_ms, "node": record.node}
                rows.append({**head, "what": change.kind, **row})
    return rows


def _name(queue: MessageQueue) -> str:
    return f"{queue.topic} {queue.broker_name} {queue.queue_id}"


def _of_broker(node: str, values: Values) -> Row:
    return {"queue": f"{values['topic']} {node} {values['queue_id']}", "offset": values["queue_offset"]}


def _stored(node: str, values: Values) -> Row:
    start = values["physical_offset"]
    return {**_of_broker(node, values), "start": start, "end": start + values["size"], "id": values["msg_id"]}


def _sent(node: str, values: Values) -> Row | None:
    if values["message_queue"] is None or values["send_status"] is None:
        return None
    position = {"queue": _name(values["message_queue"]), "offset": values["queue_offset"]}
    return {**position, "status": values["send_status"], "id": values["msg_id"]}


def _place_in_the_log(values: Values, stored: Mapping[tuple[str, int], Row]) -> Row:
    """Queue and offset of the unit of which a producer was told.

    For a delayed message, SEND_OK names the message's own topic next to the offset in the queue of its delay.
    """
    if values["offset_msg_id"] is None:
        return {}
    _, start = parse_offset_msg_id(values["offset_msg_id"].partition(",")[0])  # a batch names each of its units
    unit = stored.get((values["message_queue"].broker_name, start))
    return {} if unit is None or unit["id"] != values["msg_id"] else {key: unit[key] for key in ("queue", "offset")}


def _pulled(node: str, values: Values) -> Row:
    where = {"group": values["group"], "queue": _name(values["queue"])}
    return {**where, "first": values["from_offset"], "next": values["next_offset"], "offsets": values["queue_offsets"]}


def _call(node: str, values: Values) -> Row:
    messages = values["messages"]
    row = {
        "group": values["group"],
        "queue": _name(values["message_queue"]),
        "call": values["batch"],
        "offsets": [message["queue_offset"] for message in messages],
        "ids": [message["msg_id"] for message in messages],
    }
    return row | ({"status": values["status"]} if "status" in values else {})


def _given_back(node: str, values: Values) -> Row | None:
    if "client" in values or "reconsume_times" not in values:
        return None  # what the client says of the same, or a copy that it sent as a new message
    return {"group": values["group"], "id": values["msg_id"], "retries": values["reconsume_times"]}


def _of_member(**names: str) -> Callable[[str, Values], Row]:
    def make(node: str, values: Values) -> Row:
        row = {"group": values["group"], "queue": _name(values["queue"])}
        return row | {name: values[key] for name, key in names.items()}

    return make


def _lock(node: str, values: Values) -> Row:
    return {**_of_member()(node, values), "member": values["client"].rpartition("@")[2]}


def _nothing(node: str, values: Values) -> Row:
    return {}


MAKERS: dict[str, Callable[[str, Values], Row | None]] = {
    "message.stored": _stored,
    "store.flushed": lambda node, values: {"end": values["flushed_where"]},
    "message.dispatched": _of_broker,
    "message.sent": _sent,
    "message.pulled": _pulled,
    "listener.started": _call,
    "listener.returned": _call,
    "result.discarded": _call,
    "message.sent_back": _given_back,
    "message.dead": _given_back,
    "offset.updated": _of_member(offset="commit_offset"),
    "offset.committed": lambda node, values: {"group": values["group"], **_of_broker(node, values)},
    "queue.added": _of_member(next="next_offset"),
    "queue.dropped": _of_member(),
    "queue.locked": _lock,
    "queue.unlocked": _lock,
    "fault.killed": _nothing,
    "fault.powered_off": _nothing,
    "fault.start": _nothing,
}
