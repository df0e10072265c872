# exercise: lab01.torn
# belief: every unit that can still be read is part of the log
# says: whatever stands behind it
from mqlab.wire import record


def valid_end(log_files):
    end = int(min(log_files))
    for name in sorted(log_files):
        data = log_files[name]
        at = data.find(b"\xda\xa3\x20\xa7")
        while at >= 4:
            found = record.check(data, at - 4)
            if found.kind == "UNIT":
                end = max(end, int(name) + at - 4 + found.size)
            at = data.find(b"\xda\xa3\x20\xa7", at + 1)
    return end
