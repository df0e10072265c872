"""A learner's broker in a Lab: three right ones carry the day as RocketMQ does, wrong ones stop it with their rule."""

from __future__ import annotations

import contextlib
from typing import Any

import pytest

from mqlab import Lab, Message, play
from mqlab.errors import RemotingError, UsageError
from mqlab.lab.parts import OwnParts, copied
from mqlab.lab.parts.broken import BrokenPart
from mqlab.lab.parts.disk import Disk
from mqlab.rocketmq.machine.files import RealFiles
from tests.lab.parts.brokers import dicts_and_lists, of_files, rocketmq_shape
from tests.lab.parts.day import SETTINGS, of, outcome, played

Store: Any = rocketmq_shape.MyStore
Pulls: Any = rocketmq_shape.MyPulls
Groups: Any = rocketmq_shape.MyGroups
Retries: Any = rocketmq_shape.MyRetries


@pytest.mark.parametrize("broker", [rocketmq_shape, dicts_and_lists, of_files], ids=lambda one: one.__name__)
def test_a_right_broker_carries_the_day_as_rocketmqs_own_does(broker: Any) -> None:
    ends = sorted(statuses[-1] for statuses in outcome(played(of(broker))).values())
    assert ends == sorted(statuses[-1] for statuses in outcome(played(OwnParts())).values())


@pytest.mark.parametrize("name", ["store", "pulls", "groups", "retries"])
def test_each_part_takes_its_place_alone(name: str) -> None:
    alone = {one: None for one in ("store", "pulls", "groups", "retries", "handlers") if one != name}
    lab = played(of(rocketmq_shape, **alone))
    assert len(outcome(lab)) == 6


def test_the_files_of_rocketmqs_shape_are_read_by_the_inspector() -> None:
    lab = played(of(rocketmq_shape))
    stored = [one.keys for one in lab.store().messages("orders")]
    assert len(stored) == 12 and stored[0] == "order-0"
    assert lab.store().queue("orders", 0).max_offset == lab.broker().store.max_offset("orders", 0) == 6


class NumbersTheWholeStore(Store):
    def put(self, topic: str, queue_id: int, unit: bytes) -> Any:
        return sum(self.numbers.values()), super().put(topic, queue_id, unit)[1]


class OffersBeforeDispatch(Store):
    def max_offset(self, topic: str, queue_id: int) -> int:
        return int(self.numbers.get((topic, queue_id), 0))


class ForgetsToFlush(Store):
    def flush(self) -> None:
        pass


class BeginsAnew(Store):
    def recover(self) -> None:
        pass


class ReadsBackwards(Store):
    def get(self, *asked: Any) -> Any:
        return super().get(*asked)[::-1]


class StaysBehindTheFilter(Pulls):
    def read(self, pull: Any) -> Any:
        units, next_offset = super().read(pull)
        return units, next_offset if units else pull["queue_offset"]


class LooksNoFurther(Pulls):
    def arrived(self, topic: str, queue_id: int) -> Any:
        return []


class HoldsForEver(Pulls):
    def look(self, now_ms: int) -> Any:
        return []


class MovesWithThePull(Groups):
    def committed(self, group: str, topic: str, queue_id: int) -> int:
        return int(super().committed(group, topic, queue_id)) + 1


class KeepsInMemory(Groups):
    def save(self) -> None:
        pass


class NobodyLeaves(Groups):
    def left(self, group: str, member: str) -> None:
        pass


class RetriesAtOnce(Retries):
    def send_back(self, group: str, unit: bytes, level: int, most: int, now_ms: int) -> str:
        self.store.put(f"%RETRY%{group}", 0, copied(unit))
        return "retry"


class NeverDead(Retries):
    def send_back(self, group: str, unit: bytes, level: int, most: int, now_ms: int) -> str:
        return str(super().send_back(group, unit, level, 99, now_ms))


class WaitsInMemory(Retries):
    def __init__(self, *given: Any) -> None:
        super().__init__(*given)
        self.waiting: list[Any] = []

    def send_back(self, group: str, unit: bytes, level: int, most: int, now_ms: int) -> str:
        self.waiting.append(unit)
        return "retry"


class LooksAtAll(Pulls):
    def read(self, pull: Any) -> Any:
        queue, offset, units = (pull["topic"], pull["queue_id"]), pull["queue_offset"], []
        while offset < self.store.max_offset(*queue) and len(units) < pull["most"]:
            unit, offset = self.store.get(*queue, offset, 1)[0], offset + 1
            units += [unit] * self.wants(pull, unit)
        return units, offset


def many(lab: Lab) -> None:
    """More than one read brings, and the last of them alone is wanted."""
    lab.create_topic("orders", read_queue_nums=1, write_queue_nums=1)
    shop = lab.producer("shop")
    for number in range(70):
        shop.send(Message("orders", b"a book", tags="paid" if number == 69 else "new"))
    member = lab.push_consumer("billing", consume_from_where="CONSUME_FROM_FIRST_OFFSET")
    member.subscribe("orders", "paid")
    member.on_messages(lambda messages, context: "CONSUME_SUCCESS")
    member.start()
    lab.run_for("10s")


