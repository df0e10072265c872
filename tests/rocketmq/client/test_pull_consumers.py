"""The pull consumer (one pull at a time) and the lite pull consumer.

Mirrors: DefaultMQPullConsumer, DefaultLitePullConsumer.
"""

from __future__ import annotations

from typing import Any

import pytest

from mqlab.errors import ClientError, UsageError
from mqlab.rocketmq.client import LitePullConsumer, PullConsumer
from mqlab.rocketmq.wire.codes import RequestCode
from mqlab.rocketmq.wire.message import Message, MessageQueue
from tests.rocketmq.client.conftest import World
from tests.rocketmq.client.scripted import ScriptedWorld
from tests.rocketmq.client.test_trace import entries

LITE = RequestCode.LITE_PULL_MESSAGE


def queue(number: int = 0) -> MessageQueue:
    return MessageQueue("orders", "broker-a", number)


def fill(world: World, count: int, number: int = 0, tags: str | None = None) -> None:
    world.create_topic("orders", 2)
    producer = world.producer()
    for index in range(count):
        producer.send(Message("orders", f"m{index} 订单".encode(), tags=tags), queue(number))


def puller(world: World, **settings: Any) -> PullConsumer:
    made = PullConsumer(world.ports("audit-1"), "audit", world.name_servers, enable_trace=False, **settings)
    made.start()
    return made


def lite(world: World, name: str = "audit-1", **settings: Any) -> LitePullConsumer:
    return LitePullConsumer(world.ports(name), "audit", world.name_servers, enable_trace=False, **settings)


def numbers(messages: list[Any]) -> list[int]:
    return [message.queue_offset for message in messages]


def test_pull_statuses(world: World) -> None:
    fill(world, 5)
    mine = puller(world)
    assert mine.fetch_subscribe_message_queues("orders") == [queue(0), queue(1)]
    found = mine.pull(queue(), "*", 1, max_nums=3)
    assert (found.pull_status, numbers(found.msg_found_list)) == ("FOUND", [1, 2, 3])
    assert (found.next_begin_offset, found.min_offset, found.max_offset) == (4, 0, 5)
    assert mine.pull(queue(), "*", 5).pull_status == "NO_NEW_MSG"
    none = mine.pull(queue(), "rare", 0)
    assert (none.pull_status, none.next_begin_offset) == ("NO_MATCHED_MSG", 5)
    illegal = mine.pull(queue(), "*", 99)
    assert (illegal.pull_status, illegal.next_begin_offset) == ("OFFSET_ILLEGAL", 5)
    with pytest.raises(ClientError, match="not a MessageQueue: None"):
        mine.pull(None, "*", 0)  # type: ignore[arg-type]
    for bad in [(-1, 1), (0, 0)]:
        with pytest.raises(ClientError):
            mine.pull(queue(), "*", *bad)


def test_pull_filters_collisions_and_counts_them(world: World) -> None:
    fill(world, 1, tags="Aa")
    world.producer("other").send(Message("orders", b"x", tags="BB"), queue())
    result = puller(world).pull(queue(), "BB", 0)
    assert (numbers(result.msg_found_list), result.filtered_count) == ([1], 1)


def test_pull_block_waits_for_a_message(world: World) -> None:
    fill(world, 1)
    mine = puller(world)
    began_ms = world.now_ms
    assert mine.pull_block_if_not_found(queue(), "*", 1).pull_status == "NO_NEW_MSG"
    assert 20_000 <= world.now_ms - began_ms <= 26_000
    waiting = mine.pull_async(queue(), "*", 0)
    assert not waiting.done
    assert numbers(waiting.result().msg_found_list) == [0]


def test_offsets_of_a_pull_consumer(world: World) -> None:
    fill(world, 3)
    mine = puller(world)
    assert mine.fetch_consume_offset(queue()) == 0  # the broker answers 0 for a young queue
    mine.update_consume_offset(queue(), 2)
    assert mine.fetch_consume_offset(queue()) == 2
    world.run_for(20_000)
    assert mine.fetch_consume_offset(queue(), from_store=True) == 0  # owns no queue: never persisted
    mine.update_consume_offset_to_broker(queue(), 2)
    assert mine.fetch_consume_offset(queue(), from_store=True) == 2
    assert (mine.min_offset(queue()), mine.max_offset(queue())) == (0, 3)
    assert mine.search_offset(queue(), world.now_ms) == 3
    with pytest.raises(ClientError, match="Can not find"):
        mine.fetch_subscribe_message_queues("payments")


