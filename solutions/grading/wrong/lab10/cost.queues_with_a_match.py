# exercise: lab10.cost
# belief: where nothing matches nothing is read
# says: A queue without a match costs as much
from pyspark.sql import functions


def cost(messages, topic, tags):
    rows = messages.where(functions.col("topic") == topic)
    every = rows.groupBy("broker_name", "queue_id").agg(functions.count("*").alias("looked_at"))
    some = rows.where(functions.col("tags").isin(tags))
    matched = some.groupBy("broker_name", "queue_id").agg(functions.count("*").alias("matched"))
    return every.join(matched, ["broker_name", "queue_id"])
