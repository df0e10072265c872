# exercise: lab01.tags
# belief: eight bytes in the entry, so the hash has 64 bits
# says: The hash is a signed 32-bit number
import struct


def tag_bytes(tags):
    data = (tags or "").encode("utf-16-be")
    value = 0
    for unit in struct.unpack(f">{len(data) // 2}H", data):
        value = (31 * value + unit) & 0xFFFFFFFFFFFFFFFF
    return value.to_bytes(8, "big")
