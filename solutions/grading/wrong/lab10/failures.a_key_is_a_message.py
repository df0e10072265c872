# exercise: lab10.failures
# belief: a key names one message
# says: keys may belong to many messages
from pyspark.sql import functions


def failures(messages):
    copies = messages.where(functions.col("topic").startswith("%RETRY%"))
    group = functions.replace("topic", functions.lit("%RETRY%"))
    count = functions.count_distinct("keys")
    return copies.groupBy(group.alias("group_name")).agg(count.alias("messages"), functions.count("*").alias("copies"))
