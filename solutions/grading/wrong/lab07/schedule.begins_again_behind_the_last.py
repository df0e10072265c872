# exercise: lab07.schedule
# belief: behind the last level the table begins again
# says: all further retries wait for the last one
UNITS = {"s": 1, "m": 60, "h": 3600, "d": 86400}


def schedule(levels, max_reconsume_times):
    table = [int(text[:-1]) * UNITS[text[-1]] for text in levels.split()]
    retries = 16 if max_reconsume_times == -1 else max_reconsume_times
    planned, second = [], 0
    for count in range(retries):
        level = (2 + count) % len(table) + 1
        second += table[level - 1]
        planned.append((level, second))
    return planned
