# exercise: lab10.fullest
# belief: the greatest struct is the first of equals
# says: Of equally full queues the first by broker_name
from pyspark.sql import functions


def fullest(messages):
    counts = messages.groupBy("topic", "broker_name", "queue_id").agg(functions.count("*").alias("messages"))
    best = functions.max(functions.struct("messages", "broker_name", "queue_id")).alias("best")
    return counts.groupBy("topic").agg(best).select("topic", "best.*")
