"""The life of every message in every group that reads its topic: one row from stored to consumed, dead or waiting.

Mirrors: mqadmin queryMsgTraceById and messageTrackDetail, for all messages at once.

    messages ── normal, by (msg_id, keys) ── its first copy, how many copies ── x groups that read the topic ─┐
    deliveries ─ by (msg_id, keys, group) ── attempts, results, first, last ──────────────────────────────────┤ life
    messages ── retry and dead, by the same ── folded into their original ────────────────────────────────────┤
    offsets ─── how far the group is in the queue: read past, or still to come ───────────────────────────────┘

    outcome   consumed   one call succeeded             dead      a unit of it is in %DLQ%group
              pending    to be read, tried again or on its way
              filtered   the group's offset is past it, and the group was never called with its tag
              lost       the group's offset is past it, no call with it is traced, but others of its tag were
                         delivered: it was skipped, or the trace of its call is missing (see the coverage in GROUPS)
              untraced   the group's offset is past it, and the group writes no trace: most likely consumed
              waiting    delayed, its time has not come

Left out: half messages; the later fate of a dead letter; filters by properties (SQL92), whose messages look lost.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from mqlab.data.spark.pipeline.schemas import DELIVERIES, LIFE, MESSAGES, OFFSETS, READERS, checked, needs
from mqlab.data.spark.small_tables import collected, for_spark
from mqlab.rocketmq.wire import names

if TYPE_CHECKING:
    import pandas

SOON_MS = 60_000  # a rebalance and a commit take less, a person who sets an offset back takes more
SAME = ["msg_id", "keys"]  # how a trace identifies a message
HIGHEST_LEVEL = 62  # bits of a bigint


def readers(messages: DataFrame, deliveries: DataFrame, offsets: DataFrame) -> DataFrame:
    """MESSAGES, DELIVERIES, OFFSETS -> READERS: which groups read which topics. Runs a small job or two."""
    needs(offsets, OFFSETS.fieldNames(), "readers")
    rows = reader_rows(messages, deliveries, collected(offsets))
    return checked(for_spark(messages.sparkSession, rows, READERS), READERS, "readers")


def reader_rows(messages: DataFrame, deliveries: DataFrame, offsets: pandas.DataFrame) -> pandas.DataFrame:
    """The same in the driver.

    Brokers do not keep offsets of broadcasting groups; those, and all without a consumerOffset.json, are found by the
    messages that were delivered to them.
    """
    import pandas

    # 1. Groups with offsets in a topic read it; retry and dead letter topics are their own.
    own = offsets["topic"].astype(str).str.startswith((names.RETRY_PREFIX, names.DLQ_PREFIX))
    traced = {row[0] for row in deliveries.select("consumer_group").distinct().collect()} - {None}
    by_offsets = offsets.loc[~own, ["topic", "consumer_group"]].drop_duplicates().assign(known_by="offsets")
    by_offsets["traced"] = by_offsets["consumer_group"].isin(traced)
    strangers = sorted(traced - set(by_offsets["consumer_group"]))
    if not strangers:
        return by_offsets
    # 2. A traced group without offsets (see above) reads the topics of the messages that it was given.
    theirs = deliveries.where(F.col("consumer_group").isin(strangers)).select("msg_id", "consumer_group").distinct()
    normal = messages.where("kind = 'normal' AND NOT parked").select("msg_id", F.col("user_topic").alias("topic"))
    by_trace = collected(theirs.join(normal, "msg_id").select("topic", "consumer_group").distinct())
    return pandas.concat([by_offsets, by_trace.assign(known_by="trace", traced=True)])


def life(messages: DataFrame, deliveries: DataFrame, readers: DataFrame, offsets: DataFrame) -> DataFrame:
    """MESSAGES, DELIVERIES, READERS, OFFSETS -> LIFE."""
    for frame, schema in ((messages, MESSAGES), (deliveries, DELIVERIES), (readers, READERS), (offsets, OFFSETS)):
        needs(frame, schema.fieldNames(), "life")
    # The small tables are broadcast, so that the messages are shuffled once; by hash, nothing is sorted for a join.
    stored = for_each_group(first_copies(messages.where("kind = 'normal'")), readers)
    key = ["broker_name", "topic", "queue_id", "consumer_group"]
    joined = (
        stored.join(what_became(messages, deliveries, offsets).hint("shuffle_hash"), [*SAME, "consumer_group"], "left")
        .join(F.broadcast(offsets.select(*key, "consumer_offset")), key, "left")
        .withColumn("tag", F.coalesce("tags", F.lit("")))
        .join(F.broadcast(tags_read(messages, deliveries)), ["topic", "consumer_group", "tag"], "left")
    )
    return checked(_judged(joined), LIFE, "life")


def tags_read(messages: DataFrame, deliveries: DataFrame) -> DataFrame:
    """One row per topic, group and tag with which the group was called at least once; a message without tag has ''."""
    sent = messages.where("kind = 'normal' AND NOT parked").select(
        "msg_id", F.col("user_topic").alias("topic"), F.coalesce("tags", F.lit("")).alias("tag")
    )
    read = (
        deliveries.select("msg_id", "consumer_group")
        .join(sent.hint("shuffle_hash"), "msg_id")
        .select("topic", "consumer_group", "tag")
        .distinct()
    )
    return read.withColumn("reads_tag", F.lit(True))


def first_copies(normal: DataFrame) -> DataFrame:
    """One row for all units of one id and keys: the first readable unit, and how many units there are.

    Units of one batch share id, time and queue and are neighbours: members. Others are copies.
    """
    # A unit begins a send unless it follows a unit of the same batch; a parked unit is not readable yet.
    same = Window.partitionBy(*SAME)
    order = same.orderBy("parked", "store_timestamp", "broker_name", "queue_id", "queue_offset")
    send = F.struct("broker_name", "queue_id", "born_timestamp")
    begins = F.coalesce((send != F.lag(send).over(order)).cast("int"), F.lit(1))
    # Parked units do not count as copies: each is stored again when its time has come.
    visible = (~F.col("parked")).cast("int")
    return (
        normal.withColumn("begins", F.when(F.col("parked"), 0).otherwise(begins))
        .withColumn("row", F.row_number().over(order))
        .withColumns(
            {
                "units": F.count("*").over(same),
                "visible": F.sum(visible).over(same),
                "sends": F.sum("begins").over(same),
            }
        )
        .where("row = 1")
        .select(
            *SAME,
            F.col("user_topic").alias("topic"),
            "tags",
            "broker_name",
            "queue_id",
            "queue_offset",
            F.col("born_timestamp").alias("born"),
            F.col("store_timestamp").alias("stored"),
            "size",
            "parked",
            F.greatest(F.lit(1), F.col("sends")).cast("int").alias("copies"),
            F.greatest(F.lit(1), F.col("visible") / F.greatest(F.lit(1), F.col("sends"))).cast("int").alias("members"),
            F.col("units").cast("int").alias("units"),
        )
    )


def for_each_group(stored: DataFrame, readers: DataFrame) -> DataFrame:
    """One row per message and group that reads its topic; a null group for a message that no group reads."""
    return stored.join(F.broadcast(readers.select("topic", "consumer_group", "traced")), "topic", "left")


def what_became(messages: DataFrame, deliveries: DataFrame, offsets: DataFrame) -> DataFrame:
    """One row per id, keys and group: the sum of its deliveries, retries and dead letters."""
    good, back = F.col("success"), F.col("ended").isNotNull()
    level = F.expr(f"shiftleft(1L, least(coalesce(retry_times, 0), {HIGHEST_LEVEL}))")
    # 1. Deliveries and returned messages get the same columns, with zeros for what they do not count.
    calls = deliveries.select(
        *SAME,
        "consumer_group",
        F.lit(1).alias("attempt"),
        (good & back).cast("int").alias("success"),
        (back & ~good).cast("int").alias("failure"),
        (~back).cast("int").alias("no_result"),
        level.alias("level"),
        "started",
        "ended",
        F.when(good, F.col("ended")).alias("consumed"),
        "cost_ms",
        *[F.lit(0).alias(name) for name in ("retried", "retries_past", "parked", "died")],
    )
    key = ["broker_name", "topic", "queue_id", "consumer_group"]
    given_back = messages.where("kind IN ('retry', 'dead')")
    returned = (
        given_back.join(F.broadcast(offsets.select(*key, "consumer_offset")), key, "left")
        .select(
            *SAME,
            "consumer_group",
            *[F.lit(0).alias(name) for name in ("attempt", "success", "failure", "no_result")],
            F.lit(0).cast("bigint").alias("level"),
            *[F.lit(None).cast("timestamp").alias(name) for name in ("started", "ended", "consumed")],
            F.lit(None).cast("bigint").alias("cost_ms"),
            (F.col("kind") == "retry").cast("int").alias("retry"),
            (F.col("kind").eqNullSafe("retry") & ~F.col("parked") & is_past()).cast("int").alias("retries_past"),
            F.col("parked").cast("int").alias("parked"),
            (F.col("kind") == "dead").cast("int").alias("died"),
        )
        .withColumn("retried", F.col("retry") - F.col("parked"))
        .drop("retry")
    )
    together = calls.unionByName(returned).repartition(*SAME)  # as the messages are: one shuffle each
    # 2. One row per id, keys and group.
    return together.groupBy(*SAME, "consumer_group").agg(
        F.sum("attempt").alias("attempts"),
        F.sum("success").alias("successes"),
        F.sum("failure").alias("failures"),
        F.sum("no_result").alias("no_results"),
        F.bit_or("level").alias("level_bits"),
        F.min("started").alias("first_started"),
        F.min("ended").alias("first_ended"),
        F.min("consumed").alias("consumed"),
        F.max("started").alias("last_started"),
        F.sum("cost_ms").alias("busy_ms"),
        F.sum("retried").alias("retried"),
        F.sum("retries_past").alias("retries_past"),
        F.sum("parked").alias("parked_retries"),
        F.sum("died").alias("died"),
    )


def is_past() -> Column:
    """Whether the group's offset is beyond the message: the group says that it is done with it."""
    return F.coalesce(F.col("queue_offset") < F.col("consumer_offset"), F.lit(False))


