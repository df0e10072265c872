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

Spark passes over LIFE once for its cells (counts by group, tag and stretch) and once for the percentiles; what is
counted in cells is summed up in the driver.

    LIFE ──────── cells ────────▶ groups, group_tags, backlog, latency, duplicates; rules of suspicions
    LIFE ──────── percentiles ──▶ groups, latency
    DELIVERIES ─────────────────▶ calls, slowest
    TRACE ─────── entries ──────▶ producers; the rule of damaged entries
    MESSAGES ──── next_stored ──▶ lag, of queues and offsets

Percentiles are approximate on many rows (1 in 10,000) and exact on few. Those of waiting and latency are of all
messages that the group should consume: consumed, dead and pending ones. A message that was not consumed took longer
than any that was, so a percentile that falls on such a message is null: it is not known yet, and not small.
Left out: broadcasting groups in ``lag``: their offsets are on their own disks.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from mqlab.data.spark.pipeline.schemas import checked, table
from mqlab.data.spark.pipeline.stored_facts import stretch
from mqlab.data.spark.small_tables import for_spark

if TYPE_CHECKING:
    import pandas

ACCURACY = 10_000
SLOWEST = 50
OUTCOMES = ("consumed", "dead", "pending", "filtered", "lost", "untraced", "waiting")
TO_CONSUME = "outcome IN ('consumed', 'dead', 'pending')"
NOT_YET = (1 << 63) - 1
PLACE = ["topic", "consumer_group"]
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

NEXT = table("string broker_name, topic\nint queue_id\nlong consumer_offset")


def cells(life: DataFrame, stretch_ms: int) -> DataFrame:
    """LIFE -> sums by group, topic and tag, by the stretch of storing and by that of the first end of a call.

    A row may be a batch under one id: outcomes count its members. Messages that no group reads have no group there.
    """
    members, back = F.col("members"), F.expr(f"traced AND {TO_CONSUME}")
    outcomes = [_sum_where(F.col("outcome") == outcome, members).alias(outcome) for outcome in OUTCOMES]
    causes = [
        column
        for cause in CAUSES
        for again in [F.col(f"again_{cause}")]
        for column in (F.sum(again).alias(f"again_{cause}"), F.count_if(again > 0).alias(f"messages_{cause}"))
    ]
    # Of whom the rules speak: consumed a second time later, given up, stored twice.
    late, dead, twice = F.col("again_late") > 0, F.col("outcome") == "dead", F.col("copies") > 1
    return life.groupBy(
        "topic",
        "consumer_group",
        "tags",
        "traced",
        stretch("stored", stretch_ms).alias("stretch"),
        F.when(back, stretch("first_ended", stretch_ms)).alias("ended_in"),
    ).agg(
        F.sum(members).alias("messages"),
        *outcomes,
        *[F.sum(name).alias(name) for name in ("attempts", "failures", "no_results", "units_stored", "calls_implied")],
        # More calls with one message do not make up for a missing call with another.
        F.sum(F.least("attempts", "calls_implied")).alias("calls_told"),
        _sum_where(F.col("attempts") > 0, members).alias("delivered"),
        F.count_if(F.col("attempts") > 0).alias("lives_delivered"),
        F.max("latency_ms").alias("max_latency_ms"),
        *causes,
        *_from_to(late, "late", stored="stored", again="last_started"),
        *_from_to(dead, "dead", stored="stored", again="last_started"),
        F.max(F.when(dead, F.col("attempts"))).alias("dead_attempts"),
        *_from_to(twice, "twice", stored="stored"),
        _sum_where(twice, members).alias("twice"),
    )


def _sum_where(condition: Column, value: Column) -> Column:
    return F.sum(F.when(condition, value).otherwise(0))


def _from_to(condition: Column, name: str, **times: str) -> list[Column]:
    """First and last time of the rows for which a condition holds, of each of these columns."""
    return [
        least_or_most(F.when(condition, F.col(time))).alias(f"{name}_{end}_{what}")
        for what, time in times.items()
        for end, least_or_most in (("first", F.min), ("last", F.max))
    ]


def percentiles_of_life(life: DataFrame, stretch_ms: int) -> DataFrame:
    """LIFE -> percentiles of waiting and latency, by group and topic (without a stretch), and by stretch as well."""
    by = ["topic", "consumer_group", "stretch"]
    rows = life.where(f"consumer_group IS NOT NULL AND {TO_CONSUME}").select(
        *by[:2], stretch("stored", stretch_ms).alias("stretch"), "wait_ms", "latency_ms"
    )
    sets = [[F.col(name) for name in names] for names in (by[:2], by)]
    return rows.groupingSets(sets, *by).agg(*percentiles("wait_ms", NOT_YET), *percentiles("latency_ms", NOT_YET))


