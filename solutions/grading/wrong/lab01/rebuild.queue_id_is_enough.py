# exercise: lab01.rebuild
# belief: a queue has a number, whatever the topic
# says: one entry for each unit of its topic and queue id
import struct

from mqlab.wire import record
from mqlab.wire.java_hash import tags_code


def rebuild(units, topic, queue_id):
    first, entries, behind = None, b"", 0
    for unit in units:
        one = record.decode(unit)
        behind += one.total_size
        if one.queue_id == queue_id:
            first = one.queue_offset if first is None else first
            code = tags_code(one.property_map.get("TAGS"))
            entries += struct.pack(">qiq", one.physical_offset, one.total_size, code)
    return first or 0, entries
