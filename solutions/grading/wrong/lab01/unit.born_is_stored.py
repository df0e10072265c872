# exercise: lab01.unit
# belief: a message has one time
# says: The store time stands behind the born host
import struct


def read_unit(log, start):
    size, magic, _, _, _, queue_offset, place, flag, born = struct.unpack_from(">5iqqiq", log, start)
    at = start + 48 + (20 if flag & 0x10 else 8) + 8 + (20 if flag & 0x20 else 8) + 12
    parts = []
    for kind in (">i", ">h" if magic & 0xFF == 0xAB else ">b", ">h"):
        (length,) = struct.unpack_from(kind, log, at)
        at += struct.calcsize(kind)
        parts.append(log[at : at + length])
        at += length
    body, topic, text = parts
    pairs = [part.partition("\x01") for part in text.decode().split("\x02") if part]
    return {
        "size": size, "queue_offset": queue_offset, "physical_offset": place, "store_timestamp": born,
        "body": body, "topic": topic.decode(), "properties": {n: v for n, _, v in pairs},
    }  # fmt: skip
