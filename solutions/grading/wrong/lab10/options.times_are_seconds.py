# exercise: lab10.options
# belief: times of Unix are seconds
# says: startTime and endTime are store times in ms
def read_options(topic, queues, begin_ms, end_ms, columns):
    return {
        "topic": topic,
        "queues": ",".join(map(str, queues)),
        "startTime": begin_ms // 1000,
        "endTime": end_ms // 1000,
        "columns": ",".join(columns),
    }
