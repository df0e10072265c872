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

The rules read the small fact tables and the cells of LIFE, in the driver; Spark is asked only for the rows of LIFE that
were skipped, given up or never came back, and not where the cells say that there are none. From which numbers on the
rules speak is in mqlab.data.spark.thresholds.
Left out: causes. A rule shows where to look; what it finds may be harmless.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from decimal import ROUND_HALF_UP, Decimal
from typing import TYPE_CHECKING, Any

from mqlab.data.spark.pipeline.log_units import Extent
from mqlab.data.spark.pipeline.schemas import table
from mqlab.data.spark.thresholds import Thresholds
from mqlab.scales import date_time_text

if TYPE_CHECKING:
    import pandas

COUNTS = ("calls", "failures", "busy_ms", "messages", "usual")
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
Tables = Mapping[str, "pandas.DataFrame"]
Told = Callable[[Any], str]
DEFAULTS = Thresholds()


def suspicions(
    tables: Tables, stretch_ms: int, extents: Sequence[Extent] = (), limits: Thresholds = DEFAULTS
) -> pandas.DataFrame:
    """ISLANDS, CALLS, KEYS, QUEUES, TRAFFIC, the cells of LIFE, what is ``given_up`` and ``held``, the entries of the
    trace, by these names; and the extents read -> SUSPICIONS."""
    import pandas

    life = tables["cells"]
    by_rule = [
        inconsistent(tables["islands"]),
        skipped(tables["islands"]),
        set_back(life, limits),
        stuck(tables["held"]),
        dead_letters(life, tables["given_up"]),
        sent_twice(life),
        failing(tables["calls"], stretch_ms, limits),
        slow(tables["calls"], stretch_ms, limits),
        hot_keys(tables["keys"], limits),
        hot_queues(tables["queues"], limits),
        bursts(tables["traffic"], stretch_ms, limits),
        damaged(tables["entries"]),
        missing(extents),
    ]
    rows = [row for of_rule in by_rule for row in of_rule]
    return pandas.DataFrame(rows, columns=SUSPICIONS.fieldNames(), dtype=object)


Rows = Iterable[dict[str, Any]]


def _rows(frame: pandas.DataFrame, kind: str, sentence: Told, **columns: str) -> Rows:
    """SUSPICIONS of one kind: one for each row of a frame, with these of its columns under other names."""
    for row in frame.itertuples(index=False):
        values = {name: getattr(row, column) for name, column in columns.items()}
        yield {**values, "kind": kind, "told": sentence(row)}


def _same(*names: str) -> dict[str, str]:
    return {name: name for name in names}


def _rounded(value: float, digits: int = 0) -> str:
    """A number for the reader; halves are rounded up.

    >>> _rounded(2.5), _rounded(2.44, 1)
    ('3', '2.4')
    """
    return str(Decimal(float(value)).quantize(Decimal(1).scaleb(-digits), ROUND_HALF_UP))


def inconsistent(islands: pandas.DataFrame) -> Rows:
    """Islands in which the group read other tags."""
    seen = islands[(islands["read_at_all"] > islands["read_of_lost"]) & (islands["read_of_lost"] < islands["messages"])]
    queues = seen["broker_name"] + " " + seen["queue_id"].astype(str)
    rows = (
        seen.assign(queues=queues)
        .groupby(["topic", "consumer_group"], as_index=False)
        .agg(
            since=("since", "min"),
            until=("until", "max"),
            messages=("messages", "sum"),
            queues=("queues", "nunique"),
            lost=("lost", _all_of),
            read=("read", _all_of),
        )
    )
    return _rows(
        rows,
        "inconsistent subscription",
        lambda row: (
            f"messages with the tags {row.lost} were skipped in {row.queues} queues, but messages with the tags "
            f"{row.read} were read there: the members of the group have different subscriptions, or the subscription "
            "was changed"
        ),
        subject="lost",
        **_same("topic", "consumer_group", "since", "until", "messages"),
    )


def _all_of(lists: Iterable[str]) -> str:
    """The tags of several lists as one list without repetitions."""
    return ", ".join(sorted({tag for tags in lists for tag in tags.split(",")}))


def skipped(islands: pandas.DataFrame) -> Rows:
    """Islands in which the group read nothing, not even the tag that it reads most."""
    return _rows(
        islands[(islands["read_at_all"] == 0) & islands["lost_most_read"].astype(bool)],
        "offset skipped ahead",
        lambda row: (
            f"offsets {row.first} to {row.last} were never delivered, and the group's offset is beyond them: "
            "they were skipped, or the group started later"
        ),
        **_same("topic", "consumer_group", "broker_name", "queue_id", "since", "until", "messages"),
    )


