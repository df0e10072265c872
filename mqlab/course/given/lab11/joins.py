"""The joins, windows and sums around the exercises of lab 11; the lines between them are the learner's.

    halves_of_calls(entries)             ─▶ beginnings and ends of calls               calls
    first_success(calls)                 ─▶ when each message was done first           slow_when
    late_by_minute(rows, minute, ..)     ─▶ counts and percentiles of each minute      slow_when
    with_calls_before(messages, calls)   ─▶ each call, with what came before it        why_again
    stored_and_sent(units, again)        ─▶ what was stored in each minute, and sent   storm

Mirrors nothing of RocketMQ.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

MESSAGE = ["msg_id", "keys"]


def halves_of_calls(entries: DataFrame) -> tuple[DataFrame, DataFrame]:
    """Returns the SubBefore entries, ``time_ms`` as ``started_ms``, and the SubAfter entries, as ``back_ms``."""
    from pyspark.sql import functions

    columns = ["group_name", "request_id", *MESSAGE, "retry_times"]
    started = functions.col("time_ms").alias("started_ms")
    before = entries.where("kind = 'SubBefore'").select(*columns, started)
    after = entries.where("kind = 'SubAfter'").withColumnRenamed("time_ms", "back_ms")
    return before, after.select("request_id", "msg_id", "back_ms", "cost_ms", "success")


def first_success(calls: DataFrame) -> DataFrame:
    """Returns a row per message that is done: ``done_ms`` is the end of its first successful call."""
    from pyspark.sql import functions

    done = calls.where("status = 'SUCCESS'").groupBy(*MESSAGE)
    return done.agg(functions.min("ended_ms").alias("done_ms"))


def late_by_minute(rows: DataFrame, minute: Column, waiting: Column) -> DataFrame:
    """Returns a row per minute: the number of ``rows``, ``waiting``, p50 and p99 of ``done_ms - stored_ms``."""
    from pyspark.sql import functions

    rows = rows.withColumn("late_ms", functions.col("done_ms") - functions.col("stored_ms"))
    return rows.groupBy(minute.alias("minute_ms")).agg(
        functions.count("*").alias("orders"),
        waiting.alias("waiting"),
        functions.percentile("late_ms", 0.5).alias("p50_ms"),
        functions.percentile("late_ms", 0.99).alias("p99_ms"),
    )


def with_calls_before(messages: DataFrame, calls: DataFrame) -> DataFrame:
    """Returns the calls with messages that have keys, and four columns about the calls of the group before each.

    ``before``: how many; ``most``: their largest retry_times; ``end_before``: ended_ms of the last of them; ``units``:
    how often the message is in the topic orders.
    """
    from pyspark.sql import Window, functions

    units = messages.where("topic = 'orders'").groupBy(*MESSAGE).agg(functions.count("*").alias("units"))
    calls_with_it = Window.partitionBy("group_name", *MESSAGE).orderBy("started_ms", "request_id")
    earlier = calls_with_it.rowsBetween(Window.unboundedPreceding, -1)
    before = {
        "before": functions.row_number().over(calls_with_it) - 1,
        "most": functions.max("retry_times").over(earlier),
        "end_before": functions.lag("ended_ms").over(calls_with_it),
    }
    return calls.where("keys != ''").join(units, MESSAGE, "left").withColumns(before)


def stored_and_sent(units: DataFrame, again: Column) -> tuple[DataFrame, DataFrame]:
    """Returns a row per minute (``stored``, ``retries``, ``share``), and a row per message with the minute of its send.

    ``units`` have ``minute_ms``; ``again`` is 1 for a unit that counts as a retry, and 0 for others.
    """
    from pyspark.sql import functions

    col = functions.col
    stored = functions.count("*").alias("stored")
    rows = units.groupBy("minute_ms").agg(stored, functions.sum(again).alias("retries"))
    rows = rows.withColumn("share", col("retries") / col("stored"))
    of_broker = col("topic").rlike("^(%|RMQ_SYS_|SCHEDULE_TOPIC_XXXX)")
    first = functions.min("minute_ms").alias("minute_ms")
    return rows, units.where(~of_broker).groupBy(*MESSAGE).agg(first)
