"""Plans as a text: the words of explain(), the same on every run, in lines that fit a notebook."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from mqlab.arrow.columns import COLUMNS
from mqlab.spark import plan_of
from mqlab.spark.plans import PLAN_COLUMNS
from mqlab.teach.datasets import small_day

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark


def test_a_plan_says_what_explain_says(spark: SparkSession, capsys: pytest.CaptureFixture[str]) -> None:
    messages = spark.read.format("rocketmq").load(str(small_day()))
    counts = messages.where("tags = '已付款 #1'").groupBy("queue_id").count().orderBy("count")
    plan = plan_of(counts)
    assert capsys.readouterr().out == ""
    assert plan.count("Exchange ") == 2 and plan.count("BatchScan rocketmq[") == 1
    assert "(tags = 已付款 #1)" in plan
    assert max(map(len, plan.splitlines())) <= PLAN_COLUMNS
    scanned = plan.split("BatchScan rocketmq[")[1].split("]")[0].replace(",", " ").split()
    assert scanned == list(COLUMNS)
    counts.explain()
    explained = capsys.readouterr().out.split()
    assert [word for word in plan.split() if word.isalpha()] == [word for word in explained if word.isalpha()]


def test_a_plan_is_the_same_each_time(spark: SparkSession) -> None:
    one, other = (spark.read.format("rocketmq").option("columns", "topic").load(str(small_day())) for _ in range(2))
    assert plan_of(one.distinct()) == plan_of(other.distinct())
