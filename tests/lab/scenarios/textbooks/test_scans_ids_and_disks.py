"""Scans, offsets, ids, idempotency, and what lies on the disk.

Mirrors: DefaultMessageStore, ProcessQueue, MessageClientIDSetter.
"""

from __future__ import annotations

import math
from typing import Any

import pytest

from mqlab import CONSUME_SUCCESS, RECONSUME_LATER, SUCCESS, Lab, Message
from mqlab.rocketmq.wire.codes import ResponseCode
from tests.lab.scenarios.stories import (
    Seen,
    Tool,
    changes,
    delivered,
    frames,
    member,
    owned,
    quiet_lab,
    row,
    send,
    send_many,
)
from tests.rocketmq.client.scripted import ScriptedBroker, ScriptedWorld

PULL, LITE_PULL = 11, 361
LONG_INDEX = {"broker": {"mapped_file_size_consume_queue": 100_000}}  # 5,000 entries: a scan also ends with its file


def one_queue(lab: Lab, *bodies: str) -> Lab:
    lab.create_topic("orders", read_queue_nums=1, write_queue_nums=1)
    if bodies:
        send(lab.producer("shop"), *bodies)
    return lab


def pulls(lab: Lab) -> list[Any]:
    return [one for one in frames(lab, PULL) if one.about.ext_fields["topic"] == "orders"]


def test_a_scan_is_eight_hundred_entries_so_ten_million_take_12500_round_trips() -> None:
    lab = one_queue(quiet_lab(**LONG_INDEX))
    send_many(lab.producer("shop"), 1_700, queue=0, tags="noise")
    member(lab, "billing", tags="paid")
    lab.run_for("3s")
    offsets = [int(one.about.ext_fields["queueOffset"]) for one in pulls(lab)]
    assert offsets == [0, 800, 1_600, 1_700]
    assert math.ceil(10_000_000 / (offsets[1] - offsets[0])) == 12_500


def test_only_no_newer_message_is_held_not_no_match() -> None:
    lab = one_queue(quiet_lab(**LONG_INDEX))
    send_many(lab.producer("shop"), 900, queue=0, tags="noise")
    member(lab, "billing", tags="paid")
    lab.run_for("3s")
    answers = [
        one
        for one in lab.journal
        if one.node == "billing-1"
        and one.about is not None
        and one.about.is_response
        and one.about.code == ResponseCode.PULL_RETRY_IMMEDIATELY
    ]
    assert [later.now_ms - earlier.now_ms for earlier, later in zip(pulls(lab), answers, strict=False)] == [1, 1]
    assert [one["queue_offset"] for one in changes(lab, "pull.held", topic="orders")] == [900]


def test_an_empty_cache_gives_the_largest_offset_and_one() -> None:
    lab = one_queue(quiet_lab(), *"abc")
    consumer = member(lab, "billing")
    lab.run_for("3s")
    ((queue, process_queue),) = [item for item in consumer.process_queues.items() if item[0].topic == "orders"]
    assert process_queue.queue_offset_max == 2 and process_queue.msg_count == 0
    assert consumer.offset_store.read_memory(queue) == 3


def test_filtered_ranges_are_committed_when_nothing_is_cached_and_the_broker_found_nothing() -> None:
    lab = one_queue(quiet_lab())
    producer = lab.producer("shop")
    send(producer, "BB", tags="BB")  # the same hash as Aa: the broker finds it, the client drops it
    consumer = member(lab, "billing", tags="Aa")
    lab.run_until(lambda: bool(changes(lab, "message.filtered")))
    ((queue, _),) = [item for item in consumer.process_queues.items() if item[0].topic == "orders"]
    assert consumer.offset_store.read_memory(queue) == 0  # FOUND and dropped: no correction
    lab.run_for("25s")
    assert consumer.offset_store.read_memory(queue) == 1  # "no new message" at the tail corrects it
    send(producer, "slow", tags="Aa")
    lab.handles["billing-1"].suspend()
    lab.run_for("1s")
    assert consumer.offset_store.read_memory(queue) == 2


