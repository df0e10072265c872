"""The operator's tool against a world in which something happened: orders sent, one that fails, one group behind."""

from __future__ import annotations

import inspect
import json
import pydoc
from typing import Any

import pytest

from mqlab import CONSUME_SUCCESS, RECONSUME_LATER, Lab, Message
from mqlab.errors import BrokerError, UsageError
from mqlab.rocketmq.admin import Admin
from mqlab.rocketmq.admin.requests import AdminNode
from mqlab.rocketmq.wire.names import retry_topic

ORDERS = 20
FAILING = "order-3"


def world(**settings: Any) -> tuple[Lab, list[Any]]:
    """Twenty orders; group billing took them all but for order-3, which it fails on; group audit is offline."""
    lab = Lab(seed=1, **{"brokers": 2, **settings})
    lab.create_topic("orders")
    producer = lab.producer("shop")
    results = [
        producer.send(Message("orders", f"заказ 订单 {i} 💳".encode(), tags=("new", "paid")[i % 2], keys=f"order-{i}"))
        for i in range(ORDERS)
    ]
    consumer = lab.push_consumer("billing", max_reconsume_times=1)
    consumer.subscribe("orders", "*")
    consumer.on_messages(lambda messages, _: RECONSUME_LATER if messages[0].keys == FAILING else CONSUME_SUCCESS)
    consumer.start()
    lab.run_for("10500ms")  # offsets were committed once; the retry is due at 11.6 s, and read at 21.5 s
    return lab, results


@pytest.fixture(scope="module")
def told() -> tuple[Lab, list[Any]]:
    return world()


def test_brokers_and_topics(told: tuple[Lab, list[Any]]) -> None:
    admin = told[0].admin
    assert [(row.broker, row.broker_id) for row in admin.examine_broker_cluster_info()] == [
        ("broker-a", 0),
        ("broker-b", 0),
    ]
    kinds = {row.topic: row.kind for row in admin.fetch_all_topic_list()}
    assert kinds["orders"] == "NORMAL" and kinds["%RETRY%billing"] == "RETRY" and kinds["TBW102"] == "SYSTEM"
    route = admin.examine_topic_route_info("orders")
    assert [(data.broker_name, data.read_queue_nums, data.perm) for data in route.queue_datas] == [
        ("broker-a", 4, 6),
        ("broker-b", 4, 6),
    ]
    assert sum(row.max_offset - row.min_offset for row in admin.examine_topic_stats("orders")) == ORDERS
    with pytest.raises(BrokerError, match="No topic route info"):
        admin.examine_topic_route_info("nothing")


def test_groups_and_connections(told: tuple[Lab, list[Any]]) -> None:
    lab, _ = told
    admin = lab.admin
    stats = admin.examine_consume_stats("billing", "orders")
    table = {(row.broker, row.queue_id): row for row in lab.progress("billing") if row.topic == "orders"}
    assert len(stats.queues) == 8
    for row in stats.queues:  # the broker's answer and the Lab's own look agree
        seen = table[row.message_queue.broker_name, row.message_queue.queue_id]
        assert (row.broker_offset, row.lag, row.inflight) == (seen.broker_offset, seen.lag, seen.inflight)
    connection = admin.examine_consumer_connection_info("billing")
    assert [member.client_id for member in connection.connections] == ["10.0.0.5@billing-1"]
    assert {wanted.topic for wanted in connection.subscriptions} == {"orders", "%RETRY%billing"}
    assert [member.client_id for member in admin.examine_producer_connection_info("shop")] == ["10.0.0.4@shop-1"]
    assert ("shop", "10.0.0.4@shop-1") in {(row.group, row.client_id) for row in admin.get_all_producer_info()}
    running = admin.get_consumer_running_info("billing", "10.0.0.5@billing-1")
    assert {row.message_queue for row in running.queues} == set(lab.handles["billing-1"].node.process_queues)
    assert running.properties["maxReconsumeTimes"] == "1"
    assert {row.topic for row in admin.consumer_status("billing")} == {"orders", "%RETRY%billing"}
    with pytest.raises(BrokerError) as refused:
        admin.examine_consumer_connection_info("nobody")
    assert refused.value.response_code == 206


