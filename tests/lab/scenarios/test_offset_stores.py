"""How far a group is, in the client's memory, at the broker, in files; moving it on purpose.

Mirrors: RemoteBrokerOffsetStore, LocalFileOffsetStore, ConsumerOffsetManager.
"""

from __future__ import annotations

import json
from typing import Any

import pytest

from mqlab import CONSUME_SUCCESS, Lab
from mqlab.rocketmq.wire import java_json
from tests.lab.scenarios.stories import (
    Seen,
    Tool,
    changes,
    config,
    delivered,
    frames,
    member,
    owned,
    quiet_lab,
    row,
    send,
    send_many,
)

COMMIT, QUERY, RESET = 15, 14, 222


def orders(lab: Lab, *bodies: str, queues: int = 1) -> Lab:
    lab.create_topic("orders", read_queue_nums=queues, write_queue_nums=queues)
    if bodies:
        send(lab.producer("shop"), *bodies)
    return lab


def test_memory_at_once_broker_after_five_seconds_file_after_five_more() -> None:
    lab = orders(quiet_lab())
    consumer = member(lab, "billing")
    producer = lab.producer("shop")
    lab.run_for("31s")
    send(producer, "a")
    lab.run_for("20ms")
    (queue,) = [one for one in consumer.message_queues if one.topic == "orders"]
    assert (consumer.offset_store.read_memory(queue), row(lab, "billing").consumer_offset) == (1, 0)
    lab.run_until(lambda: row(lab, "billing").consumer_offset == 1)
    assert config(lab, "consumerOffset.json")["offsetTable"]["orders@billing"] == {0: 0}
    lab.run_for("6s")
    assert config(lab, "consumerOffset.json")["offsetTable"]["orders@billing"] == {0: 1}


def test_commits_are_one_way_and_nobody_learns_what_became_of_them() -> None:
    lab = orders(quiet_lab(), "a")
    member(lab, "billing")
    lab.run_for("30s")
    asked = frames(lab, COMMIT)
    assert asked and all(one.about.is_oneway for one in asked)
    answers = [
        one for one in lab.journal if one.about is not None and one.about.is_response and one.node == "billing-1"
    ]
    assert not {one.about.opaque for one in asked} & {one.about.opaque for one in answers}


def test_a_killed_consumer_repeats_what_it_had_not_told() -> None:
    lab = orders(quiet_lab())
    send_many(lab.producer("shop"), 200, queue=0)
    one_thread = {"consume_thread_min": 1, "consume_thread_max": 1}
    consumer = member(lab, "billing", Seen(lab, takes="100ms"), **one_thread)
    lab.run_for("19s")
    lab.kill(consumer)
    lab.start(consumer)
    lab.run_for("10s")
    offsets = [one.queue_offset for one in delivered(lab, "billing")]
    repeated = len(offsets) - len(set(offsets))
    assert 30 < repeated <= 51  # four of the five seconds between two commits, and the one under way
    assert sorted(set(offsets)) == list(range(max(offsets) + 1))


def test_a_killed_broker_repeats_what_was_not_in_its_file() -> None:
    lab = orders(quiet_lab())
    producer = lab.producer("shop")
    lab.run_for("3s")  # so that the client's five seconds and the broker's do not fall together
    consumer = member(lab, "billing")
    lab.run_for("28s")
    send(producer, *"abcde")
    lab.run_until(lambda: row(lab, "billing").consumer_offset == 5)
    lab.kill("broker-a")
    lab.kill(consumer)
    lab.start("broker-a")
    assert row(lab, "billing").consumer_offset == 0
    lab.start(consumer)
    lab.run_for("10s")
    assert len(delivered(lab, "billing")) == 10


def test_the_backup_takes_over_from_an_unreadable_file() -> None:
    lab = orders(quiet_lab(), *"ab")
    member(lab, "billing")
    lab.run_for("30s")
    send(lab.handles["shop-1"], *"cde")
    lab.run_for("30s")
    lab.kill("broker-a")
    path = lab.directory / "broker-a" / "config" / "consumerOffset.json"
    before = java_json.loads(path.with_name("consumerOffset.json.bak").read_text("utf-8"))["offsetTable"]
    path.write_text('{"offsetTable":{"orders@billing":{0:', "utf-8")
    lab.start("broker-a")
    assert lab.broker().offset_table.query("billing", "orders", 0) == before["orders@billing"][0] > 0


