"""SEND_MESSAGE in its three spellings: checks in order, what is stored, what is answered.

Mirrors: SendMessageProcessor.
"""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest

from mqlab.rocketmq.store.config import StoreConfig
from mqlab.rocketmq.wire import batch, properties
from mqlab.rocketmq.wire.codes import ResponseCode
from mqlab.rocketmq.wire.record import Record
from tests.rocketmq.broker.world import SMALL_STORE, BareClient, World


def test_the_answer_and_the_stored_message(world: World, client: BareClient) -> None:
    answer = client.put(
        "orders", "заказ 订单 🚀".encode(), queue_id=2, TAGS="paid", KEYS="k1 k2", UNIQ_KEY="A1", WAIT="true"
    )
    assert answer.code == ResponseCode.SUCCESS and answer.remark is None
    assert answer.ext_fields == {
        "msgId": "0A00000200002A9F0000000000000000",
        "queueId": "2",
        "queueOffset": "0",
        "transactionId": "A1",
        "MSG_REGION": "DefaultRegion",
        "TRACE_ON": "true",
    }
    world.run_for(5)
    (stored,) = world.messages("orders", 2)
    assert stored.body.decode() == "заказ 订单 🚀" and stored.store_host == ("10.0.0.2", 10911)
    assert stored.born_host[0] == client.ports.ip
    assert stored.property_map == {
        "TAGS": "paid",
        "KEYS": "k1 k2",
        "UNIQ_KEY": "A1",
        "WAIT": "true",
        "MSG_REGION": "DefaultRegion",
        "TRACE_ON": "true",
        "CLUSTER": "DefaultCluster",
    }


def test_the_first_send_makes_the_topic_and_registers_it(world: World, client: BareClient) -> None:
    client.put("orders")
    topic = world.broker.topics["orders"]
    assert (topic.read_queue_nums, topic.write_queue_nums, topic.perm) == (4, 4, 6)
    world.run_for(5)
    assert world.name_server.routes.queue_data("orders", "broker-a") == topic.queue_data("broker-a")


def test_long_and_short_field_names_mean_the_same(world: World, client: BareClient) -> None:
    for code in (10, 310):
        assert client.put("orders", f"code {code}".encode(), code=code).code == ResponseCode.SUCCESS
    world.run_for(5)
    assert [record.body for record in world.messages("orders")] == [b"code 10", b"code 310"]


@pytest.mark.parametrize(
    ("topic", "more", "code"),
    [
        ("заказы", {}, ResponseCode.INVALID_PARAMETER),
        ("a b", {}, ResponseCode.INVALID_PARAMETER),
        ("x" * 128, {}, ResponseCode.INVALID_PARAMETER),
        ("SCHEDULE_TOPIC_XXXX", {}, ResponseCode.NO_PERMISSION),
        ("RMQ_SYS_TRANS_HALF_TOPIC", {}, ResponseCode.NO_PERMISSION),
        ("TRANS_CHECK_MAX_TIME_TOPIC", {}, ResponseCode.NO_PERMISSION),
        ("orders", {"defaultTopic": "unknown"}, ResponseCode.TOPIC_NOT_EXIST),
        ("orders", {"queueId": 4}, ResponseCode.INVALID_PARAMETER),
        ("orders", {"sysFlag": "x"}, ResponseCode.INVALID_PARAMETER),
    ],
)
def test_what_is_refused_and_with_which_code(client: BareClient, topic: str, more: dict[str, str], code: int) -> None:
    answer = client.put(topic, more=more)
    assert answer.code == code and answer.remark and answer.ext_fields["MSG_REGION"] == "DefaultRegion"


def test_no_body_is_an_error(client: BareClient) -> None:
    assert client.put("orders", b"").code == ResponseCode.SYSTEM_ERROR


def test_a_negative_queue_becomes_a_random_one(world: World, client: BareClient) -> None:
    chosen = {int(client.put("orders", queue_id=-1).ext_fields["queueId"]) for _ in range(40)}
    assert chosen == {0, 1, 2, 3}


def test_a_send_is_accepted_up_to_the_larger_queue_count(world: World, client: BareClient) -> None:
    client.ask(
        17,
        topic="orders",
        defaultTopic="TBW102",
        readQueueNums=8,
        writeQueueNums=4,
        perm=6,
        topicFilterType="SINGLE_TAG",
        order=False,
    )
    assert client.put("orders", queue_id=7).code == ResponseCode.SUCCESS
    assert client.put("orders", queue_id=8).code == ResponseCode.INVALID_PARAMETER


