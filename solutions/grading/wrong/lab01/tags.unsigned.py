# exercise: lab01.tags
# belief: a hash is never negative
# says: and the entry keeps its sign
import struct


def tag_bytes(tags):
    data = (tags or "").encode("utf-16-be")
    value = 0
    for unit in struct.unpack(f">{len(data) // 2}H", data):
        value = (31 * value + unit) & 0xFFFFFFFF
    return struct.pack(">q", value)
