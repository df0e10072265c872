"""The message trace: what producers and consumers recorded about a message, read from the trace topic.

Mirrors: mqadmin queryMsgTraceById, TraceDataDecoder (TraceContext, TraceView).

    Pub  sent          SubBefore  a listener is called          SubAfter  it returned
    EndTransaction     decided

A listener that did not return has a SubBefore without SubAfter.
Left out: Recall entries and the trace of the cloud channel.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from mqlab.rocketmq.admin.messages import END_OF_TIME_MS, indexed_messages
from mqlab.rocketmq.admin.requests import AdminNode
from mqlab.rocketmq.answers import Rows
from mqlab.rocketmq.wire import names
from mqlab.rocketmq.wire.java_numbers import parse_int, parse_long
from mqlab.rocketmq.wire.message import MessageExt

FIELD_END = "\x01"
ENTRY_END = "\x02"
CONTEXT_CODES = {"0": "SUCCESS", "1": "TIME_OUT", "2": "EXCEPTION", "3": "RETURNNULL", "4": "FAILED"}


@dataclass(frozen=True, slots=True)
class TraceEntry:
    """One entry; ``time_ms`` is of the client's clock, ``request_id`` joins SubBefore and SubAfter."""

    type: str
    time_ms: int | None
    group: str | None
    topic: str | None
    msg_id: str
    client: str
    success: bool | None
    cost_ms: int | None
    status: str | None
    retry_times: int | None
    keys: str | None
    request_id: str | None


def view_trace(
    admin: AdminNode, msg_id: str, *, topic: str = names.TRACE_TOPIC, begin_ms: int = 0, end_ms: int = END_OF_TIME_MS
) -> Rows[TraceEntry]:
    """All trace entries of a message id, by time; traces arrive up to half a second later."""
    messages = indexed_messages(admin, topic, msg_id, begin_ms, end_ms)
    entries = [entry for message in messages for entry in decode_trace(message) if entry.msg_id == msg_id]
    # A SubAfter may have no time of its own: it gets that of its SubBefore plus its cost.
    began = {entry.request_id: entry for entry in entries if entry.type == "SubBefore"}
    entries.sort(key=lambda entry: (_time(entry, began), entry.type == "SubAfter"))
    return Rows(entries, f"trace of {msg_id}")


def decode_trace(message: MessageExt) -> list[TraceEntry]:
    """The entries in a message of the trace topic; invalid entries are left out."""
    client = message.born_host[0]
    entries = []
    for text in message.body.decode("utf-8", "replace").split(ENTRY_END):
        fields = text.split(FIELD_END)
        read = READERS.get(fields[0])
        if read is not None:
            try:
                entries.append(read(fields, client))
            except (IndexError, ValueError):
                continue  # cut short, or of an unknown version
    return entries


def _pub(f: Sequence[str], client: str) -> TraceEntry:
    success = f[13] == "true" if len(f) > 13 else None
    keys = _text(f[7])
    return TraceEntry(
        "Pub",
        parse_long(f[1]),
        _text(f[3]),
        _text(f[4]),
        f[5],
        client,
        success,
        parse_int(f[10]),
        None,
        None,
        keys,
        None,
    )


def _sub_before(f: Sequence[str], client: str) -> TraceEntry:
    keys = _text(f[7]) if len(f) > 7 else None
    return TraceEntry(
        "SubBefore", parse_long(f[1]), _text(f[3]), None, f[5], client, None, None, None, parse_int(f[6]), keys, f[4]
    )


def _sub_after(f: Sequence[str], client: str) -> TraceEntry:
    status = CONTEXT_CODES.get(f[6]) if len(f) > 6 else None
    time_ms = parse_long(f[7]) if len(f) > 8 else None
    group = _text(f[8]) if len(f) > 8 else None
    return TraceEntry(
        "SubAfter", time_ms, group, None, f[2], client, f[4] == "true", parse_int(f[3]), status, None, _text(f[5]), f[1]
    )


def _end_transaction(f: Sequence[str], client: str) -> TraceEntry:
    return TraceEntry(
        "EndTransaction",
        parse_long(f[1]),
        _text(f[3]),
        _text(f[4]),
        f[5],
        client,
        None,
        None,
        f[11],
        None,
        _text(f[7]),
        None,
    )


READERS = {"Pub": _pub, "SubBefore": _sub_before, "SubAfter": _sub_after, "EndTransaction": _end_transaction}


def _text(text: str) -> str | None:
    return text if text and text != "null" else None


def _time(entry: TraceEntry, began: dict[str | None, TraceEntry]) -> int:
    if entry.time_ms is not None:
        return entry.time_ms
    first = began.get(entry.request_id)
    return (first.time_ms or 0) + (entry.cost_ms or 0) if first is not None else 0