def test_lag_counts_what_waits() -> None:
    lab, _ = world()
    lab.kill("billing-1")
    producer = lab.handles["shop-1"]
    for i in range(7):
        producer.send(Message("orders", b"late", keys=f"late-{i}"))
    lab.run_for("5s")
    (orders,) = [row for row in lab.admin.lag("billing") if row.topic == "orders"]
    assert orders.lag == 7
    assert 5_000 <= orders.delay_ms <= 5_200


def test_a_message_is_found_by_each_of_its_names(told: tuple[Lab, list[Any]]) -> None:
    lab, results = told
    admin, wanted = lab.admin, results[7]
    by_place = admin.view_message(wanted.offset_msg_id)
    (by_unique,) = admin.query_message_by_unique_key("orders", wanted.msg_id)
    (by_key,) = admin.query_message("orders", "order-7")
    queue = wanted.message_queue
    by_offset = admin.query_message_by_offset("orders", queue.broker_name, queue.queue_id, wanted.queue_offset)
    assert {m.body.decode() for m in (by_place, by_unique, by_key, by_offset)} == {"заказ 订单 7 💳"}
    assert {m.physical_offset for m in (by_place, by_unique, by_key, by_offset)} == {by_place.physical_offset}
    assert not admin.query_message("orders", "order-777")
    everything = admin.query_message_by_time("orders")
    assert [m.keys for m in everything] == [f"order-{i}" for i in range(ORDERS)]
    times = [m.store_timestamp for m in everything]
    assert [m.keys for m in admin.query_message_by_time("orders", times[5], times[9])] == [
        f"order-{i}" for i in range(5, 10)
    ]
    with pytest.raises(UsageError, match="not an offset id"):
        admin.view_message("order-7")
    with pytest.raises(UsageError, match="no message at"):
        admin.query_message_by_offset("orders", "broker-a", 0, 4711)


@pytest.mark.parametrize("messages", [3, 70])  # one page of the index, and more than one
def test_a_key_does_not_find_the_message_of_a_topic_whose_hash_is_the_same(messages: int) -> None:
    lab = Lab(seed=1)
    producer = lab.producer("shop")
    for topic in ("AaTopic", "BBTopic"):  # "AaTopic#BB" and "BBTopic#BB" have one hash in the index
        lab.create_topic(topic, read_queue_nums=1, write_queue_nums=1)
        for number in range(messages):
            producer.send(Message(topic, f"{topic} {number}".encode(), keys="BB"))
    for topic in ("AaTopic", "BBTopic"):
        expected = [f"{topic} {number}" for number in range(messages)]
        assert [each.body.decode() for each in lab.admin.query_message(topic, "BB")] == expected


def test_a_key_on_more_messages_than_a_page_of_the_index_finds_them_all() -> None:
    lab = Lab(seed=2)
    lab.create_topic("orders")
    producer = lab.producer("shop")
    for i in range(150):  # about 2 ms each: more than 64 in one second of the index
        producer.send(Message("orders", f"{i}".encode(), keys="same"))
    lab.run_for("2s")
    for i in range(150, 200):
        producer.send(Message("orders", f"{i}".encode(), keys="same"))
    found = lab.admin.query_message("orders", "same")
    assert [int(message.body) for message in found] == list(range(200))


def test_track_and_trace_of_a_message_that_fails() -> None:
    lab, results = world()
    failing, fine = results[3], results[4]
    admin = lab.admin

    def track(result: Any) -> tuple[str, int]:
        (row,) = admin.message_track_detail(admin.query_message_by_unique_key("orders", result.msg_id)[0])
        return row.track_type, row.retries

    assert track(fine) == ("CONSUMED", 0)
    assert track(failing) == ("RETRIED", 1)
    lab.run_for("12s")
    assert track(failing)[0] == "DEAD"
    trace = admin.view_trace(failing.msg_id)
    assert [(entry.type, entry.retry_times, entry.success) for entry in trace] == [
        ("Pub", None, True),
        ("SubBefore", 0, None),
        ("SubAfter", None, False),
        ("SubBefore", 1, None),
        ("SubAfter", None, False),
    ]


