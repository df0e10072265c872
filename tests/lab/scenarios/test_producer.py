"""How a message finds its queue, what happens when a broker does not answer, delays and transactions.

Mirrors: DefaultMQProducerImpl, MQFaultStrategy, TransactionalMessageServiceImpl.
"""

from __future__ import annotations

import itertools
from collections import Counter
from typing import Any

import pytest

from mqlab import Lab, Message, MessageQueue
from mqlab.errors import BrokerError, ClientError, RemotingError
from mqlab.rocketmq.client.sending.queue_selection import select_by_hash
from mqlab.rocketmq.wire.ids import parse_offset_msg_id
from tests.lab.scenarios.stories import BODY, Seen, changes, frames, member, quiet_lab, send, to_queue

SEND, SEND_BATCH, END_TRANSACTION, CHECK = 310, 320, 37, 39


def two_brokers(**settings: Any) -> tuple[Lab, Any]:
    """A topic on two brokers with two queues each, and a producer that has its route."""
    lab = quiet_lab(brokers=2)
    lab.create_topic("orders", read_queue_nums=2, write_queue_nums=2)
    producer = lab.producer("shop", **settings)
    producer.fetch_publish_message_queues("orders")
    return lab, producer


def stored(lab: Lab, topic: str = "orders", broker: str = "broker-a") -> list[Any]:
    store = lab.broker(broker).store
    return [record for queue in store.topics().get(topic, ()) for record in store.get(topic, queue, 0, 1_000).records()]


def test_round_robin_over_all_queues_of_all_brokers() -> None:
    lab, producer = two_brokers()
    queues = [result.message_queue for result in send(producer, *"abcdefghijkl")]
    assert Counter(queues) == dict.fromkeys(producer.fetch_publish_message_queues("orders"), 3)
    assert queues[:4] == queues[4:8]
    other = lab.producer("shop", name="shop-2")
    starts = {send(each, "x")[0].message_queue for each in (other, lab.producer("shop", name="shop-3"), producer)}
    assert len(starts) > 1  # each client begins at a random place


def test_a_dead_broker_costs_one_attempt_and_the_next_goes_to_the_other() -> None:
    lab, producer = two_brokers()
    lab.kill("broker-b")
    results = send(producer, *"abcdefgh")
    assert {result.message_queue.broker_name for result in results} == {"broker-a"}
    failed = [one for one in changes(lab, "message.sent") if one["error"]]
    assert {one["message_queue"].broker_name for one in failed} == {"broker-b"}


def test_a_silent_broker_eats_the_whole_time_unless_each_attempt_has_its_own() -> None:
    lab, producer = two_brokers()
    patient = lab.producer("shop", name="patient", send_msg_max_timeout_per_request=500)
    patient.fetch_publish_message_queues("orders")
    lab.power_off("broker-b")
    began_ms = lab.now_ms
    outcomes = []
    for _ in range(4):
        try:
            outcomes.append(producer.send(Message("orders", b"x")).message_queue.broker_name)
        except RemotingError as error:
            outcomes.append(error.code)
    assert Counter(outcomes) == {"broker-a": 2, "too_much_request": 2}
    assert lab.now_ms - began_ms >= 6_000
    began_ms = lab.now_ms
    assert {result.message_queue.broker_name for result in send(patient, *"abcd")} == {"broker-a"}
    assert 1_000 <= lab.now_ms - began_ms <= 1_200


def test_with_one_broker_a_retry_takes_its_next_queue_and_gives_up_after_three() -> None:
    lab = quiet_lab()
    lab.create_topic("orders")
    producer = lab.producer("shop")
    send(producer, "before")
    lab.kill("broker-a")
    with pytest.raises(ClientError, match=r"Send \[3\] times, still failed.*broker-a, broker-a, broker-a"):
        send(producer, "x")
    queues = [one["message_queue"].queue_id for one in changes(lab, "message.sent") if one["error"]]
    assert [(later - earlier) % 4 for earlier, later in itertools.pairwise(queues)] == [1, 1]


