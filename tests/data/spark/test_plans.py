"""Plans as a text: the words of explain(), the same on every run, in lines that fit a notebook."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from mqlab.course.teach.datasets import small_day
from mqlab.data.arrow.columns import COLUMNS
from mqlab.data.spark import plan_of
from mqlab.data.spark.plans import PLAN_COLUMNS

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark


def test_a_plan_says_what_explain_says(spark: SparkSession, capsys: pytest.CaptureFixture[str]) -> None:
    messages = spark.read.format("rocketmq").load(str(small_day()))
    counts = messages.where("tags = '已付款 #1'").groupBy("queue_id").count().orderBy("count")
    plan, hint = plan_of(counts).split("\nHint: ")
    assert " ".join(hint.split()).endswith('2 of them are used: .option("columns", "queue_id,tags") reads less')
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


def test_a_hint_comes_only_where_columns_are_read_for_nothing(spark: SparkSession) -> None:
    messages = spark.read.format("rocketmq").load(str(small_day()))
    narrow = spark.read.format("rocketmq").option("columns", "topic,queue_id").load(str(small_day()))
    assert "none of them is used" in plan_of(messages.groupBy().count())
    whole = (messages, messages.union(messages).where("queue_id = 0"), narrow.groupBy("topic", "queue_id").count())
    assert not any("Hint:" in plan_of(frame) for frame in whole)
    assert plan_of(messages.join(narrow, "queue_id").select("body")).count("Hint:") == 2
