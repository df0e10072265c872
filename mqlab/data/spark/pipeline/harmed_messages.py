"""Facts about single messages: those that a group lost, and those that it gave up on; with what is needed to find them.

Mirrors: the DLQ page of RocketMQ's dashboard. No page of it shows lost messages.

    lost           one row per lost message and group, the oldest LISTED of each topic and group; see LIFE's outcomes
    dead_letters   one row per message in a %DLQ% topic, the oldest LISTED of each group, and what its group did with it
    held           the messages whose call never returned and at which a group's offset stays       for the rules
    given_up       the keys of the first message that each group gave up on                         of suspicions

Each row says how many there are in all. Left out: the rest of a long list; LIFE and MESSAGES have it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F

from mqlab.data.spark.pipeline.schemas import checked, table
from mqlab.data.spark.small_tables import for_spark

if TYPE_CHECKING:
    import pandas

LISTED = 200  # enough to act on; a longer list has one cause to look for

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

LETTER = table("string msg_id, keys, consumer_group")
AT = table("string topic, consumer_group, broker_name\nint queue_id\nlong consumer_offset, lag")


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


def letters(messages: DataFrame) -> DataFrame:
    """MESSAGES -> what they say of DEAD_LETTERS."""
    theirs = Window.partitionBy("consumer_group")
    return (
        messages.where("kind = 'dead' AND NOT parked")
        .withColumn("of", F.count("*").over(theirs))
        .withColumn("row", F.row_number().over(theirs.orderBy("store_timestamp", "broker_name", "queue_offset")))
        .where(F.col("row") <= LISTED)
        .select(
            "consumer_group",
            F.col("user_topic").alias("topic"),
            "msg_id",
            "keys",
            "tags",
            "broker_name",
            "queue_id",
            "queue_offset",
            F.col("store_timestamp").alias("died"),
            "of",
        )
    )


def lives_of(life: DataFrame, letters: pandas.DataFrame) -> DataFrame:
    """LIFE, letters -> what became of their messages in the group that gave up on them."""
    same = ["msg_id", "keys", "consumer_group"]
    known = for_spark(life.sparkSession, letters[same].drop_duplicates(), LETTER)
    # The list is short, so the lives are not shuffled.
    return life.select(*same, "stored", "attempts", "outcome").join(F.broadcast(known), same)


def dead_letters(letters: pandas.DataFrame, lives: pandas.DataFrame) -> pandas.DataFrame:
    """Letters, their lives -> DEAD_LETTERS."""
    rows = letters.merge(lives, on=["msg_id", "keys", "consumer_group"], how="left")
    return rows.sort_values(["consumer_group", "died", "broker_name", "queue_offset"])


def held(life: DataFrame, ends: pandas.DataFrame) -> DataFrame:
    """LIFE, offsets with their ends -> the messages at an offset that has more than one message behind it, whose call
    has no result."""
    key = ["topic", "consumer_group", "broker_name", "queue_id"]
    behind = ends[ends["lag"] > 1]
    positions = for_spark(life.sparkSession, behind, AT)
    waiting = life.where("no_results > 0 AND successes = 0 AND outcome = 'pending'")
    blocked = waiting.join(F.broadcast(positions), key).where("queue_offset = consumer_offset")
    return blocked.select(*key, "msg_id", "first_started", "consumer_offset", "lag")


def given_up(life: DataFrame) -> DataFrame:
    """LIFE -> the keys of the message stored first of those that a group gave up on."""
    dead = life.where("outcome = 'dead'").groupBy("topic", "consumer_group")
    return dead.agg(F.min_by("keys", "stored").alias("keys"))
