# exercise: lab01.torn
# belief: when the lengths add up the unit is whole
# says: The log ends at its first unit that is not whole
from mqlab.wire import record


def valid_end(log_files):
    names = sorted(log_files)
    for name in names:
        data, at = log_files[name], 0
        while (found := record.check(data, at, check_crc=False)).kind == "UNIT":
            at += found.size
        if found.kind != "BLANK" or name == names[-1]:
            return int(name) + at
