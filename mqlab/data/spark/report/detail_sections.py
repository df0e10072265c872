"""The rest of the report's sections: failures, repeated deliveries, listeners, queues, keys, producers, lag, the run.

Mirrors: the pages of RocketMQ's dashboard for a whole day at once.

    failures  again  listeners  queues  keys  producers  lag  source

Left out: anything that needs a second look at the messages; the page only shows where to look.
"""

from __future__ import annotations

from mqlab.data.spark.report.row_conditions import all_of, equal, from_until, literal
from mqlab.data.spark.report.section_parts import (
    HALF,
    NO_NAMES,
    SMALL,
    WHOLE,
    FactTable,
    Figure,
    RowsBehind,
    Section,
    duration,
    moment,
    number,
    stretches,
    text,
)
from mqlab.data.spark.report.tables import Facts
from mqlab.durations import rounded_text
from mqlab.lab.views.day_charts import Areas, Heat, Stacked
from mqlab.scales import bytes_text, count_text

CAUSES = {
    "retry": ("tried again after a failure", 1),
    "late": ("offset set back", 4),
    "soon": ("rebalance or lost commit", 3),
    "no_result": ("an earlier call never returned", 5),
    "resend": ("stored twice by its sender", 0),
}
FEW = 12
ENOUGH = 10  # messages of a key in a window, below which its share means little


def failures(facts: Facts) -> Section:
    """Failed calls over time, one small picture per group that has any; dead letters are in the table."""
    frame = facts["calls"]
    dead = facts["groups"].groupby("consumer_group")["dead"].sum()
    pictures, rows = [], []
    times = stretches(facts)
    # A group may have dead letters and no traced call, so the groups of both tables are shown.
    for group in sorted({*frame["consumer_group"], *dead[dead > 0].index}):
        mine = frame[frame["consumer_group"] == group].groupby("stretch")[
            ["calls", "failures", "no_results", "retries"]
        ]
        sums = mine.sum()
        total = sums.sum()
        # Only groups with failures get a picture; the table has all groups.
        if total["failures"] > 0:
            most = float(sums["failures"].max())
            area = {"": [(t, float(sums["failures"].get(t, 0))) for t in times]}
            said = f"failed calls of {group} over the day; at most {count_text(most)} in a stretch"
            day = times[0], times[-1]
            chart = Areas(area, span_ms=day, said=said, width=HALF, height=SMALL, right=NO_NAMES, colours=[4])
            caption = f"{group}: failed calls in {rounded_text(facts.stretch_ms)}"
            pictures.append(Figure(chart, caption, "half"))
        share = total["failures"] / total["calls"] if total["calls"] else 0
        rows.append(
            (
                group,
                number(total["calls"]),
                number(total["failures"]),
                f"{share:.2%}",
                number(total["retries"]),
                number(total["no_results"]),
                number(dead.get(group, 0)),
            )
        )
    columns = [
        ("group", "text"),
        ("calls", "number"),
        ("failed", "number"),
        ("share", "number"),
        ("with a retried message", "number"),
        ("never returned", "number"),
        ("dead letters", "number"),
    ]
    note = "Each call of a listener counts once per message, at the time at which it began."
    behind = [RowsBehind("deliveries", "NOT success"), RowsBehind("deliveries", "ended IS NULL")]
    return Section(
        "failures", "Failures and retries", note, pictures, [FactTable(columns, rows, "no call")], rows=behind
    )


def again(facts: Facts) -> Section:
    """Deliveries after the first of a message, by cause."""
    frame = facts["duplicates"]
    bars, rows = {}, []
    for group in sorted(set(frame["consumer_group"])):
        mine = frame[frame["consumer_group"] == group]
        sums = mine.groupby("cause")["deliveries"].sum()
        bars[group] = {meaning: float(sums.get(cause, 0)) for cause, (meaning, _) in CAUSES.items()}
        rows += [
            (group, row.topic, CAUSES[row.cause][0], number(row.messages), number(row.deliveries))
            for row in mine.sort_values("deliveries", ascending=False, kind="stable").itertuples()
        ]
    columns = [
        ("group", "text"),
        ("topic", "text"),
        ("cause", "text"),
        ("messages", "number"),
        ("deliveries", "number"),
    ]
    note = "Every delivery after the first, by its cause. Only the first cause, a retry after a failure, is intended."
    said = "repeated deliveries of each group, by cause"
    picture = Stacked(bars, colours=dict(CAUSES.values()), said=said, width=WHOLE, label=200)
    pictures = [Figure(picture, colours=list(CAUSES.values()))] if bars else []
    tables = [FactTable(columns, rows, "every message was delivered once")]
    behind = [RowsBehind("life", f"again_{cause} > 0") for cause in CAUSES if cause in set(frame["cause"])]
    return Section("again", "Delivered again, and why", note, pictures, tables, rows=behind)


