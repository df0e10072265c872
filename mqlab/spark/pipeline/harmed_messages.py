"""Facts about single messages: those that a group lost, and those that it gave up on; with what is needed to find them.

Mirrors: the DLQ page of RocketMQ's dashboard. No page of it shows lost messages.

    lost           one row per lost message and group, the oldest LISTED of each topic and group; see LIFE's outcomes
    dead_letters   one row per message in a %DLQ% topic, the oldest LISTED of each group, and what its group did with it

Each row says how many there are in all. Left out: the rest of a long list; LIFE and MESSAGES have it.
"""

from __future__ import annotations

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F

from mqlab.spark.pipeline.schemas import checked, table

LISTED = 200  # enough to act on; whoever lost more looks for the one cause

LOST = table(
    """
    string topic, consumer_group, tags, broker_name
    int queue_id
    long queue_offset
    string msg_id, keys
    time stored
    long members: messages of one batch under one id and key
    long of: lost messages of this topic and group in all
    """
)
DEAD_LETTERS = table(
    """
    string consumer_group
    string topic: of the original
    string msg_id: which the dead letter has as well; it can be sent to its group again by this id
    string keys, tags, broker_name
    int queue_id: of %DLQ%group
    long queue_offset: of the dead letter there
    time stored: when the original was stored; null when it is no longer in the log
    time died: when the dead letter was stored
    int attempts: calls of a listener that the trace tells
    string outcome: of its life; consumed when it was sent again and succeeded
    long of: dead letters of this group in all
    """
)


def lost(life: DataFrame) -> DataFrame:
    """LIFE -> LOST."""
    theirs = Window.partitionBy("topic", "consumer_group")
    rows = (
        life.where("outcome = 'lost'")
        .withColumn("members", F.col("members").cast("bigint"))
        .withColumn("of", F.sum("members").over(theirs))
        .withColumn("row", F.row_number().over(theirs.orderBy("stored", "broker_name", "queue_id", "queue_offset")))
        .where(F.col("row") <= LISTED)
    )
    return checked(rows, LOST, "lost")


def dead_letters(messages: DataFrame, life: DataFrame) -> DataFrame:
    """MESSAGES, LIFE -> DEAD_LETTERS."""
    theirs = Window.partitionBy("consumer_group")
    letters = (
        messages.where("kind = 'dead' AND NOT parked")
        .withColumn("of", F.count("*").over(theirs))
        .withColumn("row", F.row_number().over(theirs.orderBy("store_timestamp", "broker_name", "queue_offset")))
        .where(F.col("row") <= LISTED)
        .select(
            "consumer_group", F.col("user_topic").alias("topic"), "msg_id", "keys", "tags", "broker_name", "queue_id",
            "queue_offset", F.col("store_timestamp").alias("died"), "of",
        )
    )  # fmt: skip
    # The list is short, so the lives are not shuffled.
    same = ["msg_id", "keys", "consumer_group"]
    lives = life.select(*same, "stored", "attempts", "outcome")
    became = lives.join(F.broadcast(letters.select(*same).distinct()), same)
    rows = letters.join(became, same, "left")
    return checked(rows, DEAD_LETTERS, "dead_letters")
