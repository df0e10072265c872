# exercise: lab10.failures
# belief: every copy is a failed message
# says: Copies of one message have one ORIGIN_MESSAGE_ID
from pyspark.sql import functions


def failures(messages):
    copies = messages.where(functions.col("topic").startswith("%RETRY%"))
    group = functions.replace("topic", functions.lit("%RETRY%"))
    count = functions.count("*")
    return copies.groupBy(group.alias("group_name")).agg(count.alias("messages"), count.alias("copies"))
