"""Timed sends, refusals, recalls, codes 60 and 61: a raw client's requests, answered as a real 5.3.3 broker did."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path

import pytest

from mqlab.rocketmq.wire import record
from mqlab.rocketmq.wire.command import RemotingCommand
from mqlab.rocketmq.wire.timer_units import CHECK_SIZE
from tests.rocketmq.broker.replayed import Exchange, differences, exchanges
from tests.rocketmq.broker.world import SMALL_STORE, World

LATENCY_MS = 1
IDS = ("msgId", "transactionId", "queueOffset")


def _world(directory: Path, first: Exchange, **settings: object) -> World:
    """A broker whose clock is the recorded one's."""
    return World(
        directory,
        start_ms=first.sent_ms - 5_000,
        broker_cluster_name="LabCluster",
        recall_message_enable=True,
        **settings,
    )


def _answers(world: World, recorded: list[Exchange]) -> list[tuple[Exchange, RemotingCommand]]:
    client = world.client()
    answers = []
    for exchange in recorded:
        world.run_for(max(0, exchange.sent_ms - LATENCY_MS - world.sim.now_ms))
        fields = dict(exchange.request.ext_fields)
        if exchange.request.code == 37:  # names the half message that was sent before, by where this broker put it
            half = answers[-1][1].ext_fields
            fields |= {"tranStateTableOffset": half["queueOffset"], "commitLogOffset": int(half["msgId"][16:], 16)}
        answers.append((exchange, client.ask(exchange.request.code, exchange.request.body, **fields)))
    return answers


def test_every_recorded_send_and_recall_is_answered_as_the_real_broker_did(tmp_path: Path) -> None:
    recorded = [exchange for exchange in exchanges("timer_exchanges") if exchange.request.code not in (60, 61)]
    world = _world(tmp_path, recorded[0])
    world.client("client-0").put("t1", UNIQ_KEY="x")
    wrong = {}
    for exchange, answer in _answers(world, recorded):
        found = differences(answer, exchange.response, apart=IDS if exchange.request.code == 310 else ())
        if found:
            wrong[exchange.note] = found
    assert not wrong and len(recorded) == 33


def test_a_batch_is_timed_by_its_own_property_and_not_by_its_members(tmp_path: Path) -> None:
    recorded = exchanges("timer_batch_exchanges")
    world = _world(tmp_path, recorded[0])
    world.run_for(1_000)
    answers = _answers(world, recorded)
    of_their_moment = {28, 60}  # what they tell is the whole broker's
    for exchange, answer in answers:
        apart = [*IDS, "popTime", *(["reviveQid"] if exchange.request.code == 200050 else [])]
        assert not differences(answer, exchange.response, apart=apart), exchange.note
        assert exchange.request.code not in of_their_moment or _form(answer) == _form(exchange.response)
    (popped,) = (pair for pair in answers if pair[0].request.code == 200050)
    got, wanted = (record.decode_all(command.body) for command in (popped[1], popped[0].response))
    assert [message.body for message in got] == [message.body for message in wanted]
    for mine, real in zip(got, wanted, strict=True):
        assert list(mine.property_map) == list(real.property_map)
        times = ("TIMER_DEQUEUE_MS",)
        assert {k: v for k, v in mine.property_map.items() if k not in times} == {
            k: v for k, v in real.property_map.items() if k not in times
        }
        late_ms = abs(mine.store_timestamp - real.store_timestamp)
        assert late_ms <= 150, (mine, late_ms)


def _form(answer: RemotingCommand) -> object:
    """The names in a table of texts; the size of anything else."""
    if not answer.body.startswith(b"{"):
        return len(answer.body)
    return {name.partition("Ratio_")[0] for name in json.loads(answer.body)["table"]}


def test_the_check_point_and_the_metrics_have_the_real_form(tmp_path: Path) -> None:
    by_code = {exchange.request.code: exchange for exchange in exchanges("timer_exchanges")}
    world = World(tmp_path)
    client = world.client()
    client.put("tm", TIMER_DELAY_SEC="3")
    world.run_for(200)
    check, metrics = client.ask(60), client.ask(61)
    assert (
        not differences(check, by_code[60].response) and len(check.body) == len(by_code[60].response.body) == CHECK_SIZE
    )
    assert not differences(metrics, by_code[61].response)
    assert metrics.body.startswith(b'{"dataVersion":{"counter":1,"stateVersion":0,"timestamp":')
    assert b'"timingCount":{"tm":{"count":1,"timeStamp":' in metrics.body


def test_a_broker_without_the_wheel_refuses_timed_messages(tmp_path: Path) -> None:
    world = World(
        tmp_path, store=dataclasses.replace(SMALL_STORE, timer_wheel_enable=False), recall_message_enable=True
    )
    client = world.client()
    answer = client.put("tm", TIMER_DELAY_SEC="3")
    assert (answer.code, answer.remark) == (1, "accurate timer message is not enabled, timerWheelEnable is false")
    assert "rmq_sys_wheel_timer" not in world.broker.topics
    assert client.ask(60).code == 1 and client.ask(61).code == 1


@pytest.mark.parametrize(
    ("settings", "topic", "code", "remark"),
    [
        ({}, "tm", 16, "recall failed, operation is forbidden"),
        ({"recall_message_enable": True}, "other", 17, "recall failed, the topic[other] not exist"),
        (
            {"recall_message_enable": True, "allow_recall_when_broker_not_writeable": False, "broker_permission": 4},
            "tm",
            14,
            "recall failed, broker service not available",
        ),
    ],
)
def test_recall_is_refused_before_the_handle_is_read(
    tmp_path: Path, settings: dict[str, object], topic: str, code: int, remark: str
) -> None:
    world = World(tmp_path, **settings)
    world.broker.create_topic(dataclasses.replace(world.broker.topics["SELF_TEST_TOPIC"], topic_name="tm"))
    answer = world.client().ask(370, producerGroup="pg", topic=topic, recallHandle="")
    assert (answer.code, answer.remark, answer.ext_fields) == (code, remark, {"MSG_REGION": "DefaultRegion"})


def test_a_moment_with_too_many_messages_refuses_more(tmp_path: Path) -> None:
    world = World(tmp_path, store=dataclasses.replace(SMALL_STORE, timer_congest_num_each_slot=2))
    client = world.client()
    deliver = str(world.sim.now_ms + 60_000)
    for _ in range(5):
        client.put("tm", TIMER_DELIVER_MS=deliver)
        world.run_for(200)
    answer = client.put("tm", TIMER_DELIVER_MS=deliver)
    assert answer.code == 1 and answer.remark == (
        "timer message is under flow control, max num limit is 4 or the current value is greater than 2 and less than 4"
        ", trigger random flow control"
    )
