# exercise: lab01.torn
# belief: body_crc is the CRC-32 of the body
# says: body_crc is crc32(body) & 0x7FFFFFFF
import struct
import zlib

from mqlab.wire import record


def valid_end(log_files):
    names = sorted(log_files)
    for name in names:
        data, at = log_files[name], 0
        while (found := record.check(data, at, check_crc=False)).kind == "UNIT":
            (crc,), (length,) = struct.unpack_from(">I", data, at + 8), struct.unpack_from(">i", data, at + 84)
            if zlib.crc32(data[at + 88 : at + 88 + length]) != crc:
                return int(name) + at
            at += found.size
        if found.kind != "BLANK" or name == names[-1]:
            return int(name) + at
