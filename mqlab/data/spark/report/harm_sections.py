"""The sections about single messages that came to harm: lost ones, and those that a group gave up on.

Mirrors: the DLQ page of RocketMQ's dashboard; no page of it shows lost messages.

    lost  dead

Left out: messages delivered again; there are too many to list, see the section about causes.
"""

from __future__ import annotations

from typing import Any

from mqlab.data.spark.report.row_conditions import equal
from mqlab.data.spark.report.section_parts import FactTable, Figure, RowsBehind, Section, moment, number, text
from mqlab.data.spark.report.tables import Facts
from mqlab.lab.views.day_charts import Stacked
from mqlab.scales import count_text

SHOWN_OF_A_GROUP = 20


LOST_MESSAGE_COLUMNS = [
    ("group", "text"),
    ("tag", "text"),
    ("keys", "text"),
    ("message", "code"),
    ("stored", "text"),
    ("broker", "text"),
    ("queue", "number"),
    ("offset", "number"),
]


def lost(facts: Facts) -> Section:
    """Messages that a group never got although it reads their tag: how many by tag, and the oldest with their ids."""
    tags = facts["group_tags"].fillna({"tags": ""})
    some = tags[tags["lost"] > 0].sort_values("lost", ascending=False)
    # 1. How many of each tag, in the table and in the picture.
    summed = [
        (
            row.consumer_group,
            row.topic,
            row.tags or "(no tag)",
            number(row.lost),
            number(row.messages),
            f"{row.lost / row.messages:.1%}",
        )
        for row in some.itertuples()
    ]
    sum_columns = [
        ("group", "text"),
        ("topic", "text"),
        ("tag", "text"),
        ("lost", "number"),
        ("of", "number"),
        ("share", "number"),
    ]
    bars = {
        f"{row.consumer_group} · {row.tags or '(no tag)'}": {"lost": row.lost} for row in some.head(12).itertuples()
    }
    # 2. The oldest of each group, with what finds them again.
    listed = facts["lost"].sort_values(["consumer_group", "topic", "stored"])
    rows = [
        (
            row.consumer_group,
            text(row.tags),
            text(row.keys),
            row.msg_id,
            moment(row.stored),
            row.broker_name,
            str(row.queue_id),
            number(row.queue_offset),
        )
        for row in _first_of_each(listed, ["topic", "consumer_group"])
    ]
    note = (
        "The group was called with other messages of the tag, its offset is beyond these, and no call with them is in "
        "the trace. Either they were skipped (another member subscribes to other tags, an offset was set ahead), or a "
        "part of the trace is missing: then messages of its other tags, stored at the same time, are also listed."
    )
    tables = [
        FactTable(sum_columns, summed, "no message was lost"),
        FactTable(LOST_MESSAGE_COLUMNS, rows, "no message was lost", f"The first {SHOWN_OF_A_GROUP} of each group"),
    ]
    figures = [Figure(Stacked(bars, said="lost messages of each group and tag", width=1040, label=260))] if bars else []
    behind = [
        RowsBehind("life", equal(outcome="lost", consumer_group=group)) for group in sorted(set(some["consumer_group"]))
    ]
    return Section("lost", "Lost messages", note, figures, tables if rows else tables[:1], rows=behind)


def dead(facts: Facts) -> Section:
    """The dead letters with ids and keys, and how to send them again."""
    listed = facts["dead_letters"].sort_values(["consumer_group", "died"])
    rows = [
        (
            row.consumer_group,
            text(row.topic),
            text(row.keys),
            row.msg_id,
            moment(row.stored),
            moment(row.died),
            number(row.attempts),
            "consumed since" if row.outcome == "consumed" else "dead",
        )
        for row in _first_of_each(listed, ["consumer_group"])
    ]
    columns = [
        ("group", "text"),
        ("topic", "text"),
        ("keys", "text"),
        ("message", "code"),
        ("stored", "text"),
        ("given up", "text"),
        ("calls", "number"),
        ("now", "text"),
    ]
    counts = listed.groupby("consumer_group")["of"].max()
    note = "No group gave up on a message."
    if len(counts):
        causes = ", ".join(f"{group} {count_text(count)}" for group, count in counts.items())
        group, letter = listed.iloc[0]["consumer_group"], listed.iloc[0]["msg_id"]
        note = (
            f"In the topics %DLQ% of the groups: {causes}. When what they failed on is repaired, all of a group are "
            f"sent to it again by  mqlab admin resendDeadLetters -n ADDRESS -g {group}  and chosen ones in Python by  "
            f'admin.resend_dlq("{group}", ["{letter}"]).  Each is then tried from the start.'
        )
    behind = [RowsBehind("messages", equal(kind="dead", consumer_group=group)) for group in counts.index]
    return Section("dead", "Dead letters", note, [], [FactTable(columns, rows, "no dead letter")], rows=behind)


def _first_of_each(frame: Any, columns: list[str]) -> list[Any]:
    """The first rows of each group, in their order."""
    return list(frame.groupby(columns, sort=False).head(SHOWN_OF_A_GROUP).itertuples())
