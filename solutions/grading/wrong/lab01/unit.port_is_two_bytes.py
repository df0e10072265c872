# exercise: lab01.unit
# belief: a port is two bytes
# says: a port has four of them
import struct


def read_unit(log, start):
    size, magic, _, _, _, queue_offset, place, flag = struct.unpack_from(">5iqqi", log, start)
    at = start + 48 + (18 if flag & 0x10 else 6)
    (stored,) = struct.unpack_from(">q", log, at)
    at += 8 + (18 if flag & 0x20 else 6) + 12
    parts = []
    for kind in (">i", ">h" if magic & 0xFF == 0xAB else ">b", ">h"):
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