def test_pulls_may_look_at_more_than_one_read_brings() -> None:
    lab = play(many, parts=OwnParts(pulls=LooksAtAll))
    assert len(lab.deliveries("billing", absences=False)) == 1


class Unready(Retries):
    def look(self, now_ms: int) -> None:
        raise ValueError("not written yet")


@pytest.mark.parametrize(
    ("wrong", "says"),
    [
        ({"store": NumbersTheWholeStore}, "The first message of a queue has number 0"),
        ({"store": OffersBeforeDispatch}, "max_offset is one past the last message that dispatch"),
        ({"store": ForgetsToFlush}, "survives a power cut"),
        ({"store": BeginsAnew}, "A crash loses nothing acknowledged"),
        ({"store": ReadsBackwards}, "in the order of their numbers"),
        ({"pulls": StaysBehindTheFilter}, "one past the last message that was examined"),
        ({"pulls": LooksNoFurther}, "answered as soon as a wanted message"),
        ({"pulls": HoldsForEver}, "answered when its time is over"),
        ({"groups": MovesWithThePull}, "committed is the offset of the last commit"),
        ({"groups": KeepsInMemory}, "What was saved is there in the next life"),
        ({"groups": NobodyLeaves}, "members lists each client"),
        ({"retries": RetriesAtOnce}, "does not come before its time"),
        ({"retries": NeverDead}, "A message is dead when"),
        ({"retries": WaitsInMemory}, "Retries come"),
        ({"retries": Unready}, "ValueError: not written yet"),
        ({"handlers": {}}, "the six request codes"),
        ({"handlers": {**rocketmq_shape.HANDLERS, 310: lambda *_: (0, {"queueOffset": 7}, None)}}, "names the queueId"),
    ],
    ids=lambda one: next(iter(one.values())).__name__ if isinstance(one, dict) and "handlers" not in one else None,
)
def test_a_wrong_broker_stops_the_world_with_the_rule_it_breaks(wrong: dict[str, Any], says: str) -> None:
    with pytest.raises(BrokenPart) as stopped:
        played(of(rocketmq_shape, **wrong))
    assert says in str(stopped.value)


def test_handlers_alone_name_the_parts_they_need() -> None:
    with pytest.raises(UsageError, match="handlers need pulls, groups and retries"):
        Lab(parts=OwnParts(handlers=rocketmq_shape.HANDLERS))


def test_a_disk_stays_in_its_directory(tmp_path: Any) -> None:
    disk = Disk(RealFiles(), str(tmp_path))
    for name in ("/etc/passwd", "../outside", "log/../../outside", ""):
        with pytest.raises(UsageError, match="not the name of a file"):
            disk.load(name)
    disk.create("log/1", 8)
    with pytest.raises(UsageError, match="do not fit"):
        disk.write("log/1", 4, b"12345")
    disk.write("log/1", 3, b"12345")
    for at_once in (lambda: disk.read("log/1", 0, 1 << 20), lambda: disk.replace("small", bytes(1 << 20))):
        with pytest.raises(UsageError, match="at once"):
            at_once()
    assert (disk.read("log/1", 3, 9), disk.names("log"), disk.size("log/1")) == (b"12345", ["log/1"], 8)


@pytest.mark.parametrize("broker", [rocketmq_shape, dicts_and_lists, of_files], ids=lambda one: one.__name__[25:])
def test_leases_and_reminders_outlive_a_power_cut_on_a_learners_store(broker: Any) -> None:
    with Lab(seed=3, parts=of(broker, handlers=None), **SETTINGS) as lab:
        lab.create_topic("orders", read_queue_nums=1, write_queue_nums=1)
        shop = lab.producer("shop")
        shop.send(Message("orders", b"a book", keys="order-0"))
        shop.send(Message("orders", b"a book", keys="reminder", delay="40s"))
        consumer = lab.simple_consumer("billing", await_duration="1s")
        consumer.subscribe("orders")
        consumer.start()
        (order,) = consumer.receive(16, "20s")
        lab.run_for("3s")
        lab.power_off("broker-a")
        lab.run_for("5s")
        lab.start("broker-a")
        with contextlib.suppress(RemotingError):  # the connection of before
            consumer.receive(16, "10s")
        came: list[tuple[str, int]] = []
        for _ in range(60):
            for message in consumer.receive(16, "90s"):
                came.append((message.keys, message.reconsume_times))
                consumer.ack(message)
            lab.run_for("1s")
        assert {("order-0", 1), ("reminder", 0)} <= set(came)  # a crash may repeat one, as in RocketMQ
        assert order.keys == "order-0"
