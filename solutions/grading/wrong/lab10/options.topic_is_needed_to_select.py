# exercise: lab10.options
# belief: what selects has to be read
# says: columns names what the query uses, and nothing else
def read_options(topic, queues, begin_ms, end_ms, columns):
    return {
        "topic": topic,
        "queues": ",".join(map(str, queues)),
        "startTime": begin_ms,
        "endTime": end_ms,
        "columns": ",".join(dict.fromkeys(["topic", "queue_id", "store_timestamp", *columns])),
    }
