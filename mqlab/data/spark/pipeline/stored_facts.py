"""Facts about the stored messages: traffic over the day, queues and how evenly they fill, hot keys.

Mirrors: mqadmin topicStatus, statsAll and the dashboard's topic page. Lab 10 computes some of them one by one.

    traffic   one row per stretch of time, topic and tag        queues    one row per queue of a broker
    keys      one row per window of the day, broker, topic and key, of the keys that are most frequent there

Spark passes over MESSAGES once for their cells, and twice for the keys; the tables are made of these in the driver.

    MESSAGES ── cells ──▶ counts by queue, tag and stretch ──▶ traffic, queues ──┐
    MESSAGES ── hot ────▶ candidates of each window ── counted ──▶ ──────────────┴▶ keys

Left out: bodies.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from mqlab.data.spark.pipeline.schemas import table
from mqlab.data.spark.small_tables import for_spark

if TYPE_CHECKING:
    import pandas

HOT_KEYS = 5  # of a window
TRACKED_KEYS = 10_000  # size of the sketch that finds them
SENT = "kind = 'normal' AND NOT parked"  # what producers sent and consumers can read

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

CANDIDATES = table("string broker_name, topic, message_key")


def stretch(time: str, long_ms: int) -> Column:
    """The beginning of the stretch of ``long_ms`` in which a time lies, counted from the epoch."""
    return F.timestamp_millis(F.floor(F.unix_millis(time) / long_ms) * long_ms)


def cells(messages: DataFrame, stretch_ms: int, window_ms: int) -> DataFrame:
    """MESSAGES -> counts by queue and kind; of what producers sent also by topic, tag, stretch and window of keys."""
    sent = F.expr(SENT)
    of_sent = {
        "sent_to": F.col("user_topic"),
        "tags": F.col("tags"),
        "stretch": stretch("store_timestamp", stretch_ms),
        "window_start": stretch("store_timestamp", window_ms),
    }
    by = [F.when(sent, value).alias(name) for name, value in of_sent.items()]
    return messages.groupBy("broker_name", "topic", "queue_id", "kind", *by).agg(
        F.count("*").alias("messages"),
        F.sum("size").alias("bytes"),
        F.min("queue_offset").alias("min_offset"),
        (F.max("queue_offset") + 1).alias("max_offset"),
        F.min("store_timestamp").alias("first_stored"),
        F.max("store_timestamp").alias("last_stored"),
    )


def traffic(cells: pandas.DataFrame) -> pandas.DataFrame:
    """Cells -> TRAFFIC: the messages that producers sent."""
    sent = cells[cells["stretch"].notna()].drop(columns="topic").rename(columns={"sent_to": "topic"})
    by = ["stretch", "topic", "tags"]
    return sent.groupby(by, dropna=False, as_index=False)[["messages", "bytes"]].sum()


def queues(cells: pandas.DataFrame) -> pandas.DataFrame:
    """Cells -> QUEUES, system topics too."""
    rows = cells.groupby(["broker_name", "topic", "queue_id"], as_index=False).agg(
        kind=("kind", "min"),
        messages=("messages", "sum"),
        bytes=("bytes", "sum"),
        min_offset=("min_offset", "min"),
        max_offset=("max_offset", "max"),
        first_stored=("first_stored", "min"),
        last_stored=("last_stored", "max"),
    )
    of_topic = rows.groupby("topic")["messages"]
    rows["share"] = rows["messages"] / of_topic.transform("sum")
    rows["skew"] = rows["share"] * of_topic.transform("count")
    return rows


def hot(messages: DataFrame, window_ms: int) -> DataFrame:
    """MESSAGES -> the HOT_KEYS keys of each window, broker and topic that a sketch finds most frequent."""
    key = ["window_start", "broker_name", "topic"]
    sketch = F.expr(f"approx_top_k(message_key, {HOT_KEYS}, {TRACKED_KEYS})")
    sketches = _keys_of(messages, window_ms).groupBy(*key).agg(sketch.alias("hot"))
    return sketches.select(*key, F.explode("hot.item").alias("message_key"))


def counted(messages: DataFrame, hot: pandas.DataFrame, window_ms: int) -> DataFrame:
    """MESSAGES, hot keys -> exact counts of these keys, in every window: the day's share needs all of them."""
    of_day = ["broker_name", "topic", "message_key"]
    known = for_spark(messages.sparkSession, hot[of_day].drop_duplicates(), CANDIDATES)
    seen = _keys_of(messages, window_ms).join(F.broadcast(known), of_day)
    return seen.groupBy("window_start", *of_day).agg(F.count("*").alias("messages"))


def _keys_of(messages: DataFrame, window_ms: int) -> DataFrame:
    """One row per key of a message: a message with three keys counts for each of them."""
    return (
        messages.where(SENT)
        .select(
            stretch("store_timestamp", window_ms).alias("window_start"),
            "broker_name",
            F.col("user_topic").alias("topic"),
            F.explode(F.split("keys", " ")).alias("message_key"),
        )
        .where("message_key != ''")
    )


def keys(window_ms: int, hot: pandas.DataFrame, counted: pandas.DataFrame, cells: pandas.DataFrame) -> pandas.DataFrame:
    """Hot keys of each window, their counts, cells -> KEYS: shares of the window's messages and of the day's."""
    key = ["window_start", "broker_name", "topic"]
    of_day = ["broker_name", "topic", "message_key"]
    in_day = counted.groupby(of_day, as_index=False).agg(in_day=("messages", "sum"))
    sent = cells[cells["window_start"].notna()].drop(columns="topic").rename(columns={"sent_to": "topic"})
    in_window = sent.groupby(key, as_index=False).agg(sent=("messages", "sum"))
    everywhere = sent.groupby(key[1:], as_index=False).agg(sent_in_day=("messages", "sum"))
    rows = hot.merge(counted, on=[*key, "message_key"]).merge(in_day, on=of_day)
    rows = rows.merge(in_window, on=key).merge(everywhere, on=key[1:])
    rows["window_end"] = rows["window_start"] + window_ms
    rows["share"] = rows["messages"] / rows["sent"]
    rows["share_of_day"] = rows["in_day"] / rows["sent_in_day"]
    return rows.sort_values([*key, "message_key"])
