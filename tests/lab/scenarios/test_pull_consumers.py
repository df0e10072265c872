"""Consumers that ask for themselves: subscribe, assign, poll, commit, seek, pause; one pull a call.

Mirrors: DefaultLitePullConsumer, DefaultMQPullConsumer, MQPullConsumerScheduleService.
"""

from __future__ import annotations

from typing import Any

import pytest

from mqlab import Lab, Message, MessageQueue
from mqlab.errors import ClientError, UsageError
from mqlab.rocketmq.client.settings import LitePullConsumerConfig
from tests.lab.scenarios.stories import Tool, changes, config, frames, quiet_lab, row, send, send_many, to_queue

Q0 = MessageQueue("orders", "broker-a", 0)
LITE, PULL = 361, 11


def orders(count: int, queues: int = 1, **settings: Any) -> Lab:
    """So many messages in queue 0 of a topic."""
    lab = quiet_lab(seed=31, **settings)
    lab.create_topic("orders", read_queue_nums=queues, write_queue_nums=queues)
    if count:
        send_many(lab.producer("shop"), count, queue=0)
    lab.run_for("1s")
    return lab


def assigned(lab: Lab, **settings: Any) -> Any:
    """A lite pull consumer that reads queue 0."""
    lite = lab.lite_pull_consumer("audit", **settings)
    lite.assign([Q0])
    lite.start()
    return lite


def numbers(messages: list[Any]) -> list[int]:
    return [message.queue_offset for message in messages]


def test_defaults_and_what_is_refused() -> None:
    found = LitePullConsumerConfig()
    assert (found.pull_batch_size, found.pull_thread_nums, found.pull_threshold_for_all) == (10, 20, 10_000)
    assert (found.pull_threshold_for_queue, found.pull_threshold_size_for_queue, found.consume_max_span) == (
        1000,
        100,
        2000,
    )
    assert (found.poll_timeout_millis, found.broker_suspend_max_time_millis) == (5_000, 20_000)
    assert (found.consumer_timeout_millis_when_suspend, found.topic_metadata_check_interval_millis) == (30_000, 30_000)
    assert (found.auto_commit, found.auto_commit_interval_millis) == (True, 5_000)
    assert (found.consume_from_where, found.message_model) == ("CONSUME_FROM_LAST_OFFSET", "CLUSTERING")
    assert LitePullConsumerConfig(auto_commit_interval_millis=999).auto_commit_interval_millis == 5_000  # not taken
    with pytest.raises(UsageError, match="shorter than"):
        quiet_lab().lite_pull_consumer("audit", consumer_timeout_millis_when_suspend="19s")


def test_a_group_member_whose_failures_are_its_own_business() -> None:
    lab = orders(0)
    lite = lab.lite_pull_consumer("audit")
    lite.subscribe("orders")
    lite.start()
    lab.run_for("3s")
    connection = lab.admin.examine_consumer_connection_info("audit")
    assert lite.client_id.endswith("@audit-1@STREAM") and connection.consume_type == "CONSUME_ACTIVELY"
    assert [each.topic for each in connection.subscriptions] == ["orders"]  # no retry topic is subscribed ...
    assert "%RETRY%audit" in lab.broker().topics  # ... though the heartbeat made one
    assert not hasattr(lite.node, "send_message_back")


def test_assign_reads_at_once_and_subscribe_after_the_rebalance() -> None:
    lab = orders(5)
    began_ms = lab.now_ms
    lite = assigned(lab)
    assert len(lite.poll()) == 5 and lab.now_ms - began_ms < 50
    other = lab.lite_pull_consumer("report")
    other.subscribe("orders")
    began_ms = lab.now_ms
    other.start()
    assert len(other.poll()) == 5 and 1_000 <= lab.now_ms - began_ms <= 1_100


def test_a_second_member_takes_its_half_and_leaves_it_again() -> None:
    lab = orders(0, queues=4)
    told: dict[str, list[tuple[int, int, int]]] = {"audit-1": [], "audit-2": []}
    members = {}
    for name in told:
        lite = members[name] = lab.lite_pull_consumer("audit", name=name)
        lite.subscribe(
            "orders",
            listener=lambda topic, every, mine, name=name: told[name].append((lab.now_ms, len(every), len(mine))),
        )
        began_ms = lab.now_ms
        lite.start()
        lab.run_for("5s")
    ((second_ms, every, mine),) = told["audit-2"]
    assert (every, mine) == (4, 2) and 1_000 <= second_ms - began_ms <= 1_100
    assert [each[1:] for each in told["audit-1"]] == [(4, 4), (4, 2)]
    ended_ms = lab.now_ms
    members["audit-2"].shutdown()
    lab.run_for("3s")
    last_ms, *shares = told["audit-1"][-1]
    assert shares == [4, 4] and last_ms - ended_ms <= 20


