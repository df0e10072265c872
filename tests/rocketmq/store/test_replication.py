"""A log copied in blocks into another store, and puts that wait for copies."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from mqlab.rocketmq.store.put_result import FLUSH_DISK_TIMEOUT, FLUSH_SLAVE_TIMEOUT, PUT_OK

NewWorld = Callable[..., Any]


def filled(world: Any, new_record: Callable[..., Any], count: int) -> Any:
    store = world.start(broker_role="SYNC_MASTER")
    for number in range(count):
        assert store.put(new_record(number, queue_id=number % 2)).is_ok
    world.settle()
    return store


def log_bytes(store: Any) -> bytes:
    """What the log holds from its first file on."""
    log, found, at = store.commit_log, b"", store.commit_log.min_offset
    while block := log.block_from(at, 1 << 20):
        found += block
        at += len(block)
    return found


def copy_all(master: Any, slave: Any, start: int, most: int) -> None:
    at = start
    while block := master.commit_log.block_from(at, most):
        assert slave.append_block(at, block)
        at += len(block)


@pytest.mark.parametrize("most", [1, 7, 100, 32_768])
def test_blocks_of_any_size_make_the_same_log_queues_and_index(
    new_world: NewWorld, new_record: Callable[..., Any], most: int
) -> None:
    master = filled(new_world(), new_record, 60 if most > 1 else 30)
    assert len(master.commit_log.queue.mapped_files) > 1  # fillers are copied too
    world = new_world()
    slave = world.start(broker_role="SLAVE")
    copy_all(master, slave, 0, most)
    world.settle()
    assert log_bytes(slave) == log_bytes(master)
    assert slave.dispatch_behind_bytes == 0
    for queue_id in range(2):
        mine, theirs = (store.get("订单", queue_id=queue_id, queue_offset=0, max_nums=32) for store in (master, slave))
        assert theirs.units == mine.units and mine.units
    assert len(slave.query("订单", key="common", max_nums=64)) == len(master.query("订单", key="common", max_nums=64))


def test_a_block_ends_with_its_file(new_world: NewWorld, new_record: Callable[..., Any]) -> None:
    master = filled(new_world(), new_record, 60)
    log = master.commit_log
    assert len(log.block_from(0, 1 << 20)) == 4096
    assert len(log.block_from(4095, 1 << 20)) == 1
    assert len(log.block_from(4096, 100)) == 100
    for nowhere in (-1, log.max_offset, log.max_offset + 1, 1 << 40):
        assert log.block_from(nowhere, 100) == b""


def test_files_of_a_slave_have_the_names_of_the_masters(new_world: NewWorld, new_record: Callable[..., Any]) -> None:
    master = filled(new_world(), new_record, 60)
    last = master.commit_log.queue.mapped_files[-1].start_offset
    world = new_world()
    slave = world.start(broker_role="SLAVE")
    copy_all(master, slave, last, 500)
    world.settle()
    assert slave.min_physical_offset == last and slave.max_physical_offset == master.max_physical_offset
    assert slave.min_offset("订单", 0) > 0
    assert slave.max_offset("订单", 0) == master.max_offset("订单", 0)


def test_half_a_message_waits_for_its_other_half(new_world: NewWorld, new_record: Callable[..., Any]) -> None:
    master = filled(new_world(), new_record, 2)
    whole = log_bytes(master)
    for cut in range(1, len(whole) // 2):
        world = new_world()
        slave = world.start(broker_role="SLAVE")
        assert slave.append_block(0, whole[:cut])
        world.settle()
        assert slave.max_offset("订单", 0) == 0 and slave.dispatch_behind_bytes == cut
        assert slave.append_block(cut, whole[cut:])
        world.settle()
        assert (slave.max_offset("订单", 0), slave.max_offset("订单", 1)) == (1, 1)
        assert slave.dispatch_behind_bytes == 0
        world.kill()


def test_a_slave_that_died_in_the_middle_of_a_message_cuts_it_and_goes_on(
    new_world: NewWorld, new_record: Callable[..., Any]
) -> None:
    master = filled(new_world(), new_record, 12)
    world = new_world()
    slave = world.start(broker_role="SLAVE")
    whole = log_bytes(master)
    assert slave.append_block(0, whole[:1000])
    world.settle()
    complete = slave.dispatcher.reput_from
    assert 0 < complete < 1000
    world.kill()
    slave = world.start(broker_role="SLAVE")
    assert slave.max_physical_offset == complete
    copy_all(master, slave, complete, 300)
    world.settle()
    assert log_bytes(slave) == whole
    assert slave.max_offset("订单", 0) == 6


def test_after_a_power_cut_a_slave_has_what_it_flushed(new_world: NewWorld, new_record: Callable[..., Any]) -> None:
    master = filled(new_world(), new_record, 12)
    world = new_world(flush_disk_type="SYNC_FLUSH", broker_role="SLAVE")
    slave = world.start()
    copy_all(master, slave, 0, 512)
    world.settle()
    assert slave.flushed_offset == slave.max_physical_offset == master.max_physical_offset
    world.clock.advance(2_000)
    assert slave.checkpoint.physic_msg_timestamp > 0
    world.power_cut()
    slave = world.start(flush_disk_type="SYNC_FLUSH", broker_role="SLAVE")
    assert log_bytes(slave) == log_bytes(master)
    assert slave.max_offset("订单", 1) == 6


def test_what_does_not_belong_at_the_end_is_refused_and_changes_nothing(
    new_world: NewWorld, new_record: Callable[..., Any]
) -> None:
    world = new_world()
    slave = world.start(broker_role="SLAVE")
    assert not slave.append_block(5, b"x" * 10)  # an empty log begins with a file's first byte
    assert slave.max_physical_offset == 0
    assert slave.append_block(8192, b"\0" * 4000)
    assert not slave.append_block(8192, b"y")
    assert not slave.append_block(8192 + 4000, b"y" * 97)  # crosses the file's end
    assert slave.max_physical_offset == 8192 + 4000
    assert [values["where"] for kind, values in world.notes if kind == "store.problem"] == ["replication"] * 3
    assert slave.put(new_record(1)).status == "SERVICE_NOT_AVAILABLE"


class Waiting:
    """A master whose slaves have written up to ``acks``."""

    def __init__(self, world: Any, **settings: Any) -> None:
        self.world = world
        self.store = world.start(broker_role="SYNC_MASTER", **settings)
        self.acks: list[int] = []
        self.woken = 0
        self.store.replica_waits.copies_at = lambda end: 1 + sum(ack >= end for ack in self.acks)
        self.store.replica_waits.on_wait = self._wake

    def _wake(self) -> None:
        self.woken += 1

    def put(self, record: Any) -> Any:
        result = self.store.put(record)
        return result, self.store.wait_durable(result)


def test_who_waits_for_copies_and_who_does_not(new_world: NewWorld, new_record: Callable[..., Any]) -> None:
    for settings, waits in (
        ({"in_sync_replicas": 1}, False),
        ({"in_sync_replicas": 0}, False),
        ({"in_sync_replicas": 2}, True),
    ):
        master = Waiting(new_world(), **settings)
        _, answer = master.put(new_record(1))
        assert answer.done is not waits
        assert master.woken == waits
        _, hurried = master.put(new_record(2, properties=b"WAIT\x01false\x02"))
        assert hurried.value == PUT_OK
    store = new_world().start(broker_role="ASYNC_MASTER", in_sync_replicas=2)
    assert store.wait_durable(store.put(new_record(1))).value == PUT_OK


def test_the_last_byte_of_the_message_counts(new_world: NewWorld, new_record: Callable[..., Any]) -> None:
    master = Waiting(new_world(), in_sync_replicas=2)
    result, answer = master.put(new_record(1))
    for ack, done in ((result.end_offset - 1, False), (result.end_offset, True)):
        master.acks = [ack]
        master.store.replica_waits.look()
        assert answer.done is done
    assert answer.value == PUT_OK
    assert master.world.clock.armed().count("ha.slave_timeout") == 0


def test_unmet_puts_fail_each_at_its_own_time(new_world: NewWorld, new_record: Callable[..., Any]) -> None:
    master = Waiting(new_world(), in_sync_replicas=3, slave_timeout=500)
    answers, at = [], {}
    for number in range(4):
        answers.append(master.put(new_record(number))[1])
        master.world.clock.advance(100)
    master.acks = [1 << 40]  # one slave is not two
    for elapsed in range(400, 1_000, 50):
        for number, answer in enumerate(answers):
            if answer.done:
                at.setdefault(number, (elapsed, answer.value))
        master.world.clock.advance(50)
    assert at == {number: (500 + 100 * number, FLUSH_SLAVE_TIMEOUT) for number in range(4)}
    assert master.store.max_offset("订单", 0) == 4  # stored and visible all the same


def test_two_connections_count_as_two_copies(new_world: NewWorld, new_record: Callable[..., Any]) -> None:
    master = Waiting(new_world(), in_sync_replicas=3)
    _, answer = master.put(new_record(1))
    master.acks = [1 << 40, 1 << 40]
    master.store.replica_waits.look()
    assert answer.value == PUT_OK


@pytest.mark.parametrize(
    ("disk_hangs", "slave_is_there", "expected"),
    [
        (False, True, PUT_OK),
        (True, True, FLUSH_DISK_TIMEOUT),
        (False, False, FLUSH_SLAVE_TIMEOUT),
        (True, False, FLUSH_SLAVE_TIMEOUT),
    ],
)
def test_a_failed_flush_wins_over_ok_and_a_missing_copy_over_both(
    new_world: NewWorld, new_record: Callable[..., Any], disk_hangs: bool, slave_is_there: bool, expected: str
) -> None:
    master = Waiting(new_world(), in_sync_replicas=2, flush_disk_type="SYNC_FLUSH")
    master.store.flusher.stalled = disk_hangs
    master.acks = [1 << 40] * slave_is_there
    _, answer = master.put(new_record(1))
    master.world.clock.advance(5_001)
    assert answer.value == expected


def test_a_batch_waits_for_its_last_message(new_world: NewWorld, new_record: Callable[..., Any]) -> None:
    master = Waiting(new_world(), in_sync_replicas=2)
    result = master.store.put_batch([new_record(number) for number in range(3)])
    answer = master.store.wait_durable(result)
    master.acks = [result.end_offset - 1]
    master.store.replica_waits.look()
    assert not answer.done
    master.acks = [result.end_offset]
    master.store.replica_waits.look()
    assert answer.value == PUT_OK