def test_track_tells_filtered_and_not_yet() -> None:
    lab = Lab(seed=3)
    lab.create_topic("orders", read_queue_nums=1, write_queue_nums=1)
    producer = lab.producer("shop")
    consumer = lab.push_consumer("billing")
    consumer.subscribe("orders", "paid")
    consumer.on_messages(lambda messages, context: context.sleep("1h"))
    consumer.start()
    new = producer.send(Message("orders", b"1", tags="new"))
    lab.run_for("20s")
    paid = producer.send(Message("orders", b"2", tags="paid"))
    lab.run_for("20s")
    admin = lab.admin
    kinds = [admin.message_track_detail(admin.view_message(r.offset_msg_id))[0].track_type for r in (new, paid)]
    assert kinds == ["CONSUMED_BUT_FILTERED", "NOT_CONSUME_YET"]


def test_dead_letters_are_given_back() -> None:
    lab, results = world()
    lab.run_for("17s")  # read again at 21.5 s, dead, and the offset told
    admin = lab.admin
    assert [message.keys for message in admin.query_dlq("billing")] == [FAILING]
    with pytest.raises(UsageError, match="no dead letter"):
        admin.resend_dlq("billing", ["nothing"])
    before = len(lab.deliveries("billing"))
    lab.kill("billing-1")
    (resent,) = admin.resend_dlq("billing", results[3].msg_id)
    assert (resent.msg_id, resent.topic, resent.send_status) == (results[3].msg_id, "orders", "SEND_OK")
    mended = lab.push_consumer("billing", name="billing-2", max_reconsume_times=1)
    mended.subscribe("orders", "*")
    mended.on_messages(lambda messages, _: CONSUME_SUCCESS)
    mended.start()
    lab.run_for("30s")
    new = lab.deliveries("billing")[before:]
    assert [(row.msg_id, row.topic, row.status, row.reconsume_times) for row in new] == [
        (results[3].msg_id, "orders", CONSUME_SUCCESS, 0)
    ]
    assert admin.message_track_detail(admin.query_message("orders", FAILING)[0])[0].track_type == "CONSUMED"


def test_one_some_and_all_dead_letters_are_exactly_those() -> None:
    lab = Lab(seed=1)
    lab.create_topic("orders", read_queue_nums=1, write_queue_nums=1)
    consumer = lab.push_consumer("billing", max_reconsume_times=0, consume_from_where="CONSUME_FROM_FIRST_OFFSET")
    consumer.subscribe("orders")
    consumer.on_messages(lambda messages, _: RECONSUME_LATER)
    consumer.start()
    producer = lab.producer("shop")
    ids = [producer.send(Message("orders", f"订单 {number}".encode())).msg_id for number in range(3)]
    lab.run_for("25s")  # dead at once; letters given back are read from 21 s on, with the retry topic of a new group
    admin = lab.admin
    assert [row.msg_id for row in admin.resend_dlq("billing", ids[1])] == [ids[1]]
    lab.run_for("5s")  # it died again
    letters = admin.query_dlq("billing")
    assert [letter.msg_id for letter in letters] == [*ids, ids[1]]

    def sent(letters: Any = None) -> list[str]:
        before = len(lab.deliveries("billing"))
        told = [row.msg_id for row in admin.resend_dlq("billing", letters)]
        lab.run_for("5s")
        assert [row.msg_id for row in lab.deliveries("billing")[before:]] == told
        return told

    assert sent(ids[1]) == [ids[1]]  # one message: its newest letter
    assert sent(letters[1]) == sent(letters[1].offset_msg_id) == [ids[1]]  # that very letter
    assert sent(letters[:2]) == ids[:2] and sent([ids[2], ids[0], ids[2]]) == [ids[2], ids[0]] and sent([]) == []
    assert sorted(sent()) == ids  # all: each message once, however often it died
    before = len(lab.deliveries("billing"))
    with pytest.raises(UsageError, match="no dead letter of billing has the id 'nothing'"):
        admin.resend_dlq("billing", [ids[0], "nothing"])
    assert len(lab.run_for("5s").deliveries("billing")) == before