def set_back(life: pandas.DataFrame, limits: Thresholds = DEFAULTS) -> Rows:
    """Messages that were consumed, and consumed again more than a minute later."""
    rows = (
        life[life["again_late"] > 0]
        .groupby(["topic", "consumer_group"], as_index=False)
        .agg(
            since=("late_first_again", "min"),
            until=("late_last_again", "max"),
            begin=("late_first_stored", "min"),
            end=("late_last_stored", "max"),
            messages=("again_late", "sum"),
        )
    )
    return _rows(
        rows[rows["messages"] >= limits.fewest],
        "offset set back",
        lambda row: (
            f"messages stored from {date_time_text(row.begin)} to {date_time_text(row.end)} were consumed and then "
            "delivered again"
        ),
        **_same("topic", "consumer_group", "since", "until", "messages"),
    )


def stuck(held: pandas.DataFrame) -> Rows:
    """The message at a group's offset was delivered and has no result, and later messages of the queue are stored."""
    return _rows(
        held,
        "stuck message",
        lambda row: (
            f"the listener's call with this message never returned, so the group's offset stays at "
            f"{row.consumer_offset}; messages that wait, or are delivered again after a restart: {row.lag}"
        ),
        subject="msg_id",
        since="first_started",
        messages="lag",
        **_same("topic", "consumer_group", "broker_name", "queue_id"),
    )


def dead_letters(life: pandas.DataFrame, given_up: pandas.DataFrame) -> Rows:
    """Groups that gave up on messages: these are in the dead letter topic. ``given_up``: the keys of each first one."""
    group = ["topic", "consumer_group"]
    rows = (
        life[life["dead"] > 0]
        .groupby(group, as_index=False)
        .agg(
            since=("dead_first_stored", "min"),
            until=("dead_last_again", "max"),
            messages=("dead", "sum"),
            attempts=("dead_attempts", "max"),
        )
    )
    return _rows(
        rows.merge(given_up, on=group),
        "dead letters",
        lambda row: (
            f"these messages are in %DLQ%{row.consumer_group} after up to {row.attempts:.0f} deliveries; the keys of "
            f"the first are {row.keys}"
        ),
        **_same(*group, "since", "until", "messages"),
    )


def sent_twice(life: pandas.DataFrame) -> Rows:
    """Messages that their sender stored more than once."""
    # LIFE has one row per message and group, and all groups of a topic have all of its messages: one of them is asked.
    by_group = life[life["twice"] > 0].groupby(["topic", "consumer_group"], dropna=False, as_index=False)
    rows = by_group.agg(
        since=("twice_first_stored", "min"),
        until=("twice_last_stored", "max"),
        messages=("twice", "sum"),
    )
    return _rows(
        rows.drop_duplicates("topic"),
        "sent twice",
        lambda row: "the same message is stored more than once: an answer was lost, and the producer sent it again",
        **_same("topic", "since", "until", "messages"),
    )


def failing(calls: pandas.DataFrame, stretch_ms: int, limits: Thresholds = DEFAULTS) -> Rows:
    """Stretches in which half of a group's calls failed."""
    per_stretch = _by_group(calls)
    came_back = per_stretch["calls"] - per_stretch["no_results"]
    bad = per_stretch[
        (per_stretch["failures"] >= limits.fewest) & (per_stretch["failures"] >= limits.failed_share * came_back)
    ]
    return _rows(
        _joined(bad, stretch_ms),
        "failing listener",
        lambda row: f"{row.failures} of {row.calls} calls of the listener failed",
        messages="failures",
        **_same("consumer_group", "since", "until"),
    )


def slow(calls: pandas.DataFrame, stretch_ms: int, limits: Thresholds = DEFAULTS) -> Rows:
    """Stretches whose calls took several times as long as the average of the better half of the group's day."""
    per_stretch = _by_group(calls)
    per_stretch["mean_ms"] = per_stretch["busy_ms"] / per_stretch["calls"].clip(lower=1)
    # The median of the day is the usual time: a bad hour does not move it.
    by_group = per_stretch.groupby("consumer_group")["mean_ms"]
    per_stretch["usual_ms"] = by_group.transform("quantile", 0.5, interpolation="lower")
    limit = limits.slow_times * per_stretch["usual_ms"].clip(lower=1)
    bad = per_stretch[(per_stretch["mean_ms"] >= limit) & (per_stretch["mean_ms"] >= limits.slow_ms)]
    return _rows(
        _joined(bad, stretch_ms, "usual_ms"),
        "slow listener",
        lambda row: (
            f"a call took {_rounded(row.busy_ms / row.calls)} ms on average; {_rounded(row.usual_ms)} ms are "
            "usual on this day"
        ),
        messages="calls",
        **_same("consumer_group", "since", "until"),
    )


