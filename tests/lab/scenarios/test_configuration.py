"""Topics and groups, made by hand and by themselves, and the files they are kept in.

Mirrors: TopicConfigManager, SubscriptionGroupManager.
"""

from __future__ import annotations

from typing import Any

import pytest

from mqlab import Message
from mqlab.errors import BrokerError, ClientError
from tests.lab.scenarios.stories import QUIET, Seen, Tool, changes, config, frames, member, owned, quiet_lab, send

UPDATE_TOPIC, UPDATE_GROUP = 17, 200


def test_the_first_message_makes_its_topic_with_four_queues_from_the_template() -> None:
    lab = quiet_lab()
    template = lab.broker().topics["TBW102"]
    assert (template.read_queue_nums, template.write_queue_nums, template.perm) == (8, 8, 7)
    send(lab.producer("shop"), "first")
    made = lab.broker().topics["orders"]
    assert (made.read_queue_nums, made.write_queue_nums, made.perm) == (4, 4, 6)
    assert "orders" in config(lab, "topics.json")["topicConfigTable"]
    assert changes(lab, "topic.created", topic="orders")[0]["by"] == "send"


@pytest.mark.parametrize(("wanted", "template", "made"), [(2, 8, 2), (16, 8, 8), (4, 3, 3)])
def test_as_many_queues_as_the_client_wants_and_the_template_has(wanted: int, template: int, made: int) -> None:
    lab = quiet_lab(broker={"default_topic_queue_nums": template})
    send(lab.producer("shop", default_topic_queue_nums=wanted), "first")
    assert lab.broker().topics["orders"].write_queue_nums == made


def test_only_brokers_that_received_a_message_have_it_and_the_load_is_uneven() -> None:
    lab = quiet_lab(brokers=3)
    producer = lab.producer("shop")
    (result,) = send(producer, "first")
    lab.run_for("31s")
    results = send(producer, *"abcdefgh")
    assert {one.message_queue.broker_name for one in results} == {result.message_queue.broker_name}
    assert sum("orders" in lab.broker(name).topics for name in ("broker-a", "broker-b", "broker-c")) == 1


def test_switched_off_an_unknown_topic_has_no_route() -> None:
    lab = quiet_lab(broker={"auto_create_topic_enable": False})
    with pytest.raises(ClientError, match="No route info of this topic: orders"):
        send(lab.producer("shop"), "first")
    lab.create_topic("orders")
    assert send(lab.producer("shop", name="shop-2"), "second")[0].send_status == "SEND_OK"


def test_a_topic_made_by_a_learners_template() -> None:
    lab = quiet_lab()
    lab.create_topic("Template", read_queue_nums=6, write_queue_nums=6, perm=7)
    send(lab.producer("shop", create_topic_key="Template", default_topic_queue_nums=16), "first")
    assert (lab.broker().topics["orders"].write_queue_nums, lab.broker().topics["orders"].perm) == (6, 6)


def test_a_plain_send_to_a_missing_retry_topic_is_made_from_the_template_too() -> None:
    lab = quiet_lab()
    lab.broker().groups.find("nobody")
    send(lab.producer("shop"), "x", topic="%RETRY%nobody")
    assert lab.broker().topics["%RETRY%nobody"].write_queue_nums == 4


def test_the_topics_a_broker_is_born_with() -> None:
    lab = quiet_lab()
    topics = lab.broker().topics
    queues = {name: (topics[name].write_queue_nums, topics[name].perm) for name in topics}
    assert queues == {
        "TBW102": (8, 7),
        "SELF_TEST_TOPIC": (1, 6),
        "BenchmarkTest": (1024, 6),
        "DefaultCluster": (16, 7),
        "broker-a": (1, 7),
        "OFFSET_MOVED_EVENT": (1, 6),
        "SCHEDULE_TOPIC_XXXX": (18, 6),
        "RMQ_SYS_TRACE_TOPIC": (1, 6),
        "DefaultCluster_REPLY_TOPIC": (1, 6),
        "rmq_sys_REVIVE_LOG_DefaultCluster": (8, 6),
        "rmq_sys_SYNC_BROKER_MEMBER_broker-a": (1, 1),
        "RMQ_SYS_TRANS_HALF_TOPIC": (1, 6),
        "RMQ_SYS_TRANS_OP_HALF_TOPIC": (1, 6),
        "rmq_sys_wheel_timer": (1, 6),
    }


@pytest.mark.parametrize("topic", ["SCHEDULE_TOPIC_XXXX", "RMQ_SYS_TRANS_OP_HALF_TOPIC", "SELF_TEST_TOPIC"])
def test_clients_may_not_send_to_the_systems_own(topic: str) -> None:
    lab = quiet_lab()
    with pytest.raises(ClientError, match="forbidden"):
        send(lab.producer("shop"), "x", topic=topic)


@pytest.mark.parametrize("make", ["producer", "push_consumer", "lite_pull_consumer"])
@pytest.mark.parametrize("group", ["", "с кириллицей", "g" * 256, "DEFAULT"])
def test_names_no_group_may_have(make: str, group: str) -> None:
    lab = quiet_lab()
    name = group if group != "DEFAULT" else f"DEFAULT_{'PRODUCER' if make == 'producer' else 'CONSUMER'}"
    with pytest.raises(ClientError):
        getattr(lab, make)(name, name="node")


