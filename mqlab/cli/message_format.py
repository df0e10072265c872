"""How ``mqlab cat`` prints one message: as JSON with RocketMQ's own field names, or by a format string like kcat's.

Mirrors: kcat's -f and MessageExt's field names.

    %t topic        %s body            %k keys          %h properties a=1,b=2    %P physical offset   %g tags
    %p queue id     %S body length     %K keys length   %T store time, ms        %u unique id         %m offset id
    %o queue offset %R body length as 4 bytes           %B born time, ms         %r reconsume times   %% a percent sign
    \\n \\r \\t \\\\ \\x41 as in C

kcat's %v and Avro are left out.
"""

from __future__ import annotations

import hashlib
import json
import re
import struct
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

from mqlab.errors import UsageError
from mqlab.rocketmq.store.reading.log_reader import Piece
from mqlab.rocketmq.wire.host import Host
from mqlab.rocketmq.wire.property_names import KEYS, TAGS, UNIQ_KEY
from mqlab.rocketmq.wire.record import Record

BODY_SHOWN = 256  # bytes; of a longer body JSON has the digest
Printer = Callable[[Piece], bytes]


def _text(value: object) -> bytes:
    return str(value).encode("utf-8", "replace")


Part = Callable[[Record, bytes], bytes]  # of the record and its body as it was sent

TOKENS: dict[str, Part] = {
    "t": lambda record, body: _text(record.topic),
    "p": lambda record, body: _text(record.queue_id),
    "o": lambda record, body: _text(record.queue_offset),
    "P": lambda record, body: _text(record.physical_offset),
    "s": lambda record, body: body,
    "S": lambda record, body: _text(len(body)),
    "R": lambda record, body: struct.pack(">i", len(body)),
    "k": lambda record, body: _text(record.property_map.get(KEYS, "")),
    "K": lambda record, body: _text(len(_text(record.property_map.get(KEYS, "")))),
    "h": lambda record, body: _text(",".join(f"{name}={value}" for name, value in record.property_map.items())),
    "T": lambda record, body: _text(record.store_timestamp),
    "B": lambda record, body: _text(record.born_timestamp),
    "g": lambda record, body: _text(record.property_map.get(TAGS, "")),
    "u": lambda record, body: _text(record.property_map.get(UNIQ_KEY, "")),
    "m": lambda record, body: _text(record.offset_msg_id),
    "r": lambda record, body: _text(record.reconsume_times),
    "%": lambda record, body: b"%",
}
_ESCAPES = {"n": b"\n", "r": b"\r", "t": b"\t", "0": b"\0", "\\": b"\\"}
_PART = re.compile(r"%(?P<token>.?)|\\x(?P<hex>[0-9a-fA-F]{2})|\\(?P<escape>.?)|(?P<plain>[^%\\]+)", re.DOTALL)


def compile_format(text: str) -> Printer:
    """A printer for a format string. UsageError for an unknown token lists the existing ones.

    >>> compile_format("%q")
    Traceback (most recent call last):
    mqlab.errors.UsageError: format '%q': unknown token %q
      hint: tokens: %t %p %o %P %s %S %R %k %K %h %T %B %g %u %m %r %%; escapes: \\n \\r \\t \\0 \\\\ \\x41
    """
    # 1. Compile once: the format is checked before the first message is read.
    parts: list[Part] = []
    for match in _PART.finditer(text):
        kind, value = match.lastgroup, match[match.lastgroup or 0]
        known: Any = {"token": TOKENS, "escape": _ESCAPES}.get(kind or "", {})
        if kind == "plain":
            parts.append(_always(value.encode("utf-8", "replace")))
        elif kind == "hex":
            parts.append(_always(bytes.fromhex(value)))
        elif value not in known:
            tokens = " ".join(f"%{token}" for token in TOKENS)
            raise UsageError(
                f"format {text!r}: unknown token {match[0]}",
                hint=f"tokens: {tokens}; escapes: \\n \\r \\t \\0 \\\\ \\x41",
            )
        else:
            parts.append(TOKENS[value] if kind == "token" else _always(_ESCAPES[value]))

    # 2. The printer only joins what its parts return for a message.
    def printed(piece: Piece) -> bytes:
        record, body = piece.record(), piece.message().body
        return b"".join(part(record, body) for part in parts)

    return printed


def _always(data: bytes) -> Part:
    return lambda record, body: data


def as_json(piece: Piece) -> bytes:
    """One line of JSON: the fields as stored, hosts as ``address|port``; the body in hex, a long one as its digest."""
    record = piece.record()
    values: dict[str, Any] = {
        "physicalOffset": piece.physical_offset,
        "size": piece.size,
        "magic": f"{(record.magic or 0) & 0xFFFFFFFF:08x}",
        "topic": record.topic,
        "queueId": record.queue_id,
        "queueOffset": record.queue_offset,
        "flag": record.flag,
        "sysFlag": record.sys_flag,
        "bodyCrc": record.body_crc,
        "bornTimestamp": record.born_timestamp,
        "bornHost": _host(record.born_host),
        "storeTimestamp": record.store_timestamp,
        "storeHost": _host(record.store_host),
        "reconsumeTimes": record.reconsume_times,
        "preparedTransactionOffset": record.prepared_transaction_offset,
        "bodyLength": len(record.body),
    }
    # A long body would make the line unreadable; the digest is enough to compare two bodies.
    if len(record.body) <= BODY_SHOWN:
        values["bodyHex"] = record.body.hex()
    else:
        values["bodySha256"] = hashlib.sha256(record.body).hexdigest()
    values["properties"] = dict(sorted(record.property_map.items()))
    values["offsetMsgId"] = record.offset_msg_id
    # The digest of the whole unit shows whether two stores hold the same bytes.
    values["unitSha256"] = hashlib.sha256(piece.raw()).hexdigest()
    return json_line(values)


def as_line(piece: Piece) -> bytes:
    """One line for people: place, time, topic, queue and queue offset, tags, keys, body as text."""
    record = piece.record()
    moment = datetime.fromtimestamp(record.store_timestamp / 1000, UTC)
    properties = record.property_map
    words = [
        f"{piece.physical_offset:>12}",
        f"{moment:%Y-%m-%d %H:%M:%S}.{record.store_timestamp % 1000:03d}",
        f"{record.topic}[{record.queue_id}]@{record.queue_offset}",
        f"tags={properties.get(TAGS, '-')}",
        f"keys={properties.get(KEYS, '-')}",
        _printable(piece.message().body),
    ]
    return _text("  ".join(words)) + b"\n"


def json_line(values: object) -> bytes:
    """Any value as one line of UTF-8 JSON."""
    return json.dumps(values, ensure_ascii=False).encode("utf-8", "replace") + b"\n"


def _printable(body: bytes) -> str:
    try:
        text = body.decode("utf-8")
    except UnicodeDecodeError:
        return f"{len(body)} bytes {body[:16].hex()}{'…' if len(body) > 16 else ''}"
    return "".join(letter if letter.isprintable() else repr(letter)[1:-1] for letter in text)


def _host(host: Host) -> str:
    return f"{host[0]}|{host[1]}"
