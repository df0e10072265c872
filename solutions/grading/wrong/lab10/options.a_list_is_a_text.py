# exercise: lab10.options
# belief: a list of Python is an option
# says: The options are those of the source rocketmq
def read_options(topic, queues, begin_ms, end_ms, columns):
    return {
        "topic": topic,
        "queues": queues,
        "startTime": begin_ms,
        "endTime": end_ms,
        "columns": ",".join(columns),
    }
