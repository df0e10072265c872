"""Why the data source rocketmq takes no filters from Spark: Spark keeps them between uses of one DataFrame.

The test is expected to fail with the locked version of Spark. When a new lock makes it pass, the source can have
pushFilters, and mqlab.data.spark.selected_messages has less to do.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from pyspark.sql.datasource import DataSource, DataSourceReader, EqualTo, Filter, InputPartition

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ROOT = Path(__file__).parents[3]
LOCKED = re.findall(r"^pyspark\[connect\]==(\S+)", (ROOT / "requirements.lock").read_text("utf-8"), re.MULTILINE)
SWITCH = "spark.sql.python.filterPushdown.enabled"

pytestmark = [
    pytest.mark.spark,
    pytest.mark.skipif(
        [version("pyspark")] != LOCKED, reason=f"only pyspark {LOCKED} was examined, this is {version('pyspark')}"
    ),
]


class TenReader(DataSourceReader):
    """The numbers 0 to 9, of which an equality chooses one in the source."""

    def __init__(self) -> None:
        self.only: int | None = None

    def pushFilters(self, filters: list[Filter]) -> Iterable[Filter]:
        for each in filters:
            if isinstance(each, EqualTo) and each.attribute == ("number",):
                self.only = each.value
            else:
                yield each

    def read(self, partition: InputPartition) -> Iterator[tuple[int]]:
        yield from ((number,) for number in range(10) if self.only in (None, number))


class TenSource(DataSource):
    @classmethod
    def name(cls) -> str:
        return "ten_numbers"

    def schema(self) -> str:
        return "number int"

    def reader(self, schema: Any) -> DataSourceReader:
        return TenReader()


@pytest.fixture
def with_pushed_filters(spark: SparkSession) -> Iterator[SparkSession]:
    spark.conf.set(SWITCH, "true")
    spark.dataSource.register(TenSource)
    yield spark
    spark.conf.unset(SWITCH)


@pytest.mark.xfail(strict=True, raises=AssertionError, reason="a filtered frame changes the frames it was made from")
def test_a_filtered_frame_leaves_the_frame_it_was_made_from_alone(with_pushed_filters: SparkSession) -> None:
    numbers = with_pushed_filters.read.format("ten_numbers").load()
    assert [row[0] for row in numbers.where("number = 3").collect()] == [3]
    assert numbers.count() == 10


@pytest.mark.xfail(strict=True, raises=AssertionError, reason="a filtered frame changes its siblings")
def test_the_union_of_two_filtered_frames_has_the_rows_of_both(with_pushed_filters: SparkSession) -> None:
    numbers = with_pushed_filters.read.format("ten_numbers").load()
    both = numbers.where("number = 3").union(numbers.where("number = 5"))
    assert sorted(row[0] for row in both.collect()) == [3, 5]


def test_frames_that_were_loaded_apart_do_not_touch_each_other(with_pushed_filters: SparkSession) -> None:
    """The way around it, and a proof that the filters above were pushed at all."""
    load = with_pushed_filters.read.format("ten_numbers").load
    assert [row[0] for row in load().where("number = 3").collect()] == [3]
    assert load().count() == 10
