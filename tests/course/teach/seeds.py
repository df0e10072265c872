"""Days that a lab makes from seeds: what holds for one of them should hold for every other."""

from __future__ import annotations

from typing import Any

import pytest


def first_of(*seeds: int) -> list[Any]:
    """Seeds for ``parametrize``: the first is tried in `make test`, the others if long."""
    first, *others = seeds
    return [first, *(pytest.param(seed, marks=pytest.mark.long) for seed in others)]
