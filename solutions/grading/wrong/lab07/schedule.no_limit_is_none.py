# exercise: lab07.schedule
# belief: a limit of -1 means: no retries
# says: -1 means 16
UNITS = {"s": 1, "m": 60, "h": 3600, "d": 86400}


def schedule(levels, max_reconsume_times):
    table = [int(text[:-1]) * UNITS[text[-1]] for text in levels.split()]
    retries = max(max_reconsume_times, 0)
    planned, second = [], 0
    for count in range(retries):
        level = min(3 + count, len(table))
        second += table[level - 1]
        planned.append((level, second))
    return planned