def test_registered_topics_take_part_in_the_rebalance_and_persist(world: World) -> None:
    fill(world, 3)
    mine = PullConsumer(world.ports("audit-1"), "audit", world.name_servers, enable_trace=False)
    mine.register_topics("orders")
    mine.start()
    world.run_for(3_000)
    assert mine.message_queues == [queue(0), queue(1)]
    mine.update_consume_offset(queue(), 2)
    world.run_for(15_000)
    assert world.broker.offset_table.query("audit", "orders", 0) == 2


def test_a_pull_consumer_can_send_a_message_back(world: World) -> None:
    fill(world, 1)
    mine = puller(world)
    (message,) = mine.pull(queue(), "*", 0).msg_found_list
    assert mine.send_message_back(message, 1) is True
    world.run_for(5_000)
    retried = world.broker.store.get("%RETRY%audit", 0, 0).messages()
    assert [message.reconsume_times for message in retried] == [1]


def test_subscribe_poll_and_auto_commit(world: World) -> None:
    fill(world, 25)
    mine = lite(world)
    mine.subscribe("orders")
    mine.start()
    assert numbers(mine.poll()) == list(range(10))
    assert numbers(mine.poll()) == list(range(10, 20))
    assert mine.committed(queue()) == 0  # the young queue's 0; nothing was committed yet
    world.run_for(5_100)
    assert numbers(mine.poll()) == list(range(20, 25))
    assert mine.committed(queue()) == 20  # auto commit covers what earlier polls returned
    mine.shutdown()
    assert world.broker.offset_table.query("audit", "orders", 0) == 20
    again = lite(world, "audit-2")
    again.subscribe("orders")
    again.start()
    assert numbers(again.poll()) == list(range(20, 25))


def test_manual_commit(world: World) -> None:
    fill(world, 25)
    mine = lite(world, auto_commit=False)
    mine.assign([queue()])
    mine.start()
    mine.poll()
    mine.poll()
    world.run_for(20_000)
    assert world.broker.offset_table.query("audit", "orders", 0) in (-1, 0)
    mine.commit_sync()
    assert mine.committed(queue()) == 20
    mine.commit(offsets={queue(): 7, queue(1): 3}, persist=True)
    assert mine.committed(queue(1)) == -1  # not assigned: memory unchanged
    world.run_for(10)
    assert world.broker.offset_table.query("audit", "orders", 0) == 7
    mine.commit({queue(): 5}, True)  # as in Java: commit(Map, persist)
    world.run_for(10)
    assert world.broker.offset_table.query("audit", "orders", 0) == 5


def test_persisting_some_queues_forgets_the_others(world: World) -> None:
    fill(world, 10)
    mine = lite(world, auto_commit=False)
    mine.assign([queue(0), queue(1)])
    mine.start()
    mine.poll()
    mine.commit()
    mine.commit([queue(1)], persist=True)
    assert mine.offset_store.read_memory(queue(0)) == -1


def test_the_two_modes_exclude_each_other(world: World) -> None:
    mine = lite(world)
    mine.subscribe("orders")
    with pytest.raises(ClientError, match="mutually exclusive"):
        mine.assign([queue()])
    other = lite(world, "audit-2")
    with pytest.raises(UsageError, match="at least one"):
        other.assign([])
    other.assign([queue()])
    with pytest.raises(ClientError, match="mutually exclusive"):
        other.subscribe("orders")
    with pytest.raises(ClientError, match="not OK"):
        other.poll()


@pytest.mark.parametrize("topic", [None, "", "or ders"])
def test_topics_that_cannot_be_subscribed(world: World, topic: Any) -> None:
    with pytest.raises(ClientError, match="topic"):
        lite(world).subscribe(topic)
    with pytest.raises(ClientError, match="topic"):
        world.consumer(topic=topic, start=False)


def test_assign_starts_at_once_subscribe_after_a_second(world: World) -> None:
    fill(world, 5)
    began_ms = world.now_ms
    assigned = lite(world)
    assigned.assign([queue()])
    assigned.start()
    assigned.poll()
    assert world.now_ms - began_ms < 50
    began_ms = world.now_ms
    subscribed = LitePullConsumer(world.ports("report-1"), "report", world.name_servers, enable_trace=False)
    subscribed.subscribe("orders")
    subscribed.start()
    subscribed.poll()
    assert 1_000 <= world.now_ms - began_ms < 1_100