def test_without_a_unique_key_the_broker_makes_one(world: World, client: BareClient) -> None:
    keys = [client.put("orders").ext_fields["transactionId"] for _ in range(2)]
    assert len(set(keys)) == 2 and all(len(key) == 32 for key in keys)
    world.run_for(5)
    assert [record.property_map["UNIQ_KEY"] for record in world.messages("orders")] == keys


def test_a_delayed_message_waits_in_the_schedule_topic(world: World, client: BareClient) -> None:
    answer = client.put("orders", queue_id=3, DELAY="99", TAGS="later", TIMER_DELAY_SEC="5")
    assert (answer.ext_fields["queueId"], answer.ext_fields["queueOffset"]) == ("3", "0")
    world.run_for(5)
    (parked,) = world.messages("SCHEDULE_TOPIC_XXXX", 17)
    assert parked.property_map["DELAY"] == "18" and "TIMER_DELAY_SEC" not in parked.property_map
    assert (parked.property_map["REAL_TOPIC"], parked.property_map["REAL_QID"]) == ("orders", "3")


def test_a_body_over_the_limit_is_illegal(tmp_path: Path) -> None:
    small = StoreConfig(
        mapped_file_size_commit_log=1 << 18, max_message_size=100, max_hash_slot_num=10, max_index_num=40
    )
    client = World(tmp_path, store=small).client()
    assert client.put("orders", b"x" * 100).code == ResponseCode.SUCCESS
    assert client.put("orders", b"x" * 101).code == ResponseCode.MESSAGE_ILLEGAL


def test_a_broker_without_write_permission_refuses_only_ordered_topics(tmp_path: Path) -> None:
    world = World(tmp_path, broker_permission=4)
    client = world.client()
    assert client.put("orders").code == ResponseCode.SUCCESS
    world.broker.topics.set_order(["orders"])
    assert client.put("orders").code == ResponseCode.NO_PERMISSION


def test_a_broker_that_does_not_serve_yet_says_so(tmp_path: Path) -> None:
    world = World(tmp_path, start_accept_send_request_time_stamp=1 << 50)
    assert world.client().put("orders").code == ResponseCode.SYSTEM_ERROR


def batch_body(*bodies: bytes, closed: bool = True) -> bytes:
    end = b"\x02" if closed else b""
    return batch.encode(batch.BatchItem(7, one, b"KEYS\x01" + one + b"\x02TAGS\x01t" + end) for one in bodies)


@pytest.mark.parametrize("closed", [True, False])
def test_a_batch_becomes_consecutive_units(world: World, client: BareClient, closed: bool) -> None:
    answer = client.put(
        "batch", batch_body(b"b0", b"b1", b"b2", closed=closed), code=320, UNIQ_KEY="WHOLE", WAIT="true"
    )
    assert answer.code == ResponseCode.SUCCESS and answer.ext_fields["queueOffset"] == "0"
    assert answer.ext_fields["msgId"].count(",") == 2 and answer.ext_fields["transactionId"] == "WHOLE"
    world.run_for(5)
    stored = world.messages("batch")
    assert [(one.queue_offset, one.body, one.flag) for one in stored] == [(0, b"b0", 7), (1, b"b1", 7), (2, b"b2", 7)]
    assert all(one.property_map["UNIQ_KEY"] == "WHOLE" and one.property_map["TAGS"] == "t" for one in stored)
    assert stored[0].properties.startswith(b"KEYS\x01b0\x02TAGS\x01t\x02")


def test_a_batch_that_is_too_large_is_an_error_that_clients_retry(tmp_path: Path) -> None:
    store = dataclasses.replace(SMALL_STORE, max_message_size=150)
    client = World(tmp_path, store=store).client()
    large = client.put("batch", batch_body(b"x" * 40, b"y" * 40), code=320)
    assert (large.code, "at most 150 are allowed" in (large.remark or "")) == (ResponseCode.SYSTEM_ERROR, True)
    assert client.put("batch", batch_body(b"x" * 40), code=320).code == ResponseCode.SUCCESS
    assert client.put("single", b"x" * 151).code == ResponseCode.MESSAGE_ILLEGAL


def test_batches_that_are_illegal(client: BareClient) -> None:
    client.heartbeat("billing")
    assert client.put("%RETRY%billing", batch_body(b"b0"), code=320).code == ResponseCode.MESSAGE_ILLEGAL
    assert client.put("batch", batch_body(b"b0")[:-3], code=320).code == ResponseCode.MESSAGE_ILLEGAL
    assert client.put("batch", b"", code=320).code == ResponseCode.SYSTEM_ERROR


def resend(client: BareClient, **more: object) -> int:
    values = {"reconsumeTimes": 3, "maxReconsumeTimes": 16, **more}
    return client.put("%RETRY%billing", more=values, DELAY="6", RETRY_TOPIC="orders", UNIQ_KEY="U").code


