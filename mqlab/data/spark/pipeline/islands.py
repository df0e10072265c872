"""Stretches of a queue that a group skipped although it reads their tags elsewhere, and what it read meanwhile.

    LIFE, lost ── islands_of ──▶ a row per stretch ──┐
    LIFE, given to a listener ── read_inside ──▶ ────┴─ islands ──▶ ISLANDS, of which two rules of suspicions speak

Left out: messages of a tag that the group never reads; they are filtered, not lost.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F

from mqlab.data.spark.pipeline.schemas import table
from mqlab.data.spark.small_tables import for_spark
from mqlab.data.spark.thresholds import Thresholds

if TYPE_CHECKING:
    import pandas

ISLANDS = table(
    """
    string topic, consumer_group, broker_name
    int queue_id
    long first: queue offset of the first skipped message
    long last: queue offset of the last one; neighbours are at most two stretches of time apart
    time since, until
    long messages: number of skipped messages
    string lost: their tags, separated by commas
    boolean lost_most_read: the tag that the group reads most is among them
    string read: tags of the messages that the group received between first and last
    long read_of_lost: number of messages it received there with one of the lost tags
    long read_at_all: number of messages it received there with any tag
    """
)
FOUND = table("string topic, consumer_group, broker_name, lost\nint queue_id\nlong island, first, last")
PLACE = ["topic", "consumer_group", "broker_name", "queue_id"]
DEFAULTS = Thresholds()


def islands_of(life: DataFrame, stretch_ms: int, limits: Thresholds = DEFAULTS) -> DataFrame:
    """LIFE -> lost messages of a queue that are close together in time, as one row with the list of their tags."""
    lost = life.where("outcome = 'lost'").withColumn("tag", F.coalesce("tags", F.lit("")))
    order = Window.partitionBy(*PLACE).orderBy("queue_offset")
    apart = F.unix_millis("stored") - F.unix_millis(F.lag("stored").over(order)) > 2 * stretch_ms
    return (
        lost.withColumn("island", F.sum(F.coalesce(apart, F.lit(False)).cast("int")).over(order))
        .groupBy(*PLACE, "island")
        .agg(
            F.min("queue_offset").alias("first"),
            F.max("queue_offset").alias("last"),
            F.min("stored").alias("since"),
            F.max("stored").alias("until"),
            F.sum("members").cast("bigint").alias("messages"),
            F.array_join(F.sort_array(F.collect_set("tag")), ",").alias("lost"),
        )
        .where(F.col("messages") >= limits.fewest)
    )


def read_inside(life: DataFrame, stretches: pandas.DataFrame) -> DataFrame:
    """LIFE, islands -> what the group read between the first and the last message of each."""
    known = for_spark(life.sparkSession, stretches, FOUND)
    delivered = life.where("attempts > 0").select(*PLACE, "queue_offset", F.coalesce("tags", F.lit("")).alias("tag"))
    inside = delivered.join(F.broadcast(known), PLACE).where("queue_offset BETWEEN first AND last")
    return inside.groupBy(*PLACE, "island").agg(
        F.array_join(F.sort_array(F.collect_set("tag")), ",").alias("read"),
        F.count_if(F.array_contains(F.split("lost", ","), F.col("tag"))).alias("read_of_lost"),
        F.count("*").alias("read_at_all"),
    )


def islands(stretches: pandas.DataFrame, inside: pandas.DataFrame, cells: pandas.DataFrame) -> pandas.DataFrame:
    """Islands, what was read inside, the cells of LIFE -> ISLANDS."""
    # The tag that each group reads most.
    delivered = cells[cells["lives_delivered"] > 0].assign(tag=cells["tags"].fillna(""))
    counts = delivered.groupby(["topic", "consumer_group", "tag"], as_index=False)[["lives_delivered"]].sum()
    read = counts.sort_values(["lives_delivered", "tag"], ascending=[False, True])
    most = read.drop_duplicates(["topic", "consumer_group"]).rename(columns={"tag": "most_read"})
    rows = stretches.merge(most, on=["topic", "consumer_group"], how="left").merge(
        inside, on=[*PLACE, "island"], how="left"
    )
    rows["lost_most_read"] = [
        most_read in lost.split(",") for most_read, lost in zip(rows["most_read"], rows["lost"], strict=True)
    ]
    return rows.fillna({"read_of_lost": 0, "read_at_all": 0})
