"""Facts about consumer groups: outcomes of their messages, latency, repeated deliveries and their causes, lag.

Mirrors: mqadmin consumerProgress, consumerStatus and the numbers of the dashboard's consumer page.

    groups       one row per group and topic: outcomes, retry amplification, percentiles of waiting and of latency, and
                 the coverage of the trace: of the calls that the group's offsets imply, the share that the trace tells
    group_tags   ... and tag: how much of it was delivered, which shows how selective the group is
    lag          ... and queue: how far behind at the end
    backlog      ... and stretch of time: stored, done, behind      latency   ... percentiles of messages stored then
    duplicates   one row per group, topic and cause
    calls        one row per group, client and stretch of time: calls of the listener, failures, how long they took
    slowest      the calls that took longest, those that never returned first
    producers    one row per producer group and topic: sends, failures, how long they took

Percentiles are approximate on many rows (1 in 10,000) and exact on few. Those of waiting and latency are of all
messages that the group should consume: consumed, dead and pending ones. A message that was not consumed took longer
than any that was, so a percentile that falls on such a message is null: it is not known yet, and not small.
Left out: broadcasting groups in ``lag``: their offsets are on their own disks.
"""

from __future__ import annotations

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from mqlab.spark.pipeline.schemas import checked, table
from mqlab.spark.pipeline.stored_facts import stretch

ACCURACY = 10_000
SLOWEST = 50
OUTCOMES = ("consumed", "dead", "pending", "filtered", "lost", "untraced", "waiting")
TO_CONSUME = "outcome IN ('consumed', 'dead', 'pending')"
NOT_YET = (1 << 63) - 1
CAUSES = ("resend", "retry", "no_result", "soon", "late")

_P3 = "p50_{0}, p90_{0}, p99_{0}"
GROUPS = table(
    f"""
    string topic, consumer_group
    long messages, consumed, dead, pending, filtered, lost, untraced, waiting
    long attempts, failures, no_results
    long calls_implied: calls without which the group's offsets could not be where they are
    long calls_told: those of them that are in the trace
    double coverage: calls_told / calls_implied; null without any implied call
    double amplification: calls of a listener for a message that had any
    double storage_amplification: units in the log for one message
    long {_P3.format("wait_ms")}
    long {_P3.format("latency_ms")}
    long max_latency_ms
    """
)
GROUP_TAGS = table(
    """
    string topic, consumer_group, tags
    long messages, delivered, filtered, lost, dead, pending
    double delivered_share
    """
)
LAG = table(
    """
    string topic, consumer_group, broker_name
    int queue_id
    long broker_offset, consumer_offset, lag
    time next_stored: store time of the message at the consumer offset; null when it is not in the log, or there is none
    long behind_ms: from then to the last unit of the broker's log; 0 without a lag
    """
)
BACKLOG = table(
    """
    time stretch: when it begins
    string topic, consumer_group
    long stored
    long done: given to a listener that came back, for the first time
    long behind: stored and not done at the end of the stretch
    """
)
LATENCY = table(
    f"""
    time stretch: when it begins; messages stored then
    string topic, consumer_group
    long messages: consumed, dead and pending
    long consumed
    long {_P3.format("latency_ms")}
    """
)
DUPLICATES = table(
    """
    string topic, consumer_group
    string cause: resend, retry, no_result, soon or late; see LIFE's columns again_...
    long messages: with at least one delivery for this cause
    long deliveries
    """
)
CALLS = table(
    f"""
    time stretch: when it begins
    string consumer_group, client
    long calls, failures, no_results
    long retries: calls with a message that had failed before
    long busy_ms: all calls together
    long {_P3.format("cost_ms")}
    """
)
SLOWEST_CALLS = table(
    """
    string consumer_group, client, msg_id, keys
    int retry_times
    time started, ended
    long cost_ms
    string status
    """
)
PRODUCERS = table(
    f"""
    string producer_group, topic
    long sends, failures
    long {_P3.format("cost_ms")}
    """
)


def percentiles(value: str) -> list[Column]:
    """The columns p50, p90 and p99 of a column of whole numbers; null without any."""
    values = F.percentile_approx(value, F.array(F.lit(0.5), F.lit(0.9), F.lit(0.99)), ACCURACY)
    names = ("p50", "p90", "p99")
    return [F.get(values, F.lit(at)).cast("bigint").alias(f"{name}_{value}") for at, name in enumerate(names)]


