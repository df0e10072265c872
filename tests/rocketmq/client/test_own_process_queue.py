"""A learner's own process queue in the place of RocketMQ's (setting process_queue)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import pytest

from mqlab.errors import UsageError
from mqlab.rocketmq.client.consuming.process_queue import ProcessQueue
from mqlab.rocketmq.wire.message import MessageExt, MessageQueue
from tests.rocketmq.client.conftest import Recorder, World, send

QUEUE = MessageQueue("orders", "broker-a", 0)


class Naive:
    """Commits the largest finished offset: quick to write, and wrong."""

    def __init__(self) -> None:
        self.cached: dict[int, MessageExt] = {}
        self.msg_size_mib = 0

    @property
    def msg_count(self) -> int:
        return len(self.cached)

    def put_message(self, messages: Sequence[MessageExt]) -> bool:
        self.cached.update((message.queue_offset, message) for message in messages)
        return True

    def remove_message(self, messages: Iterable[MessageExt]) -> int:
        done = [message.queue_offset for message in messages]
        for offset in done:
            self.cached.pop(offset, None)
        return max(done) + 1

    def contains_message(self, message: MessageExt) -> bool:
        return message.queue_offset in self.cached

    def first_message(self) -> MessageExt | None:
        return self.cached[min(self.cached)] if self.cached else None

    def max_span(self) -> int:
        return max(self.cached) - min(self.cached) if self.cached else 0

    def clear(self) -> None:
        self.cached.clear()


def committed_while_the_first_is_stuck(world: World, process_queue: type) -> int:
    world.create_topic("orders", 1)

    def listener(messages: Sequence[MessageExt], context: object) -> str:
        if messages[0].body == b"slow":
            context.sleep("1h")  # type: ignore[attr-defined]
        return "CONSUME_SUCCESS"

    consumer = world.consumer(listener=listener, process_queue=process_queue)
    world.run_for(3_000)
    send(world.producer(), "orders", "slow", "quick", "quick")
    world.run_for(10_000)
    return consumer.offset_store.read_memory(QUEUE)


def test_a_naive_one_commits_past_the_slow_message(world: World) -> None:
    assert committed_while_the_first_is_stuck(world, Naive) == 3


def test_rocketmqs_waits_for_the_slow_message(world: World) -> None:
    assert committed_while_the_first_is_stuck(world, ProcessQueue) == 0


def test_a_class_that_cannot_be_one_is_refused_at_once(world: World) -> None:
    class Half:
        def put_message(self, messages: Sequence[MessageExt]) -> bool:
            return True

    with pytest.raises(UsageError, match=r"Half is not a process queue: it lacks remove_message, contains_message"):
        world.consumer(listener=Recorder(world), process_queue=Half)


def test_one_that_has_the_needed_names_alone_lives_through_rebalances(world: World) -> None:
    world.create_topic("orders", 1)
    consumer = world.consumer(listener=lambda messages, context: "CONSUME_SUCCESS", process_queue=Naive)
    world.run_for(3_000)
    send(world.producer(), "orders", "one", "two")
    world.run_for(60_000)
    assert consumer.offset_store.read_memory(QUEUE) == 2
    assert QUEUE in consumer.process_queues
