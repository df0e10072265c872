# exercise: lab00.find
# belief: numbers in files are little-endian
# says: first 8 bytes say where the message lies
import struct


def find(queue_offset, entries, log, offset_table):
    place, size, _ = struct.unpack_from("<qiq", entries, 20 * queue_offset)
    past = [g for g in ("audit", "billing") if offset_table.get(f"orders@{g}", {}).get(0, 0) > queue_offset]
    return place, log[place : place + size], past