def slow_sends(**settings: Any) -> int:
    """How many of 40 sends, one a 100 ms, go to a broker that takes 600 ms."""
    lab, producer = two_brokers(**settings)
    lab.slow("broker-b", "300ms")
    slow = 0
    for _ in range(40):
        slow += send(producer, "x")[0].message_queue.broker_name == "broker-b"
        lab.run_for("100ms")
    return slow


def test_the_latency_table_bans_a_slow_broker_for_a_while() -> None:
    assert slow_sends() == 20
    assert 2 <= slow_sends(send_latency_fault_enable=True) <= 4  # two seconds of peace after each try


def test_a_strategy_of_ones_own_in_the_place_of_the_table() -> None:
    class Never:
        def is_available(self, broker_name: str, now_ms: int) -> bool:
            return broker_name != "broker-b"

        def is_reachable(self, broker_name: str) -> bool:
            return True

        def update(self, broker_name: str, latency_ms: int, now_ms: int, **more: bool) -> None:
            pass

    assert slow_sends(mq_fault_strategy=Never()) == 0


def test_a_lost_answer_stores_the_message_twice_under_one_key() -> None:
    lab = quiet_lab()
    lab.create_topic("orders")
    producer = lab.producer("shop", send_msg_max_timeout_per_request=1_000)
    producer.fetch_publish_message_queues("orders")
    lab.drop("broker-a", producer)
    (result,) = send(producer, BODY)
    copies = stored(lab)
    assert [record.property_map["UNIQ_KEY"] for record in copies] == [result.msg_id] * 2
    assert len({record.offset_msg_id for record in copies}) == 2


def test_one_way_is_sent_once_and_never_answered() -> None:
    lab, producer = two_brokers()
    assert producer.send_oneway(Message("orders", b"x")) is None
    lab.run_for("1s")
    assert len(stored(lab)) + len(stored(lab, broker="broker-b")) == 1
    lab.kill("broker-a")
    lab.kill("broker-b")
    producer.send_oneway(Message("orders", b"into nothing"))
    assert len(frames(lab, SEND)) == 1


def test_async_retries_transport_errors_elsewhere_and_tells_refusals_at_once() -> None:
    lab, producer = two_brokers()
    lab.kill("broker-b")
    results = [producer.send_async(Message("orders", b"x")) for _ in range(8)]
    assert {one.result().message_queue.broker_name for one in results} == {"broker-a"}
    limited = quiet_lab(broker={"max_message_size": 1_000})
    limited.create_topic("orders")
    big = Message("orders", b"x" * 2_000)
    with pytest.raises(BrokerError) as refused:
        limited.producer("shop").send_async(big).result()
    assert refused.value.response_code == 13 and len(frames(limited, SEND)) == 1


def test_a_batch_that_is_too_large_for_the_broker_is_tried_again() -> None:
    lab = quiet_lab(broker={"max_message_size": 1_000})
    lab.create_topic("orders")
    with pytest.raises(ClientError, match="at most 1000 are allowed"):
        lab.producer("shop").send([Message("orders", b"x" * 600), Message("orders", b"y" * 600)])
    assert len(frames(lab, SEND_BATCH)) == 3


def test_a_selector_gets_one_attempt_in_sync_and_three_on_its_broker_in_async() -> None:
    lab, producer = two_brokers()
    lab.kill("broker-b")
    with pytest.raises(RemotingError):
        producer.send(Message("orders", b"x"), selector=to_queue(3))
    assert len([one for one in changes(lab, "message.sent") if one["error"]]) == 1
    with pytest.raises(RemotingError):
        producer.send_async(Message("orders", b"x"), selector=to_queue(3)).result()
    failed = [one["message_queue"] for one in changes(lab, "message.sent") if one["error"]]
    assert failed == [MessageQueue("orders", "broker-b", 1)] * 4


