"""Learners' brokers and RocketMQ: its Java client, unmodified, works on three of them; its store opens one's files."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from mqlab import Lab, Message
from mqlab.cluster.serving import Server
from mqlab.lab.parts import OwnParts
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


def test_the_real_store_opens_the_files_of_a_learners_store(java_store: JavaStore, tmp_path: Path) -> None:
    with Lab(seed=3, parts=OwnParts(store=rocketmq_shape.MyStore), client={"enable_trace": False}) as lab:
        lab.create_topic("orders", read_queue_nums=2, write_queue_nums=2)
        shop = lab.producer("shop")
        places = [shop.send(Message("orders", b"a book", keys=f"order-{number}")) for number in range(20)]
        lab.run_for("5s")
        shutil.copytree(lab.store().directory, tmp_path / "theirs")
    words = f"{rocketmq_shape.LOG_BYTES},{rocketmq_shape.QUEUE_BYTES},50,150"
    seen = java_store.ask("list", tmp_path / "theirs", words)
    sent = [("orders", place.message_queue.queue_id, place.queue_offset) for place in places]
    assert [(topic, queue_id, offset) for _, topic, queue_id, offset, *_ in seen["messages"]] == sent
    assert {(topic, queue_id, high) for topic, queue_id, _, high, _ in seen["queues"]} == {
        ("orders", 0, 10),
        ("orders", 1, 10),
    }
