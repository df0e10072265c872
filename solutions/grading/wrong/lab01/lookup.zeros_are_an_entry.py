# exercise: lab01.lookup
# belief: what the file has room for is there
# says: Where no entry is written yet there is nothing to read
import struct


def piece(files, place, size=None):
    length = len(next(iter(files.values())))
    begin = place - place % length
    data = files.get(f"{begin:020d}")
    return None if data is None else data[place - begin :][:size]


def read_next(committed, queue_files, log_files):
    entry = piece(queue_files, 20 * committed, 20)
    if entry is None:
        return None, committed
    place, size, _ = struct.unpack(">qiq", entry)
    return piece(log_files, place, size), committed + 1
