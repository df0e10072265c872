"""RocketMQ's sharp edges: what happens by default, and what happened there (``sharp_edges`` brings each back)."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from mqlab.errors import StoreError, UsageError
from mqlab.rocketmq.store import MessageStore
from mqlab.rocketmq.store.config import SHARP_EDGES
from mqlab.rocketmq.wire.record import Record, encode
from mqlab.rocketmq.wire.units import PREBLANK

NewRecord = Callable[..., Record]


def put(world: Any, count: int, new_record: NewRecord, **fields: Any) -> None:
    for number in range(count):
        assert world.store.put(new_record(number, **fields)).is_ok
    world.settle()


def keys(world: Any, queue_id: int = 0, topic: str = "订单") -> list[str]:
    found: list[str] = []
    offset = world.store.min_offset(topic, queue_id)
    while offset < world.store.max_offset(topic, queue_id):
        result = world.store.get(topic, queue_id, offset)
        found += [record.property_map["KEYS"].split()[0] for record in result.records()]
        offset = result.next_begin_offset
    return found


def tree(directory: str) -> dict[str, bytes]:
    root = Path(directory)
    files = [path for path in sorted(root.rglob("*")) if path.is_file() and path.name != "lock"]
    return {str(path.relative_to(root)): path.read_bytes() for path in files}  # reading "lock" would drop the lock


def test_a_second_store_is_refused_before_anything_is_changed(world: Any, new_record: NewRecord) -> None:
    put(world, 3, new_record)
    Path(world.directory, "consumequeue/订单/0", f"{200:020}").write_bytes(b"")  # would be deleted by a load
    before = tree(world.directory)
    with pytest.raises(StoreError, match="another store has this directory open"):
        MessageStore.open(world.directory)
    script = f"from mqlab.rocketmq.store import MessageStore; MessageStore.open({world.directory!r})"
    root = Path(__file__).parents[3]
    outside = subprocess.run([sys.executable, "-c", script], cwd=root, capture_output=True, text=True, check=False)
    assert "another store has this directory open" in outside.stderr
    assert tree(world.directory) == before


def test_edge_lock_after_recovery(world: Any, new_record: NewRecord) -> None:
    put(world, 3, new_record)
    Path(world.directory, "consumequeue/订单/0", f"{200:020}").write_bytes(b"")
    store = MessageStore(
        world.directory,
        files=type(world.files)(),
        clock=world.clock,
        config=type(world.config)(sharp_edges=("lock_after_recovery",)),
    )
    store.load()
    assert not world.files.exists(f"{world.directory}/consumequeue/订单/0/{200:020}")  # changed already
    with pytest.raises(StoreError, match="locked"):
        store.start()


def clean_stop_with_dispatch_behind(world: Any, new_record: NewRecord) -> None:
    put(world, 3, new_record)
    world.store.put(new_record(3))
    world.store.flusher.sync_all()
    world.kill()
    world.files.remove(f"{world.directory}/abort")


def test_the_first_undispatched_message_is_not_forgotten(world: Any, new_record: NewRecord) -> None:
    clean_stop_with_dispatch_behind(world, new_record)
    world.start()
    assert keys(world) == ["k0", "k1", "k2", "k3"]


def test_edge_normal_recovery_off_by_one(world: Any, new_record: NewRecord) -> None:
    clean_stop_with_dispatch_behind(world, new_record)
    world.start(sharp_edges=("normal_recovery_off_by_one",))
    assert keys(world) == ["k0", "k1", "k2"]
    assert world.store.put(new_record(4)).queue_offset == 3  # the same offset a second time


def crash_with_a_stale_message(world: Any, new_record: NewRecord, **settings: Any) -> None:
    """A torn message is cut off; the one put in its place ends where a whole old one begins; then a crash."""
    for number in range(3):
        world.store.put(new_record(number))
    world.store.dispatch()
    second = world.store.consume_queue_unit("订单", 0, 1)
    world.store.commit_log.queue.find(0).write_at(second.physical_offset + 95, b"\xff")
    world.kill()
    world.start(**settings)
    assert keys(world) == ["k0"]
    world.store.put(new_record(7))  # as long as the torn one
    world.store.dispatch()
    world.kill()
    world.start(**settings)


def test_what_was_cut_does_not_come_back(world: Any, new_record: NewRecord) -> None:
    crash_with_a_stale_message(world, new_record)
    assert keys(world) == ["k0", "k7"]


def test_edge_stale_tail_kept(world: Any, new_record: NewRecord) -> None:
    crash_with_a_stale_message(world, new_record, sharp_edges=("stale_tail_kept",))
    assert keys(world) == ["k0", "k7", "k2"]  # a message from before the first crash


def only_pre_blanks(world: Any, new_record: NewRecord) -> None:
    put(world, 3, new_record, topic="other")
    directory = f"{world.directory}/consumequeue/订单/0"
    world.store.shutdown()
    world.files.make_directory(directory)
    Path(directory, f"{0:020}").write_bytes((PREBLANK * 3).ljust(200, b"\0"))


def test_a_queue_of_pre_blanks_takes_messages(world: Any, new_record: NewRecord) -> None:
    only_pre_blanks(world, new_record)
    world.start()
    put(world, 2, new_record)
    assert keys(world) == ["k0", "k1"]


def test_edge_pre_blank_counts(world: Any, new_record: NewRecord) -> None:
    only_pre_blanks(world, new_record)
    world.start(sharp_edges=("pre_blank_counts",))
    put(world, 2, new_record)
    assert keys(world) == []  # every message below 2 GiB is swallowed


@pytest.mark.parametrize("edges, length", [((), 0), (("queue_cut_keeps_first_unit", "stale_queue_units_counted"), 1)])
def test_a_queue_file_of_zeros(world: Any, new_record: NewRecord, edges: tuple[str, ...], length: int) -> None:
    put(world, 3, new_record, topic="other")
    world.kill()
    directory = f"{world.directory}/consumequeue/订单/0"
    world.files.make_directory(directory)
    Path(directory, f"{0:020}").write_bytes(bytes(200))
    world.start(sharp_edges=edges)
    assert world.store.max_offset("订单", 0) == length


def lose_the_tail(world: Any, new_record: NewRecord, **settings: Any) -> None:
    """Messages 3 to 5 are indexed and then torn; three others are put in their place."""
    put(world, 6, new_record)
    world.store.flusher.sync_all()
    world.store.checkpoint.index_msg_timestamp = world.clock.now + 1
    world.store.checkpoint.flush()
    third = world.store.consume_queue_unit("订单", 0, 3)
    world.store.commit_log.queue.find(0).write_at(third.physical_offset + 95, b"\xff")
    world.kill()
    world.start(**settings)
    for number in (10, 11):
        world.store.put(new_record(number))
    world.store.dispatch()


def test_the_index_forgets_what_the_log_lost(world: Any, new_record: NewRecord) -> None:
    lose_the_tail(world, new_record)
    assert keys(world) == ["k0", "k1", "k2", "k10", "k11"]
    assert [record.property_map["KEYS"] for record in world.store.query("订单", "k10").records] == ["k10 common"]
    assert not world.store.query("订单", "k5").records


def test_edge_index_beyond_end_kept(world: Any, new_record: NewRecord) -> None:
    lose_the_tail(world, new_record, sharp_edges=("index_beyond_end_kept",))
    assert keys(world)[-1] == "k11"
    assert not world.store.query("订单", "k10").records  # not indexed: the index is further already


@pytest.mark.parametrize("edges, survives", [((), True), (("names_not_synced",), False)])
def test_a_new_file_survives_a_power_cut(
    new_world: Any, new_record: NewRecord, edges: tuple[str, ...], survives: bool
) -> None:
    world = new_world(flush_disk_type="SYNC_FLUSH", sharp_edges=edges)
    store = world.start()
    acknowledged: list[str] = []
    store.wait_durable(store.put(new_record(1))).then(acknowledged.append)
    world.clock.advance(0)
    assert acknowledged == ["PUT_OK"]
    world.power_cut()
    assert (world.start().max_physical_offset > 0) == survives


def forget_a_queue_of_older_files(new_world: Any, new_record: NewRecord, edges: tuple[str, ...]) -> Any:
    """A queue's entries are only written, the log is synced and rolls, the checkpoint hurries on, the power goes."""
    world = new_world(mapped_file_size_commit_log=1 << 14, mapped_file_size_consume_queue=20_000, sharp_edges=edges)
    store = world.start()
    for number in range(120):
        store.put(new_record(number, topic="busy" if number > 10 else "订单"))
        world.clock.advance(200)
    store.put(new_record(200))
    world.settle()
    store.flusher.sync_log()
    world.clock.advance(1_000)
    assert len(store.commit_log.queue.mapped_files) > 1
    world.power_cut()
    world.start(sharp_edges=edges, mapped_file_size_commit_log=1 << 14, mapped_file_size_consume_queue=20_000)
    return world


