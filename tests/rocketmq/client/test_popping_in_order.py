"""An orderly consumer of a group whose mode is POP asks what the Java client asked: it locks its queues and pulls."""

from __future__ import annotations

import base64
import json
from pathlib import Path

import pytest

from mqlab import Lab, Message
from mqlab.rocketmq.wire.bodies import TopicConfig
from mqlab.rocketmq.wire.command import RemotingCommand
from tests.rocketmq.broker.replayed import recorded
from tests.rocketmq.broker.world import World

JAVA = recorded("pop_java_orderly")
ASKED = [row for row in JAVA if row["code"] not in (105, 40)]
"""What a client asked its broker: without routes, and without the broker's own notice of a new member."""
VARYING = {"subVersion", "queueOffset", "queueId", "clientID"}


@pytest.fixture(scope="module")
def asked() -> list[RemotingCommand]:
    """What the broker was asked by an orderly member, from its start to its end."""
    lab = Lab(seed=5)
    lab.create_topic("jpop", read_queue_nums=4, write_queue_nums=4)
    lab.admin.set_message_request_mode("jpop", "gjord")
    producer = lab.producer("shop")
    for number in range(8):
        producer.send(Message("jpop", b"%d" % number))
        if number == 3:
            consumer = lab.push_consumer(
                "gjord", client_rebalance=False, consume_from_where="CONSUME_FROM_FIRST_OFFSET", enable_trace=False
            )
            consumer.subscribe("jpop")
            consumer.on_messages_orderly(lambda messages, context: "SUCCESS")
            consumer.start()
            lab.run_for("3s")
    lab.run_for("15s")
    consumer.shutdown()
    lab.run_for("1s")
    return [
        step.about
        for step in lab.journal
        if step.node == "broker-a" and isinstance(step.about, RemotingCommand) and not step.about.is_response
    ]


@pytest.mark.parametrize("code", [11, 14, 35, 38])
def test_the_header_fields_are_the_java_clients(asked: list[RemotingCommand], code: int) -> None:
    java = [row["requestExt"] for row in ASKED if row["code"] == code]
    mine = [request.ext_fields for request in asked if request.code == code]
    assert mine and all(set(fields) == set(wanted) for fields, wanted in zip(mine, java, strict=False))
    fixed = {name: value for name, value in java[0].items() if name not in VARYING}
    assert {name: mine[0][name] for name in fixed} == fixed


def test_it_locks_each_queue_and_pulls_it_and_pops_nothing(asked: list[RemotingCommand]) -> None:
    wanted = {row["code"] for row in ASKED}
    codes = [request.code for request in asked if request.code not in (310, 401)]
    assert wanted == set(codes) - {15}  # the Java client was stopped before it had offsets to commit
    (java_unlock,) = (json.loads(row["requestBody"]) for row in ASKED if row["code"] == 42)
    (unlock,) = (json.loads(request.body) for request in asked if request.code == 42)
    assert set(unlock) == set(java_unlock) and len(unlock["mqSet"]) == len(java_unlock["mqSet"]) == 4
    locks = [json.loads(request.body)["mqSet"] for request in asked if request.code == 41]
    java_locks = [json.loads(row["requestBody"])["mqSet"] for row in ASKED if row["code"] == 41]
    assert sorted(map(str, locks)) == sorted(str([dict(queue) for queue in queues]) for queues in java_locks)


def test_what_the_java_client_asked_is_answered_as_the_real_broker_did(tmp_path: Path) -> None:
    world = World(tmp_path)
    world.broker.create_topic(TopicConfig("jpop", read_queue_nums=4, write_queue_nums=4))
    client, sender = world.client(), world.client("sender")
    for number in range(4):
        sender.put("jpop", b"%d" % number, queue_id=number)
    for row in ASKED:
        fields = dict(row.get("requestExt") or {})
        if row["code"] == 11 and fields["queueOffset"] == "1":
            sender.put("jpop", b"4", queue_id=int(fields["queueId"]))
        answer = client.ask(row["code"], (row.get("requestBody") or "").encode(), **fields)
        assert (answer.code, answer.remark) == (row["responseCode"], row.get("responseRemark")), row
        if row["code"] == 34:
            continue  # short heartbeats are not offered: see docs/differences.md
        assert answer.ext_fields == (row.get("responseExt") or {}), row
        if row["code"] in (38, 41):
            assert json.loads(answer.body) == json.loads(base64.b64decode(row["responseBody"]))
