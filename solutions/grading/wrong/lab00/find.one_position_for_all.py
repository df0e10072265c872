# exercise: lab00.find
# belief: a queue has one position: once somebody has read a message, it is read
# says: the groups past it
import struct


def find(queue_offset, entries, log, offset_table):
    place, size, _ = struct.unpack_from(">qiq", entries, 20 * queue_offset)
    furthest = max((queues.get(0, 0) for queues in offset_table.values()), default=0)
    return place, log[place : place + size], ["audit", "billing"] if furthest > queue_offset else []
