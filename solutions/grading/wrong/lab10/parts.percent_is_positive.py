# exercise: lab10.parts
# belief: a hash is never negative
# says: a hash may be negative
from pyspark.sql import functions


def in_parts(messages, parts):
    orders = messages.where("topic = 'orders'")
    order = functions.regexp_extract("keys", "O[0-9]+", 0)
    part = functions.hash(order) % parts
    return orders.select("broker_name", "physical_offset", part.alias("part"))
