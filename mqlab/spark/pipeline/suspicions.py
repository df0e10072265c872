"""What looks wrong, found by rules: one row per finding, with its place, time, number of messages and description.

Mirrors: what people look for in the dashboard, mqadmin and client logs when they are called.

    stuck message              a call that never returned holds its group's offset; later messages were consumed
    inconsistent subscription  in one queue a group reads some tags and skips others that it reads at other times
    offset skipped ahead       a group skipped every message between two offsets
    offset set back            messages were consumed a second time, minutes later
    failing listener           half of the calls in a stretch of time failed
    slow listener              calls took five times as long as usual on that day
    dead letters  sent twice  hot key  hot queue  burst  damaged trace
    missing messages           the log of a store ends before its queues do, and the run was allowed to continue

The rules read the small fact tables, and the rows of LIFE for messages that were skipped or delivered again; from which
numbers on they speak is in mqlab.spark.thresholds.
Left out: causes. A rule shows where to look; what it finds may be harmless.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import reduce

from pyspark.sql import Column, DataFrame, SparkSession, Window
from pyspark.sql import functions as F

from mqlab.spark.pipeline.log_units import Extent
from mqlab.spark.pipeline.schemas import checked, table
from mqlab.spark.thresholds import Thresholds

NEIGHBOURS = 12  # stretches on either side with which a burst is compared

SUSPICIONS = table(
    """
    string kind, topic, consumer_group, broker_name
    int queue_id
    string subject: a tag, a key or a message id, depending on the kind
    time since, until
    long messages
    string told: one sentence for the reader
    """
)
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
Tables = Mapping[str, DataFrame]
DEFAULTS = Thresholds()


def suspicions(
    tables: Tables, stretch_ms: int, extents: Sequence[Extent] = (), limits: Thresholds = DEFAULTS
) -> DataFrame:
    """LIFE, ISLANDS, LAG, CALLS, KEYS, QUEUES, TRAFFIC, TRACE by their names, and the extents read -> SUSPICIONS."""
    life = tables["life"]
    found = [
        inconsistent(tables["islands"]), skipped(tables["islands"]), set_back(life, limits),
        stuck(life, tables["lag"]), dead_letters(life), sent_twice(life), failing(tables["calls"], stretch_ms, limits),
        slow(tables["calls"], stretch_ms, limits), hot_keys(tables["keys"], limits),
        hot_queues(tables["queues"], limits), bursts(tables["traffic"], stretch_ms, limits), damaged(tables["trace"]),
        missing(life.sparkSession, extents),
    ]  # fmt: skip
    return checked(reduce(DataFrame.unionByName, found), SUSPICIONS, "suspicions")


def _rows(frame: DataFrame, kind: str, told: Column, **columns: str | Column) -> DataFrame:
    """SUSPICIONS of one kind; columns that are not named are null."""
    given = {name: F.col(value) if isinstance(value, str) else value for name, value in columns.items()}
    given |= {"kind": F.lit(kind), "told": told}
    none = F.lit(None)
    return frame.select([given.get(f.name, none).cast(f.dataType).alias(f.name) for f in SUSPICIONS.fields])


def islands(life: DataFrame, stretch_ms: int, limits: Thresholds = DEFAULTS) -> DataFrame:
    """LIFE -> ISLANDS: messages that a group skipped although it reads their tag elsewhere, and what it read there."""
    place = ["topic", "consumer_group", "broker_name", "queue_id"]
    given = life.where("attempts > 0").withColumn("tag", F.coalesce("tags", F.lit("")))
    # 1. What each group reads, by tag, and the tag that it reads most.
    read = given.groupBy("topic", "consumer_group", "tag").agg(F.count("*").alias("read"))
    most = Window.partitionBy("topic", "consumer_group").orderBy(F.desc("read"), "tag")
    read = read.withColumn("most_read", (F.row_number().over(most) == 1).cast("int"))
    # 2. Lost messages have such a tag; those close together in time are one island.
    lost = life.where("outcome = 'lost'").withColumn("tag", F.coalesce("tags", F.lit("")))
    unusual = lost.join(F.broadcast(read), ["topic", "consumer_group", "tag"])
    order = Window.partitionBy(*place).orderBy("queue_offset")
    apart = F.unix_millis("stored") - F.unix_millis(F.lag("stored").over(order)) > 2 * stretch_ms
    found = (
        unusual.withColumn("island", F.sum(F.coalesce(apart, F.lit(False)).cast("int")).over(order))
        .groupBy(*place, "island")
        .agg(
            F.min("queue_offset").alias("first"), F.max("queue_offset").alias("last"), F.min("stored").alias("since"),
            F.max("stored").alias("until"), F.sum("members").cast("bigint").alias("messages"),
            F.sort_array(F.collect_set("tag")).alias("lost"), (F.max("most_read") == 1).alias("lost_most_read"),
        )
        .where(F.col("messages") >= limits.fewest)
    )  # fmt: skip
    # 3. What the group read between the first and the last message of an island.
    inside = given.select(*place, "queue_offset", "tag").join(F.broadcast(found), place)
    theirs = inside.where("queue_offset BETWEEN first AND last").groupBy(*place, "island").agg(
        F.sort_array(F.collect_set("tag")).alias("read"),
        F.count_if(F.array_contains("lost", F.col("tag"))).alias("read_of_lost"), F.count("*").alias("read_at_all"),
    )  # fmt: skip
    judged = found.join(theirs, [*place, "island"], "left").fillna(0, ["read_of_lost", "read_at_all"])
    texts = {name: F.array_join(name, ",") for name in ("lost", "read")}
    return checked(judged.withColumns(texts), ISLANDS, "islands")


def inconsistent(islands: DataFrame) -> DataFrame:
    """Islands in which the group read other tags."""
    seen = islands.where("read_at_all > read_of_lost AND read_of_lost < messages")
    # Tags of several islands are joined into one list without repetitions.
    all_of = {name: F.flatten(F.collect_list(F.split(name, ","))) for name in ("lost", "read")}
    found = seen.groupBy("topic", "consumer_group").agg(
        F.min("since").alias("since"), F.max("until").alias("until"), F.sum("messages").alias("messages"),
        F.count_distinct("broker_name", "queue_id").alias("queues"),
        *[F.array_join(F.array_sort(F.array_distinct(tags)), ", ").alias(name) for name, tags in all_of.items()],
    )  # fmt: skip
    told = F.format_string(
        "messages with the tags %s were skipped in %d queues, but messages with the tags %s were read there: the "
        "members of the group have different subscriptions, or the subscription was changed", "lost", "queues", "read",
    )  # fmt: skip
    return _rows(
        found, "inconsistent subscription", told, topic="topic", consumer_group="consumer_group", subject="lost",
        since="since", until="until", messages="messages",
    )  # fmt: skip


def skipped(islands: DataFrame) -> DataFrame:
    """Islands in which the group read nothing, not even the tag that it reads most."""
    told = F.format_string("offsets %d to %d were never delivered, and the group's offset is beyond them: they were "
                           "skipped, or the group started later", "first", "last")  # fmt: skip
    same = ("topic", "consumer_group", "broker_name", "queue_id", "since", "until", "messages")
    return _rows(
        islands.where("read_at_all = 0 AND lost_most_read"), "offset skipped ahead", told,
        **{name: name for name in same},
    )  # fmt: skip


def set_back(life: DataFrame, limits: Thresholds = DEFAULTS) -> DataFrame:
    """Messages that were consumed, and consumed again more than a minute later."""
    found = life.where("again_late > 0").groupBy("topic", "consumer_group").agg(
        F.min("last_started").alias("since"), F.max("last_started").alias("until"),
        F.min("stored").alias("from"), F.max("stored").alias("to"), F.sum("again_late").alias("messages"),
    ).where(F.col("messages") >= limits.fewest)  # fmt: skip
    told = F.format_string(
        "messages stored from %s to %s were consumed and then delivered again", _clock("from"), _clock("to")
    )
    return _rows(
        found, "offset set back", told, topic="topic", consumer_group="consumer_group", since="since", until="until",
        messages="messages",
    )  # fmt: skip


def _clock(time: str) -> Column:
    return F.date_format(time, "yyyy-MM-dd HH:mm:ss")


def stuck(life: DataFrame, lag: DataFrame) -> DataFrame:
    """The message at a group's offset was delivered and has no result, and later messages of the queue are stored."""
    place = ["topic", "consumer_group", "broker_name", "queue_id"]
    at = F.broadcast(lag.where("lag > 1").select(*place, "consumer_offset", "lag"))
    held = life.where("no_results > 0 AND successes = 0 AND outcome = 'pending'").join(at, place)
    told = F.format_string("the listener's call with this message never returned, so the group's offset stays at %d; "
                           "%d messages are waiting, or will be delivered again after a restart",
                           "consumer_offset", "lag")  # fmt: skip
    return _rows(
        held.where("queue_offset = consumer_offset"), "stuck message", told, subject="msg_id", since="first_started",
        messages="lag", **{name: name for name in place},
    )  # fmt: skip