def test_queues_and_offsets_are_asked_for_only_while_it_runs(world: World) -> None:
    fill(world, 5)
    mine = lite(world)
    mine.assign([queue()])
    asks = (
        lambda: mine.fetch_message_queues("orders"),
        lambda: mine.offset_for_timestamp(queue(), 0),
        lambda: mine.seek_to_begin(queue()),
    )
    for ask in asks:
        with pytest.raises(ClientError, match="CREATE_JUST"):
            ask()
    mine.start()
    assert mine.fetch_message_queues("orders") == [queue(0), queue(1)]
    mine.shutdown()
    for ask in asks:
        with pytest.raises(ClientError, match="shut down"):
            ask()


def test_members_share_queues_and_a_listener_is_told(world: World) -> None:
    fill(world, 5)
    told: list[tuple[int, int]] = []
    first = lite(world)
    first.set_message_queue_listener(lambda topic, every, mine: told.append((len(every), len(mine))))
    first.subscribe("orders")
    first.start()
    world.run_for(3_000)
    second = lite(world, "audit-2")
    second.subscribe("orders")
    second.start()
    world.run_for(3_000)
    assert (first.assignment(), second.assignment()) == ([queue(0)], [queue(1)])
    assert told == [(2, 2), (2, 1)]
    assert first.client_id.endswith("@STREAM")


def test_a_tag_without_matches_leaves_the_committed_offset(world: World) -> None:
    fill(world, 30, tags="common")
    mine = lite(world)
    mine.subscribe("orders", "rare")
    mine.start()
    for _ in range(3):
        assert mine.poll() == []
    assert mine.committed(queue()) == 0


def test_what_a_lite_pull_says() -> None:
    world = ScriptedWorld(["broker-a"])
    mine = world.lite()
    mine.set_sub_expression_for_assign("orders", "created")
    mine.assign([queue()])
    mine.start()
    world.run_for(100)
    (request,) = world.brokers["broker-a"].of(LITE)
    fields = request.ext_fields
    assert {
        name: fields[name]
        for name in (
            "commitOffset",
            "subscription",
            "suspendTimeoutMillis",
            "sysFlag",
            "ReqT",
            "expressionType",
            "maxMsgNums",
            "queueOffset",
            "subVersion",
            "maxMsgBytes",
        )
    } == {
        "commitOffset": "0",
        "subscription": "created",
        "suspendTimeoutMillis": "20000",
        "sysFlag": "22",
        "ReqT": "0",
        "expressionType": "TAG",
        "maxMsgNums": "10",
        "queueOffset": "0",
        "subVersion": "0",
        "maxMsgBytes": "2147483647",
    }


def test_seek_drops_the_cache_and_goes_on_there(world: World) -> None:
    fill(world, 50)
    mine = lite(world)
    mine.assign([queue()])
    mine.start()
    mine.poll()
    world.run_for(1_000)
    mine.seek(queue(), 33)
    assert numbers(mine.poll()) == list(range(33, 43))
    mine.commit()
    assert mine.committed(queue()) == 43
    mine.seek_to_begin(queue())
    assert numbers(mine.poll())[0] == 0
    mine.seek_to_end(queue())
    assert mine.poll("1s") == []
    mine.seek(queue(), mine.offset_for_timestamp(queue(), 0))
    assert numbers(mine.poll())[0] == 0


def test_a_held_pull_is_left_behind_by_a_seek(world: World) -> None:
    fill(world, 10)
    mine = lite(world)
    mine.assign([queue()])
    mine.start()
    mine.poll()
    world.run_for(3_000)  # the next pull is held now
    mine.seek(queue(), 5)
    began_ms = world.now_ms
    assert numbers(mine.poll()) == [5, 6, 7, 8, 9]
    assert world.now_ms - began_ms < 20
    world.run_for(60_000)
    assert mine.poll("1ms") == []


def test_what_seek_refuses(world: World) -> None:
    fill(world, 10)
    mine = lite(world)
    mine.assign([queue()])
    mine.start()
    with pytest.raises(ClientError, match="Seek offset illegal, seek offset = 100000, min offset = 0, max offset = 10"):
        mine.seek(queue(), 100_000)
    with pytest.raises(ClientError, match="not in assigned list"):
        mine.seek(queue(1), 0)