def test_the_modes_exclude_each_other_and_an_assigning_member_takes_a_share_it_does_not_read() -> None:
    lab = orders(0, queues=4)
    subscribed = lab.lite_pull_consumer("audit")
    subscribed.subscribe("orders")
    with pytest.raises(ClientError, match=r"Subscribe and assign are mutually exclusive\."):
        subscribed.assign([Q0])
    with pytest.raises(UsageError):
        lab.lite_pull_consumer("empty").assign([])
    subscribed.start()
    lab.run_for("5s")
    other = lab.lite_pull_consumer("audit", name="audit-2")
    other.assign([Q0])
    other.start()
    lab.run_for("30s")
    assert len(subscribed.assignment()) == 2  # never mix modes in one group: half of its queues have no owner


def test_a_poll_gives_one_pulls_messages_of_one_queue() -> None:
    lab = orders(25, queues=2)
    lite = lab.lite_pull_consumer("audit")
    lite.assign([Q0, MessageQueue("orders", "broker-a", 1)])
    lite.start()
    send(lab.handles["shop-1"], "订单", queue=1)
    batches = [lite.poll("2s") for _ in range(4)]
    assert sorted(len(batch) for batch in batches) == [1, 5, 10, 10]
    assert all(len({message.queue_id for message in batch}) == 1 for batch in batches)
    assert [n for batch in batches if batch[0].queue_id == 0 for n in numbers(batch)] == list(range(25))
    with pytest.raises((ClientError, UsageError)):
        lite.poll(-1)
    with pytest.raises(ClientError):
        lab.lite_pull_consumer("other").poll()


def test_a_tag_without_matches_never_moves_the_committed_offset() -> None:
    lab = orders(0, queues=2)
    producer = lab.producer("shop")
    for number in range(40):
        producer.send(Message("orders", b"x", tags="common"), selector=to_queue(number % 2))
    lite = lab.lite_pull_consumer("audit")
    lite.subscribe("orders", "rare")
    lite.start()
    began_ms = lab.now_ms
    while lab.now_ms - began_ms < 14_000:
        assert lite.poll("1s") == []
    assert [lite.committed(queue) for queue in lite.assignment()] == [0, 0]
    lab.run_for("20s")
    assert [row(lab, "audit", queue).lag for queue in (0, 1)] == [20, 20]  # nothing is wrong, though it looks so


def test_auto_commit_covers_what_earlier_polls_gave() -> None:
    lab = orders(591)
    lite = lab.lite_pull_consumer("audit")
    lite.subscribe("orders")
    lite.start()
    assert (numbers(lite.poll()), lite.committed(Q0)) == (list(range(10)), 0)
    assert (numbers(lite.poll()), lite.committed(Q0)) == (list(range(10, 20)), 0)
    lab.run_for("5100ms")
    assert (numbers(lite.poll()), lite.committed(Q0)) == (list(range(20, 30)), 20)
    lite.shutdown()
    again = lab.lite_pull_consumer("audit", name="audit-2")
    again.subscribe("orders")
    again.start()
    assert again.committed(Q0) == 20 and numbers(again.poll()) == list(range(20, 30))  # given again


def test_commits_by_hand() -> None:
    lab = orders(100)
    lite = assigned(lab, auto_commit=False)
    lite.poll()
    lite.poll()
    lite.commit_sync()
    assert lite.committed(Q0) == 20
    assert lab.broker().offset_table.query("audit", "orders", 0) in (-1, 0)  # not sent yet: the 5 s timer does
    lab.run_for("11s")
    assert lab.broker().offset_table.query("audit", "orders", 0) == 20
    lite.commit(offsets={Q0: 7, MessageQueue("orders", "broker-a", 9): 3}, persist=True)
    lab.run_for("10ms")
    assert lab.broker().offset_table.queues_of("audit", "orders") == {
        0: 7
    }  # backwards, no check; not assigned: not stored


def test_a_shutdown_persists_what_was_committed_and_not_what_was_polled() -> None:
    lab = orders(100)
    lite = assigned(lab, auto_commit=False)
    lite.poll()
    lite.commit()
    lite.poll()
    lite.shutdown()
    lab.run_for("20s")
    assert config(lab, "consumerOffset.json")["offsetTable"]["orders@audit"] == {0: 10}
    assert lab.broker().offset_table.query("audit", "orders", 0) == 10