def _judged(joined: DataFrame) -> DataFrame:
    """Outcome, latencies and the causes of every delivery after the first."""
    # 1. Without any delivery the sums are null.
    count = {
        name: F.coalesce(F.col(name), F.lit(0)).cast("int")
        for name in (
            "attempts",
            "successes",
            "failures",
            "no_results",
            "retried",
            "retries_past",
            "parked_retries",
            "died",
        )
    }
    levels = F.coalesce(F.bit_count("level_bits"), F.lit(0)).cast("int")
    untouched = count["attempts"] + count["retried"] + count["parked_retries"] == 0
    reads_tag = F.coalesce("reads_tag", F.lit(False))
    # A group without offsets at the broker (broadcasting) or without a trace implies nothing.
    implied = F.when(
        F.col("traced") & reads_tag & is_past() & ~F.col("parked"), F.col("members") + count["retries_past"]
    )
    # 2. The first condition that holds decides.
    outcome = (
        F.when(F.col("parked"), "waiting")
        .when(count["successes"] > 0, "consumed")
        .when(count["died"] > 0, "dead")
        .when(untouched & is_past() & ~F.col("traced"), "untraced")
        .when(untouched & is_past(), F.when(reads_tag, "lost").otherwise("filtered"))
        .otherwise("pending")
    )
    judged = joined.withColumns(
        {
            "traced": F.coalesce("traced", F.lit(False)),
            **count,
            "levels": levels,
            "outcome": outcome,
            "calls_implied": F.coalesce(implied, F.lit(0)).cast("int"),
            "units_stored": F.col("units") + count["retried"] + count["parked_retries"] + count["died"],
            "wait_ms": F.unix_millis("first_started") - F.unix_millis("stored"),
            "latency_ms": F.unix_millis("consumed") - F.unix_millis("stored"),
        }
    )
    return judged.withColumnRenamed("retried", "retries_stored").withColumns(_causes())


def _causes() -> dict[str, Column]:
    """Deliveries after the first, each with one cause; without another cause it was delivered again after a success."""
    # Each cause takes its share of what the causes before it left over.
    expected = F.col("copies") * F.col("members")
    extra = F.greatest(F.lit(0), F.col("attempts") - F.col("members"))
    resend = F.least(extra, expected - F.col("members"))
    retry = F.least(extra - resend, F.greatest(F.lit(0), F.col("levels") - 1) * F.col("members"))
    no_result = F.least(extra - resend - retry, F.col("no_results"))
    again = extra - resend - retry - no_result
    late = F.unix_millis("last_started") - F.unix_millis("consumed") > SOON_MS
    return {
        "again_resend": resend.cast("int"),
        "again_retry": retry.cast("int"),
        "again_no_result": no_result.cast("int"),
        "again_soon": F.when(late, 0).otherwise(again).cast("int"),
        "again_late": F.when(late, again).otherwise(0).cast("int"),
    }
