"""The inspector on stores that are damaged, cut, huge, alive or none at all."""

from __future__ import annotations

import os
import random
import struct
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mqlab.errors import CorruptionError, UsageError
from mqlab.lab.inspector import inspector as inspector_module
from mqlab.lab.inspector.inspector import StoreInspector
from mqlab.rocketmq.store import MessageStore
from mqlab.rocketmq.wire import properties as property_text
from mqlab.rocketmq.wire import record as record_format
from mqlab.rocketmq.wire.java_hash import index_key_hash, tags_code
from mqlab.rocketmq.wire.message import Message
from mqlab.rocketmq.wire.record import Record
from mqlab.rocketmq.wire.units import encode_cq

T0 = 1700000000000
SEGMENT, QUEUE_FILE = 1024, 200


def unit(number: int, physical_offset: int, *, topic: str = "orders", queue_offset: int | None = None) -> bytes:
    """Message ``number``: key k<number>, tags paid, a body in four scripts, stored a second after the one before."""
    text = property_text.encode({"KEYS": f"k{number} common", "TAGS": "paid", "UNIQ_KEY": f"U{number:04d}"})
    return record_format.encode(
        Record(
            topic,
            f"body тело 正文 😀 {number}".encode(),
            queue_offset=number if queue_offset is None else queue_offset,
            physical_offset=physical_offset,
            store_timestamp=T0 + number * 1000,
            properties=text,
        )
    )


