"""Who owns which queue, when that changes, and where a queue begins.

Mirrors: RebalanceService, RebalanceImpl, RebalancePushImpl.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from mqlab.errors import UsageError
from mqlab.lab.runtime.sim import SimWorld
from mqlab.rocketmq.client.instance.rebalance_timer import RebalanceTimer
from mqlab.rocketmq.client.instance.statistics import CONSUME_OK_TPS, CONSUME_RT
from mqlab.rocketmq.machine.files import RealFiles
from mqlab.rocketmq.promises import Promise
from mqlab.rocketmq.wire.codes import RequestCode
from mqlab.rocketmq.wire.message import Message, MessageQueue
from tests.rocketmq.client.conftest import Recorder, World
from tests.rocketmq.client.scripted import ScriptedWorld

MEMBERS = RequestCode.GET_CONSUMER_LIST_BY_GROUP


def orders(consumer: Any) -> list[int]:
    return [queue.queue_id for queue in consumer.message_queues if queue.topic == "orders"]


class TimedRounds:
    """A rebalance timer of its own, counting rounds; ``answers``: balanced or not (the last one stays)."""

    def __init__(self, *answers: bool) -> None:
        self.sim = SimWorld()
        self.answers = list(answers) or [True]
        self.rounds: list[int] = []
        self.began_ms = self.sim.now_ms
        self.timer = RebalanceTimer(self.sim.add_node("n", RealFiles()).clock, self._round)
        self.timer.start()

    def _round(self) -> Promise[bool]:
        self.rounds.append(self.sim.now_ms - self.began_ms)
        return Promise.of(self.answers.pop(0) if len(self.answers) > 1 else self.answers[0])

    def run_for(self, ms: int) -> None:
        self.sim.run_until_ms(self.sim.now_ms + ms)


def test_every_twenty_seconds() -> None:
    timed = TimedRounds()
    timed.run_for(60_000)
    assert timed.rounds == [20_000, 40_000, 60_000]


def test_woken_rounds_are_a_second_apart() -> None:
    timed = TimedRounds()
    timed.timer.wake()
    timed.run_for(1_500)
    timed.timer.wake()
    timed.timer.wake()
    timed.run_for(10_000)
    timed.timer.wake()
    timed.run_for(100)
    assert timed.rounds == [1_000, 2_000, 11_500]


def test_not_balanced_comes_again_in_a_second() -> None:
    timed = TimedRounds(False, False, True)
    timed.run_for(25_000)
    assert timed.rounds == [20_000, 21_000, 22_000]


def test_wake_later_and_stop() -> None:
    timed = TimedRounds()
    timed.run_for(5_000)
    timed.timer.wake_later(500)
    timed.run_for(1_000)
    timed.timer.stop()
    timed.timer.wake()
    timed.run_for(60_000)
    assert timed.rounds == [5_500]


def test_a_consumer_rebalances_a_second_after_it_was_made_and_pulls_half_a_second_later(world: World) -> None:
    world.create_topic("orders", 4)
    began_ms = world.now_ms
    world.consumer(listener=Recorder(world))
    world.run_for(3_000)
    (wake, *_) = world.sim.journal.of("rebalance.wake")
    assert wake.now_ms - began_ms == 1_000
    added = {values["queue"]: record.now_ms for record, values in world.sim.journal.changes("queue.added")}
    pulls = world.requests(RequestCode.PULL_MESSAGE, "broker-a")
    for pull in pulls:
        queue = MessageQueue(pull.about.ext_fields["topic"], "broker-a", int(pull.about.ext_fields["queueId"]))
        assert pull.now_ms - added[queue] == 501  # 500 ms, and the way to the broker
    assert len(pulls) == len(added) >= 4


def test_members_learn_of_a_new_one_at_once(world: World) -> None:
    world.create_topic("orders", 4)
    first = world.consumer(listener=Recorder(world))
    world.run_for(5_000)
    assert orders(first) == [0, 1, 2, 3]
    second = world.consumer(listener=Recorder(world), name="billing-2")
    world.run_for(2_000)
    assert (orders(first), orders(second)) == ([0, 1], [2, 3])


def test_the_queues_of_a_member_that_leaves_go_to_the_others(world: World) -> None:
    world.create_topic("orders", 4)
    first = world.consumer(listener=Recorder(world))
    second = world.consumer(listener=Recorder(world), name="billing-2")
    world.run_for(5_000)
    second.shutdown()
    world.run_for(2_000)
    assert orders(first) == [0, 1, 2, 3]
    assert orders(second) == []


def test_more_queues_are_found_by_polling_only(world: World) -> None:
    world.create_topic("orders", 2)
    consumer = world.consumer(listener=Recorder(world))
    world.run_for(5_000)
    world.create_topic("orders", 4)
    world.run_for(2_000)
    assert orders(consumer) == [0, 1]
    world.run_for(50_000)
    assert orders(consumer) == [0, 1, 2, 3]


def test_the_retry_topic_joins_a_round_after_its_route_is_known() -> None:
    world = ScriptedWorld(["broker-a"], queues=1)
    consumer = world.consumer()
    world.run_for(500)
    world.routes["%RETRY%billing"] = ["broker-a"]
    world.run_for(2_000)  # the first round finds the route when it asks for the members
    assert [queue.topic for queue in consumer.message_queues] == ["orders"]
    world.run_for(20_000)
    assert [queue.topic for queue in consumer.message_queues] == ["%RETRY%billing", "orders"]


def test_suspend_stops_pulling_and_rebalancing_and_resume_is_a_direct_call(world: World) -> None:
    world.create_topic("orders", 2)
    listener = Recorder(world)
    first = world.consumer(listener=listener)
    producer = world.producer()
    world.run_for(5_000)
    first.suspend()
    world.run_for(20_000)
    producer.send(Message("orders", b"while suspended"))
    second = world.consumer(listener=Recorder(world), name="billing-2")
    world.run_for(30_000)
    assert orders(first) == [0, 1]
    first.resume()
    world.run_for(1_500)
    assert orders(first) == [0]
    assert len(orders(second)) == 1


def test_a_round_asks_one_broker_per_topic(world: World) -> None:
    world.create_topic("orders", 2)
    world.consumer(listener=Recorder(world))
    world.run_for(1_100)
    assert len(world.requests(MEMBERS)) == 2  # orders and %RETRY%billing
    world.run_for(20_000)
    assert len(world.requests(MEMBERS)) == 4


def test_without_the_member_list_nothing_changes() -> None:
    world = ScriptedWorld(["broker-a"])
    consumer = world.consumer()
    world.run_for(3_000)
    assert orders(consumer) == [0, 1]
    world.brokers["broker-a"].on[MEMBERS] = lambda request: request.reply(1, "unknown group")
    world.run_for(30_000)
    assert orders(consumer) == [0, 1]


@pytest.mark.parametrize("wrong", [lambda *_: [], 5, str])
def test_what_is_no_strategy_is_refused_when_the_consumer_is_made(world: World, wrong: Any) -> None:
    with pytest.raises(UsageError, match="is not an allocation strategy"):
        world.consumer(start=False, allocate_message_queue_strategy=wrong)


def test_a_failing_strategy_keeps_the_old_queues_and_counts_as_not_balanced() -> None:
    class Failing:
        name = "FAILING"
        calls = 0

        def allocate(self, group: str, client_id: str, queues: list[MessageQueue], client_ids: list[str]) -> Any:
            self.calls += 1
            if self.calls > 2:
                raise RuntimeError("на этот раз нет")
            return queues

    mine = Failing()
    world = ScriptedWorld(["broker-a"])
    consumer = world.consumer(allocate_message_queue_strategy=mine)
    world.run_for(21_500)
    assert mine.calls >= 2
    world.run_for(35_000)
    assert orders(consumer) == [0, 1]
    assert mine.calls > 12  # every second now
    errors = [values["error"] for _, values in world.sim.journal.changes("rebalance.failed")]
    assert "на этот раз нет" in errors[0]


def test_an_allocation_change_raises_the_version_and_tells_all_brokers(world: World) -> None:
    world.create_topic("orders", 2)
    told: list[tuple[str, int, int]] = []
    consumer = world.consumer(listener=Recorder(world), start=False)
    consumer.set_message_queue_listener(lambda topic, every, mine: told.append((topic, len(every), len(mine))))
    version = consumer.state.subscriptions["orders"].sub_version
    consumer.start()
    world.run_for(3_000)
    assert ("orders", 2, 2) in told
    assert consumer.state.subscriptions["orders"].sub_version > version


def test_limits_per_topic_are_divided_by_all_owned_queues(world: World) -> None:
    world.create_topic("orders", 4)
    consumer = world.consumer(listener=Recorder(world), pull_threshold_for_topic=1000, pull_threshold_size_for_topic=3)
    world.run_for(30_000)
    assert len(consumer.message_queues) == 5  # the retry queue counts
    assert (consumer.pull_threshold_for_queue, consumer.pull_threshold_size_for_queue) == (200, 1)
    reported = consumer.client.call(consumer.running_info)["properties"]
    assert (reported["pullThresholdForQueue"], reported["pullThresholdSizeForQueue"]) == ("200", "1")
    assert (reported["pullThresholdForTopic"], reported["pullThresholdSizeForTopic"]) == ("1000", "3")


def test_another_setting_changed_later_leaves_the_divided_limits(world: World) -> None:
    world.create_topic("orders", 4)
    consumer = world.consumer(listener=Recorder(world), pull_threshold_for_topic=1000)
    world.run_for(30_000)
    consumer.configure(consume_timeout="2m")
    assert consumer.pull_threshold_for_queue == 200
    consumer.configure(pull_threshold_for_queue=7)
    assert (consumer.pull_threshold_for_queue, consumer.pull_threshold_size_for_queue) == (7, 100)


def test_a_topic_no_longer_wanted_goes_with_the_next_round(world: World) -> None:
    world.create_topic("orders", 2)
    consumer = world.consumer(listener=Recorder(world))
    world.run_for(3_000)
    consumer.unsubscribe("orders")
    world.run_for(21_000)
    assert orders(consumer) == []


def test_results_of_a_moved_queue_are_discarded_and_delivered_again(world: World) -> None:
    world.create_topic("orders", 2)
    first_listener, second_listener = Recorder(world, takes="10s"), Recorder(world)
    first = world.consumer(listener=first_listener)
    producer = world.producer()
    world.run_for(5_000)
    producer.send(Message("orders", "первый".encode()), MessageQueue("orders", "broker-a", 1))
    world.run_for(1_000)
    world.consumer(listener=second_listener, name="billing-2")
    world.run_for(20_000)
    assert first_listener.bodies == ["первый"]
    assert second_listener.bodies == ["первый"]
    (discarded,) = world.notes("result.discarded")
    assert first.client.statistics.snapshot(CONSUME_RT, "billing", "orders").avgpt == 10_000  # its time counts
    assert first.client.statistics.snapshot(CONSUME_OK_TPS, "billing", "orders").sum == 0
    assert discarded["client"] == "billing-1"
    assert discarded["messages"][0]["msg_id"] == first_listener.seen[0].msg_id


def stored_offsets(world: ScriptedWorld, answer: Callable[[Any], Any]) -> None:
    world.brokers["broker-a"].on[RequestCode.QUERY_CONSUMER_OFFSET] = answer


def first_pulls(world: ScriptedWorld) -> dict[str, str]:
    pulls = world.brokers["broker-a"].of(RequestCode.PULL_MESSAGE)
    return {pull.ext_fields["topic"]: pull.ext_fields["queueOffset"] for pull in pulls}


@pytest.mark.parametrize(
    ("where", "topic", "retry"),
    [
        ("CONSUME_FROM_LAST_OFFSET", "77", "0"),
        ("CONSUME_FROM_MAX_OFFSET", "77", "0"),
        ("CONSUME_FROM_FIRST_OFFSET", "0", "0"),
        ("CONSUME_FROM_TIMESTAMP", "33", "77"),
    ],
)
def test_a_queue_nobody_has_read(where: str, topic: str, retry: str) -> None:
    world = ScriptedWorld(["broker-a"], queues=1)
    world.routes["%RETRY%billing"] = ["broker-a"]
    broker = world.brokers["broker-a"]
    broker.on[RequestCode.GET_MAX_OFFSET] = lambda request: request.reply(offset=77)
    broker.on[RequestCode.SEARCH_OFFSET_BY_TIMESTAMP] = lambda request: request.reply(offset=33)
    world.consumer(consume_from_where=where, consume_timestamp="20260101000000")
    world.run_for(3_000)
    assert first_pulls(world) == {"orders": topic, "%RETRY%billing": retry}
    if where == "CONSUME_FROM_TIMESTAMP":
        (search,) = broker.of(RequestCode.SEARCH_OFFSET_BY_TIMESTAMP)
        assert (search.ext_fields["timestamp"], search.ext_fields["boundaryType"]) == ("1767225600000", "LOWER")


@pytest.mark.parametrize("where", ["CONSUME_FROM_LAST_OFFSET", "CONSUME_FROM_FIRST_OFFSET", "CONSUME_FROM_TIMESTAMP"])
def test_a_stored_offset_always_wins(where: str) -> None:
    world = ScriptedWorld(["broker-a"], queues=1)
    stored_offsets(world, lambda request: request.reply(offset=5))
    world.consumer(consume_from_where=where)
    world.run_for(3_000)
    assert first_pulls(world) == {"orders": "5"}


def test_an_offset_that_cannot_be_read_keeps_the_queue_out_until_it_can() -> None:
    world = ScriptedWorld(["broker-a"], queues=1)
    answers = iter([1, 1, 0])
    stored_offsets(world, lambda request: request.reply(next(answers), offset=9))
    world.consumer()
    world.run_for(1_500)
    assert first_pulls(world) == {}
    world.run_for(3_000)
    assert first_pulls(world) == {"orders": "9"}


def test_a_young_topic_starts_at_zero_although_last_offset_is_the_default(world: World) -> None:
    producer = world.producer()
    producer.send(Message("orders", b"before the group"))
    listener = Recorder(world)
    world.consumer(listener=listener)
    world.run_for(5_000)
    assert listener.bodies == ["before the group"]
