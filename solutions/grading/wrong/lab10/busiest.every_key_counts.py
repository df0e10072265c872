# exercise: lab10.busiest
# belief: the busiest key is the busiest customer
# says: a customer is a key that begins with C
from pyspark.sql import functions


def busiest(messages, most):
    orders = messages.where("topic = 'orders'")
    keys = orders.select(functions.explode(functions.split("keys", " ")).alias("customer"))
    counts = keys.groupBy("customer").agg(functions.count("*").alias("messages"))
    return counts.orderBy(functions.desc("messages"), "customer").limit(most)
