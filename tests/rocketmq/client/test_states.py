"""The states of a producer or consumer, and of a queue that a consumer owns."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from mqlab.errors import ClientError
from mqlab.rocketmq.client import Producer
from mqlab.rocketmq.client.consuming.process_queue import (
    DROPPED,
    FREE,
    LEAVING,
    LOCKED,
    OWNED_QUEUE,
    ProcessQueue,
    move,
)
from mqlab.rocketmq.client.instance.service_state import (
    CREATE_JUST,
    RUNNING,
    SHUTDOWN_ALREADY,
    START_FAILED,
    ServiceState,
)
from mqlab.rocketmq.state_table import IllegalMove
from tests.rocketmq.client.conftest import Recorder, World


def test_a_client_instance_is_complete_when_its_constructor_returns(world: World) -> None:
    producer = world.producer(start=False)
    client = producer.client
    assert list(client.members.producers) == ["CLIENT_INNER_PRODUCER"]
    assert client.members.producers["CLIENT_INNER_PRODUCER"] is client.inner_sender


def test_a_consumer_runs_once(world: World) -> None:
    world.create_topic("orders")
    consumer = world.consumer(listener=Recorder(world), start=False)
    assert consumer.service.state == CREATE_JUST
    with pytest.raises(ClientError, match="service state not OK, CREATE_JUST"):
        consumer.fetch_subscribe_message_queues("orders")
    consumer.start()
    assert consumer.service.state == RUNNING
    with pytest.raises(ClientError, match="maybe started once, RUNNING"):
        consumer.start()
    consumer.shutdown()
    assert consumer.service.state == SHUTDOWN_ALREADY
    with pytest.raises(ClientError, match="maybe started once, SHUTDOWN_ALREADY"):
        consumer.start()


def test_a_producer_whose_group_is_taken_can_be_started_later(world: World) -> None:
    first = world.producer("shop")
    second = Producer(first.ports, "shop", world.name_servers, client=first.client, enable_trace=False)
    with pytest.raises(ClientError, match="has been created before"):
        second.start()
    assert second.service.state == CREATE_JUST
    first.shutdown()
    second.start()
    assert second.service.state == RUNNING


def test_what_was_never_started_cannot_be_shut_down() -> None:
    service = ServiceState("producer")
    with pytest.raises(IllegalMove, match="'shut down' is not legal in the state CREATE_JUST, legal is: start"):
        service.move("shut down")
    with pytest.raises(ZeroDivisionError), service.starting():
        assert service.state == START_FAILED and not service.is_running
        raise ZeroDivisionError
    assert service.state == CREATE_JUST


class Own:
    """A learner's process queue needs no more than the two flags."""

    dropped = locked = False


@pytest.mark.parametrize("make", [ProcessQueue, Own])
@pytest.mark.parametrize(
    ("events", "state"),
    [
        ((), FREE),
        (("lock",), LOCKED),
        (("lock", "unlock"), FREE),
        (("drop",), DROPPED),
        (("lock", "drop"), LEAVING),
        (("lock", "drop", "unlock"), DROPPED),
        (("lock", "drop", "lock"), LEAVING),  # a renewal answered late does not bring a dropped queue back
        (("drop", "lock"), LEAVING),
    ],
)
def test_a_queue_that_was_dropped_stays_dropped(make: Callable[[], Any], events: tuple[str, ...], state: str) -> None:
    queue, expected = make(), OWNED_QUEUE.start
    for event in events:
        move(queue, event)
        expected = OWNED_QUEUE[expected, event]
    assert expected == state
    assert queue.dropped is (state in (DROPPED, LEAVING))
    assert queue.locked is (state in (LOCKED, LEAVING))