def test_pause_stops_pulling_but_not_polling_and_resume_is_on_the_second(world: World) -> None:
    fill(world, 30)
    mine = lite(world, pull_threshold_for_queue=15)
    mine.assign([queue()])
    mine.start()
    world.run_for(1_000)  # 20 cached: one pull over the limit
    mine.pause([queue(), MessageQueue("nothing", "broker-z", 0)])
    assert [numbers(mine.poll("1s")) for _ in range(3)] == [list(range(10)), list(range(10, 20)), []]
    world.run_for(5_000)
    mine.resume([queue()])
    began_ms = world.now_ms
    assert numbers(mine.poll()) == list(range(20, 30))
    assert world.now_ms - began_ms <= 1_000


def test_flow_control_by_requests_over_all_queues(world: World) -> None:
    fill(world, 60)
    mine = lite(world, pull_threshold_for_all=25)
    mine.assign([queue()])
    mine.start()
    world.run_for(5_000)
    assert len(mine.cache) == 3
    polled = 0
    while batch := mine.poll("2s"):
        polled += len(batch)
    assert polled == 60


def test_a_pool_of_one_thread_serves_one_queue_at_a_time() -> None:
    world = ScriptedWorld(["broker-a"])
    mine = world.lite(pull_thread_nums=1)
    mine.assign([queue(0), queue(1)])
    mine.start()
    world.run_for(29_000)
    assert len(world.brokers["broker-a"].of(LITE)) == 1
    world.run_for(3_000)
    assert [request.ext_fields["queueId"] for request in world.brokers["broker-a"].of(LITE)] == ["0", "1"]


def test_new_queues_are_reported(world: World) -> None:
    world.create_topic("orders", 1)
    told: list[int] = []
    mine = lite(world)
    mine.assign([queue()])
    mine.register_topic_message_queue_change_listener("orders", lambda topic, queues: told.append(len(queues)))
    mine.start()
    world.run_for(15_000)
    world.create_topic("orders", 3)
    world.run_for(31_000)
    assert told == [3]
    assert len(mine.fetch_message_queues("orders")) == 3


def test_new_queues_are_reported_to_a_listener_that_came_while_it_runs(world: World) -> None:
    world.create_topic("orders", 1)
    told: list[tuple[int, int]] = []
    mine = lite(world)
    mine.assign([queue()])
    mine.start()
    began_ms = world.now_ms
    world.run_for(15_000)
    mine.register_topic_message_queue_change_listener(
        "orders", lambda topic, queues: told.append((world.now_ms - began_ms, len(queues)))
    )
    world.run_for(1_000)
    world.create_topic("orders", 3)
    world.run_for(60_000)
    ((at_ms, count),) = told
    assert count == 3 and 40_000 <= at_ms < 40_100  # the second of its looks: 10 s, 40 s, 70 s


def test_polled_batches_are_traced_as_consumed(make_world: Any) -> None:
    world = make_world(trace_topic_enable=True)
    fill(world, 12)
    seen: list[tuple[str, int]] = []

    class Hook:
        def consume_message_before(self, context: Any) -> None:
            seen.append(("before", len(context.messages)))

        def consume_message_after(self, context: Any) -> None:
            seen.append((context.status, len(context.messages)))

    mine = LitePullConsumer(world.ports("audit-1"), "audit", world.name_servers, enable_trace=True)
    mine.register_consume_message_hook(Hook())
    mine.assign([queue()])
    mine.start()
    polled = mine.poll() + mine.poll()
    mine.shutdown()
    world.run_for(100)
    assert seen == [("before", 10), ("CONSUME_SUCCESS", 10), ("before", 2), ("CONSUME_SUCCESS", 2)]
    traced = entries(world)
    befores = [entry for entry in traced if entry[0] == "SubBefore"]
    assert sorted(entry[5] for entry in befores) == sorted(message.msg_id for message in polled)
    assert {(entry[3], entry[4], entry[6], entry[8]) for entry in traced if entry[0] == "SubAfter"} == {
        ("0", "true", "0", "audit")
    }


def test_reset_by_the_broker_moves_only_the_pull_offset(world: World) -> None:
    fill(world, 20)
    mine = lite(world, auto_commit=False)
    mine.assign([queue()])
    mine.start()
    mine.poll()
    mine.poll()
    mine.commit()
    world.broker.offset_table.assign_reset("audit", "orders", 0, 5)
    world.run_for(30_000)
    assert mine.committed(queue()) == 20
    assert numbers(mine.poll())[0] == 5
