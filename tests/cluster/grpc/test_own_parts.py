"""The unmodified Python client of RocketMQ 5 on three learners' brokers: it sends, consumes, and gets again."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import mqlab
from mqlab.cluster.runtime.loop_clock import AdvancingClock
from mqlab.cluster.serving import Server
from mqlab.lab.parts.plug import ServingPlug
from tests.cluster.grpc.official import Listener, message, producer, push, simple, until
from tests.cluster.serving.served import FREE, server_in
from tests.lab.parts.brokers import dicts_and_lists, of_files, rocketmq_shape
from tests.lab.parts.day import of

BROKERS = [
    rocketmq_shape,
    pytest.param(dicts_and_lists, marks=pytest.mark.long),
    pytest.param(of_files, marks=pytest.mark.long),
]


@pytest.fixture(params=BROKERS, ids=lambda broker: broker.__name__.rpartition(".")[2])
def server(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Server]:
    plan, parts = server_in(tmp_path, grpc=FREE).plan, of(request.param)
    served = Server(plan, plug_in=lambda: ServingPlug(parts), can_advance=True)
    served.start()
    try:
        served.wait_until_registered()
        with mqlab.connect(str(served.addresses()["namesrv"])) as cluster:
            cluster.admin.create_topic("orders", read_queue_nums=2, write_queue_nums=2, confirm=True)
        yield served
    finally:
        served.close()


def passes(server: Server, seconds: int) -> None:
    """Time goes on at the broker, a second at a time."""
    clock = server.loop.clock
    assert isinstance(clock, AdvancingClock)
    for _ in range(seconds):
        server.on_loop(lambda: clock.advance(1_000))
        time.sleep(0.01)


def test_the_official_client_sends_and_consumes_on_a_learners_broker(server: Server) -> None:
    where, listener = str(server.addresses()["grpc"]), Listener()
    with producer(where, "orders") as shop:
        ids = {
            shop.send(message("orders", b"order-%d" % number, tag="paid" if number % 2 else "new")).message_id
            for number in range(4)
        }
    with push(where, "billing", listener, orders="paid"):
        until(lambda: len(listener.seen) == 2)
    assert sorted(listener.bodies) == [b"order-1", b"order-3"]
    stored = [record.property_map["UNIQ_KEY"] for record in records(server)]
    assert set(stored) == ids and len(stored) == 4  # they are in the learner's own log
    with simple(where, "audit", orders="*") as audit:
        kept = received(audit, 4)
        for order in kept[1:]:
            audit.ack(order)
        passes(server, 40)
        (again,) = received(audit, 1)
        assert again.body == kept[0].body and again.delivery_attempt == 2
        audit.ack(again)


def received(consumer: Any, count: int) -> list[Any]:
    messages: list[Any] = []
    until(lambda: messages.extend(consumer.receive(32, 30) or []) or len(messages) >= count)
    return messages


def records(server: Server) -> list[Any]:
    (broker,) = server.brokers
    store = broker.store

    def read() -> list[Any]:
        ends = [(queue_id, store.max_offset("orders", queue_id)) for queue_id in range(2)]
        units = [store.consume_queue_unit("orders", queue_id, n) for queue_id, end in ends for n in range(end)]
        return [store.message_at(unit.physical_offset) for unit in units if unit is not None]

    return server.on_loop(read)
