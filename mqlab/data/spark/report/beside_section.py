"""A day next to another day: the same numbers of both, group by group, and their traffic over the time of day.

Mirrors: nothing of RocketMQ; an operator has two windows open.

    mqlab spark report out --beside out-of-last-week

Left out: judgement. Whether a difference means something, its reader knows.
"""

from __future__ import annotations

from typing import Any

from mqlab.data.spark.report.section_parts import NO_NAMES, WHOLE, FactTable, Figure, Section, duration, number
from mqlab.data.spark.report.tables import Facts
from mqlab.lab.views.day_charts import Lines
from mqlab.scales import DAY, count_text, time_text

HERE, THERE = "this day", "the other day"
OF_GROUPS = ("messages", "consumed", "lost", "dead", "pending", "no_results", "p50_latency_ms", "p99_latency_ms")
WORDS = {
    "no_results": "calls that never returned",
    "p50_latency_ms": "p50 of the latency",
    "p99_latency_ms": "p99 of the latency",
    "dead": "dead letters",
    "pending": "pending at the end",
}


def beside(facts: Facts, other: Facts) -> Section:
    """The section about two days. Groups that only one of them has are listed too."""
    # 1. Traffic of both, hour by hour of their own day.
    lines = {HERE: _hours(facts, facts), THERE: _hours(other, facts)}
    most = max((value for points in lines.values() for _, value in points), default=0)
    said = f"messages per hour of {HERE} and {THERE}, by time of day; at most {count_text(most)}"
    chart = Lines(lines, said=said, width=WHOLE, right=NO_NAMES + 100, colours=[0, 5])
    # 2. Each number that differs, and always the messages.
    rows = [("all groups", name, number(a), number(b), _change(a, b)) for name, a, b in _totals(facts, other)]
    groups = [facts["groups"].set_index(["consumer_group", "topic"]) for facts in (facts, other)]
    for pair in sorted({*groups[0].index, *groups[1].index}):
        for column in OF_GROUPS:
            a, b = (float(frame.loc[pair, column]) if pair in frame.index else float("nan") for frame in groups)
            if column == "messages" or (a != b and (a == a or b == b)):
                write = duration if column.endswith("_ms") else number
                name = f"{pair[0]} ← {pair[1]}"
                rows.append((name, WORDS.get(column, column), write(a), write(b), _change(a, b)))
    columns = [("of", "text"), ("what", "text"), (HERE, "number"), (THERE, "number"), ("change", "number")]
    note = (
        f"The other day began at {_date(other)}. Both are drawn over the time of day. Of each group the numbers that "
        "differ are listed; a dash stands for a group that was not there, or a percentile that is not known."
    )
    figures = [Figure(chart, "messages per hour")] if most else []
    return Section(
        "beside", "Compared with the other day", note, figures, [FactTable(columns, rows, "no message was sent")]
    )


def _hours(facts: Facts, drawn_over: Facts) -> list[tuple[int, float]]:
    """Messages per hour of a day, moved to the date of another."""
    if not facts.end_ms:
        return []
    by_hour: dict[int, float] = {}
    moved = drawn_over.start_ms // DAY * DAY - facts.start_ms // DAY * DAY
    for row in facts["traffic"].itertuples():
        hour = int(row.stretch) // 3_600_000 * 3_600_000 + moved
        by_hour[hour] = by_hour.get(hour, 0.0) + row.messages
    return sorted(by_hour.items())


def _totals(facts: Facts, other: Facts) -> list[tuple[str, float, float]]:
    sums: dict[str, Any] = {
        "messages sent": lambda f: f["traffic"]["messages"].sum(),
        "calls of listeners": lambda f: f["calls"]["calls"].sum(),
        "failed calls": lambda f: f["calls"]["failures"].sum(),
        "delivered again": lambda f: f["duplicates"]["deliveries"].sum(),
        "lost": lambda f: f["groups"]["lost"].sum(),
        "dead letters": lambda f: f["groups"]["dead"].sum(),
        "lag at the end": lambda f: f["lag"]["lag"].sum(),
    }
    return [(name, float(total(facts)), float(total(other))) for name, total in sums.items()]


def _change(here: float, there: float) -> str | None:
    """How much more or less, where that can be said.

    >>> _change(150, 100), _change(100, 100), _change(1, 0)
    ('+50.0%', 'same', None)
    """
    if here != here or there != there or (there == 0 and here):
        return None
    return "same" if here == there else f"{(here - there) / there:+.1%}"


def _date(facts: Facts) -> str:
    return f"{time_text(facts.start_ms, 1_000)} UTC on {time_text(facts.start_ms, DAY)}" if facts.end_ms else "no time"