def test_where_a_new_group_begins() -> None:
    lab = orders(30)
    assert numbers(assigned(lab).poll())[0] == 0  # LAST_OFFSET, but message 0 is in memory: the broker says 0
    with pytest.raises(UsageError, match="deprecated and refused"):
        lab.lite_pull_consumer("old", consume_from_where="CONSUME_FROM_MAX_OFFSET")
    cold = orders(30, memory=0)
    lite = assigned(cold)
    assert lite.poll("2s") == []
    first = cold.lite_pull_consumer("first", consume_from_where="CONSUME_FROM_FIRST_OFFSET")
    first.assign([Q0])
    first.start()
    assert numbers(first.poll())[0] == 0


def test_a_time_to_seek_to() -> None:
    lab = orders(10)
    lab.run_for("10s")
    later_ms = lab.now_ms
    send_many(lab.handles["shop-1"], 10, queue=0)
    lite = assigned(lab)
    lite.seek(Q0, lite.offset_for_timestamp(Q0, later_ms))
    assert numbers(lite.poll()) == list(range(10, 20))


def test_what_seek_refuses() -> None:
    lite = assigned(orders(591))
    with pytest.raises(
        ClientError, match="Seek offset illegal, seek offset = 100000, min offset = 0, max offset = 591"
    ):
        lite.seek(Q0, 100_000)
    with pytest.raises(ClientError, match="The message queue is not in assigned list"):
        lite.seek(MessageQueue("orders", "broker-a", 3), 0)


def test_a_seek_out_of_a_held_pull_is_quick() -> None:
    lab = orders(60)
    lite = assigned(lab)
    while lite.poll("1s"):
        pass
    lab.run_for("3s")  # the next pull is held at the end of the queue
    began_ms = lab.now_ms
    lite.seek(Q0, 50)
    took_ms = lab.now_ms - began_ms
    assert numbers(lite.poll()) == list(range(50, 60)) and took_ms <= 17 and lab.now_ms - began_ms - took_ms <= 5


def test_seek_leaves_the_committed_offset_until_the_next_commit() -> None:
    lab = orders(591)
    lite = assigned(lab, auto_commit=False)
    lite.poll()
    lite.poll()
    lite.commit()
    lite.seek(Q0, 100)
    assert lite.committed(Q0) == 20
    lab.run_for("100ms")
    lite.commit()  # between the seek and the first poll
    assert lite.committed(Q0) == 100
    assert numbers(lite.poll()) == list(range(100, 110))
    lite.commit()
    assert lite.committed(Q0) == 110
    lite.seek(Q0, 5)
    lite.poll()
    lite.commit()
    assert lite.committed(Q0) == 15  # seeking back lowers it


def test_pause_leaves_the_cache_and_resume_pulls_within_a_second() -> None:
    lab = orders(40)
    lite = assigned(lab, pull_threshold_for_queue=9)
    lab.run_for("1s")  # ten are cached: more than the limit
    lite.pause([Q0, MessageQueue("nothing", "broker-a", 0)])
    assert [numbers(lite.poll("2s")) for _ in range(2)] == [list(range(10)), []]
    began_ms = lab.now_ms
    lite.resume([Q0])
    assert numbers(lite.poll()) == list(range(10, 20)) and lab.now_ms - began_ms <= 1_000


def test_a_queue_that_the_broker_does_not_have() -> None:
    lab = orders(1)
    lite = lab.lite_pull_consumer("audit")
    lite.assign([MessageQueue("orders", "broker-a", 7)])
    lite.start()
    began = lab.journal.next_step
    assert lite.poll("5s") == []
    refused = [r for r in lab.journal[began:] if r.about is not None and r.node == "audit-1" and r.about.code == 29]
    assert 4 <= len(refused) <= 6  # each second anew


def test_lite_pulls_and_pulls_are_answered_alike() -> None:
    lab = orders(20)
    tool = Tool(lab)
    lab.admin.create_and_update_subscription_group_config("audit")
    fields: dict[str, Any] = {
        "consumerGroup": "audit",
        "topic": "orders",
        "queueId": 0,
        "queueOffset": 3,
        "maxMsgNums": 10,
        "commitOffset": 0,
        "suspendTimeoutMillis": 0,
        "subscription": "*",
        "subVersion": 0,
        "expressionType": "TAG",
    }
    plain, lite = tool.ask(PULL, **fields, sysFlag=4), tool.ask(LITE, **fields, sysFlag=20)
    assert (plain.code, plain.ext_fields, plain.body) == (lite.code, lite.ext_fields, lite.body)
    lab.admin.update_broker_config("broker-a", lite_pull_message_enable=False)
    assert tool.ask(PULL, **fields, sysFlag=4).code == 0
    refused = tool.ask(LITE, **fields, sysFlag=20)
    assert refused.code == 16 and str(refused.remark).endswith("for lite pull consumer is forbidden")


