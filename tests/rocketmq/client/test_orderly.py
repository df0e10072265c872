"""Orderly consumption: locks, the loop, results, giving up.

Mirrors: ConsumeMessageOrderlyService.
"""

from __future__ import annotations

import itertools
from typing import Any

import pytest

from mqlab.errors import UsageError
from mqlab.rocketmq.client.consuming.listener import ConsumeOrderlyContext
from mqlab.rocketmq.wire.codes import RequestCode
from mqlab.rocketmq.wire.message import Message, MessageQueue
from tests.rocketmq.client.conftest import Recorder, World
from tests.rocketmq.client.scripted import ScriptedWorld
from tests.rocketmq.client.test_pull_loop import units

QUEUE = MessageQueue("orders", "broker-a", 0)
LOCK, UNLOCK = RequestCode.LOCK_BATCH_MQ, RequestCode.UNLOCK_BATCH_MQ


def fill(world: World, *bodies: str, queue: int = 0) -> None:
    producer = world.producer(f"shop-{queue}")
    for body in bodies:
        producer.send(Message("orders", body.encode()), MessageQueue("orders", "broker-a", queue))


def ordered(world: World, listener: Any, queues: int = 1, **settings: Any) -> Any:
    world.create_topic("orders", queues)
    return world.consumer(listener=listener, orderly=True, **settings)


def test_queue_order_one_at_a_time_and_queues_in_parallel(world: World) -> None:
    listener = Recorder(world, "SUCCESS", takes="100ms")
    ordered(world, listener, queues=2)
    fill(world, "a1", "a2", "a3", queue=0)
    fill(world, "b1", "b2", "b3", queue=1)
    world.run_for(5_000)
    assert [body for body in listener.bodies if body[0] == "a"] == ["a1", "a2", "a3"]
    assert [body for body in listener.bodies if body[0] == "b"] == ["b1", "b2", "b3"]
    both = [listener.times[listener.bodies.index(body)] for body in ("a2", "b2")]
    assert abs(both[0] - both[1]) < 50
    steps = [listener.times[listener.bodies.index(body)] for body in ("a1", "a2", "a3")]
    assert [later - earlier for earlier, later in itertools.pairwise(steps)] == [100, 100]


def test_a_failure_stops_its_queue_and_is_retried_every_second_for_ever(world: World) -> None:
    listener = Recorder(world, "SUSPEND_CURRENT_QUEUE_A_MOMENT")
    consumer = ordered(world, listener)
    fill(world, "первый", "второй")
    world.run_for(20_000)
    assert set(listener.bodies) == {"первый"}
    assert [message.reconsume_times for message in listener.seen[:1]] == [listener.seen[0].reconsume_times]
    gaps = {later - earlier for earlier, later in zip(listener.times, listener.times[1:], strict=False)}
    assert gaps == {1_000}
    assert consumer.offset_store.read_memory(QUEUE) in (-1, 0)
    assert world.requests(RequestCode.CONSUMER_SEND_MSG_BACK) == []


@pytest.mark.parametrize(
    ("asked", "expected_ms"), [(-1, 1_000), (200, 200), ("3s", 3_000), (1, 10), ("1h", 30_000), (0, 10)]
)
def test_the_rest_after_a_failure_is_clamped(world: World, asked: Any, expected_ms: int) -> None:
    times: list[int] = []

    def listener(messages: Any, context: ConsumeOrderlyContext) -> str:
        times.append(world.now_ms)
        context.suspend_current_queue_time_millis = asked
        return "SUSPEND_CURRENT_QUEUE_A_MOMENT"

    ordered(world, listener)
    fill(world, "x")
    world.run_until(lambda: len(times) == 3)
    assert times[2] - times[1] == expected_ms


@pytest.mark.parametrize("answer", [None, ValueError("нет"), "CONSUME_SUCCESS"])
def test_whatever_is_no_answer_suspends(world: World, answer: Any) -> None:
    listener = Recorder(world, answer, "SUCCESS")
    ordered(world, listener)
    fill(world, "x")
    world.run_for(10_000)
    assert listener.bodies == ["x", "x"]
    assert world.notes("listener.returned")[0]["status"] == "SUSPEND_CURRENT_QUEUE_A_MOMENT"


