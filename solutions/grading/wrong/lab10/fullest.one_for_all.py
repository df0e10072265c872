# exercise: lab10.fullest
# belief: the fullest queue is one queue
# says: Every topic has one row
from pyspark.sql import functions


def fullest(messages):
    counts = messages.groupBy("topic", "broker_name", "queue_id").agg(functions.count("*").alias("messages"))
    return counts.orderBy(functions.desc("messages")).limit(1)
