"""A running world for the tests of handlers."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.rocketmq.broker.world import BareClient, World


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path)


@pytest.fixture
def client(world: World) -> BareClient:
    return world.client()