def percentiles_of_all(value: str) -> list[Column]:
    """The same of all messages that should have been consumed; null where one falls on a message without the value."""
    # A message that was not consumed counts as the slowest.
    ranked = F.when(F.expr(TO_CONSUME), F.coalesce(F.col(value), F.lit(NOT_YET)))
    values = F.percentile_approx(ranked, F.array(F.lit(0.5), F.lit(0.9), F.lit(0.99)), ACCURACY)
    known = [F.nullif(F.get(values, F.lit(at)), F.lit(NOT_YET)) for at in range(3)]
    return [one.cast("bigint").alias(f"{name}_{value}") for name, one in zip(("p50", "p90", "p99"), known, strict=True)]


def groups(life: DataFrame) -> DataFrame:
    """LIFE -> GROUPS, without topics that no group reads."""
    # A row may be a batch under one id: outcomes count its members.
    outcome_counts = [
        F.coalesce(F.sum(F.when(F.col("outcome") == outcome, F.col("members"))), F.lit(0)).alias(outcome)
        for outcome in OUTCOMES
    ]
    delivered = F.when(F.col("attempts") > 0, F.col("members"))
    counts = life.where("consumer_group IS NOT NULL").groupBy("topic", "consumer_group").agg(
        F.sum("members").alias("messages"), *outcome_counts,
        *[F.sum(name).alias(name) for name in ("attempts", "failures", "no_results")],
        (F.sum("attempts") / F.sum(delivered)).alias("amplification"),
        (F.sum("units_stored") / F.sum("members")).alias("storage_amplification"),
        *percentiles_of_all("wait_ms"), *percentiles_of_all("latency_ms"), F.max("latency_ms").alias("max_latency_ms"),
        F.sum("calls_implied").alias("calls_implied"),
        # More calls with one message do not make up for a missing call with another.
        F.sum(F.least("attempts", "calls_implied")).alias("calls_told"),
    )  # fmt: skip
    share = F.col("calls_told") / F.nullif("calls_implied", F.lit(0))
    return checked(counts.withColumn("coverage", share), GROUPS, "groups")


def group_tags(life: DataFrame) -> DataFrame:
    """LIFE -> GROUP_TAGS, of groups that write a trace."""
    members = F.col("members")
    counted = {
        "delivered": F.when(F.col("attempts") > 0, members).otherwise(0),
        **{
            name: F.when(F.col("outcome") == name, members).otherwise(0)
            for name in ("filtered", "lost", "dead", "pending")
        },
    }
    counts = (
        life.where("traced")
        .withColumns(counted)
        .groupBy("topic", "consumer_group", "tags")
        .agg(F.sum("members").alias("messages"), *[F.sum(name).alias(name) for name in counted])
        .withColumn("delivered_share", F.col("delivered") / F.col("messages"))
    )
    return checked(counts, GROUP_TAGS, "group_tags")


def lag(queues: DataFrame, offsets: DataFrame, messages: DataFrame) -> DataFrame:
    """QUEUES, OFFSETS, MESSAGES -> LAG, as mqadmin consumerProgress counts it: broker offset less consumer offset.

    The time behind is that of the log: a broker that was off for a night did not let its groups fall behind.
    """
    place = ["broker_name", "topic", "queue_id"]
    # 1. Behind in messages.
    ends = queues.select(*place, F.col("max_offset").alias("broker_offset"))
    rows = offsets.join(ends, place, "left").withColumn(
        "broker_offset", F.greatest(F.coalesce("broker_offset", "consumer_offset"), "consumer_offset")
    )  # a queue whose messages were all deleted has no unit that shows its end
    rows = rows.withColumn("lag", F.col("broker_offset") - F.col("consumer_offset"))
    # 2. Behind in time: the message to be read next, if it is still in the log, and the end of the log.
    nexts = rows.where("lag > 0").select(*place, F.col("consumer_offset").alias("queue_offset")).distinct()
    stored = messages.select(*place, "queue_offset", F.col("store_timestamp").alias("next_stored"))
    found = stored.join(F.broadcast(nexts), [*place, "queue_offset"])
    found = found.withColumnRenamed("queue_offset", "consumer_offset")
    ends_at = queues.groupBy("broker_name").agg(F.max("last_stored").alias("log_end"))
    behind = F.when(F.col("lag") <= 0, 0).otherwise(F.unix_millis("log_end") - F.unix_millis("next_stored"))
    timed = rows.join(found, [*place, "consumer_offset"], "left").join(F.broadcast(ends_at), "broker_name", "left")
    return checked(timed.withColumn("behind_ms", behind), LAG, "lag")


