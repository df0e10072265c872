"""The report: one HTML file of a day of traffic, without scripts, that opens anywhere and follows light and dark.

Mirrors: RocketMQ's dashboard, as a file to keep, send and print.

    mqlab spark run STORES --out DIR      then      mqlab spark report DIR --out report.html

    facts ─▶ sections (overview_sections, detail_sections) ─▶ page.html, a Jinja2 template, with page.css inside

Left out: anything live; look at a running cluster with the admin verbs.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from jinja2 import Environment
from markupsafe import Markup

from mqlab.data.spark.report import detail_sections as d
from mqlab.data.spark.report import harm_sections as h
from mqlab.data.spark.report import overview_sections as o
from mqlab.data.spark.report.beside_section import beside
from mqlab.data.spark.report.lag_over_time import behind_by_offsets, lag_over_time
from mqlab.data.spark.report.section_parts import MAX_ROWS, RowsBehind
from mqlab.data.spark.report.tables import Facts, read_facts
from mqlab.durations import rounded_text
from mqlab.scales import bytes_text, count_text, time_text
from mqlab.whole_files import whole_file

if TYPE_CHECKING:
    import pandas

FOLDER = Path(__file__).parent
SECTIONS = (
    o.wrong,
    o.traffic,
    o.groups,
    h.lost,
    h.dead,
    o.behind,
    o.latency,
    d.failures,
    d.again,
    d.listeners,
    d.queues,
    d.keys,
    d.producers,
    d.lag,
    d.source,
)


@dataclass(frozen=True, slots=True)
class Tile:
    """One of the numbers at the top of the page."""

    name: str
    value: str
    note: str
    kind: str = ""


def write_report(
    directory: str | os.PathLike[str],
    path: str | os.PathLike[str],
    beside: str | os.PathLike[str] | None = None,
    offsets_kept: str | os.PathLike[str] | None = None,
) -> Path:
    """Write the report of a finished run to a file, completely or not at all. Raises UsageError without such a run.

    ``beside``: the output of a run over another day, to be compared. ``offsets_kept``: snapshots of consumerOffset.json
    from that day, for a section about lag over time.
    """
    facts = read_facts(Path(directory))
    page = report(
        facts,
        None if beside is None else read_facts(Path(beside)),
        None if offsets_kept is None else lag_over_time(directory, offsets_kept),
    )
    target = Path(path)
    target.parent.mkdir(parents=True, exist_ok=True)
    with whole_file(target) as draft:
        draft.write_text(page, "utf-8")
    return target


def report(facts: Facts, other: Facts | None = None, lags: pandas.DataFrame | None = None) -> str:
    """The page's HTML; with a section next to another day when its facts are given, and one about lag over time."""
    sections = [make(facts) for make in SECTIONS if facts.has_rules or make is not o.wrong]
    if lags is not None:
        index = next(number for number, section in enumerate(sections) if section.anchor == "behind")
        sections.insert(index, behind_by_offsets(lags))
    if other is not None:
        sections.insert(int(facts.has_rules), beside(facts, other))
    template = Environment(autoescape=True).from_string((FOLDER / "page.html").read_text("utf-8"))
    return template.render(
        title=f"Message traffic, {_day(facts)}",
        style=Markup((FOLDER / "page.css").read_text("utf-8")),
        summary=_summary(facts),
        tiles=tiles(facts),
        sections=sections,
        query=lambda rows: _query(facts, rows),
        max_rows=MAX_ROWS,
    )


def _query(facts: Facts, rows: RowsBehind) -> str:
    """What shows rows of a table of the run in a notebook."""
    folder = f"{facts.directory}/{rows.table}"
    read = f"session().read.parquet({folder!r})"
    return f"{read}.where({rows.where!r}).show()" if rows.where else f"{read}.show()"


def _day(facts: Facts) -> str:
    """The day or days, with the year: 11 November 2024.

    >>> _day(Facts({"span_ms": [1731283200000, 1731369599999]}, {}))
    '11 November 2024'
    """
    if not facts.end_ms:
        return "none"
    days = [datetime.fromtimestamp(ms / 1000, tz=UTC) for ms in (facts.start_ms, facts.end_ms)]
    first, last = (f"{day.day} {day:%B %Y}" for day in days)
    return first if first == last else f"{first} – {last}"


def _summary(facts: Facts) -> str:
    brokers = [extent["store"]["broker_name"] for extent in facts.manifest["stores"]]
    length = rounded_text(max(facts.end_ms - facts.start_ms, 0))
    return (
        f"{length} of {', '.join(brokers[:6])}{' …' if len(brokers) > 6 else ''}, "
        f"from {time_text(facts.start_ms, 1_000)} to {time_text(facts.end_ms, 1_000)} UTC"
    )


def worst(facts: Facts) -> Tile:
    """The one thing to look at first: the most messages that one group lost, gave up on, is held up with, or got again.

    What is worse comes first: a lost message is worse than a dead letter, which can be sent again; what waits will be
    consumed, and what came again has been.
    """
    groups, again = facts["groups"], facts["duplicates"]
    stuck = facts["suspicions"].query("kind == 'stuck message'") if facts.has_rules else groups[:0]
    needless = again[again["cause"] != "retry"]
    candidates = [
        (groups, "lost", "messages lost", "by {}, which reads their tag"),
        (groups, "dead", "dead letters", "of {}; they can be sent again"),
        (stuck, "messages", "messages held up", "of {}, after a call that never returned"),
        (groups, "pending", "messages waiting", "of {} at the end"),
        (needless, "deliveries", "needless deliveries", "to {}"),
    ]
    for frame, column, name, note in candidates:
        if len(frame) and frame[column].max() > 0:
            row = frame.loc[frame[column].idxmax()]
            return Tile(
                name, count_text(row[column]), "worst of the day: " + note.format(row["consumer_group"]), "bad worst"
            )
    return Tile("nothing lost, dead, held up or repeated", "0", "worst of the day", "good worst")


def tiles(facts: Facts) -> list[Tile]:
    """The numbers that come first."""
    traffic, groups = facts["traffic"], facts["groups"]
    calls, lag = facts["calls"], facts["lag"]
    failed = calls["failures"].sum() / max(calls["calls"].sum(), 1)
    dead = groups["dead"].sum()
    repeated = facts["duplicates"]["deliveries"].sum()
    implied, traced = groups["calls_implied"].sum(), groups["calls_told"].sum()
    lost = groups["lost"].sum()
    every = [
        worst(facts),
        Tile("messages sent", count_text(traffic["messages"].sum()), bytes_text(traffic["bytes"].sum())),
        Tile("calls of listeners", count_text(calls["calls"].sum()), f"{failed:.2%} failed"),
        Tile("delivered again", count_text(repeated), "all causes together"),
        Tile("lost", count_text(lost), "their group reads the tag", "bad" if lost else ""),
        Tile("calls in the trace", f"{traced / implied:.2%}" if implied else "–", "of those that offsets imply"),
        Tile("dead letters", count_text(dead), f"{len(groups)} groups and topics", "bad" if dead else ""),
        Tile("lag at the end", count_text(lag["lag"].sum()), "all groups and queues"),
    ]
    if facts.has_rules:
        count = len(facts["suspicions"])
        every.append(Tile("findings", count_text(count), "found by rules", "bad" if count else "good"))
    return every
