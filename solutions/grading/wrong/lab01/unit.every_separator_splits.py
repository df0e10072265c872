# exercise: lab01.unit
# belief: 0x01 separates, wherever it stands
# says: only the first 0x01 of each ends the name
import struct


def read_unit(log, start):
    head = struct.unpack_from(">5iqqi", log, start)
    size, magic, queue_offset, place, sys_flag = (head[n] for n in (0, 1, 5, 6, 7))
    at = start + 48 + (20 if sys_flag & 0x10 else 8)
    (stored,) = struct.unpack_from(">q", log, at)
    at += 8 + (20 if sys_flag & 0x20 else 8) + 4 + 8
    parts = []
    for kind in (">i", ">h" if magic & 0xFF == 0xAB else ">b", ">h"):
        (length,) = struct.unpack_from(kind, log, at)
        at += struct.calcsize(kind)
        parts.append(log[at : at + length])
        at += length
    pairs = [part.split("\x01") for part in parts[2].decode().split("\x02") if part]
    return {
        "size": size,
        "queue_offset": queue_offset,
        "physical_offset": place,
        "store_timestamp": stored,
        "body": parts[0],
        "topic": parts[1].decode(),
        "properties": {name: value for name, value, *_ in pairs},
    }
