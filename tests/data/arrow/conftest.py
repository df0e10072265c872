"""The real broker's stores and what they hold, for the tests of the kernel too."""

from tests.rocketmq.conformance.conftest import expected, real_store, unpacked_expectations, unpacked_stores

__all__ = ["expected", "real_store", "unpacked_expectations", "unpacked_stores"]
