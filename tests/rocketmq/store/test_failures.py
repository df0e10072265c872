"""Parts that no answer needs: each that fails is reported, refuses new messages, and works again by itself."""

from __future__ import annotations

import errno
from collections.abc import Callable
from typing import Any

import pytest

from mqlab.errors import PartFailed
from mqlab.rocketmq.machine.files import RealFiles
from mqlab.rocketmq.store.failures import Failures
from mqlab.rocketmq.store.mapped_file import MappedFile
from mqlab.rocketmq.wire.record import Record

NewRecord = Callable[..., Record]
NO_DESCRIPTORS = OSError(errno.EMFILE, "Too many open files")
REFUSED = "SERVICE_NOT_AVAILABLE"


def parts(world: Any, kind: str) -> list[str]:
    return [values["part"] for noted, values in world.notes if noted == kind]


@pytest.mark.parametrize("error", [NO_DESCRIPTORS, MemoryError()], ids=["descriptors", "memory"])
def test_a_dispatch_that_fails_stops_the_store_and_continues_where_it_was(
    new_world: Any, new_record: NewRecord, error: Exception
) -> None:
    world = new_world()
    store = world.start()
    arrived: list[tuple[int, int]] = []
    store.on_arrival = lambda topic, queue_id, after, *more: arrived.append((queue_id, after - 1))
    world.files.refuse_open = None
    assert store.put(new_record(1)).is_ok
    world.settle()
    world.files.refuse_open = error
    assert store.put(new_record(2)).is_ok  # its queue has a file
    assert store.put(new_record(3, queue_id=1)).is_ok  # needs a new one: that is not known yet
    world.clock.advance(5)
    refused = store.put(new_record(4))
    assert (refused.status, f"store.dispatch failed: {type(error).__name__}" in refused.reason) == (REFUSED, True)
    assert (store.max_offset("订单", 0), store.max_offset("订单", 1)) == (2, 0)
    world.clock.advance(60_000)
    assert parts(world, "part.failed").count("store.dispatch") == 1  # once, however often it is tried again
    world.files.refuse_open = None
    world.clock.advance(1_000)
    assert "store.dispatch" in parts(world, "part.recovered")
    assert store.put(new_record(5, queue_id=1)).is_ok
    world.settle()
    assert arrived == [(0, 0), (0, 1), (1, 0), (1, 1)]  # each message once, in the order of the log
    assert [len(store.query("订单", f"k{number}").messages()) for number in (2, 3, 5)] == [1, 1, 1]


@pytest.mark.parametrize(
    ("part", "settings", "wait_ms"),
    [
        ("commitlog.flush", {"flush_disk_type": "SYNC_FLUSH"}, 10),
        ("commitlog.flush", {}, 20_000),
        ("consumequeue.flush", {}, 70_000),
    ],
)
def test_a_flush_that_fails_stops_the_store_until_it_works(
    new_world: Any, new_record: NewRecord, part: str, settings: dict[str, Any], wait_ms: int
) -> None:
    world = new_world(**settings)
    store = world.start()
    assert store.put(new_record(1)).is_ok
    if part == "consumequeue.flush":
        world.settle()
        store.flusher.sync_log()
    world.files.refuse_sync = OSError(errno.EIO, "Input/output error")
    world.clock.advance(wait_ms)
    assert part in parts(world, "part.failed")
    assert store.put(new_record(2)).status == REFUSED
    world.files.refuse_sync = None
    world.clock.advance(3_000)
    assert not store.failures
    assert store.put(new_record(3)).is_ok
    assert store.flushed_offset > 0


def test_waiting_puts_are_answered_when_the_flush_works_again(new_world: Any, new_record: NewRecord) -> None:
    world = new_world(flush_disk_type="SYNC_FLUSH")
    store = world.start()
    world.files.refuse_sync = OSError(errno.EIO, "Input/output error")
    answer = store.wait_durable(store.put(new_record(1)))
    world.clock.advance(1_500)
    assert not answer.done
    world.files.refuse_sync = None
    world.clock.advance(1_000)
    assert answer.value == "PUT_OK"
    following = store.wait_durable(store.put(new_record(2)))
    world.clock.advance(2)  # no time-out of the failed one is in its way
    assert following.value == "PUT_OK"


