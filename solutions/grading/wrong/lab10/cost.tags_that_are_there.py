# exercise: lab10.cost
# belief: what has no tag is not looked at
# says: A message without tags is looked at, too
from pyspark.sql import functions


def cost(messages, topic, tags):
    rows = messages.where(functions.col("topic") == topic)
    return rows.groupBy("broker_name", "queue_id").agg(
        functions.count("tags").alias("looked_at"),
        functions.count_if(functions.col("tags").isin(tags)).alias("matched"),
    )
