# exercise: lab01.torn
# belief: what is there is whole; the log ends where the zeros begin
# says: The log ends at its first unit that is not whole
import struct


def valid_end(log_files):
    for name in sorted(log_files):
        data, at, magic = log_files[name], 0, 0
        while at + 8 <= len(data):
            size, magic = struct.unpack_from(">iI", data, at)
            if magic == 0xCBD43194 or size <= 0:
                break
            at += size
        if magic != 0xCBD43194:
            break
    return int(name) + at