def test_after_max_reconsume_times_the_message_goes_to_the_dead_letters_and_the_queue_goes_on(world: World) -> None:
    seen: list[tuple[str, int]] = []

    def listener(messages: Any, context: Any) -> str:
        seen.append((messages[0].body.decode(), messages[0].reconsume_times))
        return "SUSPEND_CURRENT_QUEUE_A_MOMENT" if messages[0].body == b"bad" else "SUCCESS"

    consumer = ordered(world, listener, max_reconsume_times=2)
    fill(world, "bad", "good")
    world.run_for(30_000)
    assert seen == [("bad", 0), ("bad", 1), ("bad", 2), ("good", 0)]
    dead = world.broker.store.get("%DLQ%billing", 0, 0).messages()
    assert [message.body for message in dead] == [b"bad"]
    assert consumer.offset_store.read_memory(QUEUE) == 2


def test_the_count_is_the_consumers_own_and_dies_with_it(world: World) -> None:
    listener = Recorder(world, "SUSPEND_CURRENT_QUEUE_A_MOMENT")
    first = ordered(world, listener)
    fill(world, "x")
    world.run_for(10_000)
    assert listener.seen[-1].reconsume_times >= 5
    first.shutdown()
    counts: list[int] = []
    world.consumer(
        name="billing-2",
        orderly=True,
        listener=lambda messages, context: counts.append(messages[0].reconsume_times) or "SUCCESS",
    )
    world.run_for(10_000)
    assert counts == [0]


def test_manual_commit_and_rollback(world: World) -> None:
    script = ["SUCCESS", "SUCCESS", "ROLLBACK", "SUCCESS", "COMMIT", "COMMIT"]
    seen: list[str] = []
    offsets: list[int] = []

    def listener(messages: Any, context: Any) -> str:
        context.auto_commit = False
        seen.append(messages[0].body.decode())
        offsets.append(consumer.offset_store.read_memory(QUEUE))
        return script.pop(0) if script else "SUCCESS"

    consumer = ordered(world, listener)
    fill(world, "m0", "m1", "m2")
    world.run_for(20_000)
    assert seen == ["m0", "m1", "m2", "m0", "m1", "m2"]
    assert offsets == [0, 0, 0, 0, 0, 2]
    assert consumer.offset_store.read_memory(QUEUE) == 3


def test_commit_and_rollback_count_as_success_with_auto_commit(world: World) -> None:
    listener = Recorder(world, "COMMIT", "ROLLBACK", "SUCCESS")
    consumer = ordered(world, listener)
    fill(world, "m0", "m1", "m2")
    world.run_for(10_000)
    assert listener.bodies == ["m0", "m1", "m2"]
    assert consumer.offset_store.read_memory(QUEUE) == 3


def test_frames_of_an_orderly_start_and_end(world: World) -> None:
    consumer = ordered(world, Recorder(world, "SUCCESS"))
    world.run_for(45_000)
    (first, *renewals) = [step for step in world.requests(LOCK, "broker-a") if b"orders" in (step.about.body or b"")]
    offsets = [s for s in world.requests(RequestCode.QUERY_CONSUMER_OFFSET) if s.about.ext_fields["topic"] == "orders"]
    pulls = [s for s in world.requests(RequestCode.PULL_MESSAGE) if s.about.ext_fields["topic"] == "orders"]
    assert first.step < offsets[0].step < offsets[1].step < pulls[0].step  # locked, asked, asked again, pulled
    assert [later.now_ms - earlier.now_ms for earlier, later in itertools.pairwise(renewals)] == [20_000]
    consumer.shutdown()
    (unlock,) = world.requests(UNLOCK, "broker-a")
    assert not unlock.about.is_oneway
    assert list(world.broker.queue_locks["billing"]) == []


def test_a_queue_somebody_else_holds_is_not_pulled_until_the_lock_runs_out(world: World) -> None:
    world.create_topic("orders", 1)
    locked_until_ms = world.now_ms + 60_000
    world.broker.queue_locks.try_lock("billing", [QUEUE], "10.9.9.9@ghost")
    listener = Recorder(world, "SUCCESS")
    ordered(world, listener)
    fill(world, "x")
    world.run_for(30_000)
    assert listener.seen == []
    world.run_for(50_000)
    assert listener.bodies == ["x"]
    assert listener.times[0] >= locked_until_ms


