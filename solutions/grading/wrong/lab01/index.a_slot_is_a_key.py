# exercise: lab01.index
# belief: what hangs on a slot is the key's
# says: only entries with the key's own hash count
import struct

from mqlab.wire.java_hash import index_key_hash


def places(index, slots, topic, key, begin_ms, end_ms):
    key_hash = index_key_hash(f"{topic}#{key}")
    slot = key_hash % slots
    (begin_timestamp,) = struct.unpack_from(">q", index, 0)
    (number,) = struct.unpack_from(">i", index, 40 + 4 * slot)
    found, last = [], 1 << 31
    while 0 < number < last and 40 + 4 * slots + 20 * number + 20 <= len(index):
        _, place, seconds, previous = struct.unpack_from(">iqii", index, 40 + 4 * slots + 20 * number)
        if begin_ms <= begin_timestamp + 1000 * seconds <= end_ms:
            found.append(place)
        number, last = previous, number
    return found