def dead_letters(life: DataFrame) -> DataFrame:
    """Groups that gave up on messages: these are in the dead letter topic."""
    found = life.where("outcome = 'dead'").groupBy("topic", "consumer_group").agg(
        F.min("stored").alias("since"), F.max("last_started").alias("until"), F.sum("members").alias("messages"),
        F.min_by("keys", "stored").alias("subject"), F.max("attempts").alias("attempts"),
    )  # fmt: skip
    told = F.format_string("these messages are in %%DLQ%%%s after up to %d deliveries; the keys of the first are %s",
                           "consumer_group", "attempts", "subject")  # fmt: skip
    return _rows(
        found, "dead letters", told, topic="topic", consumer_group="consumer_group", since="since", until="until",
        messages="messages",
    )  # fmt: skip


def sent_twice(life: DataFrame) -> DataFrame:
    """Messages that their sender stored more than once."""
    # LIFE has one row per message and group; here a message counts once.
    once = life.where("copies > 1").dropDuplicates(["msg_id", "keys"])
    found = once.groupBy("topic").agg(
        F.min("stored").alias("since"), F.max("stored").alias("until"), F.sum("members").alias("messages")
    )
    told = F.lit("the same message is stored more than once: an answer was lost, and the producer sent it again")
    return _rows(found, "sent twice", told, topic="topic", since="since", until="until", messages="messages")