def test_what_a_lite_pull_says() -> None:
    lab = orders(20)
    assigned(lab).poll()
    asked = frames(lab, LITE)[0].about.ext_fields
    assert (asked["sysFlag"], asked["subVersion"], asked["commitOffset"], asked["maxMsgNums"]) == ("22", "0", "0", "10")
    assert not frames(lab, PULL)


def test_the_manual_loop_goes_on_where_the_result_says() -> None:
    lab = orders(0)
    producer = lab.producer("shop")
    for tag in ["common"] * 40 + ["rare"]:
        producer.send(Message("orders", "заказ".encode(), tags=tag))
    puller = lab.pull_consumer("audit")
    (queue,) = puller.fetch_subscribe_message_queues("orders")
    offset, got, statuses = 0, [], []
    for _ in range(10):
        result = puller.pull(queue, "rare", offset, max_nums=32)
        assert (result.min_offset, result.max_offset) == (0, 41)
        statuses.append(result.pull_status)
        got += numbers(result.msg_found_list)
        offset = result.next_begin_offset
        if result.pull_status == "NO_NEW_MSG":
            break
    assert got == [40] and statuses[-2:] == ["FOUND", "NO_NEW_MSG"] and offset == 41
    assert puller.pull(queue, "none", 0).pull_status == "NO_MATCHED_MSG"
    illegal = puller.pull(queue, "*", 500)
    assert (illegal.pull_status, illegal.next_begin_offset) == ("OFFSET_ILLEGAL", 41)
    for offset, max_nums in [(-1, 1), (0, 0)]:
        with pytest.raises(ClientError):
            puller.pull(queue, "*", offset, max_nums=max_nums)
    assert {frame.about.ext_fields["sysFlag"] for frame in frames(lab, PULL)} == {"4"} and not frames(lab, LITE)


def test_a_blocking_pull_is_held_twenty_seconds_and_ends_with_the_message() -> None:
    lab = orders(1)
    puller = lab.pull_consumer("audit")
    lab.at(
        f"{lab.now_ms - lab.began_ms + 7_000}ms", lambda: lab.handles["shop-1"].send(Message("orders", "💳".encode()))
    )
    began_ms = lab.now_ms
    result = puller.pull_block_if_not_found(Q0, "*", 1, max_nums=32)
    assert numbers(result.msg_found_list) == [1] and 7_000 <= lab.now_ms - began_ms <= 7_100
    assert frames(lab, PULL)[-1].about.ext_fields["sysFlag"] == "6"
    assert puller.pull_block_if_not_found(Q0, "*", 2).pull_status == "NO_NEW_MSG"


def test_offsets_of_queues_that_are_not_its_own_are_never_persisted() -> None:
    lab = orders(10)
    puller = lab.pull_consumer("audit")
    puller.update_consume_offset(Q0, 6)
    assert puller.fetch_consume_offset(Q0) == 6
    lab.run_for("30s")  # the timer persists the queues it owns, which are none, and forgets the others
    assert (puller.fetch_consume_offset(Q0), puller.fetch_consume_offset(Q0, from_store=True)) == (0, 0)
    assert not [values for values in changes(lab, "offset.committed") if values["group"] == "audit"]
    puller.update_consume_offset_to_broker(Q0, 6)
    assert puller.fetch_consume_offset(Q0, from_store=True) == 6
    (message,) = puller.pull(Q0, "*", 0, max_nums=1).msg_found_list
    assert puller.send_message_back(message, 1) is True
    lab.run_for("3s")
    assert lab.broker().store.max_offset("%RETRY%audit", 0) == 1


def test_a_scheduled_task_that_dies_goes_on_behind_its_last_commit() -> None:
    lab = orders(40, queues=1)
    seen: list[int] = []

    def task(queue: MessageQueue, context: Any) -> None:
        consumer = context.pull_consumer
        result = consumer.pull(queue, "*", max(consumer.fetch_consume_offset(queue), 0), max_nums=10)
        for message in result.msg_found_list:
            context.sleep("300ms")
            seen.append(message.queue_offset)
        consumer.update_consume_offset(queue, result.next_begin_offset)
        context.pull_next_delay_time_millis = 0 if result.msg_found_list else "1s"

    service = lab.pull_consumer_schedule_service("audit")
    service.register_pull_task_callback("orders", task)
    service.start()
    lab.run_until(lambda: len(seen) == 34)  # 20 are committed by the timer of the tenth second, or 30
    committed = row(lab, "audit").consumer_offset
    lab.kill(service)
    lab.start(service)
    lab.run_until(lambda: seen[-1] == 39)
    assert committed in (20, 30) and seen == [*range(34), *range(committed, 40)]
    lab.run_for("11s")
    assert row(lab, "audit").consumer_offset == 40
