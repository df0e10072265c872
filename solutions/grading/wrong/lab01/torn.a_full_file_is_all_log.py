# exercise: lab01.torn
# belief: a file with a BLANK is full, so the log ends at the end of that file
# says: In the last file the log ends where the BLANK stands
from mqlab.wire import record


def valid_end(log_files):
    for name in sorted(log_files):
        data, at = log_files[name], 0
        while (found := record.check(data, at)).kind == "UNIT":
            at += found.size
        if found.kind != "BLANK":
            return int(name) + at
    return int(name) + len(data)
