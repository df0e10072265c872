"""What a learner's parts need of a unit and have not to write again: its place, its time, its tag, a copy to retry.

A unit is what the log stores (mqlab.rocketmq.wire.record); its parts are lab 01's.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping

from mqlab.rocketmq.wire import property_names as p
from mqlab.rocketmq.wire.host import host_of
from mqlab.rocketmq.wire.properties import decode as decode_properties
from mqlab.rocketmq.wire.properties import encode_as_java
from mqlab.rocketmq.wire.record import Record, decode, encode

PLACE_AT, TIME_AT = 20, 56
"""Where a unit has its queue_offset and physical_offset, and its store_timestamp."""


def placed(unit: bytes, queue_offset: int, physical_offset: int) -> bytes:
    """A unit with its number in the queue and its place in the log written into it.

    >>> placed(bytes(40), 1, 2)[20:36].hex()
    '00000000000000010000000000000002'
    """
    return unit[:PLACE_AT] + struct.pack(">qq", queue_offset, physical_offset) + unit[PLACE_AT + 16 :]


def stored_ms(unit: bytes) -> int:
    """When a unit was stored, in ms."""
    return int(struct.unpack_from(">q", unit, TIME_AT)[0])


def tag_of(unit: bytes) -> str | None:
    """A unit's tag; None without one."""
    return decode(unit).property_map.get(p.TAGS)


def unit_of(fields: Mapping[str, str], body: bytes, client: str, now_ms: int) -> bytes:
    """The unit of a message as SEND_MESSAGE_V2 brings it: its header fields by letter, its body, who sent it."""
    return encode(
        Record(
            fields["b"],
            body,
            int(fields["e"]),
            flag=int(fields["h"]),
            sys_flag=int(fields["f"]),
            born_timestamp=int(fields["g"]),
            born_host=host_of(client),
            store_timestamp=now_ms,
            reconsume_times=int(fields.get("j") or 0),
            properties=encode_as_java(decode_properties(fields.get("i") or "")),
        )
    )


def copied(unit: bytes, **properties: str) -> bytes:
    """A copy of a message that failed: one retry more, its first topic and id as properties, and those given."""
    record = decode(unit)
    own = {**record.property_map, **properties}
    own.setdefault(p.RETRY_TOPIC, record.topic)
    own.setdefault(p.ORIGIN_MESSAGE_ID, record.offset_msg_id)
    return encode(record.changed(reconsume_times=record.reconsume_times + 1, properties=encode_as_java(own)))
