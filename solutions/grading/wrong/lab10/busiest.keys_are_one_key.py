# exercise: lab10.busiest
# belief: a message has one key
# says: KEYS holds several keys
from pyspark.sql import functions


def busiest(messages, most):
    keys = messages.where("topic = 'orders' AND keys IS NOT NULL").withColumnRenamed("keys", "customer")
    counts = keys.groupBy("customer").agg(functions.count("*").alias("messages"))
    return counts.orderBy(functions.desc("messages"), "customer").limit(most)
