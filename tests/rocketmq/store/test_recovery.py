"""Recovery after clean stops and crashes: one scenario by hand, every cut, every flipped byte.

Mirrors: CommitLog.recoverNormally and recoverAbnormally, DefaultMessageStore.recover.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from mqlab.errors import CorruptionError
from mqlab.rocketmq.store import MessageStore
from mqlab.rocketmq.wire.record import MAGIC_BLANK, Record
from mqlab.rocketmq.wire.sys_flag import TRANSACTION_PREPARED

NewRecord = Callable[..., Record]

SCENARIO = {
    "mapped_file_size_commit_log": 1024,
    "mapped_file_size_consume_queue": 200,
    "max_hash_slot_num": 100,
    "max_index_num": 400,
}


def scenario_record(number: int) -> Record:
    properties = (
        f"KEYS\x01k{number} common\x02TAGS\x01{'TagA' if number % 3 else 'TagB'}\x02"
        f"UNIQ_KEY\x017F00000100002A139A5500000000{number:04X}\x02"
    ).encode()
    return Record(
        "TopicTest",
        f"Hello RocketMQ {number}".encode(),
        number % 2,
        born_timestamp=1700000000123,
        born_host=("10.1.2.3", 54321),
        store_host=("192.168.0.7", 10911),
        properties=properties,
    )


@pytest.fixture
def scenario(new_world: Any) -> Any:
    """Twelve messages in two queues, stopped cleanly."""
    world = new_world(**SCENARIO)
    world.clock.now = 1700000000456
    store = world.start(**SCENARIO)
    for number in range(12):
        assert store.put(scenario_record(number)).store_timestamp == 1700000000456 + 1000 * number
        world.clock.advance(1000)
    store.shutdown()
    return world


def test_the_scenario_as_the_real_store_reads_it(scenario: Any) -> None:
    assert scenario.files.list(f"{scenario.directory}/index") == ["20231114221320457"]  # dispatched 1 ms after the put
    store = scenario.start(**SCENARIO)
    assert store.max_physical_offset == 2418
    heads = list(store.commit_log.heads(0, 2418))
    assert [at // 1024 for at, _, magic in heads if magic == MAGIC_BLANK] == [0, 1]
    assert [store.max_offset("TopicTest", queue_id) for queue_id in (0, 1)] == [6, 6]
    bodies = [[record.body for record in store.get("TopicTest", queue_id, 0).records()] for queue_id in (0, 1)]
    assert bodies == [[f"Hello RocketMQ {n}".encode() for n in range(q, 12, 2)] for q in (0, 1)]
    tagged = store.get("TopicTest", 0, 0, sub_expression="TagB")
    assert (len(tagged), tagged.next_begin_offset) == (2, 6)
    assert (len(store.query("TopicTest", "common")), len(store.query("TopicTest", "k3"))) == (12, 1)
    known = store.checkpoint
    assert known.physic_msg_timestamp == known.logics_msg_timestamp == 1700000011456
    result = store.put(scenario_record(12))
    assert (result.physical_offset, result.queue_offset) == (2418, 6)


def test_the_scenario_without_queues_and_index(scenario: Any) -> None:
    for name in ("consumequeue", "index"):
        shutil.rmtree(f"{scenario.directory}/{name}")
    store = scenario.start(**SCENARIO)
    assert store.recovery_report.clean_exit and store.recovery_report.units_dispatched == 12
    assert [store.max_offset("TopicTest", queue_id) for queue_id in (0, 1)] == [6, 6]
    assert (len(store.query("TopicTest", "common")), len(store.query("TopicTest", "k3"))) == (12, 1)


def test_the_scenario_without_its_first_file(scenario: Any) -> None:
    shutil.rmtree(f"{scenario.directory}/consumequeue")
    Path(f"{scenario.directory}/commitlog/{0:020}").unlink()
    store = scenario.start(**SCENARIO)
    assert [store.min_offset("TopicTest", queue_id) for queue_id in (0, 1)] == [3, 2]
    for queue_id, blanks in ((0, 3), (1, 2)):
        data = scenario.files.read(f"{scenario.directory}/consumequeue/TopicTest/{queue_id}/{0:020}")
        assert data[: 20 * (blanks + 1)].count(bytes.fromhex("00000000000000007fffffff0000000000000000")) == blanks
    assert store.get("TopicTest", 0, 0).next_begin_offset == 3
    assert store.get("TopicTest", 1, 2).records()[0].body == b"Hello RocketMQ 5"


def test_the_scenario_with_a_flipped_byte_after_a_crash(scenario: Any) -> None:
    store = scenario.start(**SCENARIO)
    ninth = store.consume_queue_unit("TopicTest", 1, 4).physical_offset
    store.commit_log.queue.find(ninth).write_at(ninth % 1024 + 92, b"\xff")
    scenario.kill()
    store = scenario.start(**SCENARIO)
    assert not store.recovery_report.clean_exit
    assert store.max_physical_offset == 1756
    assert [store.max_offset("TopicTest", queue_id) for queue_id in (0, 1)] == [5, 4]


def test_the_scenario_after_a_crash_with_no_index_in_the_checkpoint(scenario: Any) -> None:
    Path(f"{scenario.directory}/abort").write_text("1")
    store = scenario.start(**SCENARIO)
    assert store.recovery_report.start_offset == 1024
    assert store.recovery_report.index_files_deleted == ["20231114221320457"]
    common = store.query("TopicTest", "common").records
    assert [record.body for record in common] == [f"Hello RocketMQ {number}".encode() for number in range(5, 12)]


def whole_messages(store: MessageStore) -> list[tuple[str, int, int, bytes]]:
    """Every message that the queues lead to, read and checked, in physical order."""
    found = []
    for topic, queue_ids in store.topics().items():
        for queue_id in queue_ids:
            offset = store.min_offset(topic, queue_id)
            while offset < store.max_offset(topic, queue_id):
                result = store.get(topic, queue_id, offset)
                for queue_offset, record in zip(result.queue_offsets, result.records(), strict=True):
                    assert (record.topic, record.queue_id, record.queue_offset) == (topic, queue_id, queue_offset)
                    found.append((record.physical_offset, topic, queue_id, queue_offset, record.body))
                assert result.next_begin_offset > offset
                offset = result.next_begin_offset
    return [message[1:] for message in sorted(found)]


Placed = list[tuple[int, int, tuple[str, int, int, bytes]]]


def build(machines: Any, directory: Path, count: int = 24, crash: bool = True) -> Placed:
    """A small store of a few messages in three queues: where each begins and ends, and what it is."""
    store = machines.open(directory, **SCENARIO)
    placed = []
    for number in range(count):
        body = f"{number} 你好 привет 🚀".encode()
        topic, queue_id = ("订单", number % 2) if number % 3 else ("other", 0)
        properties = f"KEYS\x01k{number}\x02TAGS\x01Б{number % 2}\x02".encode()
        result = store.put(Record(topic, body, queue_id, properties=properties))
        placed.append((result.physical_offset, result.end_offset, (topic, queue_id, result.queue_offset, body)))
    store.dispatch()
    if crash:
        machines.kill()
    else:
        store.shutdown()
    return placed


def bodies_of(store: MessageStore) -> list[bytes]:
    """The bodies of all messages that can be read through queues, in physical order, each once."""
    found: dict[int, bytes] = {}
    for topic, queue_ids in store.topics().items():
        for queue_id in queue_ids:
            offset = store.min_offset(topic, queue_id)
            while offset < store.max_offset(topic, queue_id):
                result = store.get(topic, queue_id, offset, 1)
                unit = store.consume_queue_unit(topic, queue_id, offset)
                try:
                    for record in result.records():
                        found[unit.physical_offset] = record.body
                except CorruptionError:
                    pass  # said, not hidden
                offset = max(offset + 1, result.next_begin_offset)
    return [body for _, body in sorted(found.items())]


def assert_takes_more(store: MessageStore) -> None:
    result = store.put(Record("new", b"after"))
    assert result.is_ok
    store.dispatch()
    assert store.get("new", 0, result.queue_offset).records()[0].body == b"after"


def test_a_cut_at_every_byte_of_the_last_segment(machines: Any, scratch: Path) -> None:
    """Zeros from there on: exactly the messages that were whole are left, and the store takes new ones."""
    placed = build(machines, scratch / "made")
    last_file = placed[-1][0] // 1024 * 1024
    path = f"commitlog/{last_file:020}"
    whole_file = (scratch / "made" / path).read_bytes()
    directory = scratch / "cut"
    for cut in range(last_file, placed[-1][1] + 3):
        shutil.copytree(scratch / "made", directory)
        (directory / path).write_bytes(whole_file[: cut - last_file].ljust(1024, b"\0"))
        store = machines.open(directory)
        left = [message for _, end, message in placed if end <= cut]
        assert whole_messages(store) == left, cut
        assert store.dispatch_behind_bytes == 0
        for number, (physical_offset, end, message) in enumerate(placed):
            found = set(store.query(message[0], f"k{number}").physical_offsets)
            assert found <= ({physical_offset} if end <= cut else set()), (cut, number)
        assert_takes_more(store)
        assert whole_messages(store) == [*left, ("new", 0, 0, b"after")]
        machines.kill()
        shutil.rmtree(directory)


@pytest.mark.parametrize("crash", [True, False])
@pytest.mark.parametrize("step", [pytest.param(1, marks=pytest.mark.long), 5])
def test_a_flipped_bit_in_every_byte_of_the_log(machines: Any, scratch: Path, crash: bool, step: int) -> None:
    """No flip crashes or hangs anything; all before it is read; a message whose body was hit is never handed out."""
    placed = build(machines, scratch / "made", 6, crash=crash)
    bodies = [message[3] for _, _, message in placed]
    directory = scratch / "flipped"
    for position in range(0, placed[-1][1], step):
        shutil.copytree(scratch / "made", directory)
        flip(directory / "commitlog" / f"{position // 1024 * 1024:020}", position % 1024)
        store = machines.open(directory)
        found = bodies_of(store)
        before = [message[3] for _, end, message in placed if end <= position]
        assert found[: len(before)] == before, position
        assert set(found) <= set(bodies), position
        assert_takes_more(store)
        machines.kill()
        shutil.rmtree(directory)


def flip(path: Path, position: int) -> None:
    data = bytearray(path.read_bytes())
    data[position] ^= 1 << position % 8
    path.write_bytes(data)


@pytest.mark.parametrize("step", [pytest.param(1, marks=pytest.mark.long), 7])
@pytest.mark.parametrize("folder", ["consumequeue/订单/0", "consumequeue/other/0", "index"])
@pytest.mark.parametrize("crash", [True, False])
def test_flipped_bits_in_queues_and_index(machines: Any, scratch: Path, folder: str, crash: bool, step: int) -> None:
    """An entry has 20 bytes: with a step of 7 each of its bytes is hit in one entry or another."""
    placed = build(machines, scratch / "made", 9, crash=crash)
    name = sorted((scratch / "made" / folder).iterdir())[0].name
    bodies = {message[3] for _, _, message in placed}
    directory = scratch / "flipped"
    for position in range(0, 200, step):
        shutil.copytree(scratch / "made", directory)
        flip(directory / folder / name, position)
        store = machines.open(directory, **SCENARIO)
        assert set(bodies_of(store)) <= bodies, position
        for number in range(9):
            assert {record.body for record in store.query("订单", f"k{number}").records} <= bodies, position
        assert_takes_more(store)
        machines.kill()
        shutil.rmtree(directory)


def test_flipped_bits_in_the_checkpoint_lose_nothing(machines: Any, scratch: Path) -> None:
    placed = build(machines, scratch / "made", crash=False)
    (scratch / "made" / "abort").write_text("1")
    directory = scratch / "flipped"
    for position in range(40):
        shutil.copytree(scratch / "made", directory)
        flip(directory / "checkpoint", position)
        store = machines.open(directory)
        assert whole_messages(store) == [message for _, _, message in placed], position
        machines.kill()
        shutil.rmtree(directory)


@pytest.mark.parametrize("crash", [False, True])
def test_a_store_whose_last_queue_file_is_all_zeros_starts(world: Any, new_record: NewRecord, crash: bool) -> None:
    for number in range(10):
        world.store.put(new_record(number))
    world.settle()
    world.store.shutdown()
    Path(world.directory, "consumequeue/订单/0", f"{200:020}").write_bytes(bytes(200))
    if crash:
        Path(world.directory, "abort").touch()
    store = world.start()
    assert (store.min_offset("订单", 0), store.max_offset("订单", 0)) == (0, 10)
    assert store.put(new_record(10)).queue_offset == 10
    world.settle()
    assert store.max_offset("订单", 0) == 11


def test_the_smallest_offset_moves_up_when_the_oldest_log_file_is_gone(world: Any, new_record: NewRecord) -> None:
    for number in range(60):
        world.store.put(new_record(number, topic="a"))
    world.settle()
    world.store.shutdown()
    Path(world.directory, "commitlog", f"{0:020}").unlink()
    store = world.start()
    assert (store.min_offset("a", 0), store.max_offset("a", 0)) == (24, 60)


@pytest.mark.parametrize("edges, low", [((), 36), (("pre_blank_counts",), 30)])
def test_a_queue_that_begins_with_pre_blank_units_in_a_log_from_0(
    world: Any, new_record: NewRecord, edges: tuple[str, ...], low: int
) -> None:
    for number in range(81):
        world.store.put(new_record(number, topic="a" if number % 2 else "b"))
        world.clock.advance(3_000)
    world.store.delete_topic("a")
    world.kill()
    store = world.start()
    first_ms = store.store_time_at("a", 0, 36)
    assert (store.min_offset("a", 0), store.max_offset("a", 0)) == (36, 40)
    store.shutdown()
    store = world.start(sharp_edges=edges)
    assert store.min_offset("a", 0) == store.search_offset("a", 0, 0, "lower") == low
    assert store.search_offset("a", 0, first_ms, "lower") == 36


@pytest.mark.parametrize("numpy", [False, True])
def test_a_half_message_at_the_end_is_indexed_once_however_often_the_store_is_opened(
    world: Any, new_record: NewRecord, numpy: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Half messages are in no queue, so every clean start reads those behind the last queued one again."""
    monkeypatch.setattr("mqlab.rocketmq.store.recovery.fast_scan.WORTH_IT", 1)
    for number, sys_flag in enumerate([0, TRANSACTION_PREPARED, TRANSACTION_PREPARED]):
        world.store.put(new_record(number, sys_flag=sys_flag))
    world.settle()
    for _ in range(4):
        world.store.shutdown()
        world.start(recover_with_numpy=numpy)
        assert [len(world.store.query("订单", key).records) for key in ("k0", "k1", "k2", "common")] == [1, 1, 1, 3]


@pytest.mark.parametrize("numpy", [False, True])
@pytest.mark.parametrize("count", [1, 2])
def test_an_index_that_is_gone_is_made_again_for_half_messages(
    world: Any, new_record: NewRecord, numpy: bool, count: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("mqlab.rocketmq.store.recovery.fast_scan.WORTH_IT", 1)
    for number in range(count):
        world.store.put(new_record(number, sys_flag=TRANSACTION_PREPARED))
    world.settle()
    world.store.shutdown()
    shutil.rmtree(f"{world.directory}/index")
    world.start(recover_with_numpy=numpy)
    assert [len(world.store.query("订单", f"k{number}").records) for number in range(count)] == [1] * count
