"""Which files go and when: by hour, by a full disk, by command; queues and index follow; puts stop on a full disk."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from mqlab.rocketmq.machine.files import LAB_DISK_USED
from mqlab.rocketmq.wire.record import Record

NewRecord = Callable[..., Record]
HOUR = 3_600_000


def fill(world: Any, files: int, new_record: NewRecord) -> None:
    """Put messages, one a second, until so many log files are begun."""
    number = 0
    while len(world.store.commit_log.queue.mapped_files) < files:
        assert world.store.put(new_record(number, queue_id=number % 2)).is_ok
        world.clock.advance(1_000)
        number += 1
    for queue_id in (0, 1):
        world.store.put(new_record(number, queue_id=queue_id))
    world.settle()


def first_file(world: Any) -> int:
    return int(world.store.min_physical_offset) // 4096


def test_nothing_is_deleted_outside_the_hour_however_old(world: Any, new_record: NewRecord) -> None:
    fill(world, 4, new_record)
    world.clock.advance(73 * HOUR)  # 22:13 + 73 h = 23:13
    assert first_file(world) == 0
    world.clock.advance(5 * HOUR)  # past 04:00
    assert first_file(world) == 3
    assert "store.cleaned" in [kind for kind, _ in world.notes]


def test_in_the_hour_only_what_is_older_than_72_hours(world: Any, new_record: NewRecord) -> None:
    fill(world, 3, new_record)
    world.clock.advance(76 * HOUR)
    fill(world, 5, new_record)
    assert first_file(world) == 0
    world.clock.advance(3 * HOUR)  # 05:13, three days after the first files
    assert first_file(world) == 2
    assert "store.clean" in world.clock.armed()
    world.clock.advance(100 * HOUR)
    assert first_file(world) == 4  # never the last file
    assert world.clock.armed() == []


def test_queues_and_index_follow_the_log(world: Any, new_record: NewRecord) -> None:
    fill(world, 8, new_record)
    world.settle()
    store = world.store
    index_files = len(store.index.index_files)
    world.files.disk_used = 0.86
    store.retention.clean()
    minimum = store.min_physical_offset
    assert minimum == 7 * 4096
    for queue_id in (0, 1):
        queue = store.queues.find("订单", queue_id)
        first = queue.unit(queue.min_queue_offset)
        before = queue.unit(queue.min_queue_offset - 1)
        assert first is not None and first[0] >= minimum
        assert before is None or before[0] < minimum
        assert queue.files.mapped_files[0].start_offset // 20 + 10 >= queue.min_queue_offset
        assert store.get("订单", queue_id, 0).status == "OFFSET_TOO_SMALL"
        assert store.get("订单", queue_id, 0).next_begin_offset == queue.min_queue_offset
        assert store.get("订单", queue_id, queue.min_queue_offset).status == "FOUND"
    assert len(store.index.index_files) < index_files
    assert not store.query("订单", "k0").records
    store.shutdown()
    assert world.start().min_physical_offset == minimum
    assert world.store.min_offset("订单", 0) == store.queues.find("订单", 0).min_queue_offset


@pytest.mark.parametrize(
    "used, old_enough, deleted, accepts",
    [
        (0.74, True, 0, True),
        (0.76, True, 3, True),
        (0.76, False, 0, True),
        (0.86, False, 3, True),
        (0.91, False, 3, False),
    ],
)
def test_a_disk_that_fills(
    world: Any, new_record: NewRecord, used: float, old_enough: bool, deleted: int, accepts: bool
) -> None:
    fill(world, 4, new_record)
    if old_enough:
        world.clock.advance(73 * HOUR)
    world.files.disk_used = used
    world.store.retention.arm()
    world.clock.advance(70_000)
    assert first_file(world) == deleted
    assert world.store.put(new_record(1)).status == ("PUT_OK" if accepts else "SERVICE_NOT_AVAILABLE")
    assert world.store.admission.is_writeable == accepts
    world.files.disk_used = 0.5
    world.clock.advance(20_000)
    assert world.store.put(new_record(1)).is_ok


def test_without_force_age_counts_even_on_a_full_disk(new_world: Any, new_record: NewRecord) -> None:
    world = new_world(clean_file_forcibly_enable=False)
    world.start()
    fill(world, 4, new_record)
    world.files.disk_used = 0.95
    report = world.store.retention.clean()
    assert report.reasons == ("space",) and report.commit_log_files == []
    assert not world.store.admission.is_writeable


def test_at_most_ten_files_a_round(world: Any, new_record: NewRecord) -> None:
    fill(world, 14, new_record)
    world.files.disk_used = 0.99
    assert len(world.store.retention.clean().commit_log_files) == 10
    assert len(world.store.retention.clean().commit_log_files) == 3


def test_an_admins_command_deletes_old_files_at_any_hour(world: Any, new_record: NewRecord) -> None:
    fill(world, 4, new_record)
    world.clock.advance(73 * HOUR)
    world.store.retention.delete_manually()
    world.clock.advance(10_000)
    assert first_file(world) == 3


def test_hours_are_local_and_may_be_several(new_world: Any, new_record: NewRecord) -> None:
    world = new_world(delete_when="04;23", utc_offset_ms=2 * HOUR, file_reserved_time=1)
    world.start()
    fill(world, 3, new_record)  # 22:13 UTC is 00:13 here
    world.clock.advance(3 * HOUR)
    assert first_file(world) == 0
    world.clock.advance(HOUR)
    assert first_file(world) == 2


def test_a_queue_of_deleted_messages_survives_until_it_is_asked_to_go(world: Any, new_record: NewRecord) -> None:
    for _ in range(3):
        world.store.put(new_record(0, topic="old"))
    fill(world, 4, new_record)
    world.settle()
    world.files.disk_used = 0.99
    world.store.retention.clean()
    assert (world.store.min_offset("old", 0), world.store.max_offset("old", 0)) == (3, 3)
    world.store.shutdown()
    world.files.disk_used = LAB_DISK_USED
    store = world.start()
    assert (store.min_offset("old", 0), store.max_offset("old", 0)) == (3, 3)  # its numbering goes on
    assert store.put(new_record(1, topic="old")).queue_offset == 3
    world.settle()
    assert store.retention.clean_expired_queues() == []
    fill(world, 5, new_record)
    world.files.disk_used = 0.99
    store.retention.clean()
    assert store.retention.clean_expired_queues() == [("old", 0)]
    assert "old" not in store.topics()


def test_a_reader_keeps_the_bytes_it_was_given(world: Any, new_record: NewRecord) -> None:
    fill(world, 4, new_record)
    world.settle()
    result = world.store.get("订单", 0, 0)
    view = world.store.commit_log.queue.mapped_files[0].view[:100]
    before = bytes(view)
    world.files.disk_used = 0.99
    world.store.retention.clean()
    assert bytes(view) == before
    assert result.records()[0].queue_offset == 0