@pytest.mark.parametrize("error", [NO_DESCRIPTORS, MemoryError()], ids=["descriptors", "memory"])
def test_a_log_without_a_next_file_takes_nothing_until_there_is_one(new_world: Any, error: Exception) -> None:
    world = new_world()
    store = world.start()
    store.put(Record("t", bytes(3_000)))
    world.settle()
    store.commit_log.queue._ahead = None
    world.files.refuse_open = error
    assert store.put(Record("t", bytes(3_000))).status == "CREATE_MAPPED_FILE_FAILED"
    assert store.put(Record("t", b"small enough for the first file")).status == REFUSED
    world.files.refuse_open = None
    world.clock.advance(1_000)
    assert store.put(Record("t", bytes(3_000))).is_ok
    world.settle()
    assert store.max_offset("t", 0) == 2


def test_retention_that_fails_cleans_again(new_world: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    world = new_world(file_reserved_time=0, clean_resource_interval=10_000)
    store = world.start()
    for _ in range(4):
        store.put(Record("t", bytes(3_000)))
    world.settle()
    remove = world.files.remove
    monkeypatch.setattr(world.files, "remove", lambda path: (_ for _ in ()).throw(OSError(errno.EIO, path)))
    for _ in range(24 * 60):  # up to the hour of deletion
        world.clock.advance(0 if store.failures else 60_000)
    assert "store.clean" in store.failures.reasons
    assert store.min_physical_offset == 0
    monkeypatch.setattr(world.files, "remove", remove)
    world.clock.advance(1_000)
    assert not store.failures
    assert store.min_physical_offset > 0


def test_a_store_on_a_failing_disk_can_be_closed(new_world: Any, new_record: NewRecord) -> None:
    world = new_world()
    store = world.start()
    store.put(new_record(1))
    world.files.refuse_sync = OSError(errno.EIO, "Input/output error")
    store.shutdown()
    assert world.files.exists(f"{store.directory}/abort")  # the next start recovers as after a crash
    world.files.refuse_sync = None
    again = world.start()  # the lock was released
    world.settle()
    assert again.max_offset("订单", 0) == 1


def test_a_unit_whose_second_key_needs_a_new_index_file_has_each_entry_once(new_world: Any) -> None:
    world = new_world(max_index_num=4)  # three entries a file
    store = world.start()
    for number in range(2):
        store.put(Record("t", b"", properties=f"KEYS\x01k{number}\x02".encode()))
    world.settle()
    world.files.refuse_open = NO_DESCRIPTORS
    store.put(Record("t", b"", properties=b"KEYS\x01first second\x02"))
    world.clock.advance(5_000)
    assert "store.dispatch" in store.failures.reasons
    world.files.refuse_open = None
    world.clock.advance(1_000)
    assert store.index is not None
    assert [len(store.index.query("t", key)) for key in ("k0", "k1", "first", "second")] == [1, 1, 1, 1]


def test_pages_whose_flush_failed_are_written_again(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    mapped = MappedFile(RealFiles(), str(tmp_path), 0, 8192)
    mapped.append(b"message")
    mapping = mapped._map()
    written: list[tuple[int, bytes]] = []
    refusing: list[OSError] = [OSError(errno.EIO, "Input/output error")]

    class Watched:
        view = mapping.view

        def write(self, position: int, data: bytes) -> None:
            written.append((position, bytes(data)))

        def flush(self, start: int, end: int) -> None:
            if refusing:
                raise refusing.pop()

    monkeypatch.setattr(mapped, "_mapping", Watched())
    with pytest.raises(OSError, match="Input/output"):
        mapped.flush()
    assert (mapped.flushed_position, written) == (0, [])
    mapped.flush()
    assert (mapped.flushed_position, written) == (7, [(0, b"message")])  # else a system may sync nothing, and say so


def test_a_defect_is_raised_and_noted_and_tried_again(new_world: Any) -> None:
    world = new_world()
    notes: list[str] = []
    failures = Failures(world.clock, lambda kind, **values: notes.append(kind))
    calls: list[int] = []

    def broken() -> None:
        calls.append(1)
        if len(calls) == 1:
            raise KeyError("a defect")

    failures.clock.call_later(5, broken, "store.clean")
    with pytest.raises(KeyError):
        world.clock.advance(10)
    with pytest.raises(PartFailed, match=r"store\.clean cannot be written: KeyError"):
        failures.must_work("store.clean")
    world.clock.advance(1_010)
    assert (notes, len(calls), len(failures)) == (["part.failed", "part.recovered"], 2, 0)
