"""One day, played once and sent through the whole pipeline once; the tests of pipeline and report look at it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from mqlab.data.spark import pipeline
from tests.data.spark.pipeline.world import World, play_day

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


@dataclass
class Day:
    """The world that was played, what the pipeline left of it, and what it told on the way."""

    world: World
    out: Path
    told: list[str]
    spark: SparkSession

    def table(self, name: str) -> DataFrame:
        step = pipeline.STEPS[name]
        return self.spark.read.schema(step.schema).parquet(str(self.out / step.folder))

    def rows(self, name: str) -> list[dict[str, Any]]:
        rows: list[dict[str, Any]] = self.table(name).toArrow().to_pylist()
        return rows


@pytest.fixture(scope="session")
def day(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Day:
    directory = tmp_path_factory.mktemp("day")
    world = play_day(directory / "stores")
    told: list[str] = []
    pipeline.run(directory / "stores", directory / "out", spark=spark, tell=lambda step, numbers: told.append(step))
    return Day(world, directory / "out", told, spark)
