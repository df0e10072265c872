"""Trace messages in RocketMQ's text format."""

from __future__ import annotations

from typing import Any

from mqlab.rocketmq.wire.message import Message
from tests.rocketmq.client.conftest import Recorder, World


def entries(world: World) -> list[list[str]]:
    texts = []
    for queue_id in range(8):
        for message in world.broker.store.get("RMQ_SYS_TRACE_TOPIC", queue_id, 0).messages():
            texts += [entry.split("\x01") for entry in message.body.decode().split("\x02") if entry]
    return texts


def test_sends_and_deliveries_leave_traces(make_world) -> None:  # type: ignore[no-untyped-def]
    world = make_world(trace_topic_enable=True)
    world.create_topic("orders", 1)
    listener = Recorder(world, "CONSUME_SUCCESS", "RECONSUME_LATER", "CONSUME_SUCCESS", takes="20ms")
    world.consumer(listener=listener, enable_trace=True)
    producer = world.producer(enable_trace=True)
    world.run_for(25_000)  # from 21 s on a new group reads its retry topic
    result = producer.send(Message("orders", "订单".encode(), tags="paid", keys="order-1 ev-1"))
    producer.send(Message("orders", b"x"))
    world.run_for(15_000)
    kinds = [entry[0] for entry in entries(world)]
    assert (kinds.count("Pub"), kinds.count("SubBefore"), kinds.count("SubAfter")) == (2, 3, 3)
    first = next(entry for entry in entries(world) if entry[0] == "Pub")
    assert first[2:9] == ["DefaultRegion", "shop", "orders", result.msg_id, "paid", "order-1 ev-1", "10.0.0.2:10911"]
    assert first[9:] == ["6", "2", "0", result.offset_msg_id, "true"]
    befores = [entry for entry in entries(world) if entry[0] == "SubBefore"]
    assert befores[0][2:4] == ["DefaultRegion", "billing"]
    assert befores[0][5:] == [result.msg_id, "0", "order-1 ev-1"]
    afters = {entry[1]: entry for entry in entries(world) if entry[0] == "SubAfter"}
    assert {before[4] for before in befores} == set(afters)
    assert sorted(entry[4] for entry in afters.values()) == ["false", "true", "true"]
    assert {entry[3] for entry in afters.values()} == {"20"}
    assert {entry[6] for entry in afters.values()} == {"0", "4"}


def test_a_broker_with_trace_off_gets_no_entries_of_sends(make_world: Any) -> None:
    world = make_world(trace_topic_enable=True, trace_on=False)
    producer = world.producer(enable_trace=True)
    result = producer.send(Message("orders", b"x"))
    producer.shutdown()
    world.run_for(1_000)
    assert not result.trace_on and entries(world) == []


def test_an_entry_has_the_tag_that_a_hook_set_and_the_length_of_the_compressed_body(make_world: Any) -> None:
    class Tagging:
        def send_message_before(self, context: Any) -> None:
            context.message.tags = "tagged"

        def send_message_after(self, context: Any) -> None: ...

    world = make_world(trace_topic_enable=True)
    producer = world.producer(enable_trace=True, start=False)
    producer.register_send_message_hook(Tagging())
    producer.start()
    producer.send(Message("orders", b"x" * 5000))
    producer.shutdown()
    world.run_for(1_000)
    (entry,) = entries(world)
    assert entry[6] == "tagged" and int(entry[9]) < 100


def test_ten_entries_or_half_a_second_make_a_message_with_keys_of_all(make_world) -> None:  # type: ignore[no-untyped-def]
    world = make_world(trace_topic_enable=True)
    producer = world.producer(enable_trace=True)
    sent = [producer.send(Message("orders", b"x", keys=f"k{number}")) for number in range(13)]
    world.run_for(100)
    assert len(entries(world)) == 10
    world.run_for(600)
    assert len(entries(world)) == 13
    messages = world.broker.store.get("RMQ_SYS_TRACE_TOPIC", 0, 0).messages()
    assert len(messages) == 2
    assert set(messages[0].keys.split(" ")) == {each.msg_id for each in sent[:10]} | {f"k{n}" for n in range(10)}


def test_shutdown_sends_what_is_left(make_world) -> None:  # type: ignore[no-untyped-def]
    world = make_world(trace_topic_enable=True)
    producer = world.producer(enable_trace=True)
    producer.send(Message("orders", b"x"))
    producer.shutdown()
    world.run_for(100)
    assert [entry[0] for entry in entries(world)] == ["Pub"]
