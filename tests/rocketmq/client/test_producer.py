"""Sending: queue choice, retries, time limits, what is refused, what the frames say.

Mirrors: DefaultMQProducerImpl.
"""

from __future__ import annotations

import zlib
from random import Random
from typing import Any

import pytest

from mqlab.errors import BrokerError, ClientError, RemotingError, UsageError
from mqlab.rocketmq.client.sending.queue_selection import SelectByRandom, select_by_hash
from mqlab.rocketmq.wire import batch, properties, property_names
from mqlab.rocketmq.wire.codes import RequestCode
from mqlab.rocketmq.wire.message import Message, MessageQueue
from tests.rocketmq.client.conftest import World
from tests.rocketmq.client.scripted import ScriptedWorld

SEND = RequestCode.SEND_MESSAGE_V2


def message(body: bytes = "заказ 订单 🚀".encode(), **settings: object) -> Message:
    return Message("orders", body, **settings)  # type: ignore[arg-type]


def sent(world: ScriptedWorld) -> list[tuple[str, str]]:
    """Every send request as (broker, queue id), in the order of arrival at each broker."""
    return [(name, request.ext_fields["e"]) for name, broker in world.brokers.items() for request in broker.of(SEND)]


def test_round_robin_over_brokers_by_name_and_queue_number() -> None:
    world = ScriptedWorld()
    producer = world.producer()
    used = [producer.send(message()).message_queue for _ in range(8)]
    queues = [MessageQueue("orders", broker, number) for broker in ("broker-a", "broker-b") for number in (0, 1)]
    start = queues.index(used[0])
    assert used == [queues[(start + step) % 4] for step in range(8)]


def test_a_retry_goes_to_another_broker() -> None:
    world = ScriptedWorld()
    world.brokers["broker-a"].script = [14]
    world.brokers["broker-b"].script = [0]
    producer = world.producer()
    for _ in range(4):
        assert producer.send(message()).message_queue.broker_name == "broker-b"
    assert len(world.brokers["broker-a"].of(SEND)) == len([pair for pair in sent(world) if pair[0] == "broker-a"]) > 0


def test_with_one_broker_a_retry_takes_the_next_queue() -> None:
    world = ScriptedWorld(["broker-a"])
    world.brokers["broker-a"].script = [1, 2, 0]
    world.producer().send(message())
    queues = [queue for _, queue in sent(world)]
    assert len(queues) == 3
    assert queues[0] == queues[2] != queues[1]


def test_selectors() -> None:
    world = ScriptedWorld()
    producer = world.producer()
    chosen = producer.send(message(), selector=lambda queues, message, arg: queues[arg % len(queues)], arg=7)
    assert chosen.message_queue == MessageQueue("orders", "broker-b", 1)
    by_hash = producer.send(message(), selector=select_by_hash, arg="order-1")
    assert by_hash.message_queue == MessageQueue("orders", "broker-b", 0)
    assert producer.send(message(), selector="HASH", arg="order-1").message_queue == by_hash.message_queue
    assert producer.send(message(), selector=SelectByRandom(producer.ports.rng)).send_status == "SEND_OK"
    anywhere = {producer.send(message(), selector="RANDOM").message_queue for _ in range(40)}
    assert len(anywhere) == 4


