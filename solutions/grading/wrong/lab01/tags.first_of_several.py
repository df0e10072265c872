# exercise: lab01.tags
# belief: a message may have several tags, divided by ||, and the first is hashed
# says: over the whole text, as it is
import struct


def tag_bytes(tags):
    data = (tags or "").split("||")[0].strip().encode("utf-16-be")
    value = 0
    for unit in struct.unpack(f">{len(data) // 2}H", data):
        value = (31 * value + unit) & 0xFFFFFFFF
    return struct.pack(">q", value - (1 << 32) if value >> 31 else value)
