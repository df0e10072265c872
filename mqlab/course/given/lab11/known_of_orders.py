"""Given in lab 11a: the joins behind the outcome of an order, so that the exercise is the rule that decides.

messages ──> an order, at its first offset ──┬── groups that have committed an offset of its queue
calls    ──> calls, successes, tags          ├──> queue_offset, committed, calls, succeeds, dead, gets
messages of %DLQ% topics ──> dead            ┘
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def known_of_each_order(messages: DataFrame, calls: DataFrame, committed: DataFrame) -> DataFrame:
    """A row per order and group: ``msg_id``, ``keys`` and what is known of it, NULL where nothing is."""
    from pyspark.sql import functions

    col, lit = functions.col, functions.lit
    same, queue = ["msg_id", "keys"], ["broker_name", "topic", "queue_id"]
    # 1. A row for each order and group.
    unit = functions.struct("store_timestamp", *queue, "queue_offset", "tags")
    first = functions.min(unit).alias("first")
    orders = messages.where("topic = 'orders'").groupBy(*same).agg(first).select(*same, "first.*")
    groups = committed.join(calls.select("group_name").distinct(), "group_name")
    rows = orders.join(groups, queue)
    # 2. What is known of it: calls, a dead letter, and whether the group gets its tag.
    succeeds = (col("status") == "SUCCESS").cast("int")
    called = calls.groupBy("group_name", *same).agg(
        functions.count("*").alias("calls"), functions.max(succeeds).alias("succeeds")
    )
    dead = messages.where("topic LIKE '\\%DLQ\\%%'").select(
        functions.expr("substring(topic, 6)").alias("group_name"),
        *same,
        lit(True).alias("dead"),
    )
    gets = calls.join(orders, same).select("group_name", "tags").distinct()
    rows = rows.join(called, ["group_name", *same], "left")
    rows = rows.join(dead, ["group_name", *same], "left")
    rows = rows.join(gets.withColumn("gets", lit(True)), ["group_name", "tags"], "left")
    return rows.select(
        "group_name",
        *same,
        "queue_offset",
        "committed",
        "calls",
        "succeeds",
        "dead",
        "gets",
    )
