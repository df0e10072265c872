"""The schedule service: a callback for each owned queue, again and again.

Mirrors: MQPullConsumerScheduleService.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import Any

import pytest

from mqlab.errors import ClientError, UsageError
from mqlab.rocketmq.client import PullConsumerScheduleService
from mqlab.rocketmq.wire.codes import RequestCode
from mqlab.rocketmq.wire.message import Message, MessageQueue
from tests.rocketmq.client.conftest import World


def service(world: World, task: Any, *, name: str = "audit-1", **settings: Any) -> PullConsumerScheduleService:
    made = PullConsumerScheduleService(world.ports(name), "audit", world.name_servers, enable_trace=False, **settings)
    made.register_pull_task_callback("orders", task)
    made.start()
    return made


class Reader:
    """RocketMQ's example: pull from the offset, note the next one."""

    def __init__(self, world: World, next_delay: str | int = "200ms") -> None:
        self.world = world
        self.next_delay = next_delay
        self.calls: list[tuple[int, int]] = []
        self.bodies: list[str] = []

    def do_pull_task(self, queue: MessageQueue, context: Any) -> None:
        self.calls.append((self.world.now_ms, queue.queue_id))
        offset = max(context.pull_consumer.fetch_consume_offset(queue), 0)
        result = context.pull_consumer.pull(queue, "*", offset)
        self.bodies += [message.body.decode() for message in result.msg_found_list]
        context.pull_consumer.update_consume_offset(queue, result.next_begin_offset)
        context.pull_next_delay_time_millis = self.next_delay

    def gaps(self, queue_id: int) -> list[int]:
        at = [now_ms for now_ms, number in self.calls if number == queue_id]
        return [later - before for before, later in pairwise(at)]


def test_it_reads_every_queue_it_owns_and_commits(world: World) -> None:
    world.create_topic("orders", 2)
    producer = world.producer()
    for number in range(40):
        producer.send(
            Message("orders", f"заказ 订单 {number} 💳".encode()), MessageQueue("orders", "broker-a", number % 2)
        )
    reader = Reader(world)
    mine = service(world, reader)
    assert mine.name == "audit-1" and mine.client_id.endswith("@audit-1@STREAM")
    world.run_for(12_000)
    assert sorted(reader.bodies) == sorted(f"заказ 订单 {number} 💳" for number in range(40))
    assert mine.message_queues == [MessageQueue("orders", "broker-a", 0), MessageQueue("orders", "broker-a", 1)]
    assert world.broker.offset_table.query("audit", "orders", 0) == 20
    assert set(reader.gaps(0)[1:]) == {202}  # a pull takes 2 ms, then 200
    assert world.requests(RequestCode.QUERY_CONSUMER_OFFSET, "broker-a") != []


def test_the_task_says_when_it_wants_to_be_called_again(world: World) -> None:
    world.create_topic("orders", 1)
    reader = Reader(world, next_delay="3s")
    service(world, reader)
    world.run_for(20_000)
    assert set(reader.gaps(0)[1:]) == {3_002}


def test_after_an_exception_it_is_called_again_in_a_second(world: World) -> None:
    world.create_topic("orders", 1)
    at: list[int] = []

    def task(queue: MessageQueue, context: Any) -> None:
        at.append(world.now_ms)
        context.pull_next_delay_time_millis = 0
        raise ValueError("не вышло")

    service(world, task)
    world.run_for(6_000)
    assert {later - before for before, later in pairwise(at)} == {1_000}
    assert "ValueError: не вышло" in world.notes("callback.failed")[0]["error"]


@pytest.mark.parametrize("leave", [lambda service: service.shutdown(), lambda service: None])
def test_members_share_queues_and_tasks_follow(world: World, leave: Callable[[Any], None]) -> None:
    world.create_topic("orders", 4)
    first = service(world, Reader(world))
    second = service(world, Reader(world), name="audit-2")
    world.run_for(30_000)
    assert [len(first.tasks), len(second.tasks)] == [2, 2]
    second.shutdown()
    second.shutdown()
    world.run_for(5_000)
    assert [len(first.tasks), len(second.tasks)] == [4, 0]
    leave(first)


def test_threads_bound_the_calls(world: World) -> None:
    world.create_topic("orders", 4)
    running, most = [0], [0]

    def task(queue: MessageQueue, context: Any) -> None:
        running[0] += 1
        most[0] = max(most[0], running[0])
        context.sleep("500ms")
        running[0] -= 1

    service(world, task, pull_thread_nums=2)
    world.run_for(10_000)
    assert most == [2]


def test_what_is_refused(world: World) -> None:
    made = PullConsumerScheduleService(world.ports("audit-1"), "audit", world.name_servers)
    with pytest.raises(UsageError, match="not a pull task"):
        made.register_pull_task_callback("orders", 5)  # type: ignore[arg-type]
    with pytest.raises(ClientError, match="blank"):
        made.register_pull_task_callback("", print)
    with pytest.raises(UsageError, match="pull_thread_nums=0"):
        PullConsumerScheduleService(world.ports("audit-2"), "audit", world.name_servers, pull_thread_nums=0)
    made.start()
    with pytest.raises(ClientError, match="maybe started once"):
        made.start()
