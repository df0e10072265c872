# exercise: lab10.fullest
# belief: the highest offset says how many there are
# says: Count messages, not offsets
from pyspark.sql import Window, functions


def fullest(messages):
    counts = messages.groupBy("topic", "broker_name", "queue_id").agg(
        (functions.max("queue_offset") + 1).alias("messages")
    )
    window = Window.partitionBy("topic").orderBy(functions.desc("messages"), "broker_name", "queue_id")
    numbered = counts.withColumn("place", functions.row_number().over(window))
    return numbered.where("place = 1").drop("place")
