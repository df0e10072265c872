# exercise: lab10.parts
# belief: chance spreads best
# says: All messages of one order are in one part
from pyspark.sql import functions


def in_parts(messages, parts):
    orders = messages.where("topic = 'orders'")
    part = functions.floor(functions.rand() * parts).cast("int")
    return orders.select("broker_name", "physical_offset", part.alias("part"))
