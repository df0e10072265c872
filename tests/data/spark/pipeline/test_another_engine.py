"""DuckDB over the Arrow kernel makes the same tables of a day as the pipeline, row by row and column by column."""

from __future__ import annotations

import json
from collections import Counter
from datetime import datetime
from decimal import Decimal
from typing import Any

import pytest

from mqlab.data.spark import pipeline
from tests.data.spark.pipeline.day import Day
from tests.data.spark.pipeline.duckdb_day import FACTS, tables_of

pytestmark = pytest.mark.spark

OTHER_NAMES = {"born_timestamp": "born", "store_timestamp": "stored"}
NOT_MADE = {  # columns that the oracle leaves out
    "messages": {"origin_msg_id", "body_length", "reconsume_times"},
    "producers": {"p50_cost_ms", "p90_cost_ms", "p99_cost_ms"},
}


def plain(value: Any) -> Any:
    if isinstance(value, datetime):
        return round(value.timestamp() * 1000)
    if isinstance(value, float | Decimal):
        return float(f"{value:.9g}")
    return value


def counted(rows: list[dict[str, Any]], columns: list[str]) -> Counter[tuple[Any, ...]]:
    """The rows without their order; a row may be there twice."""
    return Counter(tuple(plain(row[name]) for name in columns) for row in rows)


@pytest.fixture(scope="module")
def oracle(day: Day) -> dict[str, list[dict[str, Any]]]:
    stretch_ms = json.loads((day.out / "pipeline.json").read_text("utf-8"))["stretch_ms"]
    return tables_of(day.world.directory, stretch_ms)


@pytest.mark.parametrize("name", ["messages", "deliveries", "life", *FACTS])
def test_the_same_table(day: Day, oracle: dict[str, list[dict[str, Any]]], name: str) -> None:
    columns = [column for column in pipeline.STEPS[name].schema.fieldNames() if column not in NOT_MADE.get(name, ())]
    theirs = counted(oracle[name], [OTHER_NAMES.get(column, column) for column in columns])
    ours = counted(day.rows(name), columns)
    assert ours - theirs == theirs - ours == Counter()
    assert ours
