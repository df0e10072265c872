# exercise: lab10.failures
# belief: a dead letter is one more retry
# says: %DLQ% holds those that will not come again
from pyspark.sql import functions


def failures(messages):
    origin = functions.col("properties")["ORIGIN_MESSAGE_ID"]
    copies = messages.where(functions.col("topic").rlike("^%(RETRY|DLQ)%"))
    group = functions.regexp_replace("topic", "^%(RETRY|DLQ)%", "")
    count = functions.count_distinct(origin)
    return copies.groupBy(group.alias("group_name")).agg(count.alias("messages"), functions.count("*").alias("copies"))
