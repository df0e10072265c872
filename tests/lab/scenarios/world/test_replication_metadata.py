"""Topics, offsets and groups, which a slave copies by asking for them now and then.

Mirrors: SlaveSynchronize.
"""

from __future__ import annotations

from mqlab import Lab
from mqlab.rocketmq.wire import java_json
from tests.lab.scenarios.stories import Tool, changes, frames, member, moments, send
from tests.lab.scenarios.world.replicas import MASTER, SLAVE, fill, pair, pull

TOPICS, OFFSETS, DELAYS, GROUPS = 21, 43, 45, 201


def asked(lab: Lab, code: int) -> list[int]:
    """When the master was asked for a table: whole seconds since the slave started."""
    return [(record.now_ms - lab.began_ms) // 1_000 for record in frames(lab, code, to=MASTER)]


def stored(tool: Tool, broker: str, group: str, queue_id: int = 0) -> str | None:
    fields = {"consumerGroup": group, "topic": "orders", "queueId": queue_id, "setZeroIfNotFound": False}
    return tool.ask(14, to=tool.lab.broker(broker).address, **fields).ext_fields.get("offset")


def commit(tool: Tool, broker: str, group: str, offset: int) -> int:
    fields = {"consumerGroup": group, "topic": "orders", "queueId": 0, "commitOffset": offset}
    return tool.ask(15, to=tool.lab.broker(broker).address, **fields).code


def test_the_first_round_comes_after_61_seconds_and_then_one_every_63() -> None:
    lab = pair()
    lab.create_topic("orders")
    lab.run_for("200s")
    for code in (TOPICS, OFFSETS, DELAYS, GROUPS):
        assert asked(lab, code) == [61, 124, 187]


def test_until_the_first_round_a_slave_with_a_complete_log_knows_no_topic_and_no_group() -> None:
    lab = pair(replica={"slave_read_enable": True})
    lab.create_topic("T")
    lab.create_topic("orders")
    tool = Tool(lab)
    lab.broker(MASTER).groups.find("g")
    fill(lab, 4)
    assert pull(tool, SLAVE, 0).code == 17
    assert commit(tool, SLAVE, "late", 5) == 26
    lab.broker(SLAVE).groups.find("late")
    assert commit(tool, SLAVE, "late", 5) == 17
    lab.run_for("62s")
    answer = pull(tool, SLAVE, 0)
    assert answer.code == 0 and answer.ext_fields["nextBeginOffset"] == "1"
    assert "g" in lab.broker(SLAVE).groups and "late" not in lab.broker(SLAVE).groups


def test_a_topic_that_the_master_lacks_is_deleted_and_others_become_the_masters() -> None:
    lab = pair()
    lab.create_topic("orders", read_queue_nums=4, write_queue_nums=4)
    tool = Tool(lab)
    made = {
        "readQueueNums": 2,
        "writeQueueNums": 2,
        "perm": 6,
        "topicFilterType": "SINGLE_TAG",
        "topicSysFlag": 0,
        "order": False,
        "defaultTopic": "TBW102",
    }
    for topic in ("own", "orders"):
        assert tool.ask(17, to=lab.broker(SLAVE).address, topic=topic, **made).code == 0
    assert lab.broker(SLAVE).topics["orders"].read_queue_nums == 2
    lab.run_for("62s")
    assert "own" not in lab.broker(SLAVE).topics
    assert lab.broker(SLAVE).topics["orders"].read_queue_nums == 4
    assert dict(lab.broker(SLAVE).topics) == dict(lab.broker(MASTER).topics)
    file = lab.directory / "replicas" / SLAVE / "config" / "topics.json"
    assert set(java_json.loads(file.read_text("utf-8"))["topicConfigTable"]) == set(lab.broker(MASTER).topics)


def test_equal_versions_change_nothing() -> None:
    lab = pair()
    lab.create_topic("orders")
    lab.run_for("190s")
    assert [values["what"] for values in changes(lab, "slave.synchronized")] == [
        "GET_ALL_TOPIC_CONFIG",
        "GET_ALL_SUBSCRIPTIONGROUP_CONFIG",
    ]
    lab.create_topic("payments")
    lab.run_for("63s")
    assert "payments" in lab.broker(SLAVE).topics


def test_an_offset_told_to_the_slave_lives_until_the_next_round_if_the_master_has_that_key() -> None:
    lab = pair()
    lab.create_topic("orders")
    tool = Tool(lab)
    for group in ("shared", "slaves-own"):
        lab.broker(MASTER).groups.find(group)
    assert commit(tool, MASTER, "shared", 10) == 0
    lab.run_for("62s")
    assert stored(tool, SLAVE, "shared") == "10"
    for group in ("shared", "slaves-own"):
        assert commit(tool, SLAVE, group, 77) == 0
        assert stored(tool, SLAVE, group) == "77"
    assert (stored(tool, MASTER, "shared"), stored(tool, MASTER, "slaves-own")) == ("10", None)
    lab.run_for("63s")
    assert stored(tool, SLAVE, "shared") == "10"  # also backwards
    assert stored(tool, SLAVE, "slaves-own") == "77"  # the master lacks this key


def test_offsets_and_delay_offsets_of_consumers_reach_the_slaves_files() -> None:
    lab = pair(broker={"message_delay_level": "1s 5s"})
    lab.create_topic("orders")
    member(lab, "billing", consume_from_where="CONSUME_FROM_FIRST_OFFSET")
    lab.run_for("2s")
    producer = lab.producer("shop")
    send(producer, "заказ", "订单", queue=0)
    send(producer, "позже ⏰", delay_time_level=1)
    lab.run_for("75s")
    folder = lab.directory / "replicas" / SLAVE / "config"
    offsets = java_json.loads((folder / "consumerOffset.json").read_text("utf-8"))["offsetTable"]
    assert offsets["orders@billing"] == dict(lab.broker(MASTER).offset_table["orders@billing"])
    assert sum(offsets["orders@billing"].values()) == 3
    delays = java_json.loads((folder / "delayOffset.json").read_text("utf-8"))["offsetTable"]
    assert delays == {1: 1}
    assert "billing" in lab.broker(SLAVE).groups


def test_without_a_master_nothing_is_asked_and_nobody_complains() -> None:
    lab = pair()
    lab.kill(MASTER)
    lab.run_for("70s")
    assert lab.broker(SLAVE).replication.synchronize.master_address is None
    assert not moments(lab, "slave.synchronize_failed") and not changes(lab, "slave.synchronized")
    lab.start(MASTER)
    lab.run_for("120s")
    assert changes(lab, "slave.synchronized")


def test_a_master_that_does_not_answer_is_asked_again_a_round_later() -> None:
    lab = pair()
    lab.create_topic("orders")
    lab.run_for("50s")
    lab.partition(MASTER, SLAVE)
    lab.run_for("30s")
    assert len(changes(lab, "slave.synchronize_failed")) == 4
    assert "orders" not in lab.broker(SLAVE).topics
    lab.heal()
    lab.run_for("60s")
    assert "orders" in lab.broker(SLAVE).topics


def test_a_damaged_table_changes_nothing() -> None:
    lab = pair()
    slave = lab.broker(SLAVE)
    before = (dict(slave.topics), dict(slave.groups), dict(slave.offset_table))
    whole = {
        TOPICS: lab.broker(MASTER).topics.encode(),
        GROUPS: lab.broker(MASTER).groups.encode(),
        OFFSETS: '{"offsetTable":{"orders@billing":{0:5}}}',
    }
    tables = {TOPICS: slave.topics, GROUPS: slave.groups, OFFSETS: slave.offset_table}
    for code, text in whole.items():
        for end in range(0, len(text.rstrip()), max(1, len(text) // 50)):
            try:
                tables[code].take_over(text[:end])
            except Exception as error:
                assert type(error).__name__ == "CorruptionError", error
            else:
                raise AssertionError(f"{code} cut at {end} was taken over")
    assert (dict(slave.topics), dict(slave.groups), dict(slave.offset_table)) == before


def test_what_is_not_copied() -> None:
    lab = pair()
    lab.create_topic("orders")
    consumer = member(lab, "billing", orderly=True)
    lab.run_for("70s")
    tool = Tool(lab)
    tool.ask(222, topic="orders", group="billing", timestamp=0, isForce=True)
    slave = lab.broker(SLAVE)
    assert "billing" in slave.consumers  # by its own heartbeat, not by copying
    assert consumer.client_id in slave.consumers["billing"].client_ids
    assert not slave.offset_table.has_reset("billing", "orders", 0)
    assert lab.broker(MASTER).queue_locks.all_expired("billing") is False
    assert slave.queue_locks.all_expired("billing") is True