def test_stored_but_not_flushed_is_a_normal_return() -> None:
    lab = quiet_lab(broker={"flush_disk_type": "SYNC_FLUSH", "sync_flush_timeout": 1_000})
    lab.create_topic("orders")
    producer = lab.producer("shop")
    assert send(producer, "a")[0].send_status == "SEND_OK"
    lab.broker().store.flusher.stalled = True  # the disk hangs
    assert send(producer, "b")[0].send_status == "FLUSH_DISK_TIMEOUT"
    lab.broker().store.flusher.resume()
    member(lab, "billing", seen := Seen(lab))
    lab.run_for("10s")
    assert sorted(seen.bodies) == ["a", "b"]


@pytest.mark.parametrize(
    ("message", "said"),
    [
        (Message("orders", b""), "length is zero"),
        (Message("orders", b"x" * (4 * 1024 * 1024 + 1)), "size over max value"),
        (Message("SCHEDULE_TOPIC_XXXX", b"x"), "forbidden"),
        (Message("RMQ_SYS_TRANS_HALF_TOPIC", b"x"), "forbidden"),
        (Message("с кириллицей", b"x"), "illegal"),
        (Message("t" * 128, b"x"), "127"),
    ],
)
def test_what_a_producer_refuses_by_itself(message: Message, said: str) -> None:
    lab = quiet_lab()
    producer = lab.producer("shop")
    with pytest.raises(ClientError, match=said):
        producer.send(message)
    assert frames(lab, SEND) == []


def test_long_bodies_travel_compressed_and_arrive_as_they_were() -> None:
    lab = quiet_lab()
    lab.create_topic("orders")
    seen = Seen(lab)
    member(lab, "billing", seen)
    producer = lab.producer("shop")
    for size in (4_095, 4_096):
        producer.send(Message("orders", b"a" * size))
    lab.run_for("20s")
    assert [len(message.body) for message in seen.messages] == [4_095, 4_096]
    compressed, whole = sorted(len(record.body) for record in stored(lab))
    assert compressed < 100 and whole == 4_095


def test_a_batch_is_one_request_to_one_queue_and_shows_one_id() -> None:
    lab, producer = two_brokers()
    result = producer.send_batch([Message("orders", f"{BODY} {n}".encode(), keys=f"order-{n}") for n in range(5)])
    assert len(result.msg_id.split(",")) == 5
    records = stored(lab, broker=result.message_queue.broker_name)
    assert [record.queue_offset for record in records] == [0, 1, 2, 3, 4]
    assert len(frames(lab, SEND)) == 0 and len(frames(lab, 320)) == 1
    member(lab, "billing", seen := Seen(lab))
    lab.run_for("5s")
    assert [message.keys for message in seen.messages] == [f"order-{n}" for n in range(5)]
    assert len({message.msg_id for message in seen.messages}) == 1


@pytest.mark.parametrize(
    ("second", "said"),
    [
        (Message("refunds", b"x"), "topic"),
        (Message("orders", b"x", delay_time_level=3), "TimeDelayLevel"),
        (Message("orders", b"x", wait_store_msg_ok=False), "waitStoreMsgOK"),
        (Message("orders", b""), "length is zero"),
    ],
)
def test_what_a_batch_refuses(second: Message, said: str) -> None:
    _, producer = two_brokers()
    with pytest.raises(ClientError, match=said):
        producer.send_batch([Message("orders", b"fine"), second])


def test_equal_keys_meet_in_one_queue_until_the_number_of_queues_changes() -> None:
    lab = quiet_lab()
    lab.create_topic("orders", read_queue_nums=4, write_queue_nums=4)
    producer = lab.producer("shop")

    def queue_of(key: str) -> int:
        result = producer.send(Message("orders", key.encode(), keys=key), selector=select_by_hash, arg=key)
        return int(result.message_queue.queue_id)

    keys = ["order-1", "order-2", "order-3", "order-1001", "user-42"]
    assert [queue_of(key) for key in keys] == [queue_of(key) for key in keys] == [2, 1, 0, 3, 0]
    lab.create_topic("orders", read_queue_nums=8, write_queue_nums=8)
    lab.run_for("31s")
    assert [queue_of(key) for key in keys] == [6, 5, 4, 7, 0]


