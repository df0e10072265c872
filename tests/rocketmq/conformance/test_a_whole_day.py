"""The recorded day of a real broker, played again on a Lab with the same settings: the same deliveries per group.

Mirrors tools' Scenario: every kind of send and consume. What was sent, and to which queue, is taken from the record;
what each group sees, how often and with which reconsumeTimes must come out the same.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest

from mqlab import CONSUME_SUCCESS, RECONSUME_LATER, SUCCESS, SUSPEND_CURRENT_QUEUE_A_MOMENT, Lab, Message
from tests.rocketmq.conformance.conftest import read_json

BROKER = {
    "message_delay_level": "1s 2s 3s 4s 5s 6s 7s 8s 9s 10s",
    "transaction_time_out": 5_000,
    "transaction_check_interval": 4_000,
    "transaction_check_max": 3,
    "transaction_op_batch_interval": 500,
    "flush_disk_type": "SYNC_FLUSH",
    "max_message_size": 65_536,
    "default_topic_queue_nums": 4,
    "trace_topic_enable": True,
    "enable_property_filter": True,
    "broker_cluster_name": "LabCluster",
}
BROKER_PROPERTIES = {
    "TAGS",
    "KEYS",
    "UNIQ_KEY",
    "WAIT",
    "MSG_REGION",
    "TRACE_ON",
    "CLUSTER",
    "DELAY",
    "REAL_TOPIC",
    "REAL_QID",
    "TRAN_MSG",
    "PGROUP",
    "__transactionId__",
}
Seen = tuple[str, str, str | None, str | None, int, str]  # who, topic, keys, tags, reconsume_times, result


def message_of(unit: dict[str, Any], topic: str, body: bytes | None = None) -> Message:
    """The message as the program sent it, from the unit the real broker stored."""
    p = unit["properties"]
    own = {name: value for name, value in p.items() if name not in BROKER_PROPERTIES}
    message = Message(
        topic,
        bytes.fromhex(unit["bodyHex"]) if body is None else body,
        p.get("TAGS"),
        p.get("KEYS"),
        flag=unit["flag"],
        delay_time_level=int(p.get("DELAY", 0)),
        wait_store_msg_ok=p.get("WAIT", "true") == "true",
    )
    message.properties |= own
    return message


class Decides:
    """The transaction listener of the record: commit, rollback, later (commit at the check), never."""

    def __init__(self, seen: list[Seen]) -> None:
        self.seen = seen
        self.checks: Counter[str] = Counter()

    def execute_local_transaction(self, message: Message, arg: str) -> str:
        return {"commit": "COMMIT_MESSAGE", "rollback": "ROLLBACK_MESSAGE"}.get(arg, "UNKNOW")

    def check_local_transaction(self, message: Any) -> str:
        self.checks[message.keys] += 1
        self.seen.append(
            (
                "tx-check",
                message.topic,
                message.keys,
                message.tags,
                message.reconsume_times,
                str(self.checks[message.keys]),
            )
        )
        return "COMMIT_MESSAGE" if message.keys.startswith("later") else "UNKNOW"


def send_everything(lab: Lab, record: dict[str, Any], units: list[dict[str, Any]], seen: list[Seen]) -> None:
    by_offset_id = {unit["offsetMsgId"]: unit for unit in units}
    by_key = {unit["properties"].get("KEYS"): unit for unit in units if unit["topic"] == "flow"}
    producer = lab.producer("producer-group", send_msg_timeout=10_000)
    transactions = lab.transaction_producer("tx-group", Decides(seen), enable_trace=False)
    long_body = "".join(f"line {i % 37} of a long body; " for i in range(900)).encode()
    for sent in record["sent"]:
        kind, topic = sent["kind"], sent["topic"]
        if kind == "batch":
            batch = [Message(topic, f"batch {i}".encode(), f"b{i % 2}", f"bt-{i}") for i in range(12)]
            producer.send_batch(batch)
        elif kind.startswith("tx-"):
            word = kind.removeprefix("tx-")
            message = Message(topic, f"transfer {word}".encode(), word, f"{word}-1")
            transactions.send_message_in_transaction(message, word)
        elif kind == "oneway":
            producer.send_oneway(message_of(by_key[sent["keys"]], topic))
        elif kind.startswith("delay-"):
            level = int(kind[-1])
            body = f"delay level {level}".encode()
            producer.send(Message(topic, body, sent["tags"], sent["keys"], delay_time_level=level))
        else:
            unit = by_offset_id[sent["offsetMsgId"]]
            sender, message = producer, None
            if kind.startswith("compressed-"):
                compress_type = kind.removeprefix("compressed-")
                sender = lab.producer("producer-group", name=f"producer-{compress_type}", compress_type=compress_type)
                message = message_of(unit, topic, long_body)
            sender.send(
                message or message_of(unit, topic),
                selector=lambda queues, message, arg: queues[arg],
                arg=sent["queueId"],
            )


def consume_everything(lab: Lab, record: dict[str, Any], seen: list[Seen]) -> None:
    first_suspended = next(
        row["keys"]
        for row in record["seen"]
        if row["who"] == "g-orderly" and row["result"] == "SUSPEND" and row["tags"] != "poison"
    )
    suspended: set[str] = set()

    def told(who: str, message: Any, result: str) -> None:
        seen.append((who, message.topic, message.keys, message.tags, message.reconsume_times, result))

    def consumer(group: str, topic: str, expression: str = "*", *, sql: str | None = None, **settings: Any) -> Any:
        handle = lab.push_consumer(group, consume_from_where="CONSUME_FROM_FIRST_OFFSET", **settings)
        handle.subscribe(topic, expression if sql is None else None, sql=sql)
        return handle

    def concurrently(handle: Any, who: str, is_bad: Callable[[Any], bool] = lambda message: False) -> None:
        def listener(messages: Any, context: Any) -> str:
            bad = is_bad(messages[0])
            for message in messages:
                told(who, message, "RECONSUME_LATER" if bad else "CONSUME_SUCCESS")
            return RECONSUME_LATER if bad else CONSUME_SUCCESS

        handle.on_messages(listener)

    def orderly(messages: Any, context: Any) -> str:
        message = messages[0]
        bad = message.tags == "poison" or (message.keys == first_suspended and message.keys not in suspended)
        suspended.add(message.keys)
        told("g-orderly", message, "SUSPEND" if bad else "SUCCESS")
        return SUSPEND_CURRENT_QUEUE_A_MOMENT if bad else SUCCESS

    quiet = {"enable_trace": False}
    consumers = [consumer("g-orders", "orders", max_reconsume_times=2)]
    concurrently(consumers[0], "g-orders", lambda message: message.tags == "poison")
    consumers.append(consumer("g-orderly", "orders", "paid || shipped || poison", max_reconsume_times=2, **quiet))
    consumers[-1].on_messages_orderly(orderly)
    consumers.append(consumer("g-broadcast", "tags", "Aa || TagA", message_model="BROADCASTING", **quiet))
    concurrently(consumers[-1], "g-broadcast")
    consumers.append(consumer("g-sql", "sql", sql="a BETWEEN 2 AND 8 AND name <> 'bob'", **quiet))
    concurrently(consumers[-1], "g-sql")
    for topic in ("flow", "batch", "delayed", "transfer"):
        consumers.append(consumer(f"g-{topic}", topic, **quiet))
        concurrently(consumers[-1], f"g-{topic}")
    for handle in consumers:
        handle.start()
    lab.run_for("50s")
    for handle in consumers:
        handle.shutdown()
    lite = lab.lite_pull_consumer("g-lite", consume_from_where="CONSUME_FROM_FIRST_OFFSET", **quiet)
    lite.subscribe("orders", "created")
    lite.start()
    for _ in range(12):
        for message in lite.poll(800):
            told("g-lite", message, "polled")
    lite.commit_sync()
    lite.shutdown()


@pytest.fixture(scope="module")
def day(unpacked_expectations: Any) -> tuple[Lab, Counter[Seen], Counter[Seen]]:
    record = read_json("scenario")
    listing = json.loads((unpacked_expectations / "clean.json").read_bytes())
    lab = Lab(broker=BROKER | {"timer_wheel_enable": False}, client={"enable_trace": True})
    for topic in ("orders", "tags", "delayed", "transfer", "batch", "flow", "sql"):
        queues = 4 if topic == "orders" else 2
        lab.create_topic(topic, read_queue_nums=queues, write_queue_nums=queues)
    seen: list[Seen] = []
    send_everything(lab, record, listing["messages"], seen)
    consume_everything(lab, record, seen)
    lab.run_for("10s")
    there = [(r["who"], r["topic"], r["keys"], r["tags"], r["reconsumeTimes"], r["result"]) for r in record["seen"]]
    return lab, Counter(seen), Counter(there)


GROUPS = [
    "g-orders",
    "g-orderly",
    "g-broadcast",
    "g-sql",
    "g-flow",
    "g-batch",
    "g-delayed",
    "g-transfer",
    "g-lite",
    "tx-check",
]


@pytest.mark.parametrize("who", GROUPS)
def test_the_same_deliveries(who: str, day: tuple[Lab, Counter[Seen], Counter[Seen]]) -> None:
    _, here, there = day
    assert Counter({row: n for row, n in here.items() if row[0] == who}) == Counter(
        {row: n for row, n in there.items() if row[0] == who}
    )


def test_no_other_deliveries_are_recorded(day: tuple[Lab, Counter[Seen], Counter[Seen]]) -> None:
    _, here, there = day
    assert sum(there.values()) == 165
    assert {row[0] for row in there} == {row[0] for row in here} == set(GROUPS)


def test_the_same_topics(day: tuple[Lab, Counter[Seen], Counter[Seen]], real_store: Any) -> None:
    from mqlab.rocketmq.wire import java_json

    lab, _, _ = day
    there = java_json.loads((real_store("clean") / "config" / "topics.json").read_text())["topicConfigTable"]
    broker = lab.broker("broker-a")
    here = {name: broker.topics[name].to_value() for name in broker.topics}
    assert set(here) == set(there)
    for name, topic in here.items():
        assert topic == there[name], name


@pytest.mark.parametrize(
    "name", ["topics.json", "subscriptionGroup.json", "consumerOffset.json", "delayOffset.json", "consumerFilter.json"]
)
def test_config_files_have_the_same_shape(
    name: str, day: tuple[Lab, Counter[Seen], Counter[Seen]], real_store: Any
) -> None:
    from mqlab.rocketmq.wire import java_json

    lab, _, _ = day
    there = java_json.loads((real_store("clean") / "config" / name).read_text())
    here = java_json.loads((lab.directory / "broker-a" / "config" / name).read_text())

    def shape(value: Any) -> Any:
        if isinstance(value, dict):
            return {key: shape(item) for key, item in value.items() if key != "rmq_sys_wheel_timer"}
        if isinstance(value, list):
            return "list"
        return type(value).__name__

    assert shape(here) == shape(there)