def test_a_group_name_of_120_characters_works_with_its_retry_and_dead_letter_topics() -> None:
    lab = quiet_lab(broker={"message_delay_level": " ".join(["1s"] * 18)})
    group = "g" * 120
    seen = Seen(lab, "RECONSUME_LATER")
    member(lab, group, seen, name="long", max_reconsume_times=1)
    lab.create_topic("orders")
    lab.run_for("60s")
    send(lab.producer("shop"), "x")
    lab.run_for("10s")
    assert len(seen.messages) == 2
    assert lab.broker().store.max_offset(f"%DLQ%{group}", 0) == 1


def test_a_topic_changed_by_hand_is_saved_told_and_survives_a_restart() -> None:
    lab = quiet_lab()
    fields = {
        "topic": "orders",
        "defaultTopic": "TBW102",
        "readQueueNums": 6,
        "writeQueueNums": 5,
        "perm": 6,
        "topicFilterType": "SINGLE_TAG",
        "topicSysFlag": 0,
        "order": False,
    }
    assert Tool(lab).ask(UPDATE_TOPIC, **fields).code == 0
    lab.run_for("10ms")
    (data,) = lab.name_server().routes.route("orders").queue_datas
    assert (data.read_queue_nums, data.write_queue_nums) == (6, 5)
    version = config(lab, "topics.json")["dataVersion"]["counter"]
    lab.kill("broker-a")
    lab.start("broker-a")
    assert lab.broker().topics["orders"].read_queue_nums == 6
    lab.create_topic("orders")
    assert config(lab, "topics.json")["dataVersion"]["counter"] > version


def test_groups_make_themselves_unless_told_otherwise() -> None:
    lab = quiet_lab()
    born = set(lab.broker().groups)
    assert {"TOOLS_CONSUMER", "SELF_TEST_C_GROUP", "CID_RMQ_SYS_TRANS"} <= born
    lab.create_topic("orders")
    member(lab, "billing")
    lab.run_for("1s")
    made = config(lab, "subscriptionGroup.json")["subscriptionGroupTable"]["billing"]
    assert (made["retryQueueNums"], made["retryMaxTimes"], made["consumeEnable"], made["brokerId"]) == (1, 16, True, 0)
    assert made["whichBrokerWhenConsumeSlowly"] == 1


def test_more_retry_queues_for_a_group() -> None:
    lab = quiet_lab(broker={"message_delay_level": " ".join(["1s"] * 18)})
    Tool(lab).ask(UPDATE_GROUP, b'{"groupName":"billing","retryQueueNums":4}')
    lab.create_topic("orders")
    seen = Seen(lab, "RECONSUME_LATER")
    consumer = member(lab, "billing", seen)
    lab.run_for("25s")
    assert owned(consumer, "%RETRY%billing") == [0, 1, 2, 3]
    send(lab.producer("shop"), *"abcdefgh")
    lab.run_for("10s")
    used = [queue for queue in range(4) if lab.broker().store.max_offset("%RETRY%billing", queue)]
    assert len(used) > 1


def test_every_file_has_its_backup() -> None:
    lab = quiet_lab()
    lab.create_topic("orders")
    member(lab, "billing", Seen(lab, "RECONSUME_LATER", "CONSUME_SUCCESS"))
    lab.run_for("25s")
    send(lab.producer("shop"), "x")
    lab.run_for("30s")
    member(lab, "audit")
    lab.run_for("30s")
    names = {path.name for path in (lab.directory / "broker-a" / "config").iterdir()}
    for name in ("topics.json", "subscriptionGroup.json", "consumerOffset.json", "delayOffset.json"):
        assert {name, f"{name}.bak"} <= names
    assert config(lab, "delayOffset.json")["offsetTable"] == {3: 1}


def test_a_broker_that_may_not_be_read_or_written() -> None:
    for permission, sends, reads in ((4, False, True), (2, True, False)):
        lab = quiet_lab(broker={"broker_permission": permission})
        fields: Any = {
            "topic": "orders",
            "defaultTopic": "TBW102",
            "readQueueNums": 1,
            "writeQueueNums": 1,
            "perm": 6,
            "topicFilterType": "SINGLE_TAG",
            "topicSysFlag": 0,
            "order": False,
        }
        Tool(lab).ask(UPDATE_TOPIC, **fields)
        lab.run_for("1s")
        producer = lab.producer("shop")
        if sends:
            send(producer, "x")
        else:
            with pytest.raises((BrokerError, ClientError)):
                send(producer, "x")
        consumer = member(lab, "billing")
        lab.run_for("5s")
        assert bool(owned(consumer)) == reads


def test_message_trace_is_on_in_labs_and_off_when_said() -> None:
    from mqlab import Lab

    for settings, traced in (({}, True), (QUIET, False)):
        lab = Lab(**settings)
        lab.create_topic("orders")
        member(lab, "billing")
        producer = lab.producer("shop")
        lab.run_for("5s")
        producer.send(Message("orders", b"x"))
        lab.run_for("10s")
        records = lab.broker().store.get("RMQ_SYS_TRACE_TOPIC", 0, 0).units
        assert bool(records) == traced


def test_ports() -> None:
    lab = quiet_lab(brokers=2)
    assert [lab.broker(name).address for name in ("broker-a", "broker-b")] == ["10.0.0.2:10911", "10.0.0.3:10911"]
    assert lab.name_server().address == "10.0.0.1:9876" and lab.broker().ha_address == "10.0.0.2:10912"
    assert frames(lab, 103)[0].about.ext_fields["haServerAddr"] == "10.0.0.2:10912"
