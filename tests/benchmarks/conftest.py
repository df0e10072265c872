"""What the tests of benchmarks share: a heap in which there is little to look through."""

from __future__ import annotations

import gc

import pytest


@pytest.fixture(scope="package", autouse=True)
def what_other_tests_left_is_out_of_sight() -> None:
    """A benchmark collects garbage before each measurement, and would look through all that this process keeps."""
    gc.collect()
    gc.freeze()
