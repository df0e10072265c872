"""The real broker's stores and what they hold, for the Spark tests too."""

from tests.conformance.conftest import expected, real_store, unpacked_expectations, unpacked_stores

__all__ = ["expected", "real_store", "unpacked_expectations", "unpacked_stores"]
