"""The fixture's verbs for both kinds of clients: requests that fail, and time that passes only when it is told to."""

from __future__ import annotations

import time
from typing import Any

import grpc
import pytest

import mqlab
from mqlab import CONSUME_SUCCESS, RECONSUME_LATER, Message
from mqlab.cluster.grpc.service import PREFIX
from mqlab.errors import MqlabError, UsageError
from tests.cluster.grpc.official import Listener, message, producer, push, simple

MOST_SECONDS = 8.0  # on a busy machine, for what takes ten seconds and more of the server's time


def test_the_next_request_of_a_remoting_client_fails(rocketmq: Any) -> None:
    orders = rocketmq.topic("orders")
    with mqlab.connect(rocketmq.namesrv) as cluster:
        shop = cluster.producer("shop", retry_times_when_send_failed=0)
        rocketmq.fail_next("SendMessage")
        with pytest.raises(MqlabError, match="SendMessage was told to fail"):
            shop.send(Message(orders, b"order-1"))
        shop.send(Message(orders, b"order-2"))
        rocketmq.fail_next("UPDATE_AND_CREATE_TOPIC")
        with pytest.raises(MqlabError, match="UPDATE_AND_CREATE_TOPIC was told to fail"):
            cluster.admin.create_topic(orders, confirm=True)
        cluster.admin.create_topic(orders, confirm=True)
    assert [stored.body for stored in rocketmq.messages("orders")] == [b"order-2"]


def test_a_receive_and_a_telemetry_stream_of_a_5x_client_fail(rocketmq: Any) -> None:
    orders, group = rocketmq.topic("orders"), rocketmq.group("billing")
    with producer(rocketmq.grpc, orders) as shop:
        shop.send(message(orders, b"order-1"))
    with simple(rocketmq.grpc, group, **{orders: "*"}) as billing:
        rocketmq.fail_next("ReceiveMessage")
        with pytest.raises(Exception, match="ReceiveMessage was told to fail"):
            billing.receive(1, 10)
        assert [received.body for received in billing.receive(1, 10)] == [b"order-1"]
    rocketmq.fail_next("Telemetry")
    with grpc.insecure_channel(rocketmq.grpc) as channel:  # the official client logs it and opens another stream
        telemetry = channel.stream_stream(f"{PREFIX}Telemetry")
        with pytest.raises(grpc.RpcError) as failure:
            next(telemetry(iter([])))
    assert (failure.value.code(), failure.value.details()) == (grpc.StatusCode.INTERNAL, "Telemetry was told to fail")


def test_what_the_server_does_not_answer_cannot_fail(rocketmq: Any) -> None:
    for name, hint in (
        ("SendMesage", "did you mean SendMessage"),
        ("PULL_MESAGE", "did you mean PULL_MESSAGE"),
        ("zzz", "RPCs: SendMessage, ReceiveMessage"),
    ):
        with pytest.raises(UsageError, match=f"'{name}' is neither an RPC nor a request code of the broker") as refusal:
            rocketmq.fail_next(name)
        assert hint in (refusal.value.hint or "")


def test_frozen_time_does_not_pass_and_a_level_and_a_retry_come_at_once(rocketmq: Any) -> None:
    """A remoting client: a message of level 3 waits ten seconds, and so does its first retry."""
    orders, began = rocketmq.topic("orders"), time.monotonic()
    rocketmq.freeze()
    with mqlab.connect(rocketmq.namesrv) as cluster:
        tried: list[int] = []

        def bill(messages: Any, context: Any) -> str:
            tried.append(messages[0].reconsume_times)
            return RECONSUME_LATER if len(tried) == 1 else CONSUME_SUCCESS

        billing = cluster.push_consumer(rocketmq.group("billing"), consume_from_where="CONSUME_FROM_FIRST_OFFSET")
        billing.subscribe(orders, "*")
        billing.on_messages(bill)
        billing.start()
        cluster.producer("shop").send(Message(orders, b"order-1", delay_time_level=3))
        rocketmq.advance("9s")
        time.sleep(1.2)
        assert not rocketmq.messages("orders")
        rocketmq.until(lambda: tried == [0], at_most="3s")
        time.sleep(0.1)
        assert tried == [0]
        rocketmq.until(lambda: tried == [0, 1], at_most="15s")
    assert time.monotonic() - began < MOST_SECONDS


def test_a_5x_clients_retry_and_its_delayed_message_come_at_once(rocketmq: Any) -> None:
    reminders, group, began = rocketmq.topic("reminders", "DELAY"), rocketmq.group("mail"), time.monotonic()
    mail = Listener(lambda received: received.delivery_attempt == 1)
    rocketmq.freeze()
    with producer(rocketmq.grpc, reminders) as shop, push(rocketmq.grpc, group, mail, **{reminders: "*"}):
        shop.send(message(reminders, b"bill-1", delivery_timestamp=int(time.time()) + 600))
        rocketmq.advance("9m")
        assert mail.seen == []
        rocketmq.until(lambda: mail.seen == [(b"bill-1", 1), (b"bill-1", 2)])
    assert time.monotonic() - began < MOST_SECONDS


def test_frozen_time_survives_a_kill_and_ends_with_the_test(rocketmq: Any, monkeypatch: Any) -> None:
    monkeypatch.setattr("mqlab.cluster.testing.server.PATIENCE_SECONDS", 0.01)
    clock = lambda: rocketmq._server.clock  # noqa: E731 - of the server that runs now
    rocketmq.advance("1h")
    rocketmq.freeze()
    before_ms = clock().now_ms()
    rocketmq.kill()
    assert clock().now_ms() == before_ms
    rocketmq.topic("known")  # the name server has not forgotten the broker
    with pytest.raises(AssertionError, match="not within 1s"):
        rocketmq.until(lambda: False, at_most="1s")
    assert clock().now_ms() == before_ms + 1_000
    rocketmq.end()
    time.sleep(0.02)
    assert clock().now_ms() > before_ms + 1_000
