# exercise: lab10.fullest
# belief: queue 3 is queue 3, on whatever broker
# says: A queue is topic, broker_name and queue_id together
from pyspark.sql import Window, functions


def fullest(messages):
    counts = messages.groupBy("topic", "queue_id").agg(
        functions.min("broker_name").alias("broker_name"), functions.count("*").alias("messages")
    )
    window = Window.partitionBy("topic").orderBy(functions.desc("messages"), "broker_name", "queue_id")
    numbered = counts.withColumn("place", functions.row_number().over(window))
    return numbered.where("place = 1").drop("place")