def test_a_queue_moves_only_when_its_listener_is_back(world: World) -> None:
    first, second = Recorder(world, "SUCCESS", takes="5s"), Recorder(world, "SUCCESS")
    one = ordered(world, first, queues=2)
    fill(world, "slow", "next", queue=1)
    world.run_until(lambda: bool(first.seen))
    world.consumer(name="billing-2", listener=second, orderly=True)
    world.run_for(3_000)
    assert any(queue.queue_id == 1 and queue.topic == "orders" for queue in one.message_queues)
    world.run_for(30_000)
    assert first.bodies == ["slow"]
    assert "next" in second.bodies
    assert second.times[second.bodies.index("next")] >= first.times[0] + 5_000


def test_a_listener_that_takes_too_long_loses_its_queue_after_twenty_seconds(world: World) -> None:
    first, second = Recorder(world, "SUCCESS", takes="10m"), Recorder(world, "SUCCESS")
    ordered(world, first, queues=2)
    fill(world, "stuck", queue=1)
    world.run_until(lambda: bool(first.seen))
    world.consumer(name="billing-2", listener=second, orderly=True)
    world.run_for(120_000)
    assert second.bodies == ["stuck"]


def test_without_the_brokers_word_a_lock_counts_for_thirty_seconds() -> None:
    world = ScriptedWorld(["broker-a"], queues=1)
    broker = world.brokers["broker-a"]
    grant = b'{"lockOKMQSet":[{"brokerName":"broker-a","queueId":0,"topic":"orders"}]}'
    broker.on[LOCK] = lambda request: request.reply(body=grant)
    answers = [units(0), units(1)]

    def pulled(request: Any) -> Any:
        if not answers or int(request.ext_fields["queueOffset"]) != 2 - len(answers):
            return None
        fields = {"nextBeginOffset": 3 - len(answers), "minOffset": 0, "maxOffset": 9, "suggestWhichBrokerId": 0}
        return request.reply(0, None, answers.pop(0), **fields)

    broker.on[RequestCode.PULL_MESSAGE] = pulled
    broker.on[RequestCode.QUERY_CONSUMER_OFFSET] = lambda request: request.reply(offset=0)
    from mqlab.rocketmq.client import PushConsumer
    from mqlab.rocketmq.machine.files import RealFiles

    seen: list[int] = []
    consumer = PushConsumer(
        world.sim.add_node("billing-1", RealFiles()), "billing", world.name_servers, enable_trace=False
    )
    world.members = [consumer.client_id]
    consumer.subscribe("orders")

    def listener(messages: Any, context: Any) -> str:
        seen.append(world.now_ms)
        if len(seen) == 1:
            broker.on[LOCK] = lambda request: None  # from now on no answer
            context.sleep("40s")
        return "SUCCESS"

    consumer.on_messages_orderly(listener)
    consumer.start()
    world.run_for(60_000)
    assert len(seen) == 1  # the second message waits for a lock that is not granted
    broker.on[LOCK] = lambda request: request.reply(body=grant)
    world.run_for(10_000)
    assert len(seen) == 2


def test_the_thread_lets_others_on_after_sixty_seconds(world: World) -> None:
    listener = Recorder(world, "SUCCESS", takes="7s")
    ordered(world, listener, queues=2, consume_thread_min=1, consume_thread_max=1)
    fill(world, *[f"a{number}" for number in range(20)], queue=0)
    fill(world, *[f"b{number}" for number in range(20)], queue=1)
    world.run_for(150_000)
    changes = [earlier[0] != later[0] for earlier, later in zip(listener.bodies, listener.bodies[1:], strict=False)]
    assert changes.index(True) + 1 == 9  # eight calls of 7 s are under a minute, the ninth goes over it


def test_the_per_message_timer_is_refused(world: World) -> None:
    with pytest.raises(UsageError, match="for concurrent consumption"):
        world.consumer(listener=Recorder(world), orderly=True, message_timeout="2s")


def test_broadcasting_needs_no_locks(world: World, tmp_path: Any) -> None:
    listener = Recorder(world, "SUCCESS")
    ordered(world, listener, message_model="BROADCASTING", local_offset_store_dir=str(tmp_path / "offsets"))
    world.run_for(3_000)
    fill(world, "x")
    world.run_for(10_000)
    assert listener.bodies == ["x"]
    assert world.requests(LOCK) == []
