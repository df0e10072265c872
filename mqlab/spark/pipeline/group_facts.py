"""Facts about consumer groups: outcomes of their messages, latency, repeated deliveries and their causes, lag.

Mirrors: mqadmin consumerProgress, consumerStatus and the numbers of the dashboard's consumer page.

    groups       one row per group and topic: outcomes, retry amplification, percentiles of waiting and of latency
    group_tags   ... and tag: how much of it was delivered, which shows how selective the group is
    lag          ... and queue: how far behind at the end
    backlog      ... and stretch of time: stored, done, behind      latency   ... percentiles of messages stored then
    duplicates   one row per group, topic and cause
    calls        one row per group, client and stretch of time: calls of the listener, failures, how long they took
    slowest      the calls that took longest, those that never returned first
    producers    one row per producer group and topic: sends, failures, how long they took

Percentiles are approximate on many rows (1 in 10,000) and exact on few.
Left out: broadcasting groups in ``lag``: their offsets are on their own disks.
"""

from __future__ import annotations

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from mqlab.spark.pipeline.schemas import checked, table
from mqlab.spark.pipeline.stored_facts import stretch

ACCURACY = 10_000
SLOWEST = 50
OUTCOMES = ("consumed", "dead", "pending", "passed", "untraced", "waiting")
CAUSES = ("resend", "retry", "no_result", "soon", "late")

_P3 = "p50_{0}, p90_{0}, p99_{0}"
GROUPS = table(
    f"""
    string topic, consumer_group
    long messages, consumed, dead, pending, passed, untraced, waiting
    long attempts, failures, no_results
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
    long messages, delivered, passed, dead, pending
    double delivered_share
    """
)
LAG = table(
    """
    string topic, consumer_group, broker_name
    int queue_id
    long broker_offset, consumer_offset, lag
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
    long messages
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
        *percentiles("wait_ms"), *percentiles("latency_ms"), F.max("latency_ms").alias("max_latency_ms"),
    )  # fmt: skip
    return checked(counts, GROUPS, "groups")


def group_tags(life: DataFrame) -> DataFrame:
    """LIFE -> GROUP_TAGS, of groups that write a trace."""
    members = F.col("members")
    counted = {
        "delivered": F.when(F.col("attempts") > 0, members).otherwise(0),
        **{name: F.when(F.col("outcome") == name, members).otherwise(0) for name in ("passed", "dead", "pending")},
    }
    counts = (
        life.where("traced")
        .withColumns(counted)
        .groupBy("topic", "consumer_group", "tags")
        .agg(F.sum("members").alias("messages"), *[F.sum(name).alias(name) for name in counted])
        .withColumn("delivered_share", F.col("delivered") / F.col("messages"))
    )
    return checked(counts, GROUP_TAGS, "group_tags")


def lag(queues: DataFrame, offsets: DataFrame) -> DataFrame:
    """QUEUES, OFFSETS -> LAG, as mqadmin consumerProgress counts it: broker offset less consumer offset."""
    place = ["broker_name", "topic", "queue_id"]
    ends = queues.select(*place, F.col("max_offset").alias("broker_offset"))
    rows = offsets.join(ends, place, "left").withColumn(
        "broker_offset", F.greatest(F.coalesce("broker_offset", "consumer_offset"), "consumer_offset")
    )  # a queue whose messages were all deleted has no unit that shows its end
    return checked(rows.withColumn("lag", F.col("broker_offset") - F.col("consumer_offset")), LAG, "lag")


def backlog(life: DataFrame, stretch_ms: int) -> DataFrame:
    """LIFE -> BACKLOG: the messages that a traced group had still to consume, per stretch from its first to its last.

    Messages that the group skipped are not counted, because the time at which it did so is unknown.
    """
    read = life.where("traced AND outcome IN ('consumed', 'dead', 'pending')")
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
    """LIFE -> LATENCY, of the messages that were consumed."""
    rows = life.where("consumed IS NOT NULL").groupBy(
        stretch("stored", stretch_ms).alias("stretch"), "topic", "consumer_group"
    ).agg(F.sum("members").alias("messages"), *percentiles("latency_ms"))  # fmt: skip
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
