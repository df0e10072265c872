# exercise: lab00.find
# belief: the committed offset is the last message that was read
# says: A group is past a message when the offset it reads next is greater
import struct


def find(queue_offset, entries, log, offset_table):
    place, size, _ = struct.unpack_from(">qiq", entries, 20 * queue_offset)
    past = [g for g in ("audit", "billing") if offset_table.get(f"orders@{g}", {}).get(0, -1) >= queue_offset]
    return place, log[place : place + size], past
