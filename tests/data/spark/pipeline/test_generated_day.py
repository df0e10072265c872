"""Days of the order platform through the pipeline: what the generator knows is what the tables say, at any size."""

from __future__ import annotations

import contextlib
import json
import shutil
import sys
import time
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

import psutil
import pyarrow.dataset
import pytest

from mqlab.data.spark import pipeline
from mqlab.data.traffic import write
from mqlab.data.traffic.trouble.incidents import KINDS

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

MESSAGES, BROKERS, SEED = 15_000, 2, 7
FOUND_AS = {  # an incident of the generator -> what the rules call it
    "burst": "burst",
    "hot_key": "hot key",
    "slow_consumer": "slow listener",
    "failing_consumer": "failing listener",
    "poison_message": "dead letters",
    "stuck_message": "stuck message",
    "inconsistent_tags": "inconsistent subscription",
    "wrong_reset": "offset set back",
}
LARGE, SMALL, SHORT = 10_000_000, 1_000_000, 60_000
GIBIBYTE = 1 << 30


def rows(out: Path, folder: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = pyarrow.dataset.dataset(out / folder).to_table().to_pylist()
    return found


def told_truth(path: Path) -> list[dict[str, Any]]:
    brokers = json.loads(path.read_text("utf-8"))["brokers"]
    return [{**incident, "broker": name} for name, incidents in brokers.items() for incident in incidents]


@pytest.mark.usefixtures("plans_as_by_itself")
def test_the_incidents_of_a_day_are_found_where_they_are(spark: SparkSession, tmp_path: Path) -> None:
    """Every kind of incident once; kinds, groups, places and, where the generator counts them, numbers."""
    made = write(tmp_path / "day", messages=MESSAGES, brokers=BROKERS, seed=SEED, incidents=tuple(KINDS))
    pipeline.run(tmp_path / "day", tmp_path / "out", spark=spark)
    truth, found = told_truth(made.truth), rows(tmp_path / "out", "facts/suspicions")
    by_kind = {(row["kind"], row["consumer_group"]): row for row in found}
    wanted = {(FOUND_AS[one["kind"]], one.get("group")) for one in truth}
    assert wanted <= by_kind.keys()
    # No rule names what stays under its threshold: what else is found follows from an incident.
    failing = {one["group"] for one in truth if one["kind"] == "failing_consumer"}
    assert by_kind.keys() - wanted <= {*(("dead letters", group) for group in failing), ("hot queue", None)}

    (vanished,) = {(one["group"], tuple(one["tags"])) for one in truth if one["kind"] == "inconsistent_tags"}
    lost = sum(one["messages_not_delivered"] for one in truth if one["kind"] == "inconsistent_tags")
    listed = [row for row in rows(tmp_path / "out", "facts/lost") if row["consumer_group"] == vanished[0]]
    assert {row["of"] for row in listed} == {lost} and {row["tags"] for row in listed} <= set(vanished[1])
    groups = rows(tmp_path / "out", "facts/groups")
    assert [row["coverage"] < 1 for row in groups if row["lost"]] == [True] and lost == sum(r["lost"] for r in groups)
    tags = rows(tmp_path / "out", "facts/group_tags")
    assert lost == sum(r["lost"] for r in tags if r["consumer_group"] == vanished[0] and r["tags"] in vanished[1])
    (told,) = [row for row in found if row["kind"] == "inconsistent subscription"]
    assert told["subject"] == ", ".join(sorted(vanished[1]))
    assert 0 < told["messages"] <= lost  # what vanished alone, with nothing read beside it, is not counted
    again = sum(one["messages_delivered_again"] for one in truth if one["kind"] == "wrong_reset")
    assert sum(r["messages"] for r in found if r["kind"] == "offset set back") == again > 0
    (stuck,) = [one for one in truth if one["kind"] == "stuck_message"]
    (held,) = [row for row in found if row["kind"] == "stuck message"]
    assert (held["broker_name"], held["queue_id"]) == (stuck["broker"], stuck["queue_id"])
    life = rows(tmp_path / "out", "life")
    (message,) = [row for row in life if row["msg_id"] == held["subject"] and row["consumer_group"] == stuck["group"]]
    assert message["queue_offset"] == stuck["queue_offset"]
    (hot,) = [one for one in truth if one["kind"] == "hot_key"]
    assert (hot["broker"], hot["key"]) in {(r["broker_name"], r["subject"]) for r in found if r["kind"] == "hot key"}
    (poison,) = [one for one in truth if one["kind"] == "poison_message"]
    dead = {(r["broker_name"], r["queue_id"], r["queue_offset"]) for r in life if r["outcome"] == "dead"}
    assert (poison["broker"], poison["queue_id"], poison["queue_offset"]) in dead

    sent = Counter[str]()
    for row in rows(tmp_path / "out", "facts/traffic"):
        sent[row["topic"]] += row["messages"]
    assert sent == {topic: count for topic, count in made.topics.items() if topic in sent}
    assert set(sent) == {"orders", "stock"}


def measured(messages: int, directory: Path) -> tuple[float, float]:
    """Generation to report in a process of its own: seconds, and the most GiB that it, its JVM and workers had."""
    program = f"""
from mqlab.data.traffic import write
from mqlab.data.spark import session
from mqlab.data.spark.pipeline import run
from mqlab.data.spark.report import write_report
write({str(directory / "day")!r}, messages={messages}, brokers=3, seed={SEED})
run({str(directory / "day")!r}, {str(directory / "out")!r}, spark=session("local[2]"))
write_report({str(directory / "out")!r}, {str(directory / "report.html")!r})
"""
    began, most = time.monotonic(), 0
    process = psutil.Popen([sys.executable, "-c", program])
    while process.poll() is None:
        most = max(most, memory_of(process))
        with contextlib.suppress(psutil.TimeoutExpired):
            process.wait(timeout=0.5)
    assert process.returncode == 0
    seconds = time.monotonic() - began
    assert sum(row["messages"] for row in rows(directory / "out", "facts/queues")) == messages
    shutil.rmtree(directory)
    return seconds, most / GIBIBYTE


def memory_of(process: psutil.Process) -> int:
    """Resident bytes of a process and all that it started; a page that two of them share counts twice."""
    total = 0
    with contextlib.suppress(psutil.NoSuchProcess):
        for one in (process, *process.children(recursive=True)):
            with contextlib.suppress(psutil.NoSuchProcess):
                total += one.memory_info().rss
    return total


@pytest.mark.long
@pytest.mark.parametrize("messages", [SHORT, SMALL])
def test_a_day_ends_in_a_report(tmp_path: Path, messages: int) -> None:
    """Every message is in the tables, in little memory. The next test makes the larger day ten times as large."""
    _, most_gib = measured(messages, tmp_path)
    assert 0.5 < most_gib < 6  # less than half a gigabyte would not be a JVM with its day


@pytest.mark.long
def test_ten_million_messages_take_ten_times_as_long_as_one_million(tmp_path: Path) -> None:
    """From nothing to the report on two cores; time grows no faster than the messages, within a quarter."""
    small_s, _ = measured(SMALL, tmp_path / "small")
    large_s, most_gib = measured(LARGE, tmp_path / "large")
    print(f"{SMALL:,}: {small_s:.0f} s; {LARGE:,}: {large_s:.0f} s, {most_gib:.1f} GiB at most")
    assert large_s < 1.25 * LARGE / SMALL * small_s
    assert most_gib < 24
