"""What a put waits for, and what a producer sees of it.

Mirrors: GroupTransferService, CommitLog.handleDiskFlushAndHA.
"""

from __future__ import annotations

from typing import Any

import pytest

from mqlab import COMMIT_MESSAGE, Lab, Message
from mqlab.errors import MqlabError, RemotingError
from tests.lab.scenarios.stories import changes, moments, quiet_lab, send
from tests.lab.scenarios.world.replicas import MASTER, SLAVE, TWO_COPIES, pair, queue_range

LONG = {"send_msg_timeout": 60_000}


def sent(lab: Lab, **message: Any) -> tuple[str, int]:
    """Status of one send, and how long it took; route and connection are there."""
    producer = lab.producer("shop", **LONG) if "shop-1" not in lab.handles else lab.handles["shop-1"]
    producer.send(Message("orders", b"warm up"))
    lab.run_for("5s")
    began_ms = lab.now_ms
    result = producer.send(Message("orders", "заказ 订单 💳".encode(), **message))
    return result.send_status, lab.now_ms - began_ms


def sync_master(copies: int, **more: Any) -> dict[str, Any]:
    return {"broker_role": "SYNC_MASTER", "in_sync_replicas": copies, **more}


@pytest.mark.parametrize("replicas", [0, 1])
def test_one_copy_is_the_masters_own_and_waits_for_nobody(replicas: int) -> None:
    lab = quiet_lab(seed=1, replicas=replicas, broker=sync_master(1))
    lab.create_topic("orders")
    assert sent(lab)[0] == "SEND_OK" and sent(lab)[1] <= 5


def test_two_copies_with_the_slave_up_take_one_round_more() -> None:
    lab = pair(broker=TWO_COPIES)
    lab.create_topic("orders")
    assert sent(lab) == ("SEND_OK", 4)  # to the master, to the slave, back, back


@pytest.mark.parametrize("slave_is_up", [True, False])
def test_wait_false_waits_for_nobody(slave_is_up: bool) -> None:
    lab = pair(broker=TWO_COPIES)
    lab.create_topic("orders")
    producer = lab.producer("shop", **LONG)
    send(producer, "warm up")
    if not slave_is_up:
        lab.kill(SLAVE)
    began_ms = lab.now_ms
    [result] = send(producer, "спешит 赶", wait_store_msg_ok=False)
    assert (result.send_status, lab.now_ms - began_ms) == ("SEND_OK", 2)


def test_a_slave_that_just_stopped_costs_the_slave_timeout() -> None:
    lab = pair(broker=TWO_COPIES)
    lab.create_topic("orders")
    producer = lab.producer("shop", **LONG)
    send(producer, "до")
    lab.kill(SLAVE)
    lab.run_for("1s")
    began_ms = lab.now_ms
    [result] = send(producer, "после 之后")
    assert (result.send_status, lab.now_ms - began_ms) == ("FLUSH_SLAVE_TIMEOUT", 3_002)
    assert result.queue_offset is not None and result.offset_msg_id  # it is stored
    stored = [message.body.decode() for message in lab.store(MASTER).messages() if message.topic == "orders"]
    assert stored == ["до", "после 之后"]


@pytest.mark.parametrize(("timeout", "expected_ms"), [(3_000, 3_002), (500, 502)])
def test_three_copies_with_one_slave(timeout: int, expected_ms: int) -> None:
    lab = pair(broker=sync_master(3, slave_timeout=timeout))
    lab.create_topic("orders")
    producer = lab.producer("shop", **LONG)
    lab.run_for("1s")
    producer.client.call(lambda: producer.client.cluster.update_route("orders"))
    began_ms = lab.now_ms
    [result] = send(producer, "x")
    assert result.send_status == "FLUSH_SLAVE_TIMEOUT"
    assert expected_ms <= lab.now_ms - began_ms <= expected_ms + 4


def test_three_copies_with_two_slaves_wait_for_the_slower() -> None:
    lab = pair(broker=sync_master(3), replicas=2)
    lab.create_topic("orders")
    lab.slow("broker-a-s2", "300ms")
    assert sent(lab) == ("SEND_OK", 2 + 2 * 301)


def test_a_message_in_doubt_is_visible_to_consumers() -> None:
    lab = pair(broker=sync_master(3))
    lab.create_topic("orders")
    puller = lab.pull_consumer("audit")
    pending = lab.producer("shop", **LONG).send_async(Message("orders", "видно 可见".encode()))
    lab.run_for("500ms")
    queues = puller.fetch_subscribe_message_queues("orders")
    bodies = [m.body.decode() for queue in queues for m in puller.pull(queue, "*", 0).msg_found_list]
    assert bodies == ["видно 可见"]
    assert pending.result().send_status == "FLUSH_SLAVE_TIMEOUT"


def test_puts_in_doubt_fail_each_at_its_own_time() -> None:
    lab = pair(broker=sync_master(3))
    lab.create_topic("orders")
    producer = lab.producer("shop", **LONG)
    send(producer, "первое")
    began_ms = lab.now_ms
    pending = []
    for number in range(5):
        pending.append(producer.send_async(Message("orders", f"{number}".encode())))
        lab.run_for("200ms")
    lab.run_until(lambda: len(moments(lab, "message.sent", send_status="FLUSH_SLAVE_TIMEOUT")) == 6)
    waited = [at - (began_ms - lab.began_ms) for at in moments(lab, "message.sent")][1:]
    assert waited == [3_002 + 200 * number for number in range(5)]


