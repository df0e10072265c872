# exercise: lab10.cost
# belief: the broker reads what it delivers
# says: The broker looks at every entry
from pyspark.sql import functions


def cost(messages, topic, tags):
    rows = messages.where(functions.col("topic") == topic)
    is_match = functions.coalesce(functions.col("tags").isin(tags), functions.lit(False))
    matched = functions.count_if(is_match)
    return rows.groupBy("broker_name", "queue_id").agg(matched.alias("looked_at"), matched.alias("matched"))
