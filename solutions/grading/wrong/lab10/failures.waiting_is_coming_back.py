# exercise: lab10.failures
# belief: a copy that waits has come back
# says: A copy in SCHEDULE_TOPIC_XXXX only waits
from pyspark.sql import functions


def failures(messages):
    origin = functions.col("properties")["ORIGIN_MESSAGE_ID"]
    target = functions.coalesce(functions.col("properties")["REAL_TOPIC"], "topic")
    copies = messages.where(target.startswith("%RETRY%"))
    group = functions.replace(target, functions.lit("%RETRY%"))
    count = functions.count_distinct(origin)
    return copies.groupBy(group.alias("group_name")).agg(count.alias("messages"), functions.count("*").alias("copies"))
