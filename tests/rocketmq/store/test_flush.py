"""What is durable when: group commit, timed flushes, the checkpoint, a disk that hangs or fails."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from mqlab.rocketmq.store.checkpoint import Checkpoint
from mqlab.rocketmq.wire.record import Record

NewRecord = Callable[..., Record]
WIDE = {"mapped_file_size_commit_log": 1 << 20, "mapped_file_size_consume_queue": 20_000}


def answers_of(world: Any, results: list[Any]) -> list[str | None]:
    promises = [world.store.wait_durable(result) for result in results]
    world.answers = [None] * len(promises)
    for at, promise in enumerate(promises):
        promise.then(lambda status, at=at: world.answers.__setitem__(at, status))
    return list(world.answers)


def test_asynchronous_flush_answers_at_once(world: Any, new_record: NewRecord) -> None:
    assert answers_of(world, [world.store.put(new_record(1))]) == ["PUT_OK"]
    assert world.store.flushed_offset == 0


def test_group_commit_flushes_once_for_all_that_wait(new_world: Any, new_record: NewRecord) -> None:
    world = new_world(flush_disk_type="SYNC_FLUSH")
    store = world.start()
    results = [store.put(new_record(number)) for number in range(5)]
    assert answers_of(world, results) == [None] * 5
    assert world.clock.armed().count("store.group_commit") == 1
    world.clock.advance(0)
    assert world.answers == ["PUT_OK"] * 5
    assert [kind for kind, _ in world.notes].count("store.flushed") == 1
    assert store.flushed_offset == store.max_physical_offset
    assert answers_of(world, results) == ["PUT_OK"] * 5  # and at once when it is on the disk already


def test_a_message_that_need_not_wait_does_not(new_world: Any, new_record: NewRecord) -> None:
    world = new_world(flush_disk_type="SYNC_FLUSH")
    store = world.start()
    assert answers_of(world, [store.put(new_record(1, properties=b"WAIT\x01false\x02"))]) == ["PUT_OK"]
    assert store.flushed_offset == 0
    world.clock.advance(0)
    assert store.flushed_offset == store.max_physical_offset  # flushed all the same


def test_under_sync_flush_only_flushed_messages_are_dispatched(new_world: Any, new_record: NewRecord) -> None:
    world = new_world(flush_disk_type="SYNC_FLUSH")
    store = world.start()
    store.put(new_record(1))
    assert store.confirm_offset == 0 and store.dispatch() == 0
    world.clock.advance(0)
    assert store.confirm_offset == store.max_physical_offset
    world.clock.advance(1)
    assert store.max_offset("订单", 0) == 1
    store.shutdown()
    store = world.start(flush_disk_type="SYNC_FLUSH", read_un_committed=True)
    store.put(new_record(2))
    assert store.dispatch() == 1


def test_what_is_durable_can_be_read_at_each_moment(new_world: Any, new_record: NewRecord) -> None:
    world = new_world(flush_disk_type="SYNC_FLUSH", **WIDE)
    store = world.start()
    end = store.put(new_record(1)).end_offset
    assert store.flushed_offset == 0
    world.settle()
    assert (store.flushed_offset, store.queues.find("订单", 0).files.flushed_where) == (end, 0)
    stored = Checkpoint(world.files, store.checkpoint.path)
    assert (stored.physic_msg_timestamp, stored.logics_msg_timestamp) == (0, 0)
    world.clock.advance(60_000)
    assert store.queues.find("订单", 0).files.flushed_where == 20
    stored = Checkpoint(world.files, store.checkpoint.path)
    assert stored.logics_msg_timestamp == store.store_time_at("订单", 0, 0)


def test_a_disk_that_hangs_makes_puts_time_out(new_world: Any, new_record: NewRecord) -> None:
    world = new_world(flush_disk_type="SYNC_FLUSH")
    store = world.start()
    store.flusher.stalled = True
    assert answers_of(world, [store.put(new_record(1))]) == [None]
    world.clock.advance(4_999)
    assert world.answers == [None]
    world.clock.advance(1)
    assert world.answers == ["FLUSH_DISK_TIMEOUT"]
    assert store.max_physical_offset > 0  # stored all the same
    assert answers_of(world, [store.put(new_record(2))]) == [None]
    world.clock.advance(100)
    store.flusher.resume()
    world.clock.advance(0)
    assert world.answers == ["PUT_OK"]
    assert store.flushed_offset == store.max_physical_offset


def test_a_disk_that_fails_stops_the_store(new_world: Any, new_record: NewRecord) -> None:
    world = new_world(flush_disk_type="SYNC_FLUSH")
    store = world.start()
    world.files.refuse_sync = OSError(5, "Input/output error")
    assert answers_of(world, [store.put(new_record(1))]) == [None]
    world.clock.advance(5_000)
    assert world.answers == ["FLUSH_DISK_TIMEOUT"]
    assert store.flushed_offset == 0
    assert store.put(new_record(2)).status == "SERVICE_NOT_AVAILABLE"
    assert ("part.failed", "commitlog.flush") in [(kind, values.get("part")) for kind, values in world.notes]


def test_the_sharp_edge_of_a_flush_error_that_counts_as_done(new_world: Any, new_record: NewRecord) -> None:
    world = new_world(flush_disk_type="SYNC_FLUSH", sharp_edges=("flush_error_ignored",))
    store = world.start()
    world.files.refuse_sync = OSError(5, "Input/output error")
    answers_of(world, [store.put(new_record(1))])
    world.clock.advance(0)
    assert world.answers == ["PUT_OK"]
    world.files.refuse_sync = None
    world.power_cut()
    assert world.start().max_physical_offset == 0  # acknowledged, and gone


def test_timed_flush_looks_at_dirty_pages_and_each_ten_seconds_at_all(new_world: Any) -> None:
    world = new_world(**WIDE)
    store = world.start()
    store.put(Record("t", bytes(4000)))
    world.clock.advance(9_999)
    assert store.flushed_offset == 0  # one page is not enough
    world.clock.advance(1)
    assert store.flushed_offset == store.max_physical_offset
    world.clock.advance(100)
    for _ in range(5):
        store.put(Record("t", bytes(4000)))
    world.clock.advance(399)
    assert store.flushed_offset < store.max_physical_offset
    world.clock.advance(1)  # the next 500 ms on the grid: five pages are
    assert store.flushed_offset == store.max_physical_offset


def test_a_store_at_rest_has_no_timer(new_world: Any, new_record: NewRecord) -> None:
    world = new_world(**WIDE)
    store = world.start()
    assert world.clock.armed() == []
    store.put(new_record(1))
    assert set(world.clock.armed()) == {"store.dispatch", "store.flush"}
    world.clock.advance(200_000)
    assert world.clock.armed() == []
    assert [item for item in world.files.unsynced() if not item.path.endswith("/00000000000001048576")] == []


def test_queues_are_flushed_by_pages_and_each_minute_then_the_checkpoint(new_world: Any, new_record: NewRecord) -> None:
    world = new_world(**WIDE)
    store = world.start()
    queue_path = f"{world.directory}/consumequeue/订单/0/00000000000000000000"
    dirty = lambda: any(item.path.endswith(queue_path[-40:]) for item in world.files.unsynced())  # noqa: E731
    store.put(new_record(1))
    world.settle()
    stored_at = store.store_time_at("订单", 0, 0)
    world.clock.advance(59_000)
    assert dirty()
    assert on_disk(world).physic_msg_timestamp == stored_at  # the log was flushed after ten seconds
    assert on_disk(world).logics_msg_timestamp == 0  # the queue was not: the checkpoint must not say so
    world.clock.advance(1_000)
    assert not dirty()
    assert on_disk(world).logics_msg_timestamp == stored_at
    for number in range(300):
        store.put(new_record(number))
    world.settle()
    world.clock.advance(1_000)
    assert dirty()  # one page is full, one begun
    for number in range(300):
        store.put(new_record(number))
    world.settle()
    world.clock.advance(1_000)
    assert store.queues.find("订单", 0).files.flushed_where == 601 * 20


def on_disk(world: Any) -> Checkpoint:
    return Checkpoint(world.files, f"{world.directory}/checkpoint")


def test_the_sharp_edge_of_a_checkpoint_ahead_of_the_queues(new_world: Any, new_record: NewRecord) -> None:
    world = new_world(**WIDE, sharp_edges=("checkpoint_ahead_of_queues",))
    store = world.start()
    store.put(new_record(1))
    world.settle()
    world.clock.advance(1_000)
    assert on_disk(world).logics_msg_timestamp == store.store_time_at("订单", 0, 0)
    assert any("consumequeue" in item.path for item in world.files.unsynced())


def test_a_full_queue_file_is_synced_when_the_next_begins(world: Any, new_record: NewRecord) -> None:
    for number in range(11):
        world.store.put(new_record(number))
    world.settle()
    files = world.store.queues.find("订单", 0).files.mapped_files
    assert [mapped.flushed_position for mapped in files] == [200, 0]


@pytest.mark.parametrize("flush_disk_type", ["ASYNC_FLUSH", "SYNC_FLUSH"])
def test_a_clean_stop_leaves_nothing_unsynced(new_world: Any, new_record: NewRecord, flush_disk_type: str) -> None:
    world = new_world(flush_disk_type=flush_disk_type)
    store = world.start()
    for number in range(40):
        store.put(new_record(number, queue_id=number % 3))
    store.shutdown()
    assert world.files.unsynced() == []
    assert not world.files.exists(f"{world.directory}/abort")
    before = world.files.read(f"{world.directory}/checkpoint")
    world.power_cut()
    assert world.start(flush_disk_type=flush_disk_type).recovery_report.clean_exit
    assert world.files.read(f"{world.directory}/checkpoint")[:24] == before[:24]
    assert [world.store.max_offset("订单", queue_id) for queue_id in range(3)] == [14, 13, 13]
