"""The real broker's stores and what they hold, for the Spark tests too."""

from tests.data.spark.pipeline.day import day
from tests.rocketmq.conformance.conftest import expected, real_store, unpacked_expectations, unpacked_stores

__all__ = ["day", "expected", "real_store", "unpacked_expectations", "unpacked_stores"]
