# exercise: lab01.unit
# belief: the length of a topic takes as much room as that of the properties
# says: takes one byte in a V1 unit and two in a V2 unit
import struct


def read_unit(log, start):
    size, _, _, _, _, queue_offset, place, flag = struct.unpack_from(">5iqqi", log, start)
    at = start + 48 + (20 if flag & 0x10 else 8)
    (stored,) = struct.unpack_from(">q", log, at)
    at += 8 + (20 if flag & 0x20 else 8) + 12
    parts = []
    for kind in (">i", ">h", ">h"):
        (length,) = struct.unpack_from(kind, log, at) if at + 4 <= len(log) else (0,)
        at += struct.calcsize(kind)
        parts.append(log[at : at + length])
        at += max(length, 0)
    body, topic, text = parts
    pairs = [part.partition("\x01") for part in text.decode(errors="replace").split("\x02") if part]
    return {
        "size": size, "queue_offset": queue_offset, "physical_offset": place, "store_timestamp": stored,
        "body": body, "topic": topic.decode(errors="replace"), "properties": {n: v for n, _, v in pairs},
    }  # fmt: skip
