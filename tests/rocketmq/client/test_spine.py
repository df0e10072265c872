"""One message from producer.send to the committed offset, against the real name server and broker."""

from __future__ import annotations

from mqlab.rocketmq.wire.message import Message, MessageQueue
from tests.rocketmq.client.conftest import Recorder, World, send


def test_a_message_is_sent_pulled_consumed_and_committed(world: World) -> None:
    producer = world.producer()
    result = producer.send(Message("orders", "заказ 订单 🚀".encode(), tags="paid", keys="order-1"))
    assert result.send_status == "SEND_OK"
    assert result.message_queue.topic == "orders"
    listener = Recorder(world)
    consumer = world.consumer(listener=listener)
    world.run_until(lambda: bool(listener.seen))
    message = listener.seen[0]
    assert (message.topic, message.body.decode()) == ("orders", "заказ 订单 🚀")
    assert (message.tags, message.keys) == ("paid", "order-1")
    assert (message.msg_id, message.offset_msg_id) == (result.msg_id, result.offset_msg_id)
    assert (message.queue_offset, message.reconsume_times) == (0, 0)
    world.run_for(15_000)
    assert consumer.offset_store.read_memory(result.message_queue) == 1
    assert world.broker.offset_table.query("billing", "orders", result.message_queue.queue_id) == 1


def test_all_queues_of_all_brokers_belong_to_the_only_member(make_world) -> None:
    world = make_world(brokers=["broker-a", "broker-b"])
    world.create_topic("orders", 2)
    consumer = world.consumer(listener=Recorder(world))
    world.run_for(2_000)
    expected = [MessageQueue("orders", broker, number) for broker in ("broker-a", "broker-b") for number in (0, 1)]
    assert [queue for queue in consumer.message_queues if queue.topic == "orders"] == expected


def test_everything_sent_is_delivered_once(world: World) -> None:
    producer = world.producer()
    listener = Recorder(world)
    world.consumer(listener=listener)
    world.run_for(3_000)
    bodies = [f"m{number} 订单" for number in range(50)]
    send(producer, "orders", *bodies)
    world.run_for(60_000)
    assert sorted(listener.bodies) == sorted(bodies)