def _by_group(calls: pandas.DataFrame) -> pandas.DataFrame:
    sums = ["calls", "failures", "no_results", "busy_ms"]
    return calls.groupby(["consumer_group", "stretch"], as_index=False)[sums].sum()


def _joined(stretches: pandas.DataFrame, stretch_ms: int, *same: str, of: str = "consumer_group") -> pandas.DataFrame:
    """Joins stretches of one group that are at most two apart into one row with since, until and the sums of counts."""
    rows = stretches.sort_values([of, "stretch"])
    apart = rows.groupby(of)["stretch"].diff() > 2 * stretch_ms
    rows = rows.assign(number=apart.groupby(rows[of]).cumsum())
    sums = {name: (name, "sum") for name in COUNTS if name in rows}
    joined = rows.groupby([of, "number", *same], as_index=False).agg(
        since=("stretch", "min"), until=("stretch", "max"), **sums
    )
    return joined.assign(until=joined["until"] + stretch_ms)


def hot_keys(keys: pandas.DataFrame, limits: Thresholds = DEFAULTS) -> Rows:
    """Keys whose share of a window is far above their share of the day."""
    hot = keys[
        (keys["messages"] >= limits.enough_of_a_key)
        & (keys["share"] >= limits.key_share)
        & (keys["share"] >= limits.key_times_its_day * keys["share_of_day"])
    ]
    key = ["topic", "broker_name", "message_key"]
    rows = hot.groupby(key, as_index=False).agg(
        since=("window_start", "min"),
        until=("window_end", "max"),
        messages=("messages", "sum"),
        share=("share", "max"),
        of_day=("share_of_day", "max"),
    )
    return _rows(
        rows,
        "hot key",
        lambda row: (
            f"up to {_rounded(row.share * 100)} % of the messages in a window of time have this key, but "
            f"{_rounded(row.of_day * 100, 1)} % of the day's"
        ),
        subject="message_key",
        **_same("topic", "broker_name", "since", "until", "messages"),
    )


def hot_queues(queues: pandas.DataFrame, limits: Thresholds = DEFAULTS) -> Rows:
    """Queues of a user topic that hold twice their share of its messages."""
    normal = queues[queues["kind"] == "normal"]
    return _rows(
        normal[(normal["messages"] >= limits.enough) & (normal["skew"] >= limits.skew)],
        "hot queue",
        lambda row: f"this queue holds {_rounded(row.skew, 1)} times the topic's average per queue",
        since="first_stored",
        until="last_stored",
        **_same("topic", "broker_name", "queue_id", "messages"),
    )


def bursts(traffic: pandas.DataFrame, stretch_ms: int, limits: Thresholds = DEFAULTS) -> Rows:
    """Stretches with several times as many messages as the median of their neighbours."""
    per_stretch = traffic.groupby(["topic", "stretch"], as_index=False).agg(messages=("messages", "sum"))
    around = per_stretch.groupby("topic")["messages"].rolling(2 * NEIGHBOURS + 1, center=True, min_periods=1)
    per_stretch["usual"] = around.median().droplevel(0)
    high = per_stretch[
        (per_stretch["messages"] >= limits.enough)
        & (per_stretch["messages"] >= limits.burst_times * per_stretch["usual"])
    ]
    return _rows(
        _joined(high, stretch_ms, of="topic"),
        "burst",
        lambda row: f"{row.messages} messages were sent; {_rounded(row.usual)} are usual in that time",
        **_same("topic", "since", "until", "messages"),
    )


def damaged(entries: pandas.DataFrame) -> Rows:
    """Entries of the trace that cannot be parsed."""
    return _rows(
        entries[entries["reason"].notna()],
        "damaged trace",
        lambda row: f"entries of the trace cannot be parsed: {row.reason}",
        subject="reason",
        messages="sends",
    )


def missing(extents: Sequence[Extent]) -> Rows:
    """Messages that the queues of a store name and its log does not hold; no other table has them."""
    for extent in extents:
        for loss in extent.losses:
            yield {
                "kind": "missing messages",
                "broker_name": extent.store.broker_name,
                "messages": loss.messages,
                "told": f"the log holds nothing from offset {loss.start} on, but its queues name messages up to "
                f"{loss.end} ({loss.witness}): these messages are in no table and in no lag",
            }
