# exercise: lab10.cost
# belief: a tag is found in a text
# says: unpaid is not paid
from pyspark.sql import functions


def cost(messages, topic, tags):
    rows = messages.where(functions.col("topic") == topic)
    return rows.groupBy("broker_name", "queue_id").agg(
        functions.count("*").alias("looked_at"),
        functions.count_if(functions.col("tags").rlike("|".join(tags))).alias("matched"),
    )
