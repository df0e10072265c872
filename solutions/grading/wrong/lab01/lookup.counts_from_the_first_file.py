# exercise: lab01.lookup
# belief: queue offsets count from the first file that is there
# says: a file's name says with which byte it begins
import struct


def piece(files, place, size=None):
    length = len(next(iter(files.values())))
    begin = place - place % length
    data = files.get(f"{begin:020d}")
    return None if data is None else data[place - begin :][:size]


def read_next(committed, queue_files, log_files):
    entries = b"".join(queue_files[name] for name in sorted(queue_files))
    entry = entries[20 * committed :][:20]
    if not entry[8:12].strip(b"\0"):
        return None, committed
    place, size, _ = struct.unpack(">qiq", entry)
    return piece(log_files, place, size), committed + 1