@pytest.mark.parametrize(
    ("level", "stored_level", "seconds"), [(1, 1, 1), (3, 3, 10), (18, 18, 7_200), (99, 18, 7_200)]
)
def test_a_delayed_message_waits_in_the_schedule_topic(level: int, stored_level: int, seconds: int) -> None:
    lab = quiet_lab()
    lab.create_topic("orders")
    sent_ms = lab.now_ms
    send(lab.producer("shop"), BODY, delay_time_level=level)
    lab.run_for("500ms")
    (parked,) = lab.broker().store.get("SCHEDULE_TOPIC_XXXX", stored_level - 1, 0).records()
    assert parked.property_map["REAL_TOPIC"] == "orders"
    lab.run_for(seconds * 1_000)
    (delivered,) = stored(lab)
    assert seconds * 1_000 <= delivered.store_timestamp - sent_ms <= seconds * 1_000 + 110
    named = delivered.property_map
    assert (named["DELAY"], named["REAL_TOPIC"], delivered.body.decode()) == (str(stored_level), "orders", BODY)


def test_the_delay_levels_are_a_setting() -> None:
    lab = quiet_lab(broker={"message_delay_level": "2s 1m 1d"})
    lab.create_topic("orders")
    producer = lab.producer("shop")
    sent_ms = lab.now_ms
    for level in (3, 2, 1):
        send(producer, str(level), delay_time_level=level)
    producer.shutdown()
    lab.run_for("25h")
    records = sorted(stored(lab), key=lambda record: record.store_timestamp)
    assert [record.body for record in records] == [b"1", b"2", b"3"]
    assert [round((record.store_timestamp - sent_ms) / 1_000) for record in records] == [2, 60, 86_400]


def test_delayed_messages_survive_a_restart_of_the_broker() -> None:
    lab = quiet_lab()
    lab.create_topic("orders")
    producer = lab.producer("shop")
    send(producer, *"abc", delay_time_level=4)
    lab.run_for("5s")
    lab.kill("broker-a")
    lab.run_for("60s")
    lab.start("broker-a")
    member(lab, "billing", seen := Seen(lab))
    lab.run_for("40s")
    assert sorted(seen.bodies) == ["a", "b", "c"]


class Decides:
    """A transaction listener that says what it is told, and remembers what it was asked."""

    def __init__(self, first: Any, *later: Any) -> None:
        self.first = first
        self.later = list(later)
        self.asked: list[tuple[str, str | None]] = []

    def _say(self, word: Any) -> Any:
        if isinstance(word, Exception):
            raise word
        return word

    def execute_local_transaction(self, message: Message, arg: Any) -> Any:
        self.asked.append(("execute", message.keys))
        return self._say(self.first)

    def check_local_transaction(self, message: Any) -> Any:
        self.asked.append(("check", message.keys))
        return self._say(self.later.pop(0) if len(self.later) > 1 else self.later[0])


def transaction(listener: Decides, **broker: Any) -> tuple[Lab, Seen]:
    lab = quiet_lab(broker=broker)
    lab.create_topic("transfer")
    seen = Seen(lab)
    member(lab, "billing", seen, topic="transfer")
    lab.run_for("3s")
    producer = lab.transaction_producer("pay", listener)
    producer.send_message_in_transaction(Message("transfer", "перевод 转账 💸".encode(), keys="t-1"))
    return lab, seen


@pytest.mark.parametrize(
    ("listener", "visible_after_s", "asked"),
    [
        (Decides("COMMIT_MESSAGE"), 1, ["execute"]),
        (Decides("ROLLBACK_MESSAGE"), None, ["execute"]),
        (Decides(None, "COMMIT_MESSAGE"), 40, ["execute", "check"]),
        (Decides(OSError("нет"), "ROLLBACK_MESSAGE"), None, ["execute", "check"]),
        (Decides("UNKNOW", None, "COMMIT_MESSAGE"), 70, ["execute", "check", "check"]),
    ],
)
def test_a_transaction_is_seen_when_it_is_committed(
    listener: Decides, visible_after_s: int | None, asked: list[str]
) -> None:
    lab, seen = transaction(listener)
    sent_ms = lab.now_ms
    lab.run_for("5m")
    assert [word for word, _ in listener.asked] == asked
    assert seen.bodies == ([] if visible_after_s is None else ["перевод 转账 💸"])
    if visible_after_s is not None:
        assert seen.times_ms[0] - sent_ms <= visible_after_s * 1_000
    assert lab.broker().store.max_offset("RMQ_SYS_TRANS_HALF_TOPIC", 0) == len(asked)