def test_the_client_takes_the_commit_out_of_a_pull_from_a_slave_and_the_broker_does_not_ask() -> None:
    world = ScriptedWorld(["broker-a"], queues=1)
    slave = world.slaves["broker-a"] = ScriptedBroker(world, "broker-a", slave=True)
    consumer = world.consumer()
    world.run_for(1_100)
    (queue,) = consumer.message_queues
    consumer.offset_store.update_offset(queue, 5)
    consumer.pull_api.pull_from_which_node[queue] = 1
    world.run_for(1_000)
    assert [request.ext_fields["sysFlag"] for request in slave.of(PULL)] == ["2"]  # may be held; commits nothing

    lab = one_queue(quiet_lab(replicas=1, broker={"slave_read_enable": True}))
    member(lab, "billing")
    lab.run_for("70s")  # the slave has taken over topics and groups
    replica = lab.handles["broker-a-s1"]
    fields = {
        "consumerGroup": "billing",
        "topic": "orders",
        "queueId": 0,
        "queueOffset": 0,
        "maxMsgNums": 32,
        "sysFlag": 1,
        "commitOffset": 7,
        "suspendTimeoutMillis": 0,
        "subVersion": 0,
    }
    Tool(lab).ask(PULL, to=replica.address, **fields)
    assert replica.offset_table.query("billing", "orders", 0) == 7


def test_one_stuck_match_keeps_the_lag_of_everything_behind_it() -> None:
    lab = one_queue(quiet_lab())
    producer = lab.producer("shop")
    send(producer, "stuck", tags="paid")
    send_many(producer, 300, queue=0, tags="noise")
    member(lab, "billing", Seen(lab, takes="1m"), tags="paid")
    lab.run_for("50s")
    assert row(lab, "billing").lag == 301
    lab.run_for("30s")
    assert row(lab, "billing").lag == 0


def test_thirty_two_from_memory_and_eight_from_the_disk() -> None:
    lab = one_queue(quiet_lab(memory="16KB"))
    send_many(lab.producer("shop"), 300, queue=0)
    puller = lab.pull_consumer("audit")
    (queue,) = puller.fetch_subscribe_message_queues("orders")
    assert len(puller.pull(queue, "*", 0).msg_found_list) == 8
    assert len(puller.pull(queue, "*", 260).msg_found_list) == 32


def retried(lab: Lab, *answers: Any) -> Seen:
    lab.create_topic("orders", read_queue_nums=1, write_queue_nums=1)
    member(lab, "billing", seen := Seen(lab, *answers))
    lab.run_for("25s")
    send(lab.producer("shop"), "a")
    return seen


def test_the_property_holds_the_topic_of_old() -> None:
    lab = quiet_lab()
    retried(lab, RECONSUME_LATER)
    lab.run_for("1s")
    (parked,) = lab.broker().store.get("SCHEDULE_TOPIC_XXXX", 2, 0).records()
    assert (parked.property_map["RETRY_TOPIC"], parked.property_map["REAL_TOPIC"]) == ("orders", "%RETRY%billing")


def test_reconsume_times_two_is_the_third_delivery() -> None:
    lab = quiet_lab()
    seen = retried(lab, RECONSUME_LATER, RECONSUME_LATER, CONSUME_SUCCESS)
    lab.run_for("60s")
    assert [message.reconsume_times for message in seen.messages].index(2) + 1 == 3


def test_the_queue_offset_is_given_with_the_put_and_the_queue_is_written_later() -> None:
    lab = one_queue(quiet_lab())
    (result,) = send(lab.producer("shop"), "a")
    stored = next(one for one in lab.journal if one.of("message.stored"))
    dispatched = next(one for one in lab.journal if one.of("message.dispatched"))
    assert result.queue_offset == 0 and stored.step < dispatched.step
    assert stored.of("message.stored")[0].values["queue_offset"] == 0