def test_a_broadcasting_member_keeps_its_own_file_and_goes_on_from_it() -> None:
    lab = orders(quiet_lab(), *"abc")
    seen = Seen(lab)
    settings = {"message_model": "BROADCASTING", "consume_from_where": "CONSUME_FROM_FIRST_OFFSET"}
    consumer = member(lab, "audit", seen, **settings)
    lab.run_for("20s")
    (path,) = (lab.directory / "offsets").rglob("offsets.json")
    assert [path.parent.name, path.parent.parent.name] == ["audit", consumer.client_id]
    text = path.read_text("utf-8")
    with pytest.raises(json.JSONDecodeError):
        json.loads(text)  # an object with objects as keys, as fastjson writes it
    assert '"brokerName":"broker-a"' in text and "}:3" in text
    lab.kill(consumer)
    send(lab.handles["shop-1"], "while away")
    lab.start(consumer)
    lab.run_for("10s")
    assert seen.bodies == ["a", "b", "c", "while away"]


def test_the_broker_keeps_an_entry_for_broadcasting_groups_too() -> None:
    lab = orders(quiet_lab(), *"abc")
    member(lab, "audit", message_model="BROADCASTING", consume_from_where="CONSUME_FROM_FIRST_OFFSET")
    lab.run_for("40s")
    table = config(lab, "consumerOffset.json")["offsetTable"]
    assert table["orders@audit@broadcast"] == {0: 3}
    assert "orders@audit" not in table


def test_a_commit_may_go_backwards_and_beyond_the_end() -> None:
    lab = orders(quiet_lab(), *"abc")
    lab.broker().groups.find("billing")
    tool = Tool(lab)
    for offset in (3, 1, 10_000, 0):
        assert tool.commit("billing", 0, offset) == 0
        assert lab.broker().offset_table.query("billing", "orders", 0) == offset


@pytest.mark.parametrize(
    ("fields", "code"),
    [
        ({"consumerGroup": "nobody"}, 26),
        ({"topic": "nothing"}, 17),
        ({"queueId": None}, 29),
        ({"commitOffset": None}, 29),
    ],
)
def test_refused_commits(fields: dict[str, Any], code: int) -> None:
    lab = orders(quiet_lab(broker={"auto_create_subscription_group": False}), "a")
    tool = Tool(lab)
    tool.ask(200, b'{"groupName":"billing"}')
    whole = {"consumerGroup": "billing", "topic": "orders", "queueId": 0, "commitOffset": 1, **fields}
    assert tool.ask(COMMIT, **whole).code == code


def test_not_found_is_the_brokers_word() -> None:
    lab = orders(quiet_lab(), *"abc")
    lab.create_topic("empty", read_queue_nums=1, write_queue_nums=1)
    tool = Tool(lab)
    ask = {"consumerGroup": "billing", "queueId": 0}
    young = tool.ask(QUERY, topic="orders", **ask)
    assert (young.code, young.ext_fields["offset"]) == (0, "0")  # as if it were stored: message 0 is in memory
    assert tool.ask(QUERY, topic="orders", setZeroIfNotFound=False, **ask).code == 22
    assert tool.ask(QUERY, topic="empty", **ask).code == 22


def test_a_reset_at_the_broker_takes_effect_with_the_next_pull() -> None:
    lab = orders(quiet_lab(), *"abcde")
    consumer = member(lab, "billing")
    lab.run_for("31s")
    assert row(lab, "billing").consumer_offset == 5
    lab.run_until(lambda: any(pull.topic == "orders" for pull in lab.broker().held_pulls.held()))
    lab.run_for("1s")
    tool = Tool(lab)
    reset = tool.ask(RESET, topic="orders", group="billing", timestamp=lab.began_ms, isForce=True)
    assert reset.code == 0 and row(lab, "billing").consumer_offset == 0
    assert tool.commit("billing", 0, 4) == 0  # a no-op that says SUCCESS
    assert row(lab, "billing").consumer_offset == 0
    began_ms = lab.now_ms
    lab.run_until(lambda: len(delivered(lab, "billing")) == 10)
    assert 5_000 <= lab.now_ms - began_ms <= 22_000  # the held pull was not interrupted
    assert changes(lab, "pull.offset_moved")[0]["remark"] == "OFFSET_RESET"
    lab.run_for("6s")
    assert owned(consumer) == [0] and row(lab, "billing").consumer_offset == 5


@pytest.mark.parametrize(("when", "offset"), [("before", 0), ("between", 3), ("after", 6), ("minus one", 6)])
def test_a_reset_goes_to_the_first_message_stored_at_or_after_a_time(when: str, offset: int) -> None:
    lab = orders(quiet_lab(), *"abc")
    lab.run_for("10m")
    send(lab.handles["shop-1"], *"def")
    lab.broker().groups.find("billing")
    times = {"before": 1_000, "between": lab.began_ms + 300_000, "after": lab.now_ms + 1, "minus one": -1}
    Tool(lab).ask(RESET, topic="orders", group="billing", timestamp=times[when], isForce=False)
    assert lab.broker().offset_table.query("billing", "orders", 0) == offset


