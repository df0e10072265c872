"""The queries under each section of the page find as many rows as the section's numbers say."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pandas
import pytest

from mqlab.data.spark.report import page
from mqlab.data.spark.report.section_parts import RowsBehind
from mqlab.data.spark.report.tables import Facts, read_facts
from tests.data.spark.pipeline.day import Day

pytestmark = pytest.mark.spark
WITHOUT_ROWS = {"source"}


def asked(facts: Facts) -> dict[str, list[RowsBehind]]:
    sections = [make(facts) for make in page.SECTIONS]
    return {section.anchor: list(section.rows) for section in sections}


def counted(day: Day, rows: list[RowsBehind]) -> list[int]:
    """How many messages each of them finds, in one job; a row of life stands for its members."""
    union = None
    for number, each in enumerate(rows):
        frame = day.spark.read.parquet(f"{day.out}/{each.table}")
        counts = "sum(members)" if each.table == "life" else "count(*)"
        one = frame.where(each.where or "true").selectExpr(f"{number} AS number", f"{counts} AS messages")
        union = one if union is None else union.unionByName(one)
    assert union is not None
    return [int(row["messages"] or 0) for row in sorted(union.collect(), key=lambda row: row["number"])]


def test_each_query_finds_what_its_section_counts(day: Day) -> None:
    facts = read_facts(day.out)
    sent = day.table("messages").where("kind = 'normal' AND NOT parked AND keys != ''").toArrow().to_pylist()[0]
    key, stored_ms = sent["keys"].split()[0], int(sent["store_timestamp"].timestamp() * 1000)
    row = {
        "message_key": key,
        "broker_name": sent["broker_name"],
        "topic": sent["user_topic"],
        "messages": 10,
        "window_start": stored_ms,
        "window_end": stored_ms + 1,
        "share": 0.5,
        "share_of_day": 0.1,
    }
    facts.tables["keys"] = pandas.DataFrame([row])  # on this day no key is used twice
    rows = asked(facts)
    assert {anchor for anchor, each in rows.items() if not each} <= WITHOUT_ROWS | {"lost"}
    flat = [(anchor, each) for anchor, every in rows.items() for each in every]
    found: dict[str, list[int]] = {}
    for (anchor, _), count in zip(flat, counted(day, [each for _, each in flat]), strict=True):
        found.setdefault(anchor, []).append(count)
    assert all(min(counts) > 0 for anchor, counts in found.items() if anchor != "failures"), found
    traffic, calls, queues = facts["traffic"], facts["calls"], facts["queues"]
    largest = traffic.groupby("topic")["messages"].sum().idxmax()
    assert found["traffic"][1] == traffic[traffic["topic"] == largest].groupby("stretch")["messages"].sum().max()
    assert found["behind"][1] == facts["backlog"]["behind"].max()
    assert found["listeners"][1] in set(calls.groupby(["consumer_group", "client"])["calls"].sum())
    normal: Any = queues[queues["kind"] == "normal"]
    assert found["queues"][1] == normal.loc[normal["skew"].idxmax(), "messages"]
    assert found["producers"][1] in set(facts["producers"]["sends"])
    groups = facts["groups"]
    outcomes = [name for name in ("pending", "filtered", "untraced") if groups[name].max() > 0]
    assert found["groups"][1:] == [groups[name].max() for name in outcomes]
    assert found["keys"][1] >= 1


def test_a_name_with_quotes_is_found_again(day: Day, tmp_path: Path) -> None:
    """The directory and the names of groups are quoted as Python and SQL want it."""
    out = Path(shutil.copytree(day.out, tmp_path / 'it\'s "here"'))
    facts = read_facts(out)
    for table in facts.tables.values():
        if "consumer_group" in table:
            table["consumer_group"] = "o'\\" + table["consumer_group"]
    text = page.report(facts)
    (shown,) = [rows for rows in asked(facts)["listeners"] if rows.table == "deliveries"]
    renamed = day.table("deliveries").selectExpr("concat('o\\'\\\\', consumer_group) AS consumer_group", "client")
    assert renamed.where(shown.where).count() > 0
    assert "o&#39;" in text