def test_after_fifteen_checks_a_half_message_is_moved_out_of_the_way() -> None:
    listener = Decides("UNKNOW", None)
    lab, seen = transaction(listener)
    lab.run_for("10m")
    assert len(listener.asked) == 1 + 15 and seen.bodies == []
    (given_up,) = lab.broker().store.get("TRANS_CHECK_MAX_TIME_TOPIC", 0, 0).records()
    assert given_up.body.decode() == "перевод 转账 💸"
    assert len(changes(lab, "transaction.given_up")) == 1


def test_another_producer_of_the_group_is_asked_when_the_first_is_gone() -> None:
    lab = quiet_lab()
    lab.create_topic("transfer")
    seen, first, second = Seen(lab), Decides("UNKNOW", "ROLLBACK_MESSAGE"), Decides("UNKNOW", "COMMIT_MESSAGE")
    member(lab, "billing", seen, topic="transfer")
    one = lab.transaction_producer("pay", first)
    other = lab.transaction_producer("pay", second, name="pay-2")
    other.fetch_publish_message_queues("transfer")
    one.send_message_in_transaction(Message("transfer", b"x", keys="t-1"))
    lab.kill(one)
    lab.run_for("90s")
    assert [word for word, _ in second.asked] == ["check"] and seen.bodies == ["x"]


def test_a_half_message_that_is_not_safely_stored_is_rolled_back_without_running_anything() -> None:
    lab = quiet_lab(broker={"flush_disk_type": "SYNC_FLUSH", "sync_flush_timeout": 1_000})
    lab.create_topic("transfer")
    listener = Decides("COMMIT_MESSAGE")
    producer = lab.transaction_producer("pay", listener)
    lab.broker().files.refuse_sync = OSError("диск не отвечает")
    result = producer.send_message_in_transaction(Message("transfer", b"x"))
    assert (result.send_status, result.local_transaction_state) == ("FLUSH_DISK_TIMEOUT", "ROLLBACK_MESSAGE")
    assert listener.asked == []


def test_a_delay_level_is_taken_out_of_a_transaction() -> None:
    lab, seen = quiet_lab(), None
    lab.create_topic("transfer")
    seen = Seen(lab)
    member(lab, "billing", seen, topic="transfer")
    lab.run_for("3s")
    producer = lab.transaction_producer("pay", Decides("COMMIT_MESSAGE"))
    producer.send_message_in_transaction(Message("transfer", b"x", delay_time_level=5))
    lab.run_for("5s")
    assert seen.bodies == ["x"] and "DELAY" not in seen.messages[0].properties


def test_two_ids_one_of_the_client_and_one_of_the_place() -> None:
    lab = quiet_lab()
    lab.create_topic("orders")
    producer = lab.producer("shop")
    member(lab, "billing", seen := Seen(lab, "RECONSUME_LATER", "CONSUME_SUCCESS"))
    lab.run_for("25s")
    (result,) = send(producer, BODY)
    lab.run_for("60s")
    assert len(result.msg_id) == 32 and result.msg_id.upper() == result.msg_id
    assert {message.msg_id for message in seen.messages} == {result.msg_id}
    places = [message.offset_msg_id for message in seen.messages]
    assert places[0] == result.offset_msg_id != places[1]
    (host, port), physical_offset = parse_offset_msg_id(result.offset_msg_id)
    assert f"{host}:{port}" == lab.broker().address
    assert lab.broker().store.message_at(physical_offset).body.decode() == BODY