def percentiles(value: str, for_null: int | None = None) -> list[Column]:
    """The columns p50, p90 and p99 of a column of whole numbers; null without any.

    ``for_null`` stands for a null in the order; a percentile that falls on it is null. Otherwise nulls do not count.
    """
    ranked = F.col(value) if for_null is None else F.coalesce(F.col(value), F.lit(for_null))
    values = F.percentile_approx(ranked, F.array(F.lit(0.5), F.lit(0.9), F.lit(0.99)), ACCURACY)
    columns = [F.get(values, F.lit(number)).cast("bigint") for number in range(3)]
    known = columns if for_null is None else [F.nullif(column, F.lit(for_null)) for column in columns]
    return [column.alias(f"{name}_{value}") for name, column in zip(("p50", "p90", "p99"), known, strict=True)]


def groups(cells: pandas.DataFrame, percentiles: pandas.DataFrame) -> pandas.DataFrame:
    """Cells and percentiles of LIFE -> GROUPS, without topics that no group reads."""
    sums = [
        "messages",
        *OUTCOMES,
        "attempts",
        "failures",
        "no_results",
        "calls_implied",
        "calls_told",
        "delivered",
        "units_stored",
    ]
    by_group = cells.groupby(PLACE, as_index=False)
    rows = by_group[sums].sum().merge(by_group[["max_latency_ms"]].max(), on=PLACE)
    rows["amplification"] = rows["attempts"] / rows["delivered"].where(rows["delivered"] > 0)
    rows["storage_amplification"] = rows["units_stored"] / rows["messages"]
    rows["coverage"] = rows["calls_told"] / rows["calls_implied"].where(rows["calls_implied"] > 0)
    of_all = percentiles[percentiles["stretch"].isna()].drop(columns="stretch")
    return rows.merge(of_all, on=PLACE, how="left")


def group_tags(cells: pandas.DataFrame) -> pandas.DataFrame:
    """Cells -> GROUP_TAGS, of groups that write a trace."""
    sums = ["messages", "delivered", "filtered", "lost", "dead", "pending"]
    rows = cells[cells["traced"]].groupby([*PLACE, "tags"], dropna=False, as_index=False)[sums].sum()
    rows["delivered_share"] = rows["delivered"] / rows["messages"]
    return rows


def next_stored(messages: DataFrame, nexts: pandas.DataFrame) -> DataFrame:
    """MESSAGES, offsets with a lag -> when the message at each of these offsets was stored, if it is in the log."""
    key = ["broker_name", "topic", "queue_id", "consumer_offset"]
    wanted = for_spark(messages.sparkSession, nexts[key].drop_duplicates(), NEXT)
    stored = messages.select(
        *key[:3], F.col("queue_offset").alias("consumer_offset"), F.col("store_timestamp").alias("next_stored")
    )
    return stored.join(F.broadcast(wanted), key)


def ends_of(queues: pandas.DataFrame, offsets: pandas.DataFrame) -> pandas.DataFrame:
    """QUEUES, OFFSETS -> the offsets with ``broker_offset`` and ``lag``, in messages."""
    key = ["broker_name", "topic", "queue_id"]
    ends = queues[[*key, "max_offset"]].rename(columns={"max_offset": "broker_offset"})
    rows = offsets.merge(ends, on=key, how="left")
    # A queue whose messages were all deleted has no unit that shows its end.
    rows["broker_offset"] = rows[["broker_offset", "consumer_offset"]].max(axis=1).astype("int64")
    rows["lag"] = rows["broker_offset"] - rows["consumer_offset"]
    return rows.sort_values([*key, "consumer_group"])


def lag(ends: pandas.DataFrame, nexts: pandas.DataFrame, queues: pandas.DataFrame) -> pandas.DataFrame:
    """Ends, the messages to be read next, QUEUES -> LAG, as mqadmin consumerProgress counts it.

    The time behind is that of the log: a broker that was off for a night did not let its groups fall behind.
    """
    key = ["broker_name", "topic", "queue_id", "consumer_offset"]
    rows = ends.merge(nexts[[*key, "next_stored"]], on=key, how="left")
    rows["next_stored"] = rows["next_stored"].where(rows["lag"] > 0)
    log_end = rows["broker_name"].map(queues.groupby("broker_name")["last_stored"].max())
    rows["behind_ms"] = (log_end - rows["next_stored"]).where(rows["lag"] > 0, 0)
    return rows


