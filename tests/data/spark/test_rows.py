"""Rows of a function's answer: plain values, and what to leave out when it answers something else."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import pytest

from mqlab.course.teach.datasets import small_day
from mqlab.data.spark import rows_of
from mqlab.errors import UsageError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark


def test_rows_are_plain_values(spark: SparkSession) -> None:
    def of_topic(messages: Any, topic: str) -> Any:
        return messages.where(messages.topic == topic).selectExpr("topic", "properties", "body").limit(1)

    (row,) = rows_of(of_topic, small_day(), "orders")
    assert row["topic"] == "orders" and type(row["properties"]) is dict and type(row["body"]) in (bytes, bytearray)


def nothing(messages: Any) -> None:
    messages.groupBy("topic").count()


@pytest.mark.parametrize(
    ("answer", "told"),
    [
        (nothing, "nothing returned nothing"),
        (lambda messages: messages.limit(1).collect(), "<lambda> returned a list"),
        (lambda messages: messages.limit(1).select("topic").toPandas(), "<lambda> returned a DataFrame of pandas"),
        (lambda messages: messages.groupBy("topic"), "<lambda> returned a GroupedData"),
    ],
)
def test_what_is_no_dataframe_is_named(answer: Callable[..., Any], told: str, spark: SparkSession) -> None:
    with pytest.raises(UsageError, match=re.escape(told + ": expected a DataFrame of Spark")) as failed:
        rows_of(answer, small_day())
    assert "toPandas()" in failed.value.hint


def test_an_error_that_is_raised_is_not_printed_as_well(spark: SparkSession, capfd: pytest.CaptureFixture[str]) -> None:
    from pyspark.errors import AnalysisException

    for wrong in (lambda messages: messages.groupBy("тема"), lambda messages: messages.selectExpr("`тема`")):
        with pytest.raises(AnalysisException, match="`тема` cannot be resolved"):
            rows_of(lambda messages, wrong=wrong: wrong(messages).count(), small_day())
    assert capfd.readouterr() == ("", "")