@pytest.mark.parametrize(
    "edges",
    [
        (),
        ("checkpoint_ahead_of_queues",),
        ("queue_gap_not_noticed",),
    ],
)
def test_queue_entries_lost_with_the_power_are_made_again(
    new_world: Any, new_record: NewRecord, edges: tuple[str, ...]
) -> None:
    """Either safeguard is enough: the checkpoint does not claim what is not on the disk, and a gap is noticed."""
    world = forget_a_queue_of_older_files(new_world, new_record, edges)
    assert len(keys(world)) == 12 and len(keys(world, topic="busy")) == 109


def test_edges_checkpoint_ahead_of_queues_and_queue_gap_not_noticed(new_world: Any, new_record: NewRecord) -> None:
    edges = ("checkpoint_ahead_of_queues", "queue_gap_not_noticed")
    world = forget_a_queue_of_older_files(new_world, new_record, edges)
    assert len(keys(world)) < 12  # flushed and acknowledged, and no consumer will ever see them


def test_a_topic_deleted_and_made_anew_before_a_crash(world: Any, new_record: NewRecord) -> None:
    put(world, 4, new_record)
    assert world.store.delete_topic("订单")
    for number in (10, 11, 12):
        assert world.store.put(new_record(number)).queue_offset == number - 10
    world.kill()
    world.start()
    assert keys(world) == ["k10", "k11", "k12"]
    assert any("begins again" in problem for problem in world.store.recovery_report.problems)


