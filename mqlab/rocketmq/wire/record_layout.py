"""The layout of a commit-log unit, given once as a table, and the measuring of a unit by it.

Mirrors: MessageExtEncoder.calMsgLength, CommitLog.checkMessageAndReturnSize. Lab 01 prints ``LAYOUT``.

    ... fixed part (88 bytes, 12 more per IPv6 host), last field body length
    body | topic length, topic | properties length, properties

Left out: units that hold a batch (INNER_BATCH).
"""

from __future__ import annotations

import struct
from typing import Any, NamedTuple, NoReturn

from mqlab.errors import CorruptionError
from mqlab.rocketmq.wire import sys_flag as flags
from mqlab.rocketmq.wire.host import V4_SIZE, V6_SIZE
from mqlab.rocketmq.wire.java_hash import crc32
from mqlab.rocketmq.wire.layout import NUMBERS, Buffer, FieldSpec

MAGIC_V1 = -626843481  # MessageDecoder.MESSAGE_MAGIC_CODE
MAGIC_V2 = -626843477  # MessageDecoder.MESSAGE_MAGIC_CODE_V2
MAGIC_BLANK = -875286124  # CommitLog.BLANK_MAGIC_CODE
MAGIC_NAMES = {MAGIC_V1: "V1", MAGIC_V2: "V2", MAGIC_BLANK: "BLANK"}
BLANK_SIZE = 8  # CommitLog.END_FILE_MIN_BLANK_LENGTH
MAX_PROPERTIES = 32_767
MAX_TOPIC_V1 = 127

TOPIC_LENGTH = {MAGIC_V1: "i8", MAGIC_V2: "i16"}  # the one kind that depends on the magic

LAYOUT = (
    FieldSpec("total_size", "i32", "length of the whole unit, these 4 bytes included"),
    FieldSpec("magic", "i32", "which version of the layout; BLANK ends a file"),
    FieldSpec("body_crc", "i32", "CRC-32 of the body as stored, 31 bits; 0 for an empty body"),
    FieldSpec("queue_id", "i32", "queue in the topic"),
    FieldSpec("flag", "i32", "a number of the sender's own"),
    FieldSpec("queue_offset", "i64", "place in the queue, in messages"),
    FieldSpec("physical_offset", "i64", "place of this unit in the commit log, in bytes"),
    FieldSpec("sys_flag", "i32", "compression, transaction, kinds of the hosts"),
    FieldSpec("born_timestamp", "i64", "when the sender sent it, ms"),
    FieldSpec("born_host", "host", "address and port of the sender's connection", v6_bit=flags.BORN_HOST_V6),
    FieldSpec("store_timestamp", "i64", "when the broker appended it, ms; never falls along the log"),
    FieldSpec("store_host", "host", "address and port of the broker", v6_bit=flags.STORE_HOST_V6),
    FieldSpec("reconsume_times", "i32", "how often it came back from consumers"),
    FieldSpec("prepared_transaction_offset", "i64", "physical offset of the half message of a committed one, else 0"),
    FieldSpec("body_length", "i32", "bytes of the body that follows"),
    FieldSpec("body", "body", "the body, compressed if sys_flag says so"),
    FieldSpec("topic_length", "i8", "bytes of the topic that follows; i16 in V2"),
    FieldSpec("topic", "text", "the topic, UTF-8"),
    FieldSpec("properties_length", "i16", "bytes of the properties that follow"),
    FieldSpec("properties", "pairs", "name 0x01 value 0x02 ..., UTF-8"),
)


def fixed_part(sys_flag: int) -> struct.Struct:
    """The struct of everything before the body, for the kinds of hosts that ``sys_flag`` names."""
    codes = ">"
    for spec in LAYOUT[: [spec.name for spec in LAYOUT].index("body")]:
        v6 = sys_flag & spec.v6_bit
        codes += f"{V6_SIZE if v6 else V4_SIZE}s" if spec.kind == "host" else NUMBERS[spec.kind][0]
    return struct.Struct(codes)


def fixed_offset(name: str, sys_flag: int = 0) -> int:
    """Where a field before the body begins, for the kinds of hosts that ``sys_flag`` names."""
    offset = 0
    for spec in LAYOUT:
        if spec.name == name:
            return offset
        offset += spec.size or (V6_SIZE if sys_flag & spec.v6_bit else V4_SIZE)
    raise KeyError(name)


