"""The report: one HTML file of a day of traffic, without scripts, that opens anywhere and follows light and dark.

Mirrors: RocketMQ's dashboard, as something to keep, send and print. Lab 11 ends with it.

    mqlab spark run STORES --out DIR      then      mqlab spark report DIR --out report.html

Left out: anything live; look at a running cluster with the admin verbs or the stream of Lab 12.
"""

from __future__ import annotations

import os
from pathlib import Path

from markupsafe import Markup

from mqlab.durations import rounded_text
from mqlab.spark.report import more_sections as m
from mqlab.spark.report import sections as s
from mqlab.spark.report.scales import bytes_text, count_text, time_text
from mqlab.spark.report.tables import Facts, read_facts

STYLE = Path(__file__).with_name("page.css")
PAGE = Markup("""\
<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>{title}</title>
<style>
{style}</style>
</head>
<body>
<header><h1>{title}</h1><p>{told}</p>{tiles}<nav>{links}</nav></header>
<main>
{sections}
</main>
</body>
</html>
""")
SECTIONS = (
    s.wrong, s.traffic, s.groups, s.behind, s.latency, m.failures, m.again, m.listeners, m.queues, m.keys, m.producers,
    m.lag, m.source,
)  # fmt: skip


def write_report(directory: str | os.PathLike[str], path: str | os.PathLike[str]) -> Path:
    """Write the report of a finished run to a file, whole or not at all. Raises UsageError when there is none."""
    page = report(read_facts(Path(directory)))
    target = Path(path)
    target.parent.mkdir(parents=True, exist_ok=True)
    beside = target.with_name(f"{target.name}.{os.getpid()}")
    beside.write_text(page, "utf-8")
    return beside.replace(target)


def report(facts: Facts) -> str:
    """The page's text."""
    sections = [make(facts) for make in SECTIONS]
    links = Markup("").join(Markup('<a href="#{}">{}</a>').format(one.anchor, one.heading) for one in sections)
    return str(
        PAGE.format(
            title=f"Message traffic, {_day(facts)}",
            style=Markup(STYLE.read_text("utf-8")),
            told=_told(facts),
            tiles=tiles(facts),
            links=links,
            sections=Markup("\n").join(_section(one) for one in sections),
        )
    )


def _section(one: s.Section) -> Markup:
    pictures = Markup("\n").join(one.pictures)
    body = one.table
    if one.pictures and one.anchor != "wrong":
        body = Markup('<details open class="facts"><summary>as a table</summary>{}</details>').format(one.table)
    return Markup('<section id="{}">\n<h2>{}</h2>\n<p>{}</p>\n<div class="pictures">{}</div>\n{}\n</section>').format(
        one.anchor, one.heading, one.told, pictures, body
    )


def _day(facts: Facts) -> str:
    if not facts.end_ms:
        return "none"
    first, last = (time_text(ms, 86_400_000) for ms in (facts.start_ms, facts.end_ms))
    return first if first == last else f"{first} – {last}"


def _told(facts: Facts) -> str:
    brokers = [each["store"]["broker_name"] for each in facts.manifest["stores"]]
    long = rounded_text(max(facts.end_ms - facts.start_ms, 0))
    return (
        f"{long} of {', '.join(brokers[:6])}{' …' if len(brokers) > 6 else ''}, "
        f"from {time_text(facts.start_ms, 1_000)} to {time_text(facts.end_ms, 1_000)} UTC"
    )


def tiles(facts: Facts) -> Markup:
    """The numbers that come first."""
    traffic, groups, found = facts["traffic"], facts["groups"], facts["suspicions"]
    calls, lag = facts["calls"], facts["lag"]
    failed = calls["failures"].sum() / max(calls["calls"].sum(), 1)
    dead = groups["dead"].sum()
    repeated = facts["duplicates"]["deliveries"].sum()
    shown = [
        ("messages sent", count_text(traffic["messages"].sum()), bytes_text(traffic["bytes"].sum()), ""),
        ("calls of listeners", count_text(calls["calls"].sum()), f"{failed:.2%} failed", ""),
        ("delivered again", count_text(repeated), "all causes together", ""),
        ("dead letters", count_text(dead), f"{len(groups)} groups and topics", "bad" if dead else ""),
        ("lag at the end", count_text(lag["lag"].sum()), "all groups and queues", ""),
        ("look wrong", count_text(len(found)), "found by rules", "bad" if len(found) else "good"),
    ]
    made = [
        Markup('<div class="tile {}"><b>{}</b><span>{}</span><small>{}</small></div>').format(kind, value, name, more)
        for name, value, more, kind in shown
    ]
    return Markup('<div class="tiles">{}</div>').format(Markup("").join(made))
