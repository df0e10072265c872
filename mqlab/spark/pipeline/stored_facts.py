"""Facts about the stored messages: traffic over the day, queues and how evenly they fill, hot keys.

Mirrors: mqadmin topicStatus, statsAll and the dashboard's topic page. Lab 10 computes some of them one by one.

    traffic   one row per stretch of time, topic and tag        queues    one row per queue of a broker
    keys      one row per window of the day, broker, topic and key, of the keys that are most frequent there

Left out: bodies.
"""

from __future__ import annotations

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from mqlab.spark.pipeline.schemas import checked, table

HOT_KEYS = 5  # of a window
TRACKED_KEYS = 10_000  # size of the sketch that finds them

TRAFFIC = table(
    """
    time stretch: when it begins
    string topic, tags
    long messages, bytes
    """
)
QUEUES = table(
    """
    string broker_name, topic
    string kind: normal, retry, dead, half, op, trace or system
    int queue_id
    long messages, bytes
    long min_offset: of the units in the log
    long max_offset: the next one
    time first_stored, last_stored
    double share: of its topic's messages
    double skew: share times the number of the topic's queues; 1 when all are alike
    """
)
KEYS = table(
    """
    time window_start, window_end
    string broker_name, topic, message_key
    long messages
    double share: of the window's messages of the topic at this broker
    double share_of_day: the same for the whole day
    """
)


def stretch(time: str, long_ms: int) -> Column:
    """The beginning of the stretch of ``long_ms`` in which a time lies, counted from the epoch."""
    return F.timestamp_millis(F.floor(F.unix_millis(time) / long_ms) * long_ms)


def traffic(messages: DataFrame, stretch_ms: int) -> DataFrame:
    """MESSAGES -> TRAFFIC: the messages that producers sent."""
    sent = messages.where("kind = 'normal' AND NOT parked")
    counts = sent.groupBy(stretch("store_timestamp", stretch_ms).alias("stretch"), F.col("user_topic").alias("topic"),
                         "tags").agg(F.count("*").alias("messages"), F.sum("size").alias("bytes"))  # fmt: skip
    return checked(counts, TRAFFIC, "traffic")


def queues(messages: DataFrame) -> DataFrame:
    """MESSAGES -> QUEUES, system topics too."""
    counts = messages.groupBy("broker_name", "topic", "queue_id").agg(
        F.min("kind").alias("kind"), F.count("*").alias("messages"), F.sum("size").alias("bytes"),
        F.min("queue_offset").alias("min_offset"), (F.max("queue_offset") + 1).alias("max_offset"),
        F.min("store_timestamp").alias("first_stored"), F.max("store_timestamp").alias("last_stored"),
    )  # fmt: skip
    topic = Window.partitionBy("topic")
    share = F.col("messages") / F.sum("messages").over(topic)
    rows = counts.withColumns({"share": share, "skew": share * F.count("*").over(topic)})
    return checked(rows, QUEUES, "queues")


def keys(messages: DataFrame, window_ms: int) -> DataFrame:
    """MESSAGES -> KEYS: the HOT_KEYS most frequent keys of each window of ``window_ms``.

    A sketch finds the candidates, a second pass counts them exactly. A message with three keys counts for each of them.
    """
    # 1. One row per key of a message.
    seen = messages.where("kind = 'normal' AND NOT parked").select(
        stretch("store_timestamp", window_ms).alias("window_start"), "broker_name",
        F.col("user_topic").alias("topic"), F.explode(F.split("keys", " ")).alias("message_key"),
    ).where("message_key != ''")  # fmt: skip
    place = ["window_start", "broker_name", "topic"]
    # 2. The sketch names candidates of each window.
    sketch = F.expr(f"approx_top_k(message_key, {HOT_KEYS}, {TRACKED_KEYS})")
    hot = seen.groupBy(*place).agg(sketch.alias("hot")).select(*place, F.explode("hot.item").alias("message_key"))
    # 3. Candidates are counted exactly, in every window: the day's share needs all of them.
    of_day = ["broker_name", "topic", "message_key"]
    candidates = F.broadcast(hot.select(*of_day).distinct())
    counted = seen.join(candidates, of_day).groupBy(*place, "message_key").agg(F.count("*").alias("messages"))
    sent = messages.where("kind = 'normal' AND NOT parked").groupBy(
        stretch("store_timestamp", window_ms).alias("window_start"), "broker_name",
        F.col("user_topic").alias("topic"),
    ).agg(F.count("*").alias("sent"))  # fmt: skip
    # 4. Shares of the window and of the day.
    all_day = Window.partitionBy(*of_day)
    everywhere = sent.groupBy("broker_name", "topic").agg(F.sum("sent").alias("sent_in_day"))
    rows = (
        counted.withColumn("in_day", F.sum("messages").over(all_day))
        .join(F.broadcast(hot), [*place, "message_key"])
        .join(F.broadcast(sent), place)
        .join(F.broadcast(everywhere), ["broker_name", "topic"])
        .withColumn("window_end", F.col("window_start") + F.make_dt_interval(secs=F.lit(window_ms / 1000)))
        .withColumn("share", F.col("messages") / F.col("sent"))
        .withColumn("share_of_day", F.col("in_day") / F.col("sent_in_day"))
    )
    return checked(rows, KEYS, "keys")