def test_a_reset_to_a_number_within_the_queue_and_one_beyond() -> None:
    lab = orders(quiet_lab(), *"abc")
    lab.broker().groups.find("billing")
    tool = Tool(lab)
    ask = {"topic": "orders", "group": "billing", "timestamp": -1, "isForce": True, "queueId": 0}
    assert [tool.ask(RESET, offset=offset, **ask).code for offset in (2, 4, 5)] == [0, 0, 1]
    assert tool.ask(RESET, offset=1, **{**ask, "group": "nobody"}).code == 26
    assert tool.ask(RESET, offset=1, **{**ask, "topic": "nothing"}).code == 17


def test_a_reset_at_the_members_needs_them_online_and_takes_ten_seconds() -> None:
    lab = orders(quiet_lab(broker={"use_server_side_reset_offset": False}), *"abcde")
    tool = Tool(lab)
    ask = {"topic": "orders", "group": "billing", "timestamp": lab.began_ms, "isForce": True}
    lab.broker().groups.find("billing")
    tool.commit("billing", 0, 5)
    assert tool.ask(RESET, **ask).code == 206
    member(lab, "billing")
    lab.run_for("20s")
    assert tool.ask(RESET, **ask).code == 0
    began_ms = lab.now_ms
    lab.run_until(lambda: len(delivered(lab, "billing")) == 5)
    assert 10_000 <= lab.now_ms - began_ms <= 11_600


def test_a_members_own_reset_moves_all_its_topics_and_the_retry_topic() -> None:
    lab = orders(quiet_lab(), *"ab")
    seen = Seen(lab, "RECONSUME_LATER", CONSUME_SUCCESS)
    consumer = member(lab, "billing", seen)
    lab.run_for("60s")
    assert sorted(seen.bodies) == ["a", "a", "b"]
    consumer.reset_offset_by_timestamp(lab.began_ms)
    lab.run_for("30s")
    assert sorted(seen.bodies) == ["a"] * 4 + ["b"] * 2  # both messages and the retried copy


def test_results_of_before_a_reset_do_not_undo_it() -> None:
    lab = orders(quiet_lab(), *"abcdef")
    member(lab, "billing", Seen(lab, takes="30s"), consume_thread_min=2, consume_thread_max=2)
    lab.run_for("40s")
    Tool(lab).ask(RESET, topic="orders", group="billing", timestamp=lab.began_ms, isForce=True)
    lab.run_for("25s")
    assert [one.status for one in delivered(lab, "billing")].count("RESULT_DISCARDED") == 2
    lab.run_for("3m")
    offsets = [one.queue_offset for one in delivered(lab, "billing")]
    assert offsets[-6:] == [0, 1, 2, 3, 4, 5]
    assert row(lab, "billing").lag == 0


def test_lag_and_inflight_without_any_plus_one() -> None:
    lab = orders(quiet_lab())
    send_many(lab.producer("shop"), 40, queue=0)
    stored_ms = lab.now_ms
    settings = {"consume_thread_min": 10, "consume_thread_max": 10, "pull_batch_size": 20, "pull_interval": "60s"}
    member(lab, "billing", Seen(lab, takes="10s"), **settings)
    lab.run_for("16s")
    progress = row(lab, "billing")
    assert (progress.broker_offset, progress.consumer_offset, progress.pull_offset) == (40, 10, 20)
    assert (progress.lag, progress.inflight, progress.client) == (30, 10, "billing-1")
    assert abs(progress.last_timestamp - stored_ms) <= 10
    answer = Tool(lab).ask(208, consumerGroup="billing")
    (told,) = [row for queue, row in offset_rows(answer.body) if queue["topic"] == "orders"]
    told.pop("lastTimestamp")
    assert told == {"brokerOffset": 40, "consumerOffset": 10, "pullOffset": 20}


def offset_rows(body: bytes | None) -> list[tuple[Any, dict[str, int]]]:
    table = java_json.loads((body or b"{}").decode())["offsetTable"]
    return [(java_json.loads(queue) if isinstance(queue, str) else dict(queue), row) for queue, row in table.items()]


def test_pulls_carry_commits_that_are_taken_unchecked() -> None:
    lab = orders(quiet_lab())
    member(lab, "billing", persist_consumer_offset_interval="1h")
    lab.run_for("15s")
    told = len(frames(lab, COMMIT))
    send(lab.producer("shop"), *"abc")
    lab.run_for("30s")
    assert len(frames(lab, COMMIT)) == told
    assert row(lab, "billing").consumer_offset == 3
