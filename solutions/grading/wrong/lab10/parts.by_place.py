# exercise: lab10.parts
# belief: the place in the log spreads best
# says: All messages of one order are in one part
from pyspark.sql import functions


def in_parts(messages, parts):
    orders = messages.where("topic = 'orders'")
    part = functions.pmod(functions.hash("broker_name", "physical_offset"), functions.lit(parts))
    return orders.select("broker_name", "physical_offset", part.alias("part"))
