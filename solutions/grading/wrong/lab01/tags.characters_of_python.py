# exercise: lab01.tags
# belief: an emoji is one character in Java too
# says: Java hashes the 16-bit units of UTF-16
import struct


def tag_bytes(tags):
    value = 0
    for letter in tags or "":
        value = (31 * value + ord(letter)) & 0xFFFFFFFF
    return struct.pack(">q", value - (1 << 32) if value >> 31 else value)