_HOST_KINDS = [kinds << 4 for kinds in range(4)]  # sys_flag bits 4 and 5
FIXED_PARTS = [fixed_part(sys_flag) for sys_flag in _HOST_KINDS]
STORE_TIMESTAMP_AT = [fixed_offset("store_timestamp", sys_flag) for sys_flag in _HOST_KINDS]
SYS_FLAG_AT = fixed_offset("sys_flag")
QUEUE_OFFSET_AT = fixed_offset("queue_offset")
_I16, _I32 = struct.Struct(">h"), struct.Struct(">i")


class Shape(NamedTuple):
    """Where the parts of a unit begin and end, checked to lie inside the buffer and to add up to the total size."""

    total_size: int
    fixed: tuple[Any, ...]
    body_at: int
    body_end: int
    topic_at: int
    topic_end: int
    properties_at: int
    properties_end: int


def _corrupt(text: str, offset: int, expected: object, found: object) -> NoReturn:
    raise CorruptionError(text, offset=offset, expected=expected, found=found)


def _hex(number: int) -> str:
    return f"{number & 0xFFFFFFFF:08X}"


def measure(buffer: Buffer, offset: int, end: int) -> Shape:
    """Measure the unit at ``offset``, reading nothing from ``end`` on; the checks and their order are RocketMQ's."""
    # 1. Size and magic: whether this can be a unit at all.
    left = end - offset
    if left <= _I32.size or offset < 0:
        _corrupt("no room for a unit", offset, "more than 4 bytes", max(left, 0))
    (total_size,) = _I32.unpack_from(buffer, offset)
    if total_size > left:
        _corrupt("the total size leads out of the bytes at hand", offset, f"at most {left}", total_size)
    if left < BLANK_SIZE:
        _corrupt("a unit is cut off", offset, "a magic", f"{left} bytes")
    (magic,) = _I32.unpack_from(buffer, offset + 4)
    if magic != MAGIC_V1 and magic != MAGIC_V2:
        wanted = " or ".join(f"{_hex(known)} ({MAGIC_NAMES[known]})" for known in TOPIC_LENGTH)
        _corrupt("not a unit", offset + 4, wanted, MAGIC_NAMES.get(magic, _hex(magic)))
    # 2. The fixed part; the sys_flag decides its length.
    if left < SYS_FLAG_AT + 4:
        _corrupt("a unit is cut off", offset, f"at least {FIXED_PARTS[0].size} bytes", left)
    fixed_part = FIXED_PARTS[_I32.unpack_from(buffer, offset + SYS_FLAG_AT)[0] >> 4 & 3]
    body_at = offset + fixed_part.size
    if body_at > end:
        _corrupt("a unit is cut off", offset, f"at least {fixed_part.size} bytes", left)
    # 3. The body and the topic.
    fixed = fixed_part.unpack_from(buffer, offset)
    body_length = fixed[-1]
    body_end = body_at + body_length if body_length > 0 else body_at  # a negative length is an empty body to RocketMQ
    topic_at = body_end + (1 if magic == MAGIC_V1 else 2)
    if topic_at > end:
        _corrupt("the body leads out of the unit", body_at - 4, f"at most {end - body_at}", body_length)
    if magic == MAGIC_V1:
        topic_length = buffer[body_end]
        if topic_length > MAX_TOPIC_V1:
            # Java reads the byte as a signed number.
            topic_length -= 256
    else:
        (topic_length,) = _I16.unpack_from(buffer, body_end)
    topic_end = topic_at + topic_length
    properties_at = topic_end + 2
    if topic_length < 0 or properties_at > end:
        _corrupt("the topic leads out of the unit", body_end, f"0 to {end - topic_at}", topic_length)
    # 4. The properties; then all parts must add up to the total size.
    (properties_length,) = _I16.unpack_from(buffer, topic_end)
    properties_end = properties_at + properties_length if properties_length > 0 else properties_at
    if properties_end > end:
        _corrupt("the properties lead out of the unit", topic_end, f"at most {end - properties_at}", properties_length)
    if properties_end - offset != total_size:
        _corrupt("the total size is not the sum of the parts", offset, properties_end - offset, total_size)
    return Shape(total_size, fixed, body_at, body_end, topic_at, topic_end, properties_at, properties_end)


def check_body(buffer: Buffer, shape: Shape, offset: int) -> None:
    """Compare the body with its check sum; an empty body has none. Raises CorruptionError."""
    stored = shape.fixed[2]
    if shape.body_end > shape.body_at:
        computed = crc32(memoryview(buffer)[shape.body_at : shape.body_end])
        if computed != stored:
            _corrupt("the body does not match its check sum", offset + 8, _hex(computed), _hex(stored))
