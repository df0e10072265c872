"""A learner's broker on real sockets: an unmodified client sends and consumes through it; a wrong part is named."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pytest

import mqlab
from mqlab import CONSUME_SUCCESS, RECONSUME_LATER, Message
from mqlab.cluster.serving import Server
from mqlab.errors import MqlabError
from mqlab.lab.parts import OwnParts
from mqlab.lab.parts.plug import ServingPlug
from tests.cluster.serving.served import server_in
from tests.lab.parts.brokers import dicts_and_lists, of_files, rocketmq_shape
from tests.lab.parts.day import of

PATIENCE_S = 30.0


def started(store: Path, parts: OwnParts) -> Server:
    server = server_in(store, "messageDelayLevel=1s 1s 1s 1s")
    server = Server(server.plan, plug_in=lambda: ServingPlug(parts))
    server.start()
    server.wait_until_registered()
    return server


@pytest.mark.long  # twenty seconds of waiting; `make test` has a client of 5.x on the same parts
@pytest.mark.parametrize("broker", [rocketmq_shape, dicts_and_lists, of_files], ids=lambda broker: broker.__name__[25:])
def test_an_unmodified_client_sends_and_consumes_through_a_learners_broker(tmp_path: Path, broker: Any) -> None:
    server, given = started(tmp_path, of(broker)), []

    def pay(messages: Any, context: Any) -> str:
        given.append((messages[0].keys, messages[0].reconsume_times))
        return RECONSUME_LATER if given[-1] == ("order-3", 0) else CONSUME_SUCCESS

    try:
        with mqlab.connect(str(server.addresses()["namesrv"])) as cluster:
            shop = cluster.producer("shop")
            for number in range(6):
                message = Message("orders", b"a book", keys=f"order-{number}", tags="paid" if number % 2 else "new")
                assert shop.send(message).send_status == "SEND_OK"
            billing = cluster.push_consumer("billing", consume_from_where="CONSUME_FROM_FIRST_OFFSET")
            billing.subscribe("orders", "paid")
            billing.on_messages(pay)
            billing.start()
            end = time.monotonic() + PATIENCE_S
            while len(given) < 4 and time.monotonic() < end:
                time.sleep(0.05)
    finally:
        server.close()
    assert sorted(given) == [("order-1", 0), ("order-3", 0), ("order-3", 1), ("order-5", 0)]


def test_a_part_that_breaks_a_rule_fails_the_request_with_its_words(tmp_path: Path) -> None:
    class Lies(rocketmq_shape.MyStore):  # type: ignore[misc]
        def put(self, topic: str, queue_id: int, unit: bytes) -> Any:
            return 7, super().put(topic, queue_id, unit)[1]

    server = started(tmp_path, of(rocketmq_shape, store=Lies))
    try:
        with mqlab.connect(str(server.addresses()["namesrv"])) as cluster:
            shop = cluster.producer("shop", retry_times_when_send_failed=0)
            with pytest.raises(MqlabError, match="The first message of a queue has number 0"):
                shop.send(Message("orders", b"a book"))
    finally:
        server.close()