def test_the_number_of_copies_changes_while_the_broker_runs() -> None:
    lab = pair(broker=sync_master(1))
    lab.create_topic("orders")
    producer = lab.producer("shop", **LONG)
    assert send(producer, "раз")[0].send_status == "SEND_OK"
    lab.admin.update_broker_config(MASTER, in_sync_replicas=3, slave_timeout=500)
    began_ms = lab.now_ms
    assert send(producer, "два")[0].send_status == "FLUSH_SLAVE_TIMEOUT" and lab.now_ms - began_ms == 502
    lab.admin.update_broker_config(MASTER, in_sync_replicas=2)
    assert send(producer, "три 三")[0].send_status == "SEND_OK"


def without_slave() -> Lab:
    """One broker that wants two copies and has no slave."""
    lab = quiet_lab(seed=2, broker=TWO_COPIES)
    lab.create_topic("orders", read_queue_nums=1, write_queue_nums=1)
    return lab


def copies(lab: Lab) -> int:
    lab.run_for("10s")
    return queue_range(lab, MASTER, "orders")[1]


def test_with_the_defaults_of_both_sides_the_status_is_never_seen() -> None:
    lab = without_slave()
    with pytest.raises(RemotingError, match="call timeout"):
        lab.producer("shop").send(Message("orders", b"x"))
    assert copies(lab) == 1


def test_a_patient_producer_sees_the_status() -> None:
    lab = without_slave()
    result = lab.producer("shop", send_msg_timeout=6_000).send(Message("orders", b"x"))
    assert result.send_status == "FLUSH_SLAVE_TIMEOUT" and result.queue_offset == 0 and result.offset_msg_id
    assert copies(lab) == 1


def test_resending_to_another_broker_falls_back_to_the_only_one_and_stores_three_copies() -> None:
    lab = without_slave()
    producer = lab.producer("shop", send_msg_timeout=9_500, retry_another_broker_when_not_store_ok=True)
    result = producer.send(Message("orders", "копия 副本".encode()))
    assert result.send_status == "FLUSH_SLAVE_TIMEOUT" and result.queue_offset == 2
    assert copies(lab) == 3
    ids = {message.properties["UNIQ_KEY"] for message in lab.store(MASTER).messages() if message.topic == "orders"}
    assert len(ids) == 1


def test_resending_prefers_another_broker() -> None:
    lab = quiet_lab(seed=2, brokers=2, replicas=1, broker=TWO_COPIES)
    lab.create_topic("orders")
    lab.kill("broker-a-s1")
    producer = lab.producer("shop", send_msg_timeout=9_500, retry_another_broker_when_not_store_ok=True)
    results = [producer.send(Message("orders", b"x")) for _ in range(4)]
    assert {result.send_status for result in results} == {"SEND_OK"}
    assert {result.message_queue.broker_name for result in results} == {"broker-b"}


@pytest.mark.parametrize("way", ["async", "selector"])
def test_other_ways_of_sending_never_resend_for_this(way: str) -> None:
    lab = without_slave()
    producer = lab.producer("shop", send_msg_timeout=9_500, retry_another_broker_when_not_store_ok=True)
    if way == "async":
        result = producer.send_async(Message("orders", b"x")).result()
    else:
        result = producer.send(Message("orders", b"x"), selector=lambda queues, message, arg: queues[0])
    assert result.send_status == "FLUSH_SLAVE_TIMEOUT"
    assert copies(lab) == 1


class Local:
    """A local transaction that counts."""

    def __init__(self) -> None:
        self.executed = 0

    def execute_local_transaction(self, message: Message, arg: object) -> str:
        self.executed += 1
        return COMMIT_MESSAGE

    def check_local_transaction(self, message: Message) -> str:
        return COMMIT_MESSAGE


@pytest.mark.parametrize(("slave_is_up", "executed"), [(True, 1), (False, 0)])
def test_a_half_message_that_is_not_safe_is_rolled_back_without_the_local_transaction(
    slave_is_up: bool, executed: int
) -> None:
    lab = pair(broker=TWO_COPIES)
    lab.create_topic("orders")
    if not slave_is_up:
        lab.kill(SLAVE)
    local = Local()
    producer = lab.transaction_producer("pay", local, send_msg_timeout=6_000)
    try:
        producer.send_message_in_transaction(Message("orders", "оплата 支付".encode()), None)
    except MqlabError:
        pytest.fail("a half message in doubt is no error")
    lab.run_for("10s")
    assert local.executed == executed
    assert len(changes(lab, "transaction.committed")) == executed
    assert len(changes(lab, "transaction.rolled_back")) == 1 - executed


def test_an_acknowledged_message_outlives_its_master_and_its_disk() -> None:
    lab = pair(broker=TWO_COPIES)
    lab.create_topic("orders")
    results = send(lab.producer("shop"), *[f"заказ {number} 订单" for number in range(20)])
    lab.power_off(MASTER)
    lab.lose_disk(MASTER)
    stored = {message.properties["UNIQ_KEY"] for message in lab.store(SLAVE).messages()}
    assert {result.msg_id for result in results} <= stored


def test_asynchronous_replication_loses_what_was_not_copied_yet() -> None:
    lab = pair(broker={"broker_role": "ASYNC_MASTER"})
    lab.create_topic("orders")
    results = send(lab.producer("shop"), *[f"заказ {number}" for number in range(20)])
    assert {result.send_status for result in results} == {"SEND_OK"}
    lab.power_off(MASTER)
    lab.lose_disk(MASTER)
    lab.run_for("1s")
    stored = {message.properties["UNIQ_KEY"] for message in lab.store(SLAVE).messages()}
    assert not {result.msg_id for result in results} <= stored
