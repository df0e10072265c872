"""Concurrent consumption: batches, ackIndex, failures, threads and cores, time-outs.

Mirrors: ConsumeMessageConcurrentlyService.
"""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from mqlab.errors import ClientError
from mqlab.rocketmq.wire import property_names
from mqlab.rocketmq.wire.codes import RequestCode
from mqlab.rocketmq.wire.message import MessageQueue
from tests.rocketmq.client.conftest import Recorder, World, send
from tests.rocketmq.client.test_pull_loop import Pulls, units

BACK = RequestCode.CONSUMER_SEND_MSG_BACK
QUEUE = MessageQueue("orders", "broker-a", 0)


def settled(world: World, listener: Any, **settings: Any) -> Any:
    """A consumer of a topic with one queue, retry queue included, ready to be sent to."""
    world.create_topic("orders", 1)
    consumer = world.consumer(listener=listener, **settings)
    world.run_for(30_000)
    return consumer


def test_batches_are_consecutive_pieces_of_a_pull() -> None:
    sizes: list[int] = []
    pulls = Pulls().then(0, 17, units(*range(10, 17)))
    pulls.start(
        lambda messages, context: sizes.append(len(messages)) or "CONSUME_SUCCESS", consume_message_batch_max_size=3
    )
    assert sizes == [3, 3, 1]


def test_a_class_is_instantiated_at_each_start_and_objects_have_consume_message(world: World) -> None:
    made: list[object] = []

    class Listener:
        def __init__(self) -> None:
            made.append(self)

        def consume_message(self, messages: Any, context: Any) -> str:
            return "CONSUME_SUCCESS"

    world.consumer(listener=Listener)
    world.consumer("audit", listener=Listener)
    assert len(made) == 2


def test_a_listener_is_needed_and_must_be_callable(world: World) -> None:
    with pytest.raises(ClientError, match="messageListener is null"):
        world.consumer()
    with pytest.raises(ValueError, match="is not a listener"):
        world.consumer("audit", listener=42)


@pytest.mark.parametrize("answer", ["RECONSUME_LATER", None, ValueError("нет"), "perhaps", 7])
def test_whatever_is_no_success_is_a_failure(world: World, answer: Any) -> None:
    listener = Recorder(world, answer, "CONSUME_SUCCESS")
    consumer = settled(world, listener)
    send(world.producer(), "orders", "яд")
    world.run_for(1_000)
    assert len(world.requests(BACK, "broker-a")) == 1
    (returned,) = world.notes("listener.returned")
    assert returned["status"] == "RECONSUME_LATER"
    if isinstance(answer, Exception):
        assert "ValueError: нет" in returned["error"]
        assert "conftest.py" in returned["error"]
        assert "mqlab/rocketmq/client" not in returned["error"]
    elif answer in ("perhaps", 7):
        assert repr(answer) in returned["error"]
    else:
        assert returned["error"] is None
    assert consumer.offset_store.read_memory(QUEUE) == 1
    world.run_for(12_000)
    assert [message.reconsume_times for message in listener.seen] == [0, 1]


def test_notes_let_a_delivery_be_reconstructed(world: World) -> None:
    listener = Recorder(world, "RECONSUME_LATER", "CONSUME_SUCCESS")
    settled(world, listener)
    (result,) = send(world.producer(), "orders", "订单")
    world.run_for(15_000)
    started = world.notes("listener.started")
    returned = world.notes("listener.returned")
    assert [each["batch"] for each in started] == [each["batch"] for each in returned] == [1, 2]
    assert {each["client"] for each in started} == {"billing-1"}
    first, second = (each["messages"][0] for each in started)
    assert first["msg_id"] == second["msg_id"] == result.msg_id
    assert first["offset_msg_id"] == result.offset_msg_id != second["offset_msg_id"]
    assert (first["topic"], first["real_topic"], first["reconsume_times"]) == ("orders", "orders", 0)
    assert (second["topic"], second["real_topic"], second["reconsume_times"]) == ("orders", "%RETRY%billing", 1)
    assert second["message_queue"] == MessageQueue("%RETRY%billing", "broker-a", 0)
    assert second["physical_offset"] > first["physical_offset"]
    assert [each["status"] for each in returned] == ["RECONSUME_LATER", "CONSUME_SUCCESS"]


