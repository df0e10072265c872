# exercise: lab01.torn
# belief: a BLANK says that nothing follows
# says: A BLANK ends its file, not the log
from mqlab.wire import record


def valid_end(log_files):
    name = min(log_files)
    at = 0
    while (found := record.check(log_files[name], at)).kind == "UNIT":
        at += found.size
    return int(name) + at
