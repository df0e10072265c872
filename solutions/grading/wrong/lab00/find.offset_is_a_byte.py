# exercise: lab00.find
# belief: a queue offset is a position in the file
# says: stands at byte 20 * n
import struct


def find(queue_offset, entries, log, offset_table):
    place, size, _ = struct.unpack_from(">qiq", entries, queue_offset)
    past = [g for g in ("audit", "billing") if offset_table.get(f"orders@{g}", {}).get(0, 0) > queue_offset]
    return place, log[place : place + size], past
