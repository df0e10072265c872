"""The pull loop: checks, flags, what each answer does.

Mirrors: DefaultMQPushConsumerImpl.pullMessage.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from mqlab.rocketmq.wire import record
from mqlab.rocketmq.wire.codes import RequestCode
from mqlab.rocketmq.wire.message import Message, MessageQueue
from tests.rocketmq.client.conftest import Recorder, World, send
from tests.rocketmq.client.scripted import ScriptedWorld

PULL = RequestCode.PULL_MESSAGE
COMMIT_FLAG, SUSPEND_FLAG, SUBSCRIPTION_FLAG = 1, 2, 4


def units(*offsets: int, body: bytes = b"x", tags: str = "") -> bytes:
    held = f"TAGS\x01{tags}\x02".encode() if tags else b""
    return b"".join(
        record.encode(record.Record("orders", body, queue_offset=offset, physical_offset=offset * 100, properties=held))
        for offset in offsets
    )


class Pulls:
    """Scripts the answers to pulls of queue 0; after the script pulls are held for ever."""

    def __init__(self, **settings: Any) -> None:
        self.world = ScriptedWorld(["broker-a"], queues=1)
        self.broker = self.world.brokers["broker-a"]
        self.broker.on[RequestCode.QUERY_CONSUMER_OFFSET] = lambda request: request.reply(offset=10)
        self.answers: list[Callable[[Any], Any]] = []
        self.broker.on[PULL] = self._answer
        self.times: list[int] = []
        self.settings = settings

    def _answer(self, request: Any) -> Any:
        self.times.append(self.world.now_ms)
        return self.answers.pop(0)(request) if self.answers else None

    def then(self, code: int, next_offset: int, body: bytes | None = None) -> Pulls:
        fields = {"nextBeginOffset": next_offset, "minOffset": 0, "maxOffset": 1_000, "suggestWhichBrokerId": 0}
        self.answers.append(lambda request: request.reply(code, "scripted", body, **fields))
        return self

    def refuse(self, code: int) -> Pulls:
        self.answers.append(lambda request: request.reply(code, "scripted"))
        return self

    def start(self, listener: Any = lambda messages, context: "CONSUME_SUCCESS", **settings: Any) -> Any:
        consumer = self.world.consumer(listener, **settings)
        self.world.run_for(1_600)
        return consumer

    @property
    def asked(self) -> list[dict[str, str]]:
        return [request.ext_fields for request in self.broker.of(PULL)]

    @property
    def offsets(self) -> list[int]:
        return [int(fields["queueOffset"]) for fields in self.asked]

    def gaps(self) -> list[int]:
        return [later - earlier for earlier, later in zip(self.times, self.times[1:], strict=False)]


def test_what_a_pull_says() -> None:
    pulls = Pulls()
    pulls.start()
    (fields,) = pulls.asked
    assert fields["sysFlag"] == str(SUSPEND_FLAG | COMMIT_FLAG)  # the stored offset 10 came into memory
    assert fields["commitOffset"] == "10"
    assert (fields["maxMsgNums"], fields["suspendTimeoutMillis"], fields["maxMsgBytes"]) == ("32", "15000", "262144")
    assert (fields["expressionType"], fields["bname"], fields["consumerGroup"]) == ("TAG", "broker-a", "billing")
    assert "subscription" not in fields
    assert int(fields["subVersion"]) > 1_700_000_000_000


def test_offsets_zero_and_none_are_never_piggy_backed() -> None:
    pulls = Pulls()
    pulls.broker.on[RequestCode.QUERY_CONSUMER_OFFSET] = lambda request: request.reply(22, "none")
    pulls.start(consume_from_where="CONSUME_FROM_FIRST_OFFSET")
    assert [(fields["sysFlag"], fields["commitOffset"]) for fields in pulls.asked] == [(str(SUSPEND_FLAG), "-1")]


def test_post_subscription_when_pull_sends_the_text() -> None:
    pulls = Pulls()
    pulls.start(post_subscription_when_pull=True)
    assert pulls.asked[0]["subscription"] == "*"
    assert pulls.asked[0]["sysFlag"] == str(COMMIT_FLAG | SUSPEND_FLAG | SUBSCRIPTION_FLAG)


def test_found_is_consumed_and_pulled_on_at_once() -> None:
    pulls = Pulls().then(0, 13, units(10, 11, 12))
    seen: list[int] = []

    def listener(messages: Any, context: Any) -> str:
        seen.extend(message.queue_offset for message in messages)
        assert messages[0].properties["MIN_OFFSET"] == "0"
        assert messages[0].properties["MAX_OFFSET"] == "1000"
        assert (messages[0].broker_name, messages[0].queue_id) == ("broker-a", 0)
        return "CONSUME_SUCCESS"

    consumer = pulls.start(listener)
    assert seen == [10, 11, 12]
    assert pulls.offsets == [10, 13]
    assert consumer.offset_store.read_memory(MessageQueue("orders", "broker-a", 0)) == 13


def test_pull_interval_delays_the_next_pull() -> None:
    pulls = Pulls().then(0, 11, units(10)).then(0, 12, units(11))
    pulls.start(pull_interval=200)
    pulls.world.run_for(1_000)
    assert [gap // 100 for gap in pulls.gaps()] == [2, 2]


@pytest.mark.parametrize("code", [19, 20])
def test_nothing_new_and_nothing_matched_move_the_offset_when_nothing_is_cached(code: int) -> None:
    pulls = Pulls().then(code, 40)
    consumer = pulls.start()
    assert pulls.offsets == [10, 40]
    assert consumer.offset_store.read_memory(MessageQueue("orders", "broker-a", 0)) == 40


def test_the_offset_stays_while_a_message_is_cached() -> None:
    pulls = Pulls().then(0, 11, units(10)).then(20, 40)
    consumer = pulls.start(lambda messages, context: context.sleep("1h"))
    assert pulls.offsets == [10, 11, 40]
    assert consumer.offset_store.read_memory(MessageQueue("orders", "broker-a", 0)) == 10


def test_an_illegal_offset_is_frozen_committed_and_the_queue_added_again() -> None:
    pulls = Pulls().then(21, 500)
    consumer = pulls.start()
    queue = MessageQueue("orders", "broker-a", 0)
    commits = pulls.broker.of(RequestCode.UPDATE_CONSUMER_OFFSET)
    assert [commit.ext_fields["commitOffset"] for commit in commits] == [
        "500",
        "500",
    ]  # persisted, and again when removed
    assert queue not in consumer.process_queues
    pulls.broker.on[RequestCode.QUERY_CONSUMER_OFFSET] = lambda request: request.reply(offset=500)
    pulls.world.run_for(2_000)
    assert queue in consumer.process_queues
    assert pulls.offsets == [10, 500]


def test_a_frozen_offset_ignores_late_results() -> None:
    pulls = Pulls().then(0, 11, units(10)).then(21, 500)
    consumer = pulls.start(lambda messages, context: context.sleep("300ms") or "CONSUME_SUCCESS")
    pulls.world.run_for(300)
    assert [values["commit_offset"] for _, values in pulls.world.sim.journal.changes("offset.updated")] == [10, 500]
    assert consumer.offset_store.read_memory(MessageQueue("orders", "broker-a", 0)) == -1


@pytest.mark.parametrize(("code", "delay_ms"), [(215, 20), (25, 1_000), (24, 1_000), (1, 1_000), (16, 1_000)])
def test_errors_are_retried_after_their_delay(code: int, delay_ms: int) -> None:
    pulls = Pulls().refuse(code).refuse(code)
    pulls.start()
    pulls.world.run_for(2_500)
    assert pulls.offsets == [10, 10, 10]
    assert all(delay_ms <= gap <= delay_ms + 10 for gap in pulls.gaps())


def test_a_request_nobody_answers_is_retried_after_its_time_limit() -> None:
    pulls = Pulls()
    pulls.start()
    pulls.world.run_for(31_500)
    assert pulls.gaps() == [31_000]


def test_hash_collisions_fall_out_at_the_client(world: World) -> None:
    world.create_topic("orders", 1)
    producer = world.producer()
    listener = Recorder(world)
    world.consumer(listener=listener, expression="Aa || 订单")
    world.run_for(3_000)
    for tag in ("Aa", "BB", "订单", "other"):
        producer.send(Message("orders", tag.encode(), tags=tag))
    world.run_for(30_000)
    assert listener.bodies == ["Aa", "订单"]
    (filtered,) = world.notes("message.filtered")
    assert filtered["group"] == "billing"
    assert [message["queue_offset"] for message in filtered["messages"]] == [1]


def test_found_but_all_dropped_pulls_again_without_moving_the_offset() -> None:
    pulls = Pulls().then(0, 20, units(10, 11, tags="BB"))
    world = pulls.world
    from mqlab.rocketmq.client import PushConsumer
    from mqlab.rocketmq.machine.files import RealFiles

    consumer = PushConsumer(
        world.sim.add_node("billing-1", RealFiles()), "billing", world.name_servers, enable_trace=False
    )
    world.members = [consumer.client_id]
    consumer.subscribe("orders", "Aa")
    consumer.on_messages(lambda messages, context: "CONSUME_SUCCESS")
    consumer.start()
    world.run_for(1_600)
    assert pulls.offsets == [10, 20]
    assert consumer.offset_store.read_memory(MessageQueue("orders", "broker-a", 0)) == 10


def test_count_limit_is_strict_and_one_pull_goes_over_it() -> None:
    pulls = Pulls().then(0, 42, units(*range(10, 42))).then(0, 74, units(*range(42, 74)))
    consumer = pulls.start(lambda messages, context: context.sleep("1h"), pull_threshold_for_queue=32)
    queue = MessageQueue("orders", "broker-a", 0)
    assert pulls.offsets == [10, 42]
    assert consumer.process_queues[queue].msg_count == 64
    assert consumer.pull_loop.flow_control_times == {"count": 1}
    assert queue in consumer.pull_loop.parked
    assert not consumer.is_pull_expired(queue, consumer.process_queues[queue])


def test_a_parked_pull_comes_back_on_the_grid_of_fifty_ms() -> None:
    pulls = Pulls().then(0, 12, units(10, 11))
    pulls.start(lambda messages, context: context.sleep("170ms") or "CONSUME_SUCCESS", pull_threshold_for_queue=1)
    pulls.world.run_for(1_000)
    (gap,) = pulls.gaps()
    assert 200 <= gap <= 203


def test_size_limit_counts_whole_mebibytes() -> None:
    body = b"x" * (1 << 20)
    pulls = Pulls().then(0, 11, units(10, body=body)).then(0, 12, units(11, body=body))
    consumer = pulls.start(lambda messages, context: context.sleep("1h"), pull_threshold_size_for_queue=1)
    assert pulls.offsets == [10, 11]
    assert consumer.pull_loop.flow_control_times == {"size": 1}


def test_span_limit() -> None:
    pulls = Pulls().then(0, 2_012, units(10, 2_011))
    consumer = pulls.start(lambda messages, context: context.sleep("1h"))
    assert pulls.offsets == [10]
    assert consumer.pull_loop.flow_control_times == {"span": 1}


def test_the_broker_id_last_suggested_is_asked_next() -> None:
    from tests.rocketmq.client.scripted import ScriptedBroker

    pulls = Pulls()
    world = pulls.world
    slave = world.slaves["broker-a"] = ScriptedBroker(world, "broker-a", slave=True)
    fields = {"nextBeginOffset": 11, "minOffset": 0, "maxOffset": 50, "suggestWhichBrokerId": 1}
    pulls.answers.append(lambda request: request.reply(0, "FOUND", units(10), **fields))
    consumer = pulls.start()
    (asked,) = slave.of(PULL)
    assert asked.ext_fields["sysFlag"] == str(SUSPEND_FLAG)  # no commit to a slave
    assert consumer.pull_api.pull_from_which_node == {MessageQueue("orders", "broker-a", 0): 1}


def test_a_dropped_queue_ends_its_loop(world: World) -> None:
    world.create_topic("orders", 2)
    consumer = world.consumer(listener=Recorder(world))
    world.run_for(3_000)
    consumer.shutdown()
    pulls = len(world.requests(PULL))
    world.run_for(60_000)
    assert len(world.requests(PULL)) == pulls


def test_a_lost_connection_is_survived(world: World) -> None:
    world.create_topic("orders", 1)
    listener = Recorder(world)
    world.consumer(listener=listener)
    producer = world.producer()
    world.run_for(3_000)
    for channel in list(world.broker.remoting._channels.values()):
        if channel.remote_address.startswith("10.0.0.3"):
            channel.close()
    world.run_for(5_000)
    send(producer, "orders", "после обрыва")
    world.run_for(5_000)
    assert listener.bodies == ["после обрыва"]