SLOW_CALL_COLUMNS = [
    ("group", "text"),
    ("client", "text"),
    ("keys", "text"),
    ("message", "code"),
    ("retries", "number"),
    ("began", "text"),
    ("took", "number"),
    ("result", "text"),
]


def listeners(facts: Facts) -> Section:
    """Clients, slow ones first, and the calls that took longest."""
    frame = facts["calls"]
    # 1. One row per client: a group of several clients may have one that is slow.
    sums = frame.groupby(["consumer_group", "client"])[["calls", "failures", "no_results", "busy_ms"]].sum()
    sums["mean_ms"] = sums["busy_ms"] / sums["calls"].clip(lower=1)
    worst = frame.groupby(["consumer_group", "client"])["p99_cost_ms"].max()
    rows = [
        (
            group,
            client,
            number(row["calls"]),
            duration(row["mean_ms"]),
            duration(worst[group, client]),
            number(row["failures"]),
            number(row["no_results"]),
        )
        for (group, client), row in sums.sort_values("mean_ms", ascending=False).iterrows()
    ]
    columns = [
        ("group", "text"),
        ("client", "text"),
        ("calls", "number"),
        ("a call takes", "number"),
        ("p99, at worst", "number"),
        ("failed", "number"),
        ("never returned", "number"),
    ]
    # 2. Single calls, so that the message behind a long call can be looked up.
    slow = [
        (
            row.consumer_group,
            row.client,
            text(row.keys),
            text(row.msg_id),
            number(row.retry_times),
            moment(row.started),
            duration(row.cost_ms),
            row.status,
        )
        for row in facts["slowest"].head(FEW).itertuples()
    ]
    tables = [FactTable(columns, rows, "no call"), FactTable(SLOW_CALL_COLUMNS, slow, "no call", "The longest calls")]
    note = (
        "The slowest first, with the host that wrote the trace. A call that never returned was killed, or is still "
        "running."
    )
    behind = [RowsBehind("facts/calls")]
    if len(sums):
        group, client = sums["mean_ms"].idxmax()
        behind.append(RowsBehind("deliveries", equal(consumer_group=group, client=client)))
    return Section("listeners", "Listeners", note, [], tables, rows=behind)


def queues(facts: Facts) -> Section:
    """How evenly the queues of each user topic fill."""
    frame = facts["queues"]
    mine = frame[frame["kind"] == "normal"]
    # 1. One picture for each of the four largest topics: a row of cells per broker.
    pictures = []
    for topic in mine.groupby("topic")["messages"].sum().sort_values(ascending=False).index[:4]:
        its = mine[mine["topic"] == topic].sort_values(["broker_name", "queue_id"])
        cells: dict[str, dict[str, int]] = {}
        hints = {}
        for row in its.itertuples():
            cells.setdefault(row.broker_name, {})[str(row.queue_id)] = row.messages
            hints[row.broker_name, str(row.queue_id)] = (
                f"{row.broker_name} queue {row.queue_id}: {count_text(row.messages)} messages, {row.skew:.2f} times "
                "its share"
            )
        caption = f"{topic}: messages of each queue"
        pictures.append(Figure(Heat(cells, hints=hints, said=caption, width=WHOLE), caption))
    # 2. The table has all queues.
    rows = [
        (
            row.topic,
            row.broker_name,
            str(row.queue_id),
            number(row.messages),
            bytes_text(row.bytes),
            f"{row.share:.1%}",
            f"{row.skew:.2f}",
            f"{row.min_offset:,} – {row.max_offset:,}",
        )
        for row in frame.sort_values("messages", ascending=False).itertuples()
    ]
    columns = [
        ("topic", "text"),
        ("broker", "text"),
        ("queue", "number"),
        ("messages", "number"),
        ("bytes", "number"),
        ("share", "number"),
        ("times its share", "number"),
        ("offsets", "number"),
    ]
    note = (
        "The stronger the colour of a cell, the more messages the queue has. Times its share: 1 when all queues of the "
        "topic hold the same number. System topics are in the table only."
    )
    behind = [RowsBehind("facts/queues")]
    if len(mine):
        most = mine.loc[mine["skew"].idxmax()]
        condition = equal(topic=most["topic"], broker_name=most["broker_name"], queue_id=most["queue_id"])
        behind.append(RowsBehind("messages", condition))
    return Section("queues", "Queues", note, pictures, [FactTable(columns, rows, "no queue")], rows=behind)


