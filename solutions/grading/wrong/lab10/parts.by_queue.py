# exercise: lab10.parts
# belief: queues are even already
# says: one hot customer must not fill it
from pyspark.sql import functions


def in_parts(messages, parts):
    orders = messages.where("topic = 'orders'")
    part = functions.pmod(functions.hash("broker_name", "queue_id"), functions.lit(parts))
    return orders.select("broker_name", "physical_offset", part.alias("part"))