def failing(calls: DataFrame, stretch_ms: int, limits: Thresholds = DEFAULTS) -> DataFrame:
    """Stretches in which half of a group's calls failed."""
    bad = _by_group(calls).where(
        f"failures >= {limits.fewest} AND failures >= {limits.failed_share} * (calls - no_results)"
    )
    told = F.format_string("%d of %d calls of the listener failed", "failures", "calls")
    return _rows(
        _joined(bad, stretch_ms), "failing listener", told, consumer_group="consumer_group", since="since",
        until="until", messages="failures",
    )  # fmt: skip


def slow(calls: DataFrame, stretch_ms: int, limits: Thresholds = DEFAULTS) -> DataFrame:
    """Stretches whose calls took several times as long as the average of the better half of the group's day."""
    mean = F.col("busy_ms") / F.greatest(F.col("calls"), F.lit(1))
    each = _by_group(calls).withColumn("mean_ms", mean)
    # The median of the day is the usual time: a bad hour does not move it.
    usual = each.groupBy("consumer_group").agg(F.percentile_approx("mean_ms", 0.5).alias("usual_ms"))
    bad = each.join(F.broadcast(usual), "consumer_group").where(
        f"mean_ms >= {limits.slow_times} * greatest(usual_ms, 1) AND mean_ms >= {limits.slow_ms}"
    )
    told = F.format_string("a call took %.0f ms on average; %.0f ms are usual on this day",
                           F.col("busy_ms") / F.col("calls"), "usual_ms")  # fmt: skip
    return _rows(
        _joined(bad, stretch_ms, "usual_ms"), "slow listener", told, consumer_group="consumer_group", since="since",
        until="until", messages="calls",
    )  # fmt: skip


def _by_group(calls: DataFrame) -> DataFrame:
    sums = [F.sum(name).alias(name) for name in ("calls", "failures", "no_results", "busy_ms")]
    return calls.groupBy("consumer_group", "stretch").agg(*sums)