def test_edge_misfits_by_own_evidence(world: Any, new_record: NewRecord) -> None:
    put(world, 4, new_record)
    world.store.delete_topic("订单")
    for number in (10, 11, 12):
        world.store.put(new_record(number))
    world.kill()
    world.start(sharp_edges=("misfits_by_own_evidence",))
    assert keys(world) == ["k0", "k1", "k2", "k3", "k10"]  # the deleted ones are back, the new ones are gone


def queue_units_left_behind(world: Any, new_record: NewRecord) -> None:
    """What the real store leaves: the log was cut, and the queue's unit of the lost message is still on the disk."""
    put(world, 4, new_record)
    unit = world.store.consume_queue_unit("订单", 0, 3)
    world.store.commit_log.queue.find(0).zero_after(unit.physical_offset)
    world.store.commit_log.queue.find(0).set_positions(unit.physical_offset)
    world.store.put(new_record(1, topic="other", body=bytes(500)))
    world.settle()
    world.store.shutdown()


@pytest.mark.parametrize("edges, length", [((), 3), (("stale_queue_units_counted",), 4)])
def test_a_queue_unit_that_an_earlier_cut_left(
    world: Any, new_record: NewRecord, edges: tuple[str, ...], length: int
) -> None:
    queue_units_left_behind(world, new_record)
    world.start(sharp_edges=edges)
    assert world.store.max_offset("订单", 0) == length


@pytest.mark.parametrize("edges, length", [((), 0), (("torn_properties_accepted",), 1)])
def test_a_message_whose_last_bytes_were_never_written(
    world: Any, new_record: NewRecord, edges: tuple[str, ...], length: int
) -> None:
    put(world, 1, new_record)
    unit = world.store.consume_queue_unit("订单", 0, 0)
    world.store.commit_log.queue.find(0).write_at(unit.size - 5, bytes(5))
    world.kill()
    world.start(sharp_edges=edges)
    assert world.store.max_offset("订单", 0) == length


def test_a_flipped_physical_offset_does_not_swallow_the_queue(world: Any, new_record: NewRecord) -> None:
    put(world, 5, new_record)
    second = world.store.consume_queue_unit("订单", 0, 1).physical_offset
    world.store.commit_log.queue.find(0).write_at(second + 28, b"\x40")
    world.store.queues.destroy()
    world.kill()
    world.start()
    assert keys(world) == ["k0", "k1", "k2", "k3", "k4"]


def test_a_topic_that_is_no_file_name_is_in_no_queue(world: Any, new_record: NewRecord) -> None:
    put(world, 2, new_record, topic="a-b")
    at = encode(new_record(0, topic="a-b")).index(b"a-b")
    for offset, byte in ((0, b"/"), (1, b"\x01")):
        unit = world.store.consume_queue_unit("a-b", 0, offset)
        world.store.commit_log.queue.find(0).write_at(unit.physical_offset + at + 1, byte)
    world.store.queues.destroy()
    world.kill()
    world.start()
    assert list(world.store.topics()) == ["a\x01b"]
    assert any("a/b" in problem for problem in world.store.recovery_report.problems)


def test_every_edge_has_a_test_and_a_wrong_one_is_refused() -> None:
    text = Path(__file__).read_text("utf-8") + (Path(__file__).parent / "test_flush.py").read_text("utf-8")
    assert [edge for edge in SHARP_EDGES if f'"{edge}"' not in text] == []
    with pytest.raises(UsageError, match="sharp_edges='none'"):
        from mqlab.rocketmq.store import StoreConfig

        StoreConfig(sharp_edges=("none",))
