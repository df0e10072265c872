# exercise: lab00.find
# belief: the log holds this queue's messages one after the other
# says: as many bytes of the log as the entry's bytes 8 to 11 say
import struct


def find(queue_offset, entries, log, offset_table):
    place, _, _ = struct.unpack_from(">qiq", entries, 20 * queue_offset)
    after, _, _ = struct.unpack_from(">qiq", entries, 20 * (queue_offset + 1))
    past = [g for g in ("audit", "billing") if offset_table.get(f"orders@{g}", {}).get(0, 0) > queue_offset]
    return place, log[place : after or len(log)], past
