"""The real broker's stores and what they hold, for the Spark tests too."""

from tests.conformance.conftest import expected, real_store, unpacked_expectations, unpacked_stores
from tests.spark.pipeline.day import day

__all__ = ["day", "expected", "real_store", "unpacked_expectations", "unpacked_stores"]
