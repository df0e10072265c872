# exercise: lab01.rebuild
# belief: places count from the first unit that is there
# says: first 8 bytes are the unit's physical offset
import struct

from mqlab.wire import record
from mqlab.wire.java_hash import tags_code


def rebuild(units, topic, queue_id):
    first, entries, behind = None, b"", 0
    for unit in units:
        one = record.decode(unit)
        behind += one.total_size
        if (one.topic, one.queue_id) == (topic, queue_id):
            first = one.queue_offset if first is None else first
            code = tags_code(one.property_map.get("TAGS"))
            entries += struct.pack(">qiq", behind - one.total_size, one.total_size, code)
    return first or 0, entries