def test_selector_failures_are_explained() -> None:
    producer = ScriptedWorld().producer()
    with pytest.raises(ClientError, match="return null"):
        producer.send(message(), selector=lambda queues, message, arg: None)
    with pytest.raises(ClientError, match="threw exception: ZeroDivisionError"):
        producer.send(message(), selector=lambda queues, message, arg: queues[1 // 0])
    with pytest.raises(ClientError, match="returned 3, which is not a MessageQueue"):
        producer.send(message(), selector=lambda queues, message, arg: 3)  # type: ignore[arg-type,return-value]
    with pytest.raises(ClientError, match="needs something to hash"):
        producer.send(message(), selector="HASH")
    with pytest.raises(UsageError, match="'ROUND' is not a selector"):
        producer.send(message(), selector="ROUND")
    with pytest.raises(UsageError, match="not both"):
        producer.send(message(), MessageQueue("orders", "broker-a", 0), selector=select_by_hash)
    with pytest.raises(ClientError, match="not equal"):
        producer.send(message(), MessageQueue("payments", "broker-a", 0))


@pytest.mark.parametrize(
    ("wrong", "word"), [(None, "message is null"), ("заказ", "is not a Message"), ([], "at least")]
)
def test_what_is_no_message(wrong: object, word: str) -> None:
    producer = ScriptedWorld().producer()
    with pytest.raises(ClientError, match=word):
        producer.send(wrong)  # type: ignore[arg-type]


@pytest.mark.parametrize("code", [17, 14, 1, 2, 16, 204, 205, 1500])
def test_sync_retries_these_broker_codes(code: int) -> None:
    world = ScriptedWorld()
    for broker in world.brokers.values():
        broker.script = [code]
    with pytest.raises(ClientError, match=r"Send \[3\] times, still failed") as failure:
        world.producer().send(message())
    assert len(sent(world)) == 3
    assert isinstance(failure.value.__cause__, BrokerError)
    assert failure.value.not_done is False


@pytest.mark.parametrize("code", [13, 26, 29, 604])
def test_sync_does_not_retry_other_codes(code: int) -> None:
    world = ScriptedWorld()
    for broker in world.brokers.values():
        broker.script = [code]
    with pytest.raises(BrokerError) as refusal:
        world.producer().send(message())
    assert refusal.value.response_code == code
    assert len(sent(world)) == 1


@pytest.mark.parametrize(
    ("code", "status"), [(10, "FLUSH_DISK_TIMEOUT"), (12, "FLUSH_SLAVE_TIMEOUT"), (11, "SLAVE_NOT_AVAILABLE")]
)
def test_stored_but_not_ok_is_a_normal_return(code: int, status: str) -> None:
    world = ScriptedWorld()
    for broker in world.brokers.values():
        broker.script = [code]
    assert world.producer().send(message()).send_status == status
    assert len(sent(world)) == 1


def test_retry_another_broker_when_not_store_ok() -> None:
    world = ScriptedWorld()
    for broker in world.brokers.values():
        broker.script = [10]
    assert (
        world.producer(retry_another_broker_when_not_store_ok=True).send(message()).send_status == "FLUSH_DISK_TIMEOUT"
    )
    assert len(sent(world)) == 3


def test_retries_keep_the_unique_key_and_so_does_a_second_send() -> None:
    world = ScriptedWorld(["broker-a"])
    world.brokers["broker-a"].script = [1, 0]
    producer = world.producer()
    same = message()
    first, second = producer.send(same), producer.send(same)
    assert first.msg_id == second.msg_id == same.properties[property_names.UNIQ_KEY]
    keys = [properties.decode(r.ext_fields["i"])["UNIQ_KEY"] for r in world.brokers["broker-a"].of(SEND)]
    assert keys == [first.msg_id] * 3


def test_the_time_limit_is_for_the_whole_call() -> None:
    world = ScriptedWorld()
    for broker in world.brokers.values():
        broker.script = [None]
    began_ms = world.now_ms
    with pytest.raises(RemotingError) as late:
        world.producer().send(message())
    assert late.value.code == "too_much_request"
    assert world.now_ms - began_ms <= 3_010
    assert len(sent(world)) == 1


def test_a_limit_per_request_leaves_time_for_others() -> None:
    world = ScriptedWorld()
    world.brokers["broker-a"].script = world.brokers["broker-b"].script = [None]
    producer = world.producer(send_msg_max_timeout_per_request=500)
    with pytest.raises(ClientError, match=r"Send \[3\] times"):
        producer.send(message())
    assert len(sent(world)) == 3


def test_async_retries_transport_errors_on_another_broker_with_the_same_queue_id() -> None:
    world = ScriptedWorld()
    for broker in world.brokers.values():
        broker.script = [None]
    producer = world.producer(send_msg_max_timeout_per_request=-1)
    producer.fetch_publish_message_queues("orders")
    for broker in world.brokers.values():  # the request breaks instead of timing out
        broker.on[SEND] = lambda request, broker=broker: broker.channels[producer.ports.ip].close()
    waiting = producer.send_async(message())
    with pytest.raises(RemotingError):
        waiting.result()
    brokers = [name for name, _ in sent(world)]
    assert len(brokers) == 3
    assert len({queue for _, queue in sent(world)}) == 1
    assert {"broker-a", "broker-b"} == {*brokers}


def test_async_passes_any_broker_answer_on_at_once() -> None:
    world = ScriptedWorld()
    for broker in world.brokers.values():
        broker.script = [2]
    with pytest.raises(BrokerError):
        world.producer().send_async(message()).result()
    assert len(sent(world)) == 1


def test_async_tells_callbacks() -> None:
    world = ScriptedWorld()
    told: list[object] = []
    world.producer().send_async(message()).then(told.append)
    assert told == []
    world.run_for(100)
    assert [result.send_status for result in told] == ["SEND_OK"]  # type: ignore[attr-defined]


def test_selector_sync_once_async_on_the_same_broker() -> None:
    world = ScriptedWorld()
    for broker in world.brokers.values():
        broker.script = [1]
    producer = world.producer()
    first = MessageQueue("orders", "broker-a", 0)
    with pytest.raises(BrokerError):
        producer.send(message(), first)
    assert sent(world) == [("broker-a", "0")]
    broker = world.brokers["broker-a"]
    broker.on[SEND] = lambda request: broker.channels[producer.ports.ip].close()
    with pytest.raises(RemotingError):
        producer.send_async(message(), first).result()
    assert sent(world) == [("broker-a", "0")] * 4


def test_oneway_is_sent_once_and_answered_by_nobody() -> None:
    world = ScriptedWorld()
    for broker in world.brokers.values():
        broker.script = [1]
    producer = world.producer()
    producer.send_oneway(message())
    world.run_for(1_000)
    requests = [request for broker in world.brokers.values() for request in broker.of(SEND)]
    assert [request.is_oneway for request in requests] == [True]


def test_a_slow_broker_is_avoided_for_its_penalty() -> None:
    world = ScriptedWorld()
    world.brokers["broker-a"].delay_ms = 600
    producer = world.producer(send_latency_fault_enable=True)
    while not world.brokers["broker-a"].of(SEND):
        producer.send(message())
    slow = len(world.brokers["broker-a"].of(SEND))
    for _ in range(10):
        assert producer.send(message()).message_queue.broker_name == "broker-b"
    world.run_for(2_000)
    for _ in range(4):
        producer.send(message())
    assert len(world.brokers["broker-a"].of(SEND)) > slow


def test_a_learners_own_strategy_takes_its_place() -> None:
    class OnlyB:
        def __init__(self) -> None:
            self.told: list[tuple[str, int, bool]] = []

        def is_available(self, broker_name: str, now_ms: int) -> bool:
            return broker_name == "broker-b"

        def is_reachable(self, broker_name: str) -> bool:
            return False

        def update(self, broker_name: str, latency_ms: int, now_ms: int, *, isolation: bool, reachable: bool) -> None:
            self.told.append((broker_name, latency_ms, isolation))

    mine = OnlyB()
    producer = ScriptedWorld().producer(mq_fault_strategy=mine)
    assert {producer.send(message()).message_queue.broker_name for _ in range(6)} == {"broker-b"}
    assert len(mine.told) == 6


def test_hooks_see_each_attempt_and_one_that_raises_disturbs_nobody() -> None:
    seen: list[str] = []

    class Hook:
        def send_message_before(self, context: Any) -> None:
            seen.append(f"before {context.queue.broker_name}")

        def send_message_after(self, context: Any) -> None:
            seen.append("error" if context.error else context.send_result.send_status)

    class Broken:
        def send_message_before(self, context: Any) -> None:
            raise ValueError("крючок")

        send_message_after = send_message_before

    scripted = ScriptedWorld(["broker-a"])
    scripted.brokers["broker-a"].script = [1, 0]
    producer = scripted.producer()
    for hook in (Broken(), Hook()):
        producer.register_send_message_hook(hook)  # type: ignore[arg-type]
    assert producer.send(message()).send_status == "SEND_OK"
    assert seen == ["before broker-a", "error", "before broker-a", "SEND_OK"]
    assert len(scripted.sim.journal.changes("callback.failed")) == 4


class Changing:
    """A hook that adds a property, sets a tag, lengthens the body, and keeps what it saw."""

    def __init__(self) -> None:
        self.seen: list[tuple[str, int]] = []

    def send_message_before(self, context: Any) -> None:
        context.message.tags = "changed"
        context.message.properties["hook"] = context.message.properties.get("hook", "") + "x"
        self.seen.append(("before", len(context.message.body)))
        context.message.body += b"!"

    def send_message_after(self, context: Any) -> None:
        self.seen.append(("error" if context.error else context.send_result.send_status, len(context.message.body)))


def test_a_hook_changes_what_is_sent() -> None:
    world = ScriptedWorld(["broker-a"])
    producer = world.producer()
    producer.register_send_message_hook(Changing())
    program = message(b"body", tags="paid")
    producer.send(program)
    (request,) = world.brokers["broker-a"].of(SEND)
    stored = properties.decode(request.ext_fields["i"])
    assert (stored["TAGS"], stored["hook"], request.body) == ("changed", "x", b"body!")
    assert (program.tags, program.properties["hook"], program.body) == ("changed", "x", b"body")


def test_a_hook_can_send_to_another_topic_under_another_id() -> None:
    class Redirect:
        def send_message_before(self, context: Any) -> None:
            context.message.topic = "audited"
            context.message.properties["UNIQ_KEY"] = "A" * 32

        def send_message_after(self, context: Any) -> None: ...

    world = ScriptedWorld(["broker-a"])
    producer = world.producer()
    producer.register_send_message_hook(Redirect())
    result = producer.send(message())
    (request,) = world.brokers["broker-a"].of(SEND)
    assert request.ext_fields["b"] == "audited"
    assert (result.message_queue.topic, result.msg_id) == ("audited", "A" * 32)


def test_hooks_see_the_body_as_it_travels_and_the_program_gets_its_own_back() -> None:
    world = ScriptedWorld(["broker-a"])
    producer, hook = world.producer(), Changing()
    producer.register_send_message_hook(hook)
    program = message(b"y" * 5000)
    producer.send(program)
    (request,) = world.brokers["broker-a"].of(SEND)
    assert hook.seen[0] == ("before", len(request.body or b"") - 1) and len(request.body or b"") < 100
    assert program.body == b"y" * 5000


def test_an_asynchronous_send_tells_its_hooks_once_however_often_it_tries() -> None:
    world = ScriptedWorld()
    producer, hook = world.producer(), Changing()
    producer.register_send_message_hook(hook)
    for broker in world.brokers.values():
        broker.on[SEND] = lambda request, broker=broker: broker.channels[producer.ports.ip].close()
    with pytest.raises(RemotingError):
        producer.send_async(message(b"body")).result()
    requests = [request for broker in world.brokers.values() for request in broker.of(SEND)]
    assert [properties.decode(request.ext_fields["i"])["hook"] for request in requests] == ["x"] * 3
    assert len({request.ext_fields["g"] for request in requests}) == 1  # born once
    assert hook.seen == [("before", 4), ("error", 4)]


def test_the_letters_of_a_send_request() -> None:
    world = ScriptedWorld(["broker-a"])
    world.producer().send(
        message(tags="paid", keys=["k1", "k2"], properties={"region": "eu"}, delay_time_level=3, flag=9)
    )
    request = world.brokers["broker-a"].of(SEND)[0]
    fields = request.ext_fields
    assert {key: fields[key] for key in "abcdfhjkmn"} == {
        "a": "shop",
        "b": "orders",
        "c": "TBW102",
        "d": "4",
        "f": "0",
        "h": "9",
        "j": "0",
        "k": "false",
        "m": "false",
        "n": "broker-a",
    }
    assert "l" not in fields
    told = properties.decode(fields["i"])
    assert (told["TAGS"], told["KEYS"], told["region"], told["DELAY"], told["WAIT"]) == (
        "paid",
        "k1 k2",
        "eu",
        "3",
        "true",
    )
    assert request.body == "заказ 订单 🚀".encode()


@pytest.mark.parametrize(("kind", "flag"), [("ZLIB", 0x301), ("LZ4", 0x101), ("ZSTD", 0x201)])
def test_large_bodies_are_compressed_and_come_out_whole(world: World, kind: str, flag: int) -> None:
    body = ("заказ 订单 🚀 " * 400).encode()
    seen: list[tuple[bytes, int]] = []

    def listener(messages, context):  # type: ignore[no-untyped-def]
        seen.extend((each.body, each.sys_flag) for each in messages)
        return "CONSUME_SUCCESS"

    world.consumer(listener=listener)
    world.producer(compress_type=kind).send(Message("orders", body))
    world.run_until(lambda: bool(seen))
    assert seen == [(body, flag)]


def test_what_is_not_compressed() -> None:
    world = ScriptedWorld(["broker-a"])
    producer = world.producer()
    producer.send(message(b"x" * 4095))
    producer.send(message(b"y" * 4096))
    producer.send_batch([message(b"z" * 5000)])
    small, large = world.brokers["broker-a"].of(SEND)
    assert (small.ext_fields["f"], len(small.body or b"")) == ("0", 4095)
    assert (large.ext_fields["f"], len(large.body or b"") < 4096) == (str(0x301), True)
    assert world.brokers["broker-a"].of(RequestCode.SEND_BATCH_MESSAGE)[0].ext_fields["f"] == "0"


def test_a_long_body_that_compression_does_not_shrink_is_sent_compressed() -> None:
    world = ScriptedWorld(["broker-a"])
    body = Random(7).randbytes(5000)
    world.producer().send(message(body))
    (request,) = world.brokers["broker-a"].of(SEND)
    assert (request.ext_fields["f"], len(request.body or b"") > 5000) == (str(0x301), True)
    assert zlib.decompress(request.body or b"") == body


def test_a_batch_is_one_request_with_one_key_each() -> None:
    world = ScriptedWorld(["broker-a"])
    result = world.producer().send_batch([message(b"b0", tags="a"), message(b"b1"), message(b"b2")])
    request = world.brokers["broker-a"].of(RequestCode.SEND_BATCH_MESSAGE)[0]
    assert request.ext_fields["m"] == "true"
    items = batch.decode(request.body or b"")
    keys = [properties.decode(item.properties)["UNIQ_KEY"] for item in items]
    assert [item.body for item in items] == [b"b0", b"b1", b"b2"]
    assert result.msg_id == ",".join(keys)
    whole = properties.decode(request.ext_fields["i"])
    assert whole["UNIQ_KEY"] not in keys
    assert whole["WAIT"] == "true"


def test_a_batch_that_is_not_waited_for_is_the_same_request() -> None:
    world = ScriptedWorld(["broker-a"])
    producer = world.producer()
    pending = producer.send_batch_async([message(b"b0"), message(b"b1")])
    assert not world.brokers["broker-a"].of(RequestCode.SEND_BATCH_MESSAGE)
    result = pending.result()
    (request,) = world.brokers["broker-a"].of(RequestCode.SEND_BATCH_MESSAGE)
    items = batch.decode(request.body or b"")
    assert [item.body for item in items] == [b"b0", b"b1"]
    assert result.msg_id == ",".join(properties.decode(item.properties)["UNIQ_KEY"] for item in items)


@pytest.mark.parametrize(
    ("messages", "word"),
    [
        ([], "at least one"),
        ([message(), Message("payments", b"x")], "topic"),
        ([message(), message(wait_store_msg_ok=False)], "waitStoreMsgOK"),
        ([message(delay_time_level=1)], "TimeDelayLevel"),
        ([Message("%RETRY%g", b"x")], "Retry Group"),
    ],
)
def test_batches_that_are_refused(messages: list[Message], word: str) -> None:
    with pytest.raises(ClientError, match=word):
        ScriptedWorld().producer().send_batch(messages)


@pytest.mark.parametrize(
    ("bad", "word"),
    [
        (Message("", b"x"), "blank"),
        (Message("ta!", b"x"), "illegal"),
        (Message("t" * 128, b"x"), "longer than 127"),
        (Message("SCHEDULE_TOPIC_XXXX", b"x"), "forbidden"),
        (Message("orders", b""), "length is zero"),
        (Message("orders", b"x" * (4 * 1024 * 1024 + 1)), "MAX: 4194304"),
    ],
)
def test_messages_that_are_refused_here(bad: Message, word: str) -> None:
    world = ScriptedWorld()
    with pytest.raises(ClientError, match=word):
        world.producer().send(bad)
    assert sent(world) == []


def test_no_route_names_the_topic() -> None:
    world = ScriptedWorld()
    producer = world.producer()
    world.run_for(1)  # the first route poll: no topic yet
    with pytest.raises(ClientError, match="No route info of this topic: payments"):
        producer.send(Message("payments", b"x"))
    assert [topic for _, topic in world.route_requests] == ["payments", "TBW102"]


def test_the_template_gives_at_most_four_queues() -> None:
    world = ScriptedWorld(["broker-a"], queues=8)
    world.routes["TBW102"] = ["broker-a"]
    producer = world.producer()
    queues = producer.fetch_publish_message_queues("payments")
    assert [queue.queue_id for queue in queues] == [0, 1, 2, 3]


def test_life(world: World) -> None:
    producer = world.producer()
    with pytest.raises(ClientError, match="started once"):
        producer.start()
    assert len(world.requests(RequestCode.HEART_BEAT)) == 0
    producer.send(message())
    world.run_for(3_000)
    assert len(world.requests(RequestCode.HEART_BEAT)) == 2  # the channel became active; one second after start
    producer.shutdown()
    producer.shutdown()
    groups = [
        request.about.ext_fields.get("producerGroup") for request in world.requests(RequestCode.UNREGISTER_CLIENT)
    ]
    assert groups == ["shop", "CLIENT_INNER_PRODUCER"]
    with pytest.raises(ClientError, match="shut down"):
        producer.send(message())


def test_group_names_are_checked(world: World) -> None:
    for bad in ("", "DEFAULT_PRODUCER", "g" * 256, "a b"):
        with pytest.raises(ClientError):
            world.producer(bad or " ", start=False)


def test_a_dead_name_server_costs_one_call_and_the_next_one_is_used() -> None:
    world = ScriptedWorld(name_servers=2)
    world.sim.network.drop_node(world.sim.nodes["nameserver-1"], silent=False)
    world.sim.nodes["nameserver-1"].alive = False
    producer = world.producer()
    outcomes = []
    for _ in range(3):
        try:
            outcomes.append(producer.send(message()).send_status)
        except RemotingError as error:
            outcomes.append(error.code)
    assert outcomes in (["SEND_OK"] * 3, ["connect", "SEND_OK", "SEND_OK"])


def test_cached_routes_stay_in_use_without_any_name_server() -> None:
    world = ScriptedWorld()
    producer = world.producer()
    producer.send(message())
    world.sim.network.drop_node(world.sim.nodes["nameserver-1"], silent=False)
    world.sim.nodes["nameserver-1"].alive = False
    world.run_for(120_000)
    assert producer.send(message()).send_status == "SEND_OK"
    with pytest.raises(RemotingError):
        producer.send(Message("payments", b"x"))


@pytest.mark.parametrize(
    ("name", "value"), [("note", "a\x02b"), ("a\x01b", "c"), ("blank", ""), ("n", 5), ("n", None), ("", "x")]
)
def test_a_property_set_later_is_checked_when_the_message_is_sent(world: World, name: str, value: Any) -> None:
    producer = world.producer("shop")
    changed = message()
    changed.properties[name] = value
    for send in (lambda: producer.send(changed), lambda: producer.send_batch([message(), changed])):
        with pytest.raises(UsageError, match="property"):
            send()