def test_a_consumers_own_resend_is_delayed_until_it_is_too_often(world: World, client: BareClient) -> None:
    assert resend(client) == ResponseCode.SUCCESS
    assert resend(client, reconsumeTimes=16) == ResponseCode.SUCCESS
    assert "%DLQ%billing" not in world.broker.topics
    assert resend(client, reconsumeTimes=17) == ResponseCode.SUCCESS
    world.run_for(5)
    (dead,) = world.messages("%DLQ%billing")
    assert dead.reconsume_times == 17 and dead.property_map["DELAY"] == "-1"
    assert len(world.messages("SCHEDULE_TOPIC_XXXX", 5)) == 2


def test_a_group_with_a_live_queue_lock_sends_its_failures_to_the_dead(world: World, client: BareClient) -> None:
    world.broker.queue_locks.try_lock("billing", [], "one")
    assert resend(client) == ResponseCode.SUCCESS and "%DLQ%billing" not in world.broker.topics
    from mqlab.rocketmq.wire.message import MessageQueue

    world.broker.queue_locks.try_lock("billing", [MessageQueue("orders", "broker-a", 0)], "one")
    assert resend(client) == ResponseCode.SUCCESS and "%DLQ%billing" in world.broker.topics


def test_sync_flush_answers_after_the_flush(tmp_path: Path) -> None:
    import dataclasses

    world = World(tmp_path, store=dataclasses.replace(SMALL_STORE, flush_disk_type="SYNC_FLUSH"))
    answer = world.client().put("orders")
    assert answer.code == ResponseCode.SUCCESS
    assert world.broker.store.flushed_offset == world.broker.store.max_physical_offset > 0


def test_properties_stand_in_the_order_of_javas_hash_map(world: World, client: BareClient) -> None:
    client.put("orders", TAGS="t", KEYS="k", UNIQ_KEY="U", WAIT="true", region="eu", amount="7")
    world.run_for(5)
    (stored,) = world.messages("orders")
    from mqlab.rocketmq.wire.java_hash import hash_map_order

    names = list(properties.decode(stored.properties))
    assert names == hash_map_order(names, 128)


@pytest.mark.parametrize("level", ["soon", "1.5", "", "2147483648"])
def test_a_delay_level_that_is_not_a_number_refuses_the_send(world: World, client: BareClient, level: str) -> None:
    sent = client.put("orders", DELAY=level)
    if not level:  # an empty value is no property
        assert sent.code == ResponseCode.SUCCESS
        return
    assert sent.code == ResponseCode.SYSTEM_ERROR and f'For input string: "{level}"' in (sent.remark or "")
    half = client.put("orders", DELAY=level, TRAN_MSG="true", PGROUP="pay")
    assert half.code == ResponseCode.SYSTEM_ERROR
    world.run_for(5)
    assert not any(world.messages("orders", queue) for queue in range(4))


@pytest.mark.parametrize("level", ["+3", "３"])
def test_a_delay_level_is_read_as_java_reads_an_integer(world: World, client: BareClient, level: str) -> None:
    assert client.put("orders", DELAY=level).code == ResponseCode.SUCCESS
    world.run_for(5)
    (parked,) = world.messages("SCHEDULE_TOPIC_XXXX", 2)
    assert parked.property_map["DELAY"] == level  # the real broker keeps what the sender wrote
    world.run_for(30_000)
    assert [record.body for queue in range(4) for record in world.messages("orders", queue)] == [parked.body]


def test_a_delayed_message_without_a_queue_to_go_to_holds_its_level(world: World, client: BareClient) -> None:
    held = Record(
        "SCHEDULE_TOPIC_XXXX", b"x", 0, properties=properties.encode({"DELAY": "1", "REAL_TOPIC": "t", "REAL_QID": "x"})
    )
    client.put("t", DELAY="1")
    world.broker.store.put(held)
    client.put("t", DELAY="1")
    world.run_for(15_000)
    assert world.broker.state.delay_offset_table.get(1, 0) == 1
    assert len(world.changes("schedule.undeliverable")) == 2  # tried again after ten seconds


@pytest.mark.parametrize("flags", [16, 32, 48])
def test_flags_for_addresses_that_a_message_does_not_have_cost_no_message(
    world: World, client: BareClient, flags: int
) -> None:
    for sys_flag in (0, flags, 0):
        assert client.put("orders", b"m%d" % sys_flag, more={"sysFlag": sys_flag}).code == ResponseCode.SUCCESS
    world.run_for(1_000)
    world.restart_broker(clean=False)
    assert [record.body for record in world.messages("orders")] == [b"m0", b"m%d" % flags, b"m0"]
