# exercise: lab10.options
# belief: from and to are both included
# says: and before endTime
def read_options(topic, queues, begin_ms, end_ms, columns):
    return {
        "topic": topic,
        "queues": ",".join(map(str, queues)),
        "startTime": begin_ms,
        "endTime": end_ms + 1,
        "columns": ",".join(columns),
    }
