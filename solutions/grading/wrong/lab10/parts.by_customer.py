# exercise: lab10.parts
# belief: a customer is a good key
# says: one hot customer must not fill it
from pyspark.sql import functions


def in_parts(messages, parts):
    orders = messages.where("topic = 'orders'")
    customer = functions.regexp_extract("keys", "C[0-9]+", 0)
    part = functions.pmod(functions.hash(customer), functions.lit(parts))
    return orders.select("broker_name", "physical_offset", part.alias("part"))