def backlog(life: DataFrame, stretch_ms: int) -> DataFrame:
    """LIFE -> BACKLOG: the messages that a traced group had still to consume, per stretch from its first to its last.

    Messages that the group skipped are not counted, because the time at which it did so is unknown.
    """
    read = life.where(f"traced AND {TO_CONSUME}")
    place = ["topic", "consumer_group"]

    def events(time: str, came: int) -> DataFrame:
        return read.where(f"{time} IS NOT NULL").select(
            *place, stretch(time, stretch_ms).alias("stretch"), (F.col("members") * came).alias("stored"),
            (F.col("members") * (1 - came)).alias("done"),
        )  # fmt: skip

    # 1. What was stored and what was finished in each stretch that has either.
    counted = events("stored", 1).unionByName(events("first_ended", 0)).groupBy(*place, "stretch").agg(
        F.sum("stored").alias("stored"), F.sum("done").alias("done")
    )  # fmt: skip
    # 2. Every stretch between the first and the last, also those without any event.
    step = F.make_dt_interval(secs=F.lit(stretch_ms / 1000))
    every = counted.groupBy(*place).agg(
        F.explode(F.sequence(F.min("stretch"), F.max("stretch"), step)).alias("stretch")
    )
    # 3. The running difference is the backlog.
    so_far = Window.partitionBy(*place).orderBy("stretch")
    rows = (
        every.join(counted, [*place, "stretch"], "left")
        .fillna(0, ["stored", "done"])
        .withColumn("behind", F.sum(F.col("stored") - F.col("done")).over(so_far))
    )
    return checked(rows, BACKLOG, "backlog")


def latency(life: DataFrame, stretch_ms: int) -> DataFrame:
    """LIFE -> LATENCY, of traced groups; a stretch whose messages all wait has a row without percentiles."""
    done = F.when(F.col("outcome") == "consumed", F.col("members")).otherwise(0)
    rows = life.where(f"traced AND {TO_CONSUME}").groupBy(
        stretch("stored", stretch_ms).alias("stretch"), "topic", "consumer_group"
    ).agg(
        F.sum("members").alias("messages"), F.sum(done).alias("consumed"), *percentiles_of_all("latency_ms")
    )  # fmt: skip
    return checked(rows, LATENCY, "latency")


def duplicates(life: DataFrame) -> DataFrame:
    """LIFE -> DUPLICATES: one row for each cause that occurred."""
    causes = F.explode(
        F.array(*[F.struct(F.lit(cause).alias("cause"), F.col(f"again_{cause}").alias("times")) for cause in CAUSES])
    )
    rows = (
        life.where("attempts > members")
        .select("topic", "consumer_group", causes.alias("c"))
        .where("c.times > 0")
        .groupBy("topic", "consumer_group", F.col("c.cause").alias("cause"))
        .agg(F.count("*").alias("messages"), F.sum("c.times").alias("deliveries"))
    )
    return checked(rows, DUPLICATES, "duplicates")


def calls(deliveries: DataFrame, stretch_ms: int) -> DataFrame:
    """DELIVERIES -> CALLS."""
    rows = deliveries.groupBy(
        stretch("started", stretch_ms).alias("stretch"), "consumer_group", "client"
    ).agg(
        F.count("*").alias("calls"), F.count_if(~F.col("success")).alias("failures"),
        F.count_if(F.col("ended").isNull()).alias("no_results"), F.count_if(F.col("retry_times") > 0).alias("retries"),
        F.coalesce(F.sum("cost_ms"), F.lit(0)).alias("busy_ms"), *percentiles("cost_ms"),
    )  # fmt: skip
    return checked(rows, CALLS, "calls")


def slowest(deliveries: DataFrame) -> DataFrame:
    """DELIVERIES -> SLOWEST_CALLS: the SLOWEST calls that took longest."""
    order = [F.col("ended").isNotNull(), F.desc("cost_ms"), F.col("started"), F.col("msg_id")]
    return checked(deliveries.orderBy(*order).limit(SLOWEST), SLOWEST_CALLS, "slowest")


def producers(trace: DataFrame) -> DataFrame:
    """TRACE -> PRODUCERS."""
    sends = trace.where("type = 'Pub' AND reason IS NULL").withColumnRenamed("group_name", "producer_group")
    rows = sends.groupBy("producer_group", "topic").agg(
        F.count("*").alias("sends"), F.count_if(~F.col("success")).alias("failures"), *percentiles("cost_ms")
    )
    return checked(rows, PRODUCERS, "producers")
