# exercise: lab01.unit
# belief: an address is four bytes and a port, always
# says: say which of them take 20 bytes instead of 8
import struct


def read_unit(log, start):
    size, magic, _, _, _, queue_offset, place, _ = struct.unpack_from(">5iqqi", log, start)
    parts, at = [], start + 84
    for kind in (">i", ">h" if magic & 0xFF == 0xAB else ">b", ">h"):
        (length,) = struct.unpack_from(kind, log, at)
        at += struct.calcsize(kind)
        parts.append(log[at : at + length])
        at += max(length, 0)
    body, topic, text = parts
    pairs = [part.partition("\x01") for part in text.decode(errors="replace").split("\x02") if part]
    return {
        "size": size, "queue_offset": queue_offset, "physical_offset": place,
        # the store time is read where it stands, to be wrong in one thing only
        "store_timestamp": struct.unpack_from(">q", log, start + (68 if log[start + 39] & 0x10 else 56))[0],
        "body": body, "topic": topic.decode(errors="replace"), "properties": {n: v for n, _, v in pairs},
    }  # fmt: skip
