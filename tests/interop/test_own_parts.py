"""RocketMQ's Java client, unmodified, sends and consumes through three learners' brokers, a retry included."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from mqlab.cluster.serving import Server
from mqlab.lab.parts.plug import ServingPlug
from tests.cluster.serving.served import server_in
from tests.interop.java_store import JavaStore
from tests.lab.parts.brokers import dicts_and_lists, of_files, rocketmq_shape
from tests.lab.parts.day import of

pytestmark = pytest.mark.interop
BROKERS = [rocketmq_shape, dicts_and_lists, of_files]


@pytest.mark.parametrize("broker", BROKERS, ids=lambda broker: broker.__name__.rpartition(".")[2])
def test_the_java_client_works_on_a_learners_broker(java_store: JavaStore, tmp_path: Path, broker: Any) -> None:
    plan = server_in(tmp_path / "store", "messageDelayLevel=1s 1s 1s 1s").plan
    server = Server(plan, plug_in=lambda: ServingPlug(of(broker)))
    server.start()
    try:
        server.wait_until_registered()
        answer = tmp_path / "answer.json"
        java_store.program("PartsDoor", server.addresses()["namesrv"], answer, home=tmp_path / "home")
    finally:
        server.close()
    seen = json.loads(answer.read_text("utf-8"))
    assert seen["sent"] == {f"order-{number}": "SEND_OK" for number in range(6)}
    assert seen["given"] == {"order-1": "orders 0", "order-3": "orders 0, orders 1", "order-5": "orders 0"}
