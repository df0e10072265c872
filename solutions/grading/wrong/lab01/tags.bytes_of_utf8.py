# exercise: lab01.tags
# belief: a text is its UTF-8 bytes
# says: Java hashes the 16-bit units of UTF-16
import struct


def tag_bytes(tags):
    value = 0
    for unit in (tags or "").encode():
        value = (31 * value + unit) & 0xFFFFFFFF
    return struct.pack(">q", value - (1 << 32) if value >> 31 else value)