@pytest.mark.parametrize(
    ("ack_index", "answer", "failed"),
    [
        (None, "CONSUME_SUCCESS", []),
        (1, "CONSUME_SUCCESS", [12, 13]),
        (-1, "CONSUME_SUCCESS", [10, 11, 12, 13]),
        (99, "CONSUME_SUCCESS", []),
        (1, "RECONSUME_LATER", [10, 11, 12, 13]),
    ],
)
def test_ack_index(ack_index: int | None, answer: str, failed: list[int]) -> None:
    pulls = Pulls().then(0, 14, units(10, 11, 12, 13))

    def listener(messages: Any, context: Any) -> str:
        if ack_index is not None:
            context.ack_index = ack_index
        return answer

    consumer = pulls.start(listener, consume_message_batch_max_size=4)
    back = pulls.broker.of(BACK)
    assert [int(request.ext_fields["offset"]) // 100 for request in back] == failed
    assert consumer.offset_store.read_memory(QUEUE) == 14


def test_what_a_send_back_says() -> None:
    pulls = Pulls().then(0, 11, units(10))

    def listener(messages: Any, context: Any) -> str:
        context.delay_level_when_next_consume = 5
        return "RECONSUME_LATER"

    pulls.start(listener)
    (request,) = pulls.broker.of(BACK)
    fields = request.ext_fields
    assert (fields["offset"], fields["group"], fields["delayLevel"], fields["originTopic"]) == (
        "1000",
        "billing",
        "5",
        "orders",
    )
    assert (fields["maxReconsumeTimes"], fields["bname"], fields["unitMode"]) == ("16", "broker-a", "false")
    assert len(fields["originMsgId"]) == 32


def test_a_refused_send_back_becomes_a_new_message() -> None:
    pulls = Pulls().then(0, 11, units(10))
    pulls.world.routes["%RETRY%billing"] = ["broker-a"]
    pulls.broker.on[BACK] = lambda request: request.reply(1, "no")
    consumer = pulls.start(lambda messages, context: "RECONSUME_LATER", max_reconsume_times=7)
    (request,) = pulls.broker.of(RequestCode.SEND_MESSAGE_V2)
    fields = request.ext_fields
    assert (fields["a"], fields["b"], fields["j"], fields["l"]) == ("CLIENT_INNER_PRODUCER", "%RETRY%billing", "1", "7")
    assert "RETRY_TOPIC\x01orders\x02" in fields["i"]
    assert "DELAY\x013\x02" in fields["i"]
    assert consumer.offset_store.read_memory(QUEUE) == 11


def test_when_both_ways_fail_the_message_stays_and_is_consumed_again_in_five_seconds() -> None:
    pulls = Pulls().then(0, 12, units(10, 11))
    pulls.broker.on[BACK] = lambda request: request.reply(1, "no")
    times: list[tuple[int, int, int]] = []

    def listener(messages: Any, context: Any) -> str:
        message = messages[0]
        times.append((pulls.world.now_ms, message.queue_offset, message.reconsume_times))
        return "RECONSUME_LATER" if message.queue_offset == 10 and message.reconsume_times == 0 else "CONSUME_SUCCESS"

    consumer = pulls.start(listener)
    assert consumer.offset_store.read_memory(QUEUE) == 10  # held back
    pulls.world.run_for(6_000)
    (first, _, again) = times
    assert (again[1], again[2]) == (10, 1)
    assert 5_000 <= again[0] - first[0] < 5_100
    assert consumer.offset_store.read_memory(QUEUE) == 12


@pytest.mark.parametrize(
    ("threads", "cores", "sleep_ms", "compute_ms", "expected_ms"),
    [
        (20, 2, 100, 0, 200),
        (10, 2, 100, 0, 400),
        (1, 2, 100, 0, 4_000),
        (20, 2, 0, 100, 2_000),
        (20, 4, 0, 100, 1_000),
        (1, 4, 0, 100, 4_000),
    ],
)
def test_throughput_is_what_arithmetic_says(
    world: World, threads: int, cores: int, sleep_ms: int, compute_ms: int, expected_ms: int
) -> None:
    world.create_topic("orders", 1)
    send(world.producer(), "orders", *[f"m{number}" for number in range(40)])

    def listener(messages: Any, context: Any) -> str:
        if sleep_ms:
            context.sleep(f"{sleep_ms}ms")
        if compute_ms:
            context.compute(compute_ms)
        return "CONSUME_SUCCESS"

    settings = {"consume_thread_min": threads, "consume_thread_max": threads}
    world.consumer(listener=listener, cores=cores, consume_from_where="CONSUME_FROM_FIRST_OFFSET", **settings)
    world.run_until(lambda: len(world.notes("listener.returned")) == 40)
    started = [record.now_ms for record in world.sim.journal.of("listener.started")]
    ended = [record.now_ms for record in world.sim.journal.of("listener.returned")]
    assert expected_ms <= max(ended) - min(started) <= expected_ms * 1.05 + 5


def test_a_thread_stays_taken_while_failed_messages_are_sent_back() -> None:
    pulls = Pulls().then(0, 12, units(10, 11))
    pulls.broker.on[BACK] = lambda request: None  # no answer: 5 s
    started: list[int] = []

    def listener(messages: Any, context: Any) -> str:
        started.append(pulls.world.now_ms)
        return "RECONSUME_LATER"

    pulls.start(listener, consume_thread_min=1, consume_thread_max=1)
    pulls.world.run_for(6_000)
    assert 5_000 <= started[1] - started[0] < 5_100


def test_consume_timeout_sends_the_head_of_the_queue_back_at_the_sweep(world: World) -> None:
    listener = Recorder(world, takes="3h")
    consumer = settled(world, listener, consume_timeout="5m")
    (stuck,) = send(world.producer(), "orders", "зависло")
    world.run_for(240_000)
    assert world.requests(BACK) == []
    world.run_for(400_000)  # sent 30 s after start: young at the first sweep, old at the second
    (request,) = world.requests(BACK, "broker-a")
    assert request.about.ext_fields["delayLevel"] == "3"
    assert [each["msg_id"] for each in world.notes("message.expired")] == [stuck.msg_id]
    assert consumer.process_queues[QUEUE].msg_count == 0
    assert consumer.offset_store.read_memory(QUEUE) == 1  # by the next pull that found nothing new, not by the sweep
    world.run_for(60_000)
    assert [message.reconsume_times for message in listener.seen] == [0, 1]


def test_the_sweep_takes_sixteen_at_most_and_only_from_the_head() -> None:
    pulls = Pulls().then(0, 30, units(*range(10, 30)))
    pulls.start(lambda messages, context: context.sleep("3h"), consume_timeout="1m")
    pulls.world.run_for(119_000)
    assert len(pulls.broker.of(BACK)) == 16


def test_the_sweeps_period_is_fixed_but_its_threshold_is_read_live() -> None:
    pulls = Pulls().then(0, 11, units(10))
    consumer = pulls.start(lambda messages, context: context.sleep("3h"), consume_timeout="10m")
    consumer.configure(consume_timeout="1s")
    pulls.world.run_for(590_000)
    assert pulls.broker.of(BACK) == []
    pulls.world.run_for(10_000)
    assert len(pulls.broker.of(BACK)) == 1


def test_a_late_failure_of_a_swept_message_is_not_sent_back_twice() -> None:
    pulls = Pulls().then(0, 11, units(10))
    pulls.start(lambda messages, context: context.sleep("3m") or "RECONSUME_LATER", consume_timeout="1m")
    pulls.world.run_for(600_000)
    assert len(pulls.broker.of(BACK)) == 1


def test_the_safer_timer_is_exact_and_acks(world: World) -> None:
    listener = Recorder(world, takes="10m")
    consumer = settled(world, listener, message_timeout="30s")
    send(world.producer(), "orders", "зависло")
    world.run_for(30_100)
    (request,) = world.requests(BACK, "broker-a")
    (started, _) = world.sim.journal.changes("listener.started")[0]
    assert request.now_ms - started.now_ms == 30_001
    assert consumer.offset_store.read_memory(QUEUE) == 1
    assert len(world.notes("message.timed_out")) == 1


def test_the_safer_timer_gives_up_when_broadcasting(world: World, tmp_path: Path) -> None:
    consumer = settled(
        world,
        Recorder(world, takes="10m"),
        message_timeout="30s",
        message_model="BROADCASTING",
        local_offset_store_dir=str(tmp_path),
    )
    send(world.producer(), "orders", "зависло")
    world.run_for(30_100)
    assert world.requests(BACK) == []  # no member reads %RETRY% of a broadcasting group
    assert len(world.notes("message.given_up")) == 1
    assert consumer.offset_store.read_memory(QUEUE) == 1


def test_the_safer_timer_is_off_by_default_and_does_nothing_to_quick_listeners(world: World) -> None:
    consumer = settled(world, Recorder(world, takes="1s"), message_timeout="5s")
    assert world.consumer("audit", listener=Recorder(world)).config.message_timeout == 0
    send(world.producer(), "orders", "a", "b")
    world.run_for(20_000)
    assert world.requests(BACK) == []
    assert consumer.offset_store.read_memory(QUEUE) == 2


LEVELS = " ".join(f"{level}s" for level in range(1, 19))  # the whole table in real lengths: tests/lab/scenarios


def test_sixteen_retries_then_the_dead_letter_queue(make_world) -> None:  # type: ignore[no-untyped-def]
    world = make_world(message_delay_level=LEVELS)
    listener = Recorder(world, "RECONSUME_LATER")
    settled(world, listener)
    (result,) = send(world.producer(), "orders", "яд 毒 ☠️")
    world.run_for(200_000)
    assert [message.reconsume_times for message in listener.seen] == list(range(17))
    gaps = [later - earlier for earlier, later in pairwise(listener.times)]
    for gap, level in zip(gaps, range(3, 19), strict=True):
        assert level * 1000 <= gap <= level * 1000 + 150
    assert {message.topic for message in listener.seen} == {"orders"}
    assert {message.msg_id for message in listener.seen} == {result.msg_id}
    dead = world.broker.store.get("%DLQ%billing", 0, 0).messages()
    assert [(message.body.decode(), message.reconsume_times) for message in dead] == [("яд 毒 ☠️", 17)]
    assert dead[0].properties[property_names.RETRY_TOPIC] == "orders"


def test_max_reconsume_times_and_straight_to_the_dead_letters(world: World) -> None:
    listener = Recorder(world, "RECONSUME_LATER")
    settled(world, listener, max_reconsume_times=1)
    send(world.producer(), "orders", "дважды")

    def gives_up(messages: Any, context: Any) -> str:
        context.delay_level_when_next_consume = -1
        return "RECONSUME_LATER"

    world.consumer("audit", listener=gives_up)
    world.run_for(60_000)
    assert [message.reconsume_times for message in listener.seen] == [0, 1]
    assert len(world.broker.store.get("%DLQ%billing", 0, 0).messages()) == 1
    assert len(world.broker.store.get("%DLQ%audit", 0, 0).messages()) == 1


def test_shutdown_waits_for_running_listeners_when_asked(world: World) -> None:
    listener = Recorder(world, takes="2s")
    consumer = settled(world, listener, await_termination_millis_when_shutdown="10s")
    send(world.producer(), "orders", "последний")
    world.run_for(500)
    consumer.shutdown()
    assert world.notes("listener.returned")[0]["status"] == "CONSUME_SUCCESS"
    assert world.broker.offset_table.query("billing", "orders", 0) == 1


def test_a_listener_may_send_a_message_back_itself(world: World) -> None:
    world.create_topic("orders", 2)
    seen: list[tuple[int, bool | None]] = []

    def listener(messages: Any, context: Any) -> str:
        (message,) = messages
        back = consumer.send_message_back(message, 1) if message.reconsume_times == 0 else None
        seen.append((message.reconsume_times, back))
        return "CONSUME_SUCCESS"

    consumer = world.consumer(listener=listener)
    assert len(consumer.fetch_subscribe_message_queues("orders")) == 2
    with pytest.raises(ClientError, match="not exist"):
        consumer.fetch_subscribe_message_queues("payments")
    world.run_for(30_000)
    send(world.producer(), "orders", "ещё раз")
    world.run_for(3_000)
    assert seen == [(0, True), (1, None)]
    consumer.shutdown()
    with pytest.raises(ClientError, match="not OK"):
        consumer.fetch_subscribe_message_queues("orders")


def test_a_hook_that_raises_disturbs_nobody(world: World) -> None:
    class Broken:
        def consume_message_before(self, context: Any) -> None:
            raise ValueError("крючок")  # and it has no consume_message_after

    seen: list[str] = []

    class Whole:
        def consume_message_before(self, context: Any) -> None:
            seen.append("before")

        def consume_message_after(self, context: Any) -> None:
            seen.append(context.status)

    world.create_topic("orders", 1)
    consumer = world.consumer(listener=Recorder(world), start=False)
    for hook in (Broken(), Whole()):
        consumer.register_consume_message_hook(hook)
    consumer.start()
    world.run_for(2_000)
    send(world.producer(), "orders", "a")
    world.run_for(100)
    assert seen == ["before", "CONSUME_SUCCESS"]
    raised, missing = world.notes("callback.failed")
    assert "ValueError: крючок" in raised["error"] and "consume_message_after" in missing["error"]


def test_hooks_see_each_call(world: World) -> None:
    seen: list[tuple[str, str, bool]] = []

    class Hook:
        def consume_message_before(self, context: Any) -> None:
            seen.append(("before", context.return_type, context.success))

        def consume_message_after(self, context: Any) -> None:
            seen.append(("after", context.return_type, context.success))

    listener = Recorder(world, "CONSUME_SUCCESS", None, ValueError("x"), "RECONSUME_LATER")
    world.create_topic("orders", 1)
    consumer = world.consumer(listener=listener, start=False, max_reconsume_times=0)
    consumer.register_consume_message_hook(Hook())
    consumer.start()
    world.run_for(2_000)
    for body in "abcd":
        send(world.producer(f"shop-{body}"), "orders", body)
        world.run_for(100)
    kinds = [kind for when, kind, _ in seen if when == "after"]
    assert kinds == ["SUCCESS", "RETURNNULL", "EXCEPTION", "FAILED"]
