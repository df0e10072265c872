# exercise: lab10.options
# belief: a list of Python is an option
# says: An option is one text
def read_options(topic, queues, begin_ms, end_ms, columns):
    return {
        "topic": topic,
        "queues": queues,
        "startTime": begin_ms,
        "endTime": end_ms,
        "columns": ",".join(columns),
    }