def test_a_pull_carries_a_version_and_a_text_only_when_told_or_lite() -> None:
    fields = []
    for settings in ({}, {"post_subscription_when_pull": True}):
        lab = one_queue(quiet_lab())
        member(lab, "billing", tags="paid", **settings)
        lab.run_for("3s")
        fields.append(pulls(lab)[0].about.ext_fields)
    assert "subscription" not in fields[0] and int(fields[0]["subVersion"]) > 0
    assert fields[1]["subscription"] == "paid"
    lite = lab.lite_pull_consumer("report")
    lite.subscribe("orders", "paid")
    lite.start()
    lab.run_for("3s")
    assert frames(lab, LITE_PULL)[0].about.ext_fields["subscription"] == "paid"


def test_by_one_at_a_time_and_at_least_once() -> None:
    lab = one_queue(quiet_lab(), *"abc")
    first = member(lab, "billing", seen := Seen(lab))
    lab.run_for("3s")
    lab.kill(first)  # consumed, and the commit was still to come
    member(lab, "billing", again := Seen(lab), name="billing-2")
    lab.run_for("20s")
    assert seen.bodies == again.bodies == ["a", "b", "c"]


@pytest.mark.parametrize(("in_one_transaction", "charged"), [(False, 2), (True, 1)])
def test_look_act_record_is_passed_by_a_crash_between_act_and_record(in_one_transaction: bool, charged: int) -> None:
    lab = one_queue(quiet_lab())
    with lab.database("billing").connect() as connection:
        connection.execute("create table charges (key text)")
        connection.execute("create table done (key text primary key)")
    deaths = iter([True])

    def pay(messages: Any, context: Any) -> str:
        connection, key = lab.database("billing").connect(), messages[0].keys
        if connection.execute("select 1 from done where key = ?", (key,)).fetchone():
            return CONSUME_SUCCESS
        connection.execute("insert into charges values (?)", (key,))
        if not in_one_transaction:
            connection.commit()
        if next(deaths, False):
            lab.world.between_steps.append(lambda: lab.kill("billing-1"))
            context.sleep("1s")
        connection.execute("insert into done values (?)", (key,))
        connection.commit()
        return CONSUME_SUCCESS

    consumer = member(lab, "billing", pay)
    send(lab.producer("shop"), "оплата", keys="order-1")
    lab.run_for("10s")
    lab.start(consumer)
    lab.run_for("30s")
    assert lab.database("billing").connect().execute("select count(*) from charges").fetchone() == (charged,)


def test_any_time_is_taken_and_searched_by_store_time() -> None:
    lab = one_queue(quiet_lab())
    producer = lab.producer("shop")
    send(producer, "late", delay_time_level=4)  # born now, stored in its topic in half a minute
    send(producer, "early")
    lab.run_for("60s")
    lab.broker().groups.find("billing")
    tool = Tool(lab)
    for at_ms, offset in ((0, 0), (lab.began_ms + 10_000, 1), (lab.now_ms + 10**9, 2)):
        assert tool.ask(222, topic="orders", group="billing", timestamp=at_ms, isForce=True).code == 0
        assert lab.broker().offset_table.query("billing", "orders", 0) == offset


def test_one_thread_a_queue_and_all_queues_at_once() -> None:
    lab = quiet_lab()
    lab.create_topic("orders", read_queue_nums=4, write_queue_nums=4)
    producer = lab.producer("shop")
    for queue in range(4):
        send(producer, *"ab", queue=queue)
    member(lab, "billing", Seen(lab, SUCCESS, takes="5s"), orderly=True)
    lab.run_for("4s")
    running = [one.message_queue.queue_id for one in delivered(lab, "billing") if one.status == "RUNNING"]
    assert sorted(running) == [0, 1, 2, 3]


