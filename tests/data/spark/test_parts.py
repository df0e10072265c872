"""The sources rocketmq-queues and rocketmq-config in a real Spark session, over stores of the real broker."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from pyspark.errors import AnalysisException, PythonException

from mqlab.data.arrow.queues import read_queue_units
from mqlab.data.arrow.store_tables import TABLES, read_store_table
from mqlab.data.spark.parts import ConfigSource, QueuesSource

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

TABLES_OF = {"rocketmq-queues": QueuesSource.tables, "rocketmq-config": ConfigSource.tables}


@pytest.fixture
def cluster(real_store: Callable[[str], Path]) -> str:
    """A folder with two stores of a real broker."""
    return str({real_store(name).parent for name in ("clean", "killed")}.pop())


def test_rows_are_what_the_kernel_says(spark: SparkSession, cluster: str) -> None:
    for source, tables in TABLES_OF.items():
        for table in tables:
            frame = spark.read.format(source).option("table", table).load(cluster).toArrow()
            wanted = read_queue_units(cluster) if table == "units" else read_store_table(cluster, table)
            found = frame.cast(wanted.schema).to_pylist()
            assert sorted(found, key=repr) == sorted(wanted.to_pylist(), key=repr), table
            assert found, table
    assert {table for tables in TABLES_OF.values() for table in tables} == {"units", *TABLES}


def test_lag_selectivity_and_a_join_with_the_log(
    spark: SparkSession, cluster: str, expected: Callable[[str], dict[str, Any]]
) -> None:
    """Questions the sources are there for, in SQL."""
    for view, source, options in (
        ("units", "rocketmq-queues", ""),
        ("lag", "rocketmq-queues", ", table 'lag'"),
        ("log", "rocketmq", ", columns 'broker_name,topic,physical_offset,tags'"),
    ):
        spark.sql(f"CREATE OR REPLACE TEMPORARY VIEW {view} USING `{source}` OPTIONS (path '{cluster}'{options})")
    behind = spark.sql("SELECT sum(lag) FROM lag WHERE broker_name = 'killed' AND topic = 'flow'").first()
    ends = {(queue["topic"], queue["queueId"]): queue["maxOffset"] for queue in expected("killed")["queues"]}
    assert behind is not None and behind[0] == ends["flow", 0] + ends["flow", 1] - 9 - 10
    shares = spark.sql(
        "SELECT tags, count(*) / sum(count(*)) OVER () FROM units JOIN log USING (broker_name, topic, physical_offset) "
        "WHERE broker_name = 'clean' AND topic = 'tags' GROUP BY tags"
    ).collect()
    messages = [m for m in expected("clean")["messages"] if m["topic"] == "tags"]
    assert {row["tags"]: round(row[1] * len(messages)) for row in shares} == {
        tag: sum(m["properties"].get("TAGS") == tag for m in messages)
        for tag in {m["properties"].get("TAGS") for m in messages}
    }


def test_units_of_some_tags_without_reading_the_log(spark: SparkSession, cluster: str) -> None:
    reader = spark.read.format("rocketmq-queues").option("topic", "tags").option("tags", "TagA || TagB")
    rows = reader.load(f"{cluster}/clean").collect()
    wanted = read_queue_units(f"{cluster}/clean", topics=["tags"], tags="TagA || TagB").to_pylist()
    assert sorted(row.asDict().items() for row in rows) == sorted(row.items() for row in wanted)
    assert 0 < len(rows) < read_queue_units(f"{cluster}/clean", topics=["tags"]).num_rows
    assert reader.load(f"{cluster}/clean").schema["tags_code"].metadata["comment"].startswith("Java hash")


def test_wrong_questions_are_told_what_would_be_right(spark: SparkSession, cluster: str) -> None:
    for source, options, told in (
        ("rocketmq-queues", {"table": "offsets"}, r"no table 'offsets'[\s\S]*units, bounds, lag"),
        ("rocketmq-config", {"table": "units"}, r"no table 'units'[\s\S]*offsets, topics"),
        ("rocketmq-config", {"topic": "orders"}, r"no option 'topic'[\s\S]*path, paths, brokerName, table"),
        ("rocketmq-queues", {"table": "lag", "tags": "a"}, "choose units, not rows of the table 'lag'"),
    ):
        with pytest.raises((AnalysisException, PythonException), match=told):
            spark.read.format(source).options(**options).load(cluster).count()
    with pytest.raises((AnalysisException, PythonException), match="columns of units are broker_name, topic"):
        spark.read.format("rocketmq-queues").schema("topic string").load(cluster).count()
