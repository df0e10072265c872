"""The report: one HTML file of a day of traffic, without scripts, that opens anywhere and follows light and dark.

Mirrors: RocketMQ's dashboard, as a file to keep, send and print.

    mqlab spark run STORES --out DIR      then      mqlab spark report DIR --out report.html

    facts ─▶ sections (overview_sections, detail_sections) ─▶ page.html, a Jinja2 template, with page.css inside

Left out: anything live; look at a running cluster with the admin verbs.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from jinja2 import Environment
from markupsafe import Markup

from mqlab.durations import rounded_text
from mqlab.scales import bytes_text, count_text, time_text
from mqlab.spark.report import detail_sections as d
from mqlab.spark.report import overview_sections as o
from mqlab.spark.report.section_parts import MAX_ROWS
from mqlab.spark.report.tables import Facts, read_facts
from mqlab.whole_files import whole_file

FOLDER = Path(__file__).parent
SECTIONS = (
    o.wrong, o.traffic, o.groups, o.behind, o.latency, d.failures, d.again, d.listeners, d.queues, d.keys, d.producers,
    d.lag, d.source,
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Tile:
    """One of the numbers at the top of the page."""

    name: str
    value: str
    note: str
    kind: str = ""


def write_report(directory: str | os.PathLike[str], path: str | os.PathLike[str]) -> Path:
    """Write the report of a finished run to a file, completely or not at all. Raises UsageError without such a run."""
    page = report(read_facts(Path(directory)))
    target = Path(path)
    target.parent.mkdir(parents=True, exist_ok=True)
    with whole_file(target) as draft:
        draft.write_text(page, "utf-8")
    return target


def report(facts: Facts) -> str:
    """The page's HTML."""
    template = Environment(autoescape=True).from_string((FOLDER / "page.html").read_text("utf-8"))
    return template.render(
        title=f"Message traffic, {_day(facts)}",
        style=Markup((FOLDER / "page.css").read_text("utf-8")),
        summary=_summary(facts),
        tiles=tiles(facts),
        sections=[make(facts) for make in SECTIONS],
        max_rows=MAX_ROWS,
    )


def _day(facts: Facts) -> str:
    if not facts.end_ms:
        return "none"
    first, last = (time_text(ms, 86_400_000) for ms in (facts.start_ms, facts.end_ms))
    return first if first == last else f"{first} – {last}"


def _summary(facts: Facts) -> str:
    brokers = [each["store"]["broker_name"] for each in facts.manifest["stores"]]
    length = rounded_text(max(facts.end_ms - facts.start_ms, 0))
    return (
        f"{length} of {', '.join(brokers[:6])}{' …' if len(brokers) > 6 else ''}, "
        f"from {time_text(facts.start_ms, 1_000)} to {time_text(facts.end_ms, 1_000)} UTC"
    )


def tiles(facts: Facts) -> list[Tile]:
    """The numbers that come first."""
    traffic, groups, suspicions = facts["traffic"], facts["groups"], facts["suspicions"]
    calls, lag = facts["calls"], facts["lag"]
    failed = calls["failures"].sum() / max(calls["calls"].sum(), 1)
    dead = groups["dead"].sum()
    repeated = facts["duplicates"]["deliveries"].sum()
    return [
        Tile("messages sent", count_text(traffic["messages"].sum()), bytes_text(traffic["bytes"].sum())),
        Tile("calls of listeners", count_text(calls["calls"].sum()), f"{failed:.2%} failed"),
        Tile("delivered again", count_text(repeated), "all causes together"),
        Tile("dead letters", count_text(dead), f"{len(groups)} groups and topics", "bad" if dead else ""),
        Tile("lag at the end", count_text(lag["lag"].sum()), "all groups and queues"),
        Tile("findings", count_text(len(suspicions)), "found by rules", "bad" if len(suspicions) else "good"),
    ]
