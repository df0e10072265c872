# exercise: lab10.busiest
# belief: the customer is the second key
# says: in any order
from pyspark.sql import functions


def busiest(messages, most):
    orders = messages.where("topic = 'orders'")
    keys = orders.select(functions.get(functions.split("keys", " "), functions.lit(1)).alias("customer"))
    keys = keys.where(functions.col("customer").isNotNull())
    counts = keys.groupBy("customer").agg(functions.count("*").alias("messages"))
    return counts.orderBy(functions.desc("messages"), "customer").limit(most)