def test_a_sync_send_is_one_request_at_a_time_and_leaves_nothing_behind() -> None:
    """The executor queue of asynchronous sends is not modelled here: each goes out at once."""
    lab = one_queue(quiet_lab(), "first")
    producer = lab.handles["shop-1"]
    lab.slow("broker-a", "200ms")
    before = len(frames(lab, 310))
    began_ms = lab.now_ms
    for number in range(1, 6):
        send(producer, "x")
        assert len(frames(lab, 310)) - before == number  # the next goes out when this one is answered
    assert lab.now_ms - began_ms >= 5 * 400
    pending = [producer.send_async(Message("orders", b"x")) for _ in range(5)]
    sent_ms = lab.now_ms
    assert [one.result().send_status for one in pending] == ["SEND_OK"] * 5
    assert lab.now_ms - sent_ms <= 410


@pytest.mark.parametrize(
    ("code", "status"), [(10, "FLUSH_DISK_TIMEOUT"), (11, "SLAVE_NOT_AVAILABLE"), (12, "FLUSH_SLAVE_TIMEOUT")]
)
def test_the_master_answers_for_its_slave_and_the_send_returns_normally(code: int, status: str) -> None:
    """The master is scripted: what it derives these codes from is the business of replication."""
    world = ScriptedWorld(["broker-a"])
    world.slaves["broker-a"] = slave = ScriptedBroker(world, "broker-a", slave=True)
    world.brokers["broker-a"].script = [code]
    result = world.producer().send(Message("orders", b"x"))
    assert result.send_status == status
    assert len(world.brokers["broker-a"].of(310)) == 1 and slave.of(310) == []


def test_index_files_are_found_by_the_times_in_their_headers() -> None:
    lab = one_queue(quiet_lab(broker={"max_index_num": 21}))
    producer = lab.producer("shop")
    for number in range(30):  # a unique key and a key each: ten messages a file
        send(producer, str(number), keys="order-1")
        lab.run_for("10s")
    files = lab.store().index_files()
    assert len(files) >= 3 and [one.name for one in files] == sorted(one.name for one in files)
    assert all(len(one.name) == 17 for one in files)  # yyyyMMddHHmmssSSS
    assert all(one.begin_timestamp <= one.end_timestamp for one in files)
    middle = files[1]
    found = lab.broker().store.query("orders", "order-1", begin_ms=middle.begin_timestamp, end_ms=middle.end_timestamp)
    assert 0 < len(found) <= 11


def test_a_queues_directory_comes_with_its_first_message() -> None:
    lab = quiet_lab()
    lab.create_topic("orders", read_queue_nums=4, write_queue_nums=4)
    directory = lab.directory / "broker-a" / "consumequeue" / "orders"
    assert not directory.exists()
    send(lab.producer("shop"), "x", queue=2)
    lab.run_for("1s")
    assert [path.name for path in directory.iterdir()] == ["2"]


def test_the_abort_file_holds_a_process_id() -> None:
    lab = quiet_lab()
    abort = lab.directory / "broker-a" / "abort"
    assert abort.read_text("utf-8").isdigit()
    lab.broker().shutdown()
    assert not abort.exists()


def test_each_consumer_instance_has_a_pool_of_its_own() -> None:
    lab = quiet_lab()
    lab.create_topic("orders", read_queue_nums=2, write_queue_nums=2)
    for queue in range(2):
        send_many(lab.producer("shop", name=f"shop-{queue}"), 50, queue=queue)
    both = [member(lab, "billing", Seen(lab, takes="1h"), name=f"billing-{n}", start=False) for n in (1, 2)]
    for consumer in both:
        consumer.start()
    lab.run_for("10s")
    assert [owned(consumer) for consumer in both] == [[0], [1]]
    running = [one.client for one in delivered(lab, "billing") if one.status == "RUNNING"]
    assert running.count("billing-1") == running.count("billing-2") == 20
