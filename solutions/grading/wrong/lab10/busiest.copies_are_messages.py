# exercise: lab10.busiest
# belief: every message in the log is an event
# says: A copy in a retry topic
from pyspark.sql import functions


def busiest(messages, most):
    keys = messages.select(functions.explode(functions.split("keys", " ")).alias("customer"))
    keys = keys.where(functions.col("customer").startswith("C"))
    counts = keys.groupBy("customer").agg(functions.count("*").alias("messages"))
    return counts.orderBy(functions.desc("messages"), "customer").limit(most)