def _joined(stretches: DataFrame, stretch_ms: int, *same: str) -> DataFrame:
    """Joins a group's stretches that are at most two apart into one row with since, until and the sums."""
    order = Window.partitionBy("consumer_group").orderBy("stretch")
    apart = F.unix_millis("stretch") - F.unix_millis(F.lag("stretch").over(order)) > 2 * stretch_ms
    numbered = stretches.withColumn("number", F.sum(F.coalesce(apart, F.lit(False)).cast("int")).over(order))
    sums = [F.sum(name).alias(name) for name in ("calls", "failures", "busy_ms")]
    end = F.max("stretch") + F.make_dt_interval(secs=F.lit(stretch_ms / 1000))
    return numbered.groupBy("consumer_group", "number", *same).agg(
        F.min("stretch").alias("since"), end.alias("until"), *sums
    )


def hot_keys(keys: DataFrame, limits: Thresholds = DEFAULTS) -> DataFrame:
    """Keys whose share of a window is far above their share of the day."""
    hot = keys.where(
        f"messages >= {limits.enough_of_a_key} AND share >= {limits.key_share} "
        f"AND share >= {limits.key_times_its_day} * share_of_day"
    )
    found = hot.groupBy("topic", "broker_name", "message_key").agg(
        F.min("window_start").alias("since"), F.max("window_end").alias("until"), F.sum("messages").alias("messages"),
        F.max("share").alias("share"), F.max("share_of_day").alias("of_day"),
    )  # fmt: skip
    told = F.format_string("up to %.0f %% of the messages in a window of time have this key, but %.1f %% of the day's",
                           F.col("share") * 100, F.col("of_day") * 100)  # fmt: skip
    return _rows(found, "hot key", told, topic="topic", broker_name="broker_name", subject="message_key", since="since",
                 until="until", messages="messages")  # fmt: skip


def hot_queues(queues: DataFrame, limits: Thresholds = DEFAULTS) -> DataFrame:
    """Queues of a user topic that hold twice their share of its messages."""
    hot = queues.where(f"kind = 'normal' AND messages >= {limits.enough} AND skew >= {limits.skew}")
    told = F.format_string("this queue holds %.1f times the topic's average per queue", "skew")
    return _rows(hot, "hot queue", told, topic="topic", broker_name="broker_name", queue_id="queue_id",
                 since="first_stored", until="last_stored", messages="messages")  # fmt: skip


def bursts(traffic: DataFrame, stretch_ms: int, limits: Thresholds = DEFAULTS) -> DataFrame:
    """Stretches with several times as many messages as the median of their neighbours."""
    each = traffic.groupBy("topic", "stretch").agg(F.sum("messages").alias("calls"))
    around = Window.partitionBy("topic").orderBy("stretch").rowsBetween(-NEIGHBOURS, NEIGHBOURS)
    high = each.withColumn("usual", F.percentile("calls", 0.5).over(around)).where(
        f"calls >= {limits.enough} AND calls >= {limits.burst_times} * usual"
    )
    named = high.withColumnRenamed("topic", "consumer_group").withColumns(
        {"failures": F.lit(0), "busy_ms": F.col("usual")}
    )
    found = _joined(named, stretch_ms)
    told = F.format_string("%d messages were sent; %.0f per stretch of time are usual", "calls", "busy_ms")
    return _rows(found, "burst", told, topic="consumer_group", since="since", until="until", messages="calls")


def damaged(trace: DataFrame) -> DataFrame:
    """Entries of the trace that cannot be parsed."""
    found = trace.where("reason IS NOT NULL").groupBy("reason").agg(F.count("*").alias("entries"))
    told = F.format_string("entries of the trace cannot be parsed: %s", "reason")
    return _rows(found, "damaged trace", told, subject="reason", messages="entries")


def missing(spark: SparkSession, extents: Sequence[Extent]) -> DataFrame:
    """Messages that the queues of a store name and its log does not hold; no other table has them."""
    rows = [
        (extent.store.broker_name, loss.start, loss.end, loss.messages, loss.witness)
        for extent in extents for loss in extent.losses
    ]  # fmt: skip
    columns = "broker_name string, first long, last long, messages long, witness string"
    told = F.format_string("the log holds nothing from offset %d on, but its queues name messages up to %d (%s): these "
                           "messages are in no table and in no lag", "first", "last", "witness")  # fmt: skip
    return _rows(spark.createDataFrame(rows, columns), "missing messages", told, broker_name="broker_name",
                 messages="messages")  # fmt: skip
