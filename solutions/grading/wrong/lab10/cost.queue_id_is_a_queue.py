# exercise: lab10.cost
# belief: queue 3 is queue 3, on whatever broker
# says: Every broker has a queue 0 of its own
from pyspark.sql import functions


def cost(messages, topic, tags):
    rows = messages.where(functions.col("topic") == topic)
    return rows.groupBy("queue_id").agg(
        functions.min("broker_name").alias("broker_name"),
        functions.count("*").alias("looked_at"),
        functions.count_if(functions.col("tags").isin(tags)).alias("matched"),
    )
