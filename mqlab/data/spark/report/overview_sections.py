"""The first sections of the report: each has a sentence, a picture, and the same facts as a table.

Mirrors: the pages of RocketMQ's dashboard (cluster, topic, consumer, message trace) for a whole day at once.

    wrong  traffic  groups  behind  latency  failures  again  listeners  queues  keys  producers  lag

Left out: anything that needs a second look at the messages; the page only shows where to look.
"""

from __future__ import annotations

import math
from typing import Any

from mqlab.data.spark.report.row_conditions import all_of, equal, from_until
from mqlab.data.spark.report.section_parts import (
    HALF,
    MAX_ROWS,
    NO_NAMES,
    SHORT_NAMES,
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
from mqlab.data.spark.thresholds import Thresholds
from mqlab.durations import rounded_text
from mqlab.lab.views.day_charts import Areas, DrawnSpan, Lines, Spans, Stacked
from mqlab.scales import bytes_text, count_text

MOST_TAGS = 6  # with a colour of their own
FEWEST = (1, 10, 100)  # messages of a stretch below which its p50, p90 and p99 are those of single messages

# kind of suspicion -> colour: red for lost or stopped messages, orange for repeats and slowness, blue for unevenness
KINDS = {
    "stuck message": 4,
    "dead letters": 4,
    "offset skipped ahead": 4,
    "inconsistent subscription": 4,
    "failing listener": 1,
    "slow listener": 1,
    "offset set back": 1,
    "sent twice": 1,
    "damaged trace": 5,
    "missing messages": 4,
    "hot key": 0,
    "hot queue": 0,
    "burst": 0,
}
OUTCOMES = {
    "consumed": ("consumed", 2),
    "filtered": ("filtered", 5),
    "untraced": ("read, no trace", 6),
    "pending": ("pending", 1),
    "waiting": ("still delayed", 0),
    "dead": ("dead letter", 4),
    "lost": ("lost", 3),
}


def wrong(facts: Facts) -> Section:
    """What the rules found."""
    suspicions = facts["suspicions"].sort_values(["since", "kind"], na_position="first")
    # 1. Each finding is a row of the table and a bar of the picture.
    rows, bars = [], []
    for row in suspicions.itertuples():
        queue = None if row.queue_id != row.queue_id else f"queue {int(row.queue_id)}"
        parts = [text(row.topic), text(row.consumer_group), text(row.broker_name), queue, text(row.subject)]
        where = " · ".join(part for part in parts if part)
        rows.append((row.kind, where, moment(row.since), moment(row.until), number(row.messages), row.told))
        times = [None if value != value else int(value) for value in (row.since, row.until)]
        name = f"{row.kind}: {text(row.consumer_group) or text(row.subject) or text(row.topic) or ''}"
        bars.append(DrawnSpan(name, times[0], times[1], f"{row.kind}, {where}: {row.told}", KINDS.get(row.kind, 0)))
    # 2. The picture and the table; the picture has room for some of the bars only.
    shown = bars[:MAX_ROWS]
    said = f"{len(bars)} things that look wrong, over the day"
    picture = Spans(shown, (facts.start_ms, facts.end_ms), said=said, width=WHOLE)
    columns = [
        ("what", "text"),
        ("where", "where"),
        ("since", "text"),
        ("until", "text"),
        ("messages", "number"),
        ("in words", "wide"),
    ]
    note = "Found by rules: a rule shows where to look, not why. A bar shows the time of the messages or calls."
    if not bars:
        note = "No rule found anything."
    pictures = [Figure(picture)] if bars else []
    limits = Thresholds.of(facts.manifest.get("thresholds", {}))
    known = [(name, f"{value:g}", f"{built_in:g}", meaning) for name, value, built_in, meaning in limits.rows()]
    of_limits = [("threshold", "text"), ("here", "number"), ("built in", "number"), ("meaning", "wide")]
    thresholds = FactTable(of_limits, known, heading="The numbers from which the rules report something", folded=True)
    tables = [FactTable(columns, rows, "nothing"), thresholds]
    rows_behind = [RowsBehind("facts/suspicions")]
    return Section("wrong", "What looks wrong", note, pictures, tables, tables_folded=False, rows=rows_behind)


def traffic(facts: Facts) -> Section:
    """Messages over the day: one picture per topic, its tags stacked on each other."""
    frame = facts["traffic"].fillna({"tags": "(no tag)"})
    minutes = facts.stretch_ms / 60_000
    # 1. One picture for each of the four largest topics.
    topics = frame.groupby("topic")[["messages", "bytes"]].sum().sort_values("messages", ascending=False)
    times = stretches(facts)
    pictures = []
    for topic in topics.index[:4]:
        mine = frame[frame["topic"] == topic]
        tags = mine.groupby("tags")["messages"].sum().sort_values(ascending=False)
        # The most frequent tags have a colour each, the rest share the last one.
        shown = list(tags.index[:MOST_TAGS])
        mine = mine.assign(tags=mine["tags"].where(mine["tags"].isin(shown), "other"))
        counted = mine.groupby(["tags", "stretch"])["messages"].sum() / minutes
        names = [*shown, *(["other"] if len(tags) > len(shown) else [])]
        areas = {tag: [(t, counted.get((tag, t), 0.0)) for t in times] for tag in names}
        most = mine.groupby("stretch")["messages"].sum().max() / minutes
        said = f"messages per minute of topic {topic} over the day, by tag; at most {count_text(most)}"
        chart = Areas(areas, span_ms=(times[0], times[-1] + facts.stretch_ms), said=said, width=WHOLE)
        pictures.append(Figure(chart, f"{topic}, messages per minute"))
    # 2. The table has all topics, each with its busiest stretch.
    rows = []
    behind = [RowsBehind("facts/traffic")]
    for topic, sums in topics.iterrows():
        busiest = frame[frame["topic"] == topic].groupby("stretch")["messages"].sum()
        rows.append(
            (
                topic,
                number(sums["messages"]),
                bytes_text(sums["bytes"]),
                moment(busiest.idxmax()),
                number(busiest.max() / minutes),
            )
        )
        if len(behind) == 1:  # the busiest stretch of the largest topic
            begin = busiest.idxmax()
            sent = all_of(equal(kind="normal", user_topic=topic), "NOT parked")
            behind.append(
                RowsBehind("messages", all_of(sent, from_until("store_timestamp", begin, begin + facts.stretch_ms)))
            )
    columns = [
        ("topic", "text"),
        ("messages", "number"),
        ("bytes in the log", "number"),
        ("busiest at", "text"),
        ("messages per minute then", "number"),
    ]
    note = "What producers sent, by topic, tag and the time at which the broker stored it."
    tables = [FactTable(columns, rows, "no message was sent")]
    return Section("traffic", "Traffic over the day", note, pictures, tables, rows=behind)


GROUP_COLUMNS = [
    ("group", "text"),
    ("topic", "text"),
    ("messages", "number"),
    ("consumed", "number"),
    ("filtered", "number"),
    ("no trace", "number"),
    ("pending", "number"),
    ("dead", "number"),
    ("lost", "number"),
    ("calls traced", "number"),
    ("calls per message", "number"),
    ("p50", "number"),
    ("p90", "number"),
    ("p99", "number"),
    ("longest", "number"),
]


def groups(facts: Facts) -> Section:
    """The outcomes of the messages in each group."""
    frame = facts["groups"].sort_values(["topic", "consumer_group"])
    # 1. Each group of a topic is a bar, divided by outcome, and a row of the table.
    bars, notes, rows = {}, {}, []
    for row in frame.itertuples():
        name = f"{row.consumer_group} ← {row.topic}"
        bars[name] = {meaning: float(getattr(row, outcome)) for outcome, (meaning, _) in OUTCOMES.items()}
        # Without traced calls the outcomes come from the offset alone, and the text at the bar's end states that.
        traced = row.untraced == 0 or row.attempts > 0
        counts = {"lost": row.lost, "dead": row.dead, "pending": row.pending}
        bad = ", ".join(f"{count_text(count)} {name}" for name, count in counts.items() if count)
        notes[name] = bad if traced else "writes no trace"
        rows.append(
            (
                row.consumer_group,
                row.topic,
                number(row.messages),
                number(row.consumed),
                number(row.filtered),
                number(row.untraced),
                number(row.pending + row.waiting),
                number(row.dead),
                number(row.lost),
                None if row.coverage != row.coverage else f"{row.coverage:.2%}",
                None if row.amplification != row.amplification else f"{row.amplification:.3f}",
                duration(row.p50_latency_ms),
                duration(row.p90_latency_ms),
                duration(row.p99_latency_ms),
                duration(row.max_latency_ms),
            )
        )
    # 2. The note explains the words of the GROUP_COLUMNS.
    note = (
        "Each message counts once for every group that reads its topic. Filtered: the group never reads its tag. Lost: "
        "the group reads its tag, its offset is beyond the message, and no call with it is in the trace. Calls "
        "traced: their share of the calls that the group's offsets imply; below 100 %, messages were skipped or a part "
        "of the trace is missing. Latency: from the time at which it was stored to the end of the first successful "
        "call, of all messages consumed, dead and pending; a dash where too many were not consumed to know it."
    )
    colours = dict(OUTCOMES.values())
    picture = Stacked(
        bars, colours=colours, notes=notes, said="outcomes of each group's messages", width=WHOLE, label=200
    )
    pictures = [Figure(picture, colours=list(OUTCOMES.values()))] if bars else []
    tables = [FactTable(GROUP_COLUMNS, rows, "no group is known")]
    behind = [RowsBehind("facts/groups")]
    for outcome in ("pending", "filtered", "untraced"):  # of lost and dead messages the next sections tell
        if len(frame) and frame[outcome].max() > 0:
            most = frame.loc[frame[outcome].idxmax()]
            condition = equal(topic=most["topic"], consumer_group=most["consumer_group"], outcome=outcome)
            behind.append(RowsBehind("life", condition))
    return Section("groups", "Consumer groups", note, pictures, tables, rows=behind)


def by_group(frame: Any) -> list[tuple[str, str]]:
    """The (topic, group) pairs of a table, in order."""
    return sorted({(row.topic, row.consumer_group) for row in frame.itertuples()})


def behind(facts: Facts) -> Section:
    """Backlog over time, one small picture per group."""
    frame = facts["backlog"]
    pictures, rows = [], []
    held: list[tuple[float, str]] = []
    for topic, group in by_group(frame):
        mine = frame[(frame["topic"] == topic) & (frame["consumer_group"] == group)].sort_values("stretch")
        points = [(int(t), float(v)) for t, v in zip(mine["stretch"], mine["behind"], strict=True)]
        most = max(value for _, value in points)
        end_ms = facts.end_ms + facts.stretch_ms
        # What is counted in a stretch is known at its end, so the point is drawn there.
        line = {"": [(t + facts.stretch_ms, v) for t, v in points]}
        said = f"messages that {group} had before it, over the day; at most {count_text(most)}"
        chart = Lines(line, span_ms=(facts.start_ms, end_ms), said=said, width=HALF, height=SMALL, right=NO_NAMES)
        pictures.append(Figure(chart, f"{group} ← {topic}", "half"))
        worst = mine.loc[mine["behind"].idxmax()]
        then = int(worst["stretch"]) + facts.stretch_ms
        rows.append((group, topic, number(most), moment(then), number(points[-1][1])))
        stored = f"stored < timestamp_millis({then}) AND outcome IN ('consumed', 'dead', 'pending')"
        unread = f"(first_ended IS NULL OR first_ended >= timestamp_millis({then}))"
        held.append((most, all_of(equal(topic=topic, consumer_group=group), stored, unread)))
    columns = [("group", "text"), ("topic", "text"), ("most", "number"), ("at", "text"), ("at the end", "number")]
    note = (
        "Stored messages for which no call of the group's listener had returned yet. Only groups that write a trace "
        "are shown; filtered and lost messages are not counted."
    )
    tables = [FactTable(columns, rows, "no group writes a trace")]
    waited = [RowsBehind("life", where) for most, where in sorted(held, reverse=True)[:1] if most]
    return Section("behind", "Behind, over time", note, pictures, tables, rows=[RowsBehind("facts/backlog"), *waited])


LATENCY_COLUMNS = [
    ("group", "text"),
    ("topic", "text"),
    ("messages", "number"),
    ("not consumed", "number"),
    ("p50, usually", "number"),
    ("p99, usually", "number"),
    ("p50, at worst", "number"),
    ("of messages stored from", "text"),
]


def latency(facts: Facts) -> Section:
    """Latency percentiles over time, one small picture per group."""
    frame = facts["latency"]
    pictures, rows = [], []
    times = stretches(facts)
    for topic, group in by_group(frame):
        mine = frame[(frame["topic"] == topic) & (frame["consumer_group"] == group)].set_index("stretch")
        names = ("p50", "p90", "p99")
        # A percentile of few messages is one of them, and says nothing about the others: it is not drawn.
        values = {
            name: mine[f"{name}_latency_ms"].where(mine["messages"] >= fewest)
            for name, fewest in zip(names, FEWEST, strict=True)
        }
        # The axis of each group has its own range: a slow group must not flatten the others.
        known = [value for name in names for value in values[name].dropna()]
        least, most = float(min(known, default=1)), float(max(known, default=1))
        # A stretch without messages is a gap and not a latency of zero.
        lines = {name: [(t, value_of(values[name], t)) for t in times] for name in names}
        said = f"latency of {group} over the day, p50 from {rounded_text(least)}, p99 up to {rounded_text(most)}"
        day = times[0], times[-1]
        chart = Lines(lines, unit="ms", span_ms=day, said=said, width=HALF, height=SMALL, right=SHORT_NAMES)
        pictures.append(Figure(chart, f"{group} ← {topic}", "half"))
        # A percentile that is not known yet, because too many messages were not consumed, is worse than any other.
        p50 = mine["p50_latency_ms"].fillna(math.inf)
        worst, when = float(p50.max()), p50.idxmax()
        late = mine["messages"].sum() - mine["consumed"].sum()
        rows.append(
            (
                group,
                topic,
                number(mine["messages"].sum()),
                number(late),
                usual(values["p50"]),
                usual(values["p99"]),
                "not consumed" if worst == math.inf else duration(worst),
                moment(when),
            )
        )
    note = (
        "From the time at which a message was stored to the end of the first successful call, plotted at the time of "
        "storing, on a logarithmic scale. A message that was not consumed counts as the slowest: a line ends where too "
        "many of them were stored to know its value. p90 is drawn where at least 10 messages were stored, p99 where "
        "100 were. The clocks of brokers and clients are not corrected."
    )
    tables = [FactTable(LATENCY_COLUMNS, rows, "no group writes a trace")]
    behind = [RowsBehind("facts/latency")]
    if frame["p50_latency_ms"].notna().any():  # the stretch in which half of the messages waited longest
        slowest = frame.loc[frame["p50_latency_ms"].idxmax()]
        condition = equal(topic=slowest["topic"], consumer_group=slowest["consumer_group"])
        slow = f"latency_ms >= {int(slowest['p50_latency_ms'])}"
        span = from_until("stored", slowest["stretch"], slowest["stretch"] + facts.stretch_ms)
        behind.append(RowsBehind("life", all_of(condition, slow, span)))
    return Section("latency", "Latency", note, pictures, tables, rows=behind)


def usual(column: Any) -> str | None:
    """The median of a column's known values, as a duration."""
    known = column.dropna()
    return duration(known.median()) if len(known) else None


def value_of(column: Any, at: int) -> float | None:
    """The value of a column at a time; None where it has no row, or an unknown value."""
    value = column.get(at)
    return None if value is None or value != value else float(value)
