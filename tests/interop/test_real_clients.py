"""RocketMQ's Java client sees the same of `mqlab serve` as of a real cluster, behaviour by behaviour."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.interop.clusters import mqlab_cluster, real_cluster
from tests.interop.java_store import JavaStore

pytestmark = pytest.mark.interop
SECONDS = 300
BEHAVIOURS = (
    "ack index", "broadcasting", "delays", "edges of a pull", "lite pull", "members come and go", "order is kept",
    "request and reply", "retries until dead", "sends", "sql", "tags", "tags change live",
    "tags change live under heartbeat V2", "transactions",
)  # fmt: skip


@pytest.fixture(scope="module")
def seen(java_store: JavaStore, tmp_path_factory: pytest.TempPathFactory) -> tuple[Any, Any]:
    """What the client saw of mqlab's cluster and of the real one."""
    directory = tmp_path_factory.mktemp("clusters")
    answers = []
    for name, cluster in (
        ("mqlab", mqlab_cluster(directory / "mqlab")),
        ("real", real_cluster(directory / "real", java_store.classpath)),
    ):
        with cluster as name_server:
            answer = directory / f"{name}.json"
            java_store.program("ClientDoor", name_server, answer, seconds=SECONDS)
            answers.append(json.loads(answer.read_text("utf-8")))
    return answers[0], answers[1]


@pytest.mark.parametrize("behaviour", BEHAVIOURS)
def test_the_java_client_sees_the_same(seen: tuple[Any, Any], behaviour: str) -> None:
    of_mqlab, of_real = (each[behaviour] for each in seen)
    assert "failed" not in str(of_mqlab)
    assert of_mqlab == of_real


def test_every_behaviour_is_compared(seen: tuple[Any, Any]) -> None:
    assert set(seen[0]) == set(seen[1]) == set(BEHAVIOURS)


def test_a_store_of_the_real_kind_is_left(tmp_path: Path) -> None:
    from mqlab.store import StoreInspector

    with mqlab_cluster(tmp_path / "mqlab"):
        pass
    assert not StoreInspector(tmp_path / "mqlab" / "store").problems()
