"""What a condition hands to the source, and that it never changes the answer."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from pyspark.errors import AnalysisException
from pyspark.sql import functions as F

from mqlab.data.spark import messages, plan_of
from mqlab.data.spark.selected_messages import options_of
from mqlab.errors import UsageError
from tests.data.arrow.logs import some_records, write_log

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

# The records of write_log are stored one millisecond after the other.
AT = "timestamp '2023-11-14 22:13:20.5Z'"
AT_MS = 1_700_000_000_500


@pytest.fixture(scope="module")
def stores(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    folder = tmp_path_factory.mktemp("stores")
    for name, count in (("broker-a", 80), ("broker-b", 30)):
        write_log(folder / name, some_records(count))
    yield folder


CONDITIONS: list[tuple[str, dict[str, str]]] = [
    ("topic = 'orders'", {"topic": "orders"}),
    ("'заказы' = topic AND tags = 'tag-1'", {"topic": "заказы"}),
    ("topic IN ('orders', 'заказы') AND queue_id IN (0, 2)", {"topic": "orders,заказы", "queues": "0,2"}),
    ("topic = 'orders' AND topic = 'заказы'", {"topic": "orders"}),
    ("queue_id BETWEEN 1 AND 2 AND queue_id IN (1, NULL)", {}),
    (f"store_timestamp >= {AT}", {"startTime": str(AT_MS)}),
    (f"store_timestamp > {AT}", {"startTime": str(AT_MS + 1)}),
    (f"{AT} >= store_timestamp", {"endTime": str(AT_MS + 1)}),
    (f"store_timestamp = {AT}", {"startTime": str(AT_MS), "endTime": str(AT_MS + 1)}),
    ("store_timestamp > timestamp '2023-11-14 22:13:20.5101Z'", {"startTime": str(AT_MS + 11)}),
    ("store_timestamp < timestamp '2023-11-14 22:13:20.5101Z'", {"endTime": str(AT_MS + 11)}),
    (
        f"store_timestamp BETWEEN {AT} + interval 10 milliseconds AND '2023-11-14 22:13:20.520Z'",
        {"startTime": str(AT_MS + 10), "endTime": str(AT_MS + 21)},
    ),
    ("topic = 'orders' OR queue_id = 1", {}),
    ("NOT topic = 'orders'", {}),
    ("topic LIKE 'o%' AND queue_id > 0", {}),
    ("queue_id = -1 OR true", {}),
    ("topic = NULL", {}),
    ("upper(topic) = 'ORDERS'", {}),
    ("store_timestamp < now()", {}),
    ("topic = 'orders,заказы'", {}),
    ("true", {}),
]


@pytest.mark.parametrize(("where", "options"), CONDITIONS, ids=lambda value: value if isinstance(value, str) else "")
def test_the_source_gets_what_it_can_do_and_the_answer_is_spark_s(
    spark: SparkSession, stores: Path, where: str, options: dict[str, str]
) -> None:
    everything = spark.read.format("rocketmq").option("columns", "topic,queue_id,tags,store_timestamp,physical_offset")
    plain = everything.load(str(stores)).where(where)
    assert options_of(plain._jdf.queryExecution().analyzed().condition()) == options
    if not options:  # the source reads all, as in the plain frame
        return
    expected = sorted(row["physical_offset"] for row in plain.collect())
    found = messages(stores, where=where, columns=["physical_offset"])
    assert found.columns == ["physical_offset"]
    assert sorted(row[0] for row in found.collect()) == expected


def test_only_the_columns_of_the_condition_and_of_the_answer_are_read(spark: SparkSession, stores: Path) -> None:
    frame = messages([stores / "broker-a"], where="length(tags) > 3 AND queue_id = 0", columns="keys, topic")
    assert frame.columns == ["keys", "topic"]
    plan = plan_of(frame)
    assert "BatchScan rocketmq[topic, queue_id, tags, keys]" in plan and "Hint" not in plan
    assert messages(stores, columns="keys").columns == ["keys"]
    assert len(messages(stores).columns) == 23


def test_a_condition_can_be_a_column(spark: SparkSession, stores: Path) -> None:
    for where in (F.col("topic") == "orders", F.col("topic").isin("orders") & F.lit(True)):
        assert messages(stores, where=where, columns="topic").distinct().collect() == [("orders",)]


def test_wrong_names_are_errors_before_anything_is_read(spark: SparkSession, stores: Path) -> None:
    with pytest.raises(UsageError, match="there is no column 'key'"):
        messages(stores, columns="key")
    with pytest.raises(AnalysisException, match="tag"):
        messages(stores, where="tag = 'paid'")
    assert messages(stores, where="topic = 'ordres'").count() == 0  # these logs have no queues, which name topics
