"""Timed messages as a notebook writes them: deliver_at, delay, recall, and a slave that never delivers."""

from __future__ import annotations

import pytest

from mqlab import CONSUME_SUCCESS, Lab, Message
from mqlab.errors import BrokerError, ClientError, UsageError
from mqlab.rocketmq.wire.message import MessageQueue
from mqlab.rocketmq.wire.recall_handle import RecallHandle


def test_messages_come_at_their_moments(seed: int = 3) -> None:
    lab = Lab(seed=seed)
    lab.create_topic("orders", read_queue_nums=1, write_queue_nums=1)
    producer, consumer = lab.producer("shop"), lab.push_consumer("billing")
    seen: list[tuple[bytes, int]] = []
    consumer.subscribe("orders", "*")

    def listener(messages: list, context: object) -> str:
        seen.extend((message.body, lab.now_ms) for message in messages)
        return CONSUME_SUCCESS

    consumer.on_messages(listener)
    consumer.start()
    start_ms = lab.now_ms
    result = producer.send(Message("orders", b"delay", delay="90s"))
    producer.send(Message("orders", b"moment", deliver_at=start_ms + 30_000))
    producer.send(Message("orders", b"past", deliver_at=start_ms - 1))
    assert result.recall_handle
    lab.run_until_quiet(limit="10m")
    late = {body: at_ms - start_ms for body, at_ms in seen}
    assert list(late) == [b"past", b"moment", b"delay"]
    assert 30_000 <= late[b"moment"] <= 31_200 and 90_000 <= late[b"delay"] <= 91_300


def test_recall_asks_the_broker_of_the_handle() -> None:
    lab = Lab(seed=3, broker={"recall_message_enable": True})
    lab.create_topic("orders")
    producer = lab.producer("shop")
    result = producer.send(Message("orders", b"x", delay="20s"))
    assert producer.recall("orders", result.recall_handle) == result.msg_id
    lab.run_for("40s")
    assert sum(lab.broker().store.max_offset("orders", queue) for queue in range(8)) == 0
    with pytest.raises(ClientError, match="recall handle is invalid"):
        producer.recall("orders", "xxxx")
    with pytest.raises(ClientError, match="topic is not supported"):
        producer.recall("%RETRY%billing", result.recall_handle)
    with pytest.raises(ClientError, match="broker service address not found"):
        producer.recall("orders", RecallHandle("orders", "broker-z", "1", "K").encode())
    with pytest.raises(BrokerError, match="timestamp invalid"):
        producer.recall("orders", result.recall_handle)


def test_the_answer_names_the_queue_that_was_asked_for_and_the_offset_in_the_timer_topic() -> None:
    """As 5.3.3 answers (seen on a real broker): the message itself waits in queue 0 of the timer topic."""
    lab = Lab(seed=3)
    lab.create_topic("orders", read_queue_nums=4, write_queue_nums=4)
    producer = lab.producer("shop")
    answers = [
        producer.send(Message("orders", b"x", delay="20s"), message_queue=MessageQueue("orders", "broker-a", queue_id))
        for queue_id in (3, 1, 2)
    ]
    assert [(result.message_queue.queue_id, result.queue_offset) for result in answers] == [(3, 0), (1, 1), (2, 2)]


def test_recall_is_off_unless_the_broker_says_otherwise() -> None:
    lab = Lab(seed=3)
    lab.create_topic("orders")
    producer = lab.producer("shop")
    result = producer.send(Message("orders", b"x", delay="20s"))
    with pytest.raises(BrokerError, match="operation is forbidden"):
        producer.recall("orders", result.recall_handle)


@pytest.mark.parametrize("wrong", [{"deliver_at": "soon"}, {"delay": "soon"}, {"deliver_at": 1, "delay": "1s"}])
def test_a_wrong_time_is_refused_where_it_is_written(wrong: dict[str, object]) -> None:
    with pytest.raises(UsageError):
        Message("orders", b"x", **wrong)


def test_a_slave_fills_its_wheel_and_never_delivers() -> None:
    lab = Lab(seed=3, replicas=1)
    lab.create_topic("orders", read_queue_nums=1, write_queue_nums=1)
    lab.producer("shop").send(Message("orders", b"x", delay="40s"))
    lab.run_for("20s")
    slave = lab.broker("broker-a-s1")
    assert len(slave.state.timer.wheel) == 1
    lab.kill("broker-a")
    lab.run_for("60s")
    assert slave.store.max_offset("orders", 0) == 0
    assert slave.state.timer.status()["timerReadBehind"] > 40
    lab.start("broker-a")
    lab.run_for("10s")
    assert lab.broker("broker-a").store.max_offset("orders", 0) == 1
