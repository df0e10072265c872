# exercise: lab10.parts
# belief: a left join adds no rows
# says: Every message of the topic orders is in one part
from pyspark.sql import functions


def in_parts(messages, parts):
    orders = messages.where("topic = 'orders'").select("broker_name", "physical_offset", "keys")
    everyone = messages.where("keys IS NOT NULL").select("keys")
    order = functions.regexp_extract("keys", "O[0-9]+", 0)
    part = functions.pmod(functions.hash(order), functions.lit(parts))
    return orders.join(everyone, "keys", "left").select("broker_name", "physical_offset", part.alias("part"))