def keys(facts: Facts) -> Section:
    """The keys with most of a window's messages."""
    key_rows = facts["keys"]
    # 1. Keys of few messages are noise, unless the store has no others.
    many = key_rows[key_rows["messages"] >= ENOUGH]
    frame = (many if len(many) else key_rows[key_rows["messages"] > 1]).sort_values("share", ascending=False)
    at_most = frame.drop_duplicates(["message_key", "broker_name"])
    # 2. The picture has each key once, in its hottest window; the table repeats it for each window.
    bars, notes = {}, {}
    for row in at_most.head(FEW).itertuples():
        name = f"{row.message_key} · {row.broker_name}"
        bars[name] = {"percent of the window": float(row.share * 100)}
        notes[name] = f"{row.share:.1%}, {row.share_of_day:.1%} of the day"
    rows = [
        (
            row.message_key,
            row.topic,
            row.broker_name,
            moment(row.window_start),
            number(row.messages),
            f"{row.share:.1%}",
            f"{row.share_of_day:.1%}",
        )
        for row in frame.head(2 * FEW).itertuples()
    ]
    columns = [
        ("key", "text"),
        ("topic", "text"),
        ("broker", "text"),
        ("window from", "text"),
        ("messages", "number"),
        ("share of the window", "number"),
        ("share of the day", "number"),
    ]
    note = (
        "A window is an hour of a day. A key whose share of a window is far above its share of the day is hot for a "
        "while, and so is its queue."
    )
    chart = Stacked(bars, notes=notes, said="the hottest keys", width=WHOLE, label=260)
    pictures = [Figure(chart, "share of the messages in its hottest window")] if bars else []
    behind = [RowsBehind("facts/keys")]
    for row in at_most.head(1).itertuples():
        sent = all_of(equal(kind="normal", user_topic=row.topic, broker_name=row.broker_name), "NOT parked")
        has_key = f"array_contains(split(keys, ' '), {literal(row.message_key)})"
        span = from_until("store_timestamp", row.window_start, row.window_end)
        behind.append(RowsBehind("messages", all_of(sent, has_key, span)))
    tables = [FactTable(columns, rows, "no key was used twice")]
    return Section("keys", "Hot keys", note, pictures, tables, rows=behind)


def producers(facts: Facts) -> Section:
    """The sends of producers, as far as the trace records them."""
    rows = [
        (
            row.producer_group,
            text(row.topic),
            number(row.sends),
            number(row.failures),
            duration(row.p50_cost_ms),
            duration(row.p90_cost_ms),
            duration(row.p99_cost_ms),
        )
        for row in facts["producers"].sort_values("sends", ascending=False).itertuples()
    ]
    columns = [
        ("group", "text"),
        ("topic", "text"),
        ("sends", "number"),
        ("not SEND_OK", "number"),
        ("p50", "number"),
        ("p90", "number"),
        ("p99", "number"),
    ]
    note = "From the trace. A batch is one send; a send that failed leaves no entry."
    behind = [RowsBehind("facts/producers")]
    if len(facts["producers"]):
        most = facts["producers"].sort_values(["failures", "sends"], ascending=False).iloc[0]
        sends = equal(type="Pub", group_name=most["producer_group"], topic=most["topic"])
        behind.append(RowsBehind("trace", all_of(sends, "reason IS NULL")))
    tables = [FactTable(columns, rows, "no producer writes a trace")]
    return Section("producers", "Producers", note, [], tables, rows=behind)


def lag(facts: Facts) -> Section:
    """How far the groups' offsets were behind the queues at the end."""
    frame = facts["lag"].sort_values("lag", ascending=False, kind="stable")
    rows = [
        (
            row.consumer_group,
            row.topic,
            row.broker_name,
            str(row.queue_id),
            number(row.broker_offset),
            number(row.consumer_offset),
            number(row.lag),
            moment(row.next_stored),
            duration(row.behind_ms),
        )
        for row in frame[frame["lag"] > 0].itertuples()
    ]
    columns = [
        ("group", "text"),
        ("topic", "text"),
        ("broker", "text"),
        ("queue", "number"),
        ("broker offset", "number"),
        ("consumer offset", "number"),
        ("lag", "number"),
        ("next message stored", "text"),
        ("behind", "number"),
    ]
    note = (
        f"By consumerOffset.json, as mqadmin consumerProgress counts it; of {len(frame)} queues those with a lag. "
        "Behind: from the time at which the next message to be read was stored to the end of the broker's log."
    )
    tables = [FactTable(columns, rows, "no group is behind")]
    return Section("lag", "Lag at the end", note, [], tables, rows=[RowsBehind("facts/lag", "lag > 0")])


def source(facts: Facts) -> Section:
    """The stores that were read, and how long the steps took."""
    manifest = facts.manifest
    stores = [
        (
            extent["store"]["broker_name"],
            f"{extent['start']:,} – {extent['end']:,}",
            bytes_text(extent["end"] - extent["start"]),
        )
        for extent in manifest["stores"]
    ]
    steps = [
        (name, number(numbers["rows"]), f"{numbers['seconds']:.1f}") for name, numbers in manifest["steps"].items()
    ]
    tables = [
        FactTable([("broker", "text"), ("physical offsets", "number"), ("bytes", "number")], stores),
        FactTable([("step", "text"), ("rows", "number"), ("seconds", "number")], steps),
    ]
    note = "The stores as they were when the run began, and the steps of the run."
    return Section("source", "What was read", note, [], tables, side_by_side=True)
