# exercise: lab01.lookup
# belief: the committed offset is the last message that was read, so the next is one more
# says: The committed offset is the next message to read
import struct


def piece(files, place, size=None):
    length = len(next(iter(files.values())))
    begin = place - place % length
    data = files.get(f"{begin:020d}")
    return None if data is None else data[place - begin :][:size]


def read_next(committed, queue_files, log_files):
    entry = piece(queue_files, 20 * (committed + 1), 20)
    if entry is None or not entry[8:12].strip(b"\0"):
        return None, committed
    place, size, _ = struct.unpack(">qiq", entry)
    return piece(log_files, place, size), committed + 1
