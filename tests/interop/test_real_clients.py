"""RocketMQ's Java client sees the same of `mqlab serve` as of a real cluster, behaviour by behaviour."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.interop.clusters import Where, mqlab_cluster, side_by_side
from tests.interop.java_store import JavaStore

pytestmark = pytest.mark.interop
SECONDS = 300
BEHAVIOURS = (
    "ack index",
    "broadcasting",
    "broadcasting restart",
    "consume timeout",
    "delays",
    "edges of a pull",
    "first offsets",
    "lite pull",
    "members come and go",
    "order is kept",
    "orderly with limits",
    "request and reply",
    "resets",
    "retries until dead",
    "send-back levels",
    "sends",
    "sql",
    "tags",
    "tags change live",
    "tags change live under heartbeat V2",
    "transactions",
)


@pytest.fixture(scope="module")
def seen(java_store: JavaStore, tmp_path_factory: pytest.TempPathFactory) -> tuple[Any, Any]:
    """What the client saw of mqlab's cluster and of the real one; both at the same time."""
    directory = tmp_path_factory.mktemp("clusters")

    def look(name: str, where: Where) -> Any:
        answer = directory / f"{name}.json"
        java_store.program("ClientDoor", where.name_server, answer, seconds=SECONDS, home=directory / f"home-{name}")
        return json.loads(answer.read_text("utf-8"))

    return side_by_side(directory, java_store.classpath, look)


@pytest.mark.parametrize("behaviour", BEHAVIOURS)
def test_the_java_client_sees_the_same(seen: tuple[Any, Any], behaviour: str) -> None:
    of_mqlab, of_real = (each.get(behaviour) for each in seen)
    assert of_mqlab is not None
    assert "failed" not in str(of_mqlab)
    assert of_mqlab == of_real


def test_every_behaviour_is_compared(seen: tuple[Any, Any]) -> None:
    assert set(seen[0]) == set(seen[1]) == set(BEHAVIOURS)


def test_a_store_of_the_real_kind_is_left(tmp_path: Path) -> None:
    from mqlab.lab.inspector import StoreInspector

    with mqlab_cluster(tmp_path / "mqlab"):
        pass
    assert not StoreInspector(tmp_path / "mqlab" / "store").problems()
