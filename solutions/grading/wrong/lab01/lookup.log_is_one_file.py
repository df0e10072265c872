# exercise: lab01.lookup
# belief: a place in the log counts from the first file that is there
# says: A physical offset counts from the first byte the log ever had
import struct


def piece(files, place, size=None):
    length = len(next(iter(files.values())))
    begin = place - place % length
    data = files.get(f"{begin:020d}")
    return None if data is None else data[place - begin :][:size]


def read_next(committed, queue_files, log_files):
    entry = piece(queue_files, 20 * committed, 20)
    if entry is None or not entry[8:12].strip(b"\0"):
        return None, committed
    place, size, _ = struct.unpack(">qiq", entry)
    log = b"".join(log_files[name] for name in sorted(log_files))
    return log[place : place + size], committed + 1
