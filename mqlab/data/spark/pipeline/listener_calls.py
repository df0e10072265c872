"""Entries of the trace as deliveries: a listener was called with a message, and returned or did not.

Mirrors: TraceView; ConsumeReturnType.

    SubBefore   request_id msg_id   started, retry_times, group      ┐ one call with one message
    SubAfter    request_id msg_id   ended, cost, success, status     ┘ without one: NO_RESULT (killed, or still running)

A trace message that is stored twice (its sender repeats it after a lost answer) counts once.
Left out: the queue of the message: a trace does not contain it; ``life`` finds the message by its id.
"""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from mqlab.data.spark.pipeline.schemas import DELIVERIES, TRACE, checked, needs

CALL = ["request_id", "msg_id", "keys", "repeat"]


def deliveries(trace: DataFrame) -> DataFrame:
    """TRACE -> DELIVERIES."""
    needs(trace, TRACE.fieldNames(), "deliveries")
    # A call has an entry before and one after it. Either may be missing, so each column takes the other's value.
    once = without_copies(trace.where("reason IS NULL"))
    before = once.where("type = 'SubBefore'").select(
        *CALL,
        F.col("group_name").alias("group_before"),
        "retry_times",
        F.col("time").alias("started"),
        F.col("client").alias("client_before"),
    )
    after = once.where("type = 'SubAfter'").select(
        *CALL,
        F.col("group_name").alias("group_after"),
        "cost_ms",
        "success",
        "status",
        F.col("time").alias("back"),
        F.col("client").alias("client_after"),
    )
    cost = F.make_dt_interval(secs=F.col("cost_ms") / 1000)
    calls = before.join(after.hint("shuffle_hash"), CALL, "full_outer").select(
        F.coalesce("group_before", "group_after").alias("consumer_group"),
        "msg_id",
        "keys",
        "request_id",
        "retry_times",
        F.coalesce("client_before", "client_after").alias("client"),
        F.coalesce("started", F.col("back") - cost).alias("started"),
        F.coalesce("back", F.col("started") + cost).alias("ended"),  # clients before 4.9 do not record the time
        "cost_ms",
        "success",
        F.coalesce("status", F.lit("NO_RESULT")).alias("status"),
    )
    return checked(calls, DELIVERIES, "deliveries")


def without_copies(trace: DataFrame) -> DataFrame:
    """TRACE without the entries of repeated trace messages: the copy at the lowest place counts."""
    places = trace.where("position = 0").groupBy("trace_msg_id")
    first = F.min(F.struct("broker_name", "trace_physical_offset"))
    several = places.agg(F.count("*").alias("copies"), first.alias("first")).where("copies > 1")
    again = several.select("trace_msg_id", "first")
    position = F.struct("broker_name", "trace_physical_offset")
    return trace.join(F.broadcast(again), "trace_msg_id", "left").where(
        F.col("first").isNull() | (F.col("first") == position)
    )