def write_at(path: Path, size: int, position: int, data: bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with open(path, "r+b" if path.exists() else "w+b") as file:
        file.truncate(size)
        file.seek(position)
        file.write(data)


def make_store(directory: Path, count: int = 12, *, queues: bool = True) -> list[tuple[int, int]]:
    """A small store of one queue, written by hand; returns (physical offset, size) of its messages."""
    places, end = [], 0
    for number in range(count):
        data = unit(number, end)
        left = SEGMENT - end % SEGMENT
        if len(data) + 8 > left:
            name = f"{end - end % SEGMENT:020d}"
            blank = struct.pack(">iI", left, 0xCBD43194)
            write_at(directory / "commitlog" / name, SEGMENT, end % SEGMENT, blank)
            end += left
            data = unit(number, end)
        write_at(directory / "commitlog" / f"{end - end % SEGMENT:020d}", SEGMENT, end % SEGMENT, data)
        if queues:
            entry = encode_cq(end, len(data), tags_code("paid"))
            at = number * 20
            name = f"{at - at % QUEUE_FILE:020d}"
            write_at(directory / "consumequeue" / "orders" / "0" / name, QUEUE_FILE, at % QUEUE_FILE, entry)
        places.append((end, len(data)))
        end += len(data)
    return places


def offsets(store: StoreInspector, *args, **choice) -> list[int]:
    return [piece.physical_offset for piece in store.pieces(*args, **choice)]


def test_a_directory_that_is_not_there_and_one_that_is_empty(tmp_path):
    with pytest.raises(UsageError, match="no store directory"):
        StoreInspector(tmp_path / "nowhere")
    store = StoreInspector(tmp_path)
    assert store.last_store_timestamp() is None
    assert (store.min_physical_offset, store.max_physical_offset, offsets(store), store.problems()) == (0, 0, [], [])
    assert store.topics() == {} and store.checkpoint() is None and store.index_files() == []
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("small", [True, False])
def test_questions(tmp_path, monkeypatch, small):
    monkeypatch.setattr(inspector_module, "SMALL_LOG_BYTES", 1 << 30 if small else 0)
    places = [place for place, _ in make_store(tmp_path)]
    store = StoreInspector(tmp_path)
    assert offsets(store) == offsets(store, "orders") == offsets(store, "orders", 0) == places
    assert offsets(store, "orders", 1) == offsets(store, "другая") == []
    assert offsets(store, count=3) == places[:3]
    assert offsets(store, count=-3) == offsets(store, "orders", count=-3) == places[-3:]
    assert offsets(store, count=0) == []
    assert store.last_store_timestamp() == T0 + 11_000
    assert offsets(store, from_ms=T0 + 3000, to_ms=T0 + 5000) == places[3:6]
    assert offsets(store, "orders", from_ms=T0 + 3001) == places[4:]
    assert offsets(store, from_ms=T0 + 99_000) == []
    assert offsets(store, "orders", 0, offset=7, count=2) == places[7:9]
    assert offsets(store, key="k5") == offsets(store, "orders", key="U0005") == [places[5]]
    assert offsets(store, key="common") == places
    assert offsets(store, key="k") == []
    assert [message.body.decode() for message in store.messages(count=1)] == ["body тело 正文 😀 0"]


def test_messages_are_read_when_looked_at(tmp_path):
    store = StoreInspector(tmp_path)
    listing = store.messages("orders", count=5)
    assert list(listing) == []
    make_store(tmp_path)
    assert [message.keys for message in listing] == [f"k{number} common" for number in range(5)]
    assert list(listing.to_pandas().queue_offset) == [0, 1, 2, 3, 4]
    shown = listing._repr_mimebundle_()
    assert "正文 😀 4" in shown["text/plain"] and "topic='orders'" in repr(listing)


def test_questions_that_mean_nothing(tmp_path):
    store = StoreInspector(tmp_path)
    with pytest.raises(UsageError, match="topic"):
        store.pieces(queue=1)
    with pytest.raises(UsageError, match="topic"):
        store.messages(queue=1)
    with pytest.raises(UsageError, match="topic and queue"):
        store.pieces("orders", offset=1)
    with pytest.raises(UsageError, match="no consume queue"):
        store.queue("orders", 0)


def test_without_queues_everything_is_still_found(tmp_path, monkeypatch):
    monkeypatch.setattr(inspector_module, "SMALL_LOG_BYTES", 0)
    places = [place for place, _ in make_store(tmp_path, queues=False)]
    store = StoreInspector(tmp_path)
    assert store.max_physical_offset == places[-1] + len(unit(11, 0))
    assert offsets(store) == offsets(store, "orders") == offsets(store, key="common") == places


@pytest.mark.parametrize("cut", [0, 1, 7, 8, 19, 88, 180, 183, 500, 1016, 1023])
def test_a_log_cut_at_any_byte_gives_the_whole_messages(tmp_path, cut):
    places = make_store(tmp_path)
    last = sorted((tmp_path / "commitlog").iterdir())[-1]
    os.truncate(last, cut)
    store = StoreInspector(tmp_path)
    whole = [place for place, size in places if place + size <= int(last.name) + cut]
    assert offsets(store) == whole
    assert store.problems(deep=True) != []


def test_damage_in_the_middle_is_stepped_over_and_told(tmp_path):
    places = make_store(tmp_path)
    write_at(tmp_path / "commitlog" / f"{0:020d}", SEGMENT, places[2][0] + 1, b"\xff\xff\xff")
    store = StoreInspector(tmp_path)
    assert offsets(store) == [place for place, _ in places if place != places[2][0]]
    damage = [problem for problem in store.problems() if problem.kind == "damage"]
    assert [(problem.file, problem.physical_offset) for problem in damage] == [("commitlog/" + "0" * 20, places[2][0])]


def test_what_disagrees_is_named(tmp_path):
    places = make_store(tmp_path)
    log, queue = tmp_path / "commitlog" / f"{0:020d}", tmp_path / "consumequeue" / "orders" / "0" / f"{0:020d}"
    write_at(log, SEGMENT, places[1][0] + 90, b"?")  # in the body
    write_at(log, SEGMENT, places[2][0] + 35, b"\x01")  # its own place
    write_at(queue, QUEUE_FILE, 20 * 3, encode_cq(places[3][0], places[3][1], 7))
    write_at(queue, QUEUE_FILE, 20 * 4, encode_cq(places[4][0] + 1, places[4][1], tags_code("paid")))
    (tmp_path / "commitlog" / "README").write_text("hello")
    (tmp_path / "config").mkdir()
    (tmp_path / "config" / "topics.json").write_text('{"topicConfigTable":{')
    (tmp_path / "checkpoint").write_bytes(bytes(100))
    found = {(problem.kind, problem.physical_offset) for problem in StoreInspector(tmp_path).problems(deep=True)}
    assert {
        ("check sum", places[1][0]),
        ("place", places[2][0]),
        ("queue unit", places[3][0]),
        ("queue unit", places[4][0]),
        ("foreign file", None),
        ("configuration", None),
        ("file size", None),
    } <= found


def test_a_list_in_config_is_wrong_for_a_table_and_right_for_a_file_of_ones_own(tmp_path):
    make_store(tmp_path)
    (tmp_path / "config").mkdir()
    (tmp_path / "config" / "my_retries.json").write_text("[[1, 2]]")
    assert not [problem for problem in StoreInspector(tmp_path).problems() if problem.kind == "configuration"]
    (tmp_path / "config" / "topics.json").write_text("[]")
    wrong = [problem.file for problem in StoreInspector(tmp_path).problems() if problem.kind == "configuration"]
    assert wrong == ["config/topics.json"]


def test_a_missing_file_is_told_and_the_rest_listed(tmp_path):
    places = make_store(tmp_path, count=20)
    (tmp_path / "commitlog" / f"{SEGMENT:020d}").unlink()
    store = StoreInspector(tmp_path)
    assert offsets(store) == [place for place, _ in places if not SEGMENT <= place < 2 * SEGMENT]
    assert "missing file" in {problem.kind for problem in store.problems()}


def test_a_queue_that_is_behind_hides_nothing(tmp_path, monkeypatch):
    monkeypatch.setattr(inspector_module, "SMALL_LOG_BYTES", 0)
    places = [place for place, _ in make_store(tmp_path)]
    (tmp_path / "consumequeue" / "orders" / "0" / f"{QUEUE_FILE:020d}").unlink()
    store = StoreInspector(tmp_path)
    assert store.dispatched_physical_offset == places[10]
    assert offsets(store, "orders") == places
    assert offsets(store, "orders", count=-4) == places[-4:]


def test_old_units_behind_the_end_of_a_recovered_log_are_not_part_of_it(tmp_path):
    places = make_store(tmp_path, count=5)
    for number in (3, 4):  # as a recovery leaves them: the queue is cut, the bytes stay, and a byte between is wrong
        write_at(tmp_path / "consumequeue" / "orders" / "0" / f"{0:020d}", QUEUE_FILE, 20 * number, bytes(20))
    write_at(tmp_path / "commitlog" / f"{0:020d}", SEGMENT, places[3][0] + 4, b"\0")
    store = StoreInspector(tmp_path)
    assert store.max_physical_offset == places[3][0]


def test_it_follows_a_running_store(tmp_path):
    make_store(tmp_path, count=3)
    store = StoreInspector(tmp_path)
    before = store.max_physical_offset
    places = make_store(tmp_path, count=12)
    assert store.max_physical_offset == sum(places[-1]) > before
    assert len(offsets(store)) == 12
    assert store.queue("orders", 0).max_offset == 12


def test_it_follows_files_that_are_cut_replaced_or_removed(tmp_path):
    places = [place for place, _ in make_store(tmp_path, count=20)]
    store = StoreInspector(tmp_path)
    assert offsets(store) == places
    log = sorted((tmp_path / "commitlog").iterdir())
    kept = log[0].read_bytes()
    os.truncate(log[-1], 0)
    assert offsets(store) == [place for place in places if place < int(log[-1].name)]
    log[1].unlink()
    assert offsets(store) == [place for place in places if place < SEGMENT or 2 * SEGMENT <= place < int(log[-1].name)]
    log[0].unlink()
    log[0].write_bytes(kept[: places[1]] + bytes(SEGMENT - places[1]))
    assert offsets(store)[:1] == [0] and places[1] not in offsets(store)


@given(st.integers(0, 2**32), st.integers(1, 30))
def test_no_damage_makes_it_raise(tmp_path_factory, seed, flips):
    directory = tmp_path_factory.mktemp("damaged")
    make_store(directory)
    dice = random.Random(seed)
    files = sorted(path for path in directory.rglob("*") if path.is_file())
    for _ in range(flips):
        path = dice.choice(files)
        data = bytearray(path.read_bytes())
        if data and dice.random() < 0.9:
            data[dice.randrange(len(data))] ^= 1 << dice.randrange(8)
        elif data:
            del data[dice.randrange(len(data)) :]
        path.write_bytes(data)
    store = StoreInspector(directory)
    assert len(offsets(store)) <= 12
    store.problems(deep=True), store.problems(deep=False), store.blanks(), offsets(store, "orders", count=-2)
    [queue.min_offset for queue in store.queues()], list(store.messages())


def test_500_gb_are_entered_where_the_answer_is(tmp_path):
    """Sparse files: 500 segments of 1 GiB, the last one three messages long; index and queue files of default sizes."""
    gibibyte, count = 1 << 30, 500
    entry_table = []
    for number in range(count):
        start = number * gibibyte
        path = tmp_path / "commitlog" / f"{start:020d}"
        data = unit(number, start)
        write_at(path, gibibyte, 0, data)
        entry_table.append((start, len(data)))
        if number < count - 1:
            write_at(path, gibibyte, gibibyte - 50, struct.pack(">iI", 50, 0xCBD43194))
    for number in (count, count + 1):
        start, size = entry_table[-1]
        data = unit(number, start + size)
        write_at(
            tmp_path / "commitlog" / f"{(count - 1) * gibibyte:020d}",
            gibibyte,
            start + size - (count - 1) * gibibyte,
            data,
        )
        entry_table.append((start + size, len(data)))
    queue = b"".join(encode_cq(place, size, tags_code("paid")) for place, size in entry_table)
    write_at(tmp_path / "consumequeue" / "orders" / "0" / ("0" * 20), 6_000_000, 0, queue)
    index = tmp_path / "index" / "20231114221320456"
    for number, (place, _) in enumerate(entry_table[:-1], 1):
        key_hash = index_key_hash(f"orders#k{number - 1}")
        entry = struct.pack(">iqii", key_hash, place, number - 1, 0)
        write_at(index, 420_000_040, 20_000_040 + 20 * number, entry)
        write_at(index, 420_000_040, 40 + 4 * (key_hash % 5_000_000), struct.pack(">i", number))
    header = struct.pack(">4q2i", T0, T0 + 501_000, 0, entry_table[-2][0], 501, 502)
    write_at(index, 420_000_040, 0, header)

    store = StoreInspector(tmp_path)
    end = sum(entry_table[-1])
    assert (store.min_physical_offset, store.max_physical_offset) == (0, end)
    assert offsets(store, count=-2) == [place for place, _ in entry_table[-2:]]
    assert offsets(store, "orders", 0, offset=250, count=1) == [250 * gibibyte]
    assert offsets(store, "orders", key="k123") == offsets(store, key="k123") == [123 * gibibyte]
    assert offsets(store, key="k501") == [entry_table[-1][0]]  # behind the index
    assert offsets(store, "orders", from_ms=T0 + 300_000, to_ms=T0 + 301_000) == [300 * gibibyte, 301 * gibibyte]
    assert store.message_at(77 * gibibyte).queue_offset == 77
    assert store.problems() == []
    assert store.sizes().commit_log == gibibyte
    assert len(store.blanks()) == 499


def test_a_topic_that_was_deleted_and_made_anew_is_no_problem(tmp_path):
    with MessageStore.open(str(tmp_path), mapped_file_size_commit_log=4096) as store:
        for number in range(20):
            store.put(Message(f"t{number % 2}", b"old", keys=f"k{number}"))
        store.delete_topic("t0")
        store.delete_topic("t1")
        for number in range(3):
            store.put(Message("t0", b"new", keys=f"k{number}"))
        assert StoreInspector(tmp_path).problems(deep=True) == []
    inspector = StoreInspector(tmp_path)
    assert inspector.problems(deep=True) == []
    assert inspector.topics() == {"t0": [0]}
    assert len(offsets(inspector)) == 23


def test_bytes_with_names(tmp_path):
    with MessageStore.open(str(tmp_path), max_hash_slot_num=10, max_index_num=20) as store:
        result = store.put(Message("orders", "тело 正文 😀".encode(), "paid", "order-1"))
    inspector = StoreInspector(tmp_path)
    unit = str(inspector.hexdump(result.physical_offset))
    assert "queue_offset" in unit and "properties" in unit
    queue = inspector.queue("orders", 0)
    assert "tags_code" in str(queue.hexdump(0)) and "tags_code" in str(queue.table())
    (name,) = inspector.index.names()
    assert "index_count" in str(inspector.index.hexdump(name)) and "key_hash" in str(inspector.index.hexdump(name, 1))
    for wrong in (
        lambda: inspector.hexdump(1 << 40),
        lambda: queue.hexdump(1),
        lambda: inspector.index.hexdump("1"),
        lambda: inspector.index.hexdump(name, 2),
    ):
        with pytest.raises(UsageError):
            wrong()
    with pytest.raises(CorruptionError):
        inspector.hexdump(1)


def test_every_file_is_named_and_what_is_not_built_is_told(tmp_path):
    make_store(tmp_path)
    for path, size in {
        "timerwheel": 38_707_200,
        "timerlog/00000000000000000000": 52,
        "config/timercheck": 4096,
        "compaction/compactionLog/x": 1,
        "batchconsumequeue/b/0/00000000000000000000": 460,
        "consumequeue_ext/orders/0/00000000000000000000": 64,
        "compaction/position-checkpoint": 39,
        "strange": 1,
    }.items():
        write_at(tmp_path / path, size, 0, b"")
    store = StoreInspector(tmp_path)
    assert store.other_parts() == ["batch consume queue", "compaction", "consume queue extension"]
    rows = {row.path: row for row in store.tree()}
    assert rows["commitlog/00000000000000001024"].holds == "offsets 1024..2048"
    assert rows["consumequeue/orders/0/00000000000000000200"].holds == "queue offsets 10..20"
    assert rows["batchconsumequeue/b/0/00000000000000000000"].holds == "queue offsets 0..10"
    assert rows["strange"].kind == "unknown"
    assert store.problems() == []
