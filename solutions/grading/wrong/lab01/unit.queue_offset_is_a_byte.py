# exercise: lab01.unit
# belief: the queue offset comes from the queue's file: it is a byte position there, 20 for each message
# says: is the message's number in its queue, not a place in a file
import struct


def read_unit(log, start):
    size, magic, _, _, _, queue_offset, place, flag = struct.unpack_from(">5iqqi", log, start)
    at = start + 48 + (20 if flag & 0x10 else 8)
    (stored,) = struct.unpack_from(">q", log, at)
    at += 8 + (20 if flag & 0x20 else 8) + 12
    parts = []
    for kind in (">i", ">h" if magic & 0xFF == 0xAB else ">b", ">h"):
        (length,) = struct.unpack_from(kind, log, at)
        at += struct.calcsize(kind)
        parts.append(log[at : at + length])
        at += length
    body, topic, text = parts
    pairs = [part.partition("\x01") for part in text.decode().split("\x02") if part]
    return {
        "size": size, "queue_offset": queue_offset // 20, "physical_offset": place, "store_timestamp": stored,
        "body": body, "topic": topic.decode(), "properties": {n: v for n, _, v in pairs},
    }  # fmt: skip