def test_dead_letters_of_a_batch_are_as_many_as_its_messages() -> None:
    lab = Lab(seed=1)
    lab.create_topic("orders", read_queue_nums=1, write_queue_nums=1)
    consumer = lab.push_consumer("billing", max_reconsume_times=0, consume_from_where="CONSUME_FROM_FIRST_OFFSET")
    consumer.subscribe("orders")
    consumer.on_messages(lambda messages, _: RECONSUME_LATER)
    consumer.start()
    lab.producer("shop").send_batch([Message("orders", "订单".encode(), keys=f"order-{n}") for n in range(3)])
    lab.run_for("25s")  # from 21 s on a new group reads its retry topic
    admin = lab.admin
    letters = admin.query_dlq("billing")
    assert len(letters) == 3 and len({letter.msg_id for letter in letters}) == 1, "they show the batch's id"
    for asked, count in ((letters[1], 1), (letters[0].msg_id, 3), (None, 3)):
        assert len(admin.resend_dlq("billing", asked)) == count
        lab.run_for("5s")
    again = [letter.keys for letter in admin.query_dlq("billing")[3:]]
    assert again == ["order-1", *(["order-0", "order-2", "order-1"] * 2)]


def test_a_message_is_consumed_directly() -> None:
    lab, results = world()
    answer = lab.admin.consume_message_directly("billing", "10.0.0.5@billing-1", "orders", results[3].offset_msg_id)
    assert answer.consume_result == "CR_LATER"


def test_topics_are_made_changed_and_deleted() -> None:
    lab = Lab(seed=4, brokers=2)
    admin = lab.admin
    admin.create_topic("payments", read_queue_nums=2, write_queue_nums=2, brokers=["broker-b"])
    lab.run_for("100ms")
    assert [data.broker_name for data in admin.examine_topic_route_info("payments").queue_datas] == ["broker-b"]
    admin.update_topic("payments", write_queue_nums=1)
    config = admin.examine_topic_config("payments")
    assert (config.read_queue_nums, config.write_queue_nums) == (2, 1)
    with pytest.raises(BrokerError, match="illegal characters"):
        admin.create_topic("платежи")
    with pytest.raises(UsageError, match="broker-a, broker-b"):
        admin.create_topic("payments", brokers="broker-x")
    sent = admin.send_message(Message("payments", "оплата".encode(), keys="p-1"))
    assert sent.send_status == "SEND_OK"
    assert admin.query_message("payments", "p-1")[0].body.decode() == "оплата"
    admin.delete_topic("payments")
    assert "payments" not in [row.topic for row in admin.fetch_all_topic_list()]


def test_settings_with_a_slip_are_named() -> None:
    admin = world()[0].admin
    with pytest.raises(UsageError, match="TopicConfig has no setting 'read_queue_num'") as told:
        admin.update_topic("orders", read_queue_num=3)
    assert told.value.hint == "did you mean read_queue_nums?"
    with pytest.raises(UsageError, match="SubscriptionGroupConfig has no setting 'retry_max_time'"):
        admin.create_and_update_subscription_group_config("billing", retry_max_time=3)


def test_write_permission_moves_producers_away() -> None:
    lab, _ = world()
    admin = lab.admin
    assert admin.wipe_write_perm("broker-a")[0].topics_changed > 0
    producer = lab.producer("later")
    used = {producer.send(Message("orders", b"x")).message_queue.broker_name for _ in range(12)}
    assert used == {"broker-b"}
    admin.add_write_perm("broker-a")
    assert {data.perm for data in admin.examine_topic_route_info("orders").queue_datas} == {6}


