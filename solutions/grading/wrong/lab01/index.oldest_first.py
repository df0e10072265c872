# exercise: lab01.index
# belief: a chain is read from its beginning
# says: the newest comes first
import struct

from mqlab.wire.java_hash import index_key_hash


def places(index, slots, topic, key, begin_ms, end_ms):
    key_hash = index_key_hash(f"{topic}#{key}")
    slot = key_hash % slots
    (begin_timestamp,) = struct.unpack_from(">q", index, 0)
    (number,) = struct.unpack_from(">i", index, 40 + 4 * slot)
    found, last = [], 1 << 31
    while 0 < number < last and 40 + 4 * slots + 20 * number + 20 <= len(index):
        entry, place, seconds, previous = struct.unpack_from(">iqii", index, 40 + 4 * slots + 20 * number)
        if entry == key_hash and begin_ms <= begin_timestamp + 1000 * seconds <= end_ms:
            found.append(place)
        number, last = previous, number
    return found[::-1]