def backlog(cells: pandas.DataFrame, stretch_ms: int) -> pandas.DataFrame:
    """Cells -> BACKLOG: the messages that a traced group had still to consume, per stretch from its first to its last.

    Messages that the group skipped are not counted, because the time at which it did so is unknown.
    """
    import pandas

    read = _to_consume(cells)
    read = read[read["messages"] > 0]
    # 1. What was stored and what was finished in each stretch that has either.
    stored = read.groupby([*PLACE, "stretch"])["messages"].sum()
    done = read[read["ended_in"].notna()].astype({"ended_in": "int64"}).groupby([*PLACE, "ended_in"])["messages"].sum()
    done.index.names = stored.index.names
    counted = pandas.concat({"stored": stored, "done": done}, axis=1).sort_index()
    # 2. Every stretch between the first and the last, also those without any event; the running difference is behind.
    tables = [pandas.DataFrame(columns=[*PLACE, "stretch", "stored", "done", "behind"])]
    for topic, group in counted.index.droplevel("stretch").unique():
        its = counted.loc[topic, group]
        every = pandas.RangeIndex(its.index.min(), its.index.max() + 1, stretch_ms)
        rows = its.reindex(every).fillna(0).rename_axis("stretch").reset_index()
        rows = rows.assign(topic=topic, consumer_group=group)
        tables.append(rows.assign(behind=(rows["stored"] - rows["done"]).cumsum()))
    return pandas.concat(tables[1:] or tables, ignore_index=True)


def _to_consume(cells: pandas.DataFrame) -> pandas.DataFrame:
    """The cells of traced groups, whose messages are those that the group should consume."""
    return cells[cells["traced"]].assign(messages=cells["consumed"] + cells["dead"] + cells["pending"])


def latency(cells: pandas.DataFrame, percentiles: pandas.DataFrame) -> pandas.DataFrame:
    """Cells, percentiles -> LATENCY, of traced groups; where all messages of a stretch wait, percentiles are null."""
    by = [*PLACE, "stretch"]
    counts = _to_consume(cells).groupby(by, as_index=False)[["messages", "consumed"]].sum()
    return counts[counts["messages"] > 0].merge(percentiles, on=by, how="left")


def duplicates(cells: pandas.DataFrame) -> pandas.DataFrame:
    """Cells -> DUPLICATES: one row for each cause that occurred."""
    import pandas

    tables = []
    for cause in CAUSES:
        names = {f"messages_{cause}": "messages", f"again_{cause}": "deliveries"}
        sums = cells.groupby(PLACE, as_index=False)[list(names)].sum().rename(columns=names)
        tables.append(sums[sums["messages"] > 0].assign(cause=cause))
    return pandas.concat(tables, ignore_index=True)


def calls(deliveries: DataFrame, stretch_ms: int) -> DataFrame:
    """DELIVERIES -> CALLS."""
    rows = deliveries.groupBy(stretch("started", stretch_ms).alias("stretch"), "consumer_group", "client").agg(
        F.count("*").alias("calls"),
        F.count_if(~F.col("success")).alias("failures"),
        F.count_if(F.col("ended").isNull()).alias("no_results"),
        F.count_if(F.col("retry_times") > 0).alias("retries"),
        F.coalesce(F.sum("cost_ms"), F.lit(0)).alias("busy_ms"),
        *percentiles("cost_ms"),
    )
    return checked(rows, CALLS, "calls")


def slowest(deliveries: DataFrame) -> DataFrame:
    """DELIVERIES -> SLOWEST_CALLS: the SLOWEST calls that took longest."""
    same = ("started", "msg_id", "keys", "consumer_group", "retry_times")  # a fixed order of calls that took as long
    order = [F.col("ended").isNotNull(), F.desc("cost_ms"), *map(F.col, same)]
    return checked(deliveries.orderBy(*order).limit(SLOWEST), SLOWEST_CALLS, "slowest")


def entries(trace: DataFrame) -> DataFrame:
    """TRACE -> sends by producer group and topic, and the number of damaged entries by reason."""
    sends = F.expr("type = 'Pub' AND reason IS NULL")
    return (
        trace.where(sends | F.col("reason").isNotNull())
        .groupBy("reason", *[F.when(sends, F.col(name)).alias(name) for name in ("group_name", "topic")])
        .agg(F.count("*").alias("sends"), F.count_if(~F.col("success")).alias("failures"), *percentiles("cost_ms"))
    )


def producers(entries: pandas.DataFrame) -> pandas.DataFrame:
    """Entries -> PRODUCERS."""
    sends = entries[entries["reason"].isna()].rename(columns={"group_name": "producer_group"})
    return sends.sort_values(["producer_group", "topic"])
