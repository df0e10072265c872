# exercise: lab01.rebuild
# belief: queue offsets come from the queue's file: a new file begins at 0
# says: A unit carries its own queue offset
import struct

from mqlab.wire import record
from mqlab.wire.java_hash import tags_code


def rebuild(units, topic, queue_id):
    first, entries, behind = None, b"", 0
    for unit in units:
        one = record.decode(unit)
        behind += one.total_size
        if (one.topic, one.queue_id) == (topic, queue_id):
            first = 0
            code = tags_code(one.property_map.get("TAGS"))
            entries += struct.pack(">qiq", one.physical_offset, one.total_size, code)
    return first or 0, entries
