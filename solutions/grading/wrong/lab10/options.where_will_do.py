# exercise: lab10.options
# belief: Spark pushes a filter down to the source
# says: is left out by topic and queues
def read_options(topic, queues, begin_ms, end_ms, columns):
    return {"columns": ",".join(columns), "startTime": begin_ms, "endTime": end_ms}