def test_groups_are_made_changed_and_deleted() -> None:
    lab = Lab(seed=5)
    admin = lab.admin
    admin.create_and_update_subscription_group_config("audit", retry_max_times=3)
    admin.create_and_update_subscription_group_config("audit", consume_enable=False)
    config = admin.examine_subscription_group_config("audit")
    assert (config.retry_max_times, config.consume_enable) == (3, False)
    assert admin.query_all_groups() == ["audit"]
    admin.delete_subscription_group("audit")
    assert admin.query_all_groups() == []


def test_numbers_and_settings_of_brokers(told: tuple[Lab, list[Any]]) -> None:
    admin = told[0].admin
    put = [admin.view_broker_stats_data(b, "TOPIC_PUT_NUMS", "orders").windows for b in ("broker-a", "broker-b")]
    assert [window.window for window in put[0]] == ["statsMinute", "statsHour", "statsDay"]
    assert {row.topic: row.group for row in admin.stats_all()} == {"orders": "billing"}
    assert sum(row.messages_in for row in admin.cluster_list()) >= ORDERS
    admin.update_broker_config("broker-a", flush_consumer_offset_interval=4_000)
    assert admin.get_broker_config("broker-a")["flushConsumerOffsetInterval"] == "4000"
    with pytest.raises(BrokerError, match="noSuchThing"):
        admin.update_broker_config("broker-a", no_such_thing=1)
    for clean in (admin.delete_expired_commit_log, admin.clean_expired_consumer_queue, admin.clean_unused_topic):
        clean()


def test_values_are_kept_by_every_name_server() -> None:
    lab = Lab(seed=6, name_servers=2)
    admin = lab.admin
    admin.put_kv_config("ORDER_TOPIC_CONFIG", "orders", "broker-a:4")
    for server in ("nameserver-1", "nameserver-2"):
        assert lab.name_server(server).kv_config.get("ORDER_TOPIC_CONFIG", "orders") == "broker-a:4"
    assert admin.get_kv_list_by_namespace("ORDER_TOPIC_CONFIG")[0].value == "broker-a:4"
    lab.kill("nameserver-1")
    lab.kill("nameserver-2")
    lab.start("nameserver-2")
    assert len(admin.examine_broker_cluster_info()) == 0  # the one that is back answers; no broker told it anything yet


def test_answers_print_and_become_json(told: tuple[Lab, list[Any]]) -> None:
    admin = told[0].admin
    stats = admin.examine_consume_stats("billing", "orders")
    text = str(stats)
    assert text.splitlines()[0] == "progress of billing" and "Diff Total: 0" in text
    assert "<table>" in stats._repr_mimebundle_()["text/html"]
    assert len(stats.to_pandas()) == 8
    value = json.loads(json.dumps(stats.to_value()))
    assert value["queues"][0]["message_queue"] == {"topic": "orders", "broker_name": "broker-a", "queue_id": 0}
    found = admin.query_message("orders", "order-7")
    assert json.loads(json.dumps(found.to_value()))[0]["body"] == "заказ 订单 7 💳"
    assert "订单 7" in str(found)
    assert retry_topic("billing") in str(admin.fetch_all_topic_list())


def test_every_verb_is_a_documented_function_of_the_module_named_after_its_subject(told: tuple[Lab, list[Any]]) -> None:
    admin = told[0].admin
    assert Admin.__mro__ == (Admin, AdminNode, object)  # no bases to search: the table has all verbs
    verbs = {name: verb for name, verb in vars(Admin).items() if not name.startswith("_")}
    assert len(verbs) == 64 and verbs.keys() <= set(dir(admin))
    for name, verb in verbs.items():
        assert verb.__name__ == name and verb.__doc__ and verb.__module__.startswith("mqlab.rocketmq.admin.")
    assert str(inspect.signature(admin.lag)) == "(group: 'str') -> 'Rows[Lag]'"
    assert "dry_run: 'bool' = False" in str(inspect.signature(admin.reset_offset_by_timestamp))
    assert "no dead letter topic" in pydoc.render_doc(admin.query_dlq)
