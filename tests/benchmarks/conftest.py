"""Benchmarks look for garbage before each measurement; here no rate is asserted, and only their own is looked for."""

from __future__ import annotations

import gc
from collections.abc import Iterator

import pytest


@pytest.fixture(autouse=True)
def what_other_tests_have_left_is_not_looked_through() -> Iterator[None]:
    """It takes a third of a second each time."""
    gc.freeze()
    yield
    gc.unfreeze()
