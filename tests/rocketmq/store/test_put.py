"""Putting: where units go, how files roll, what is refused and why, batches, transactions, what a put leaves behind."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from mqlab.errors import UsageError
from mqlab.rocketmq.store import MessageStore, StoreConfig
from mqlab.rocketmq.wire import record as record_format
from mqlab.rocketmq.wire.message import Message
from mqlab.rocketmq.wire.record import Record
from mqlab.rocketmq.wire.sys_flag import INNER_BATCH, TRANSACTION_COMMIT, TRANSACTION_PREPARED, TRANSACTION_ROLLBACK

NewRecord = Callable[..., Record]


def units_of(store: MessageStore) -> list[tuple[int, int, int]]:
    return list(store.commit_log.heads(0, store.max_physical_offset))


def test_units_stand_one_behind_the_other_and_queues_count_on(world: Any, new_record: NewRecord) -> None:
    store = world.store
    results = [store.put(new_record(number, queue_id=number % 2)) for number in range(6)]
    assert [result.status for result in results] == ["PUT_OK"] * 6
    assert [result.queue_offset for result in results] == [0, 0, 1, 1, 2, 2]
    assert [result.physical_offset for result in results[1:]] == [result.end_offset for result in results[:-1]]
    for number, result in enumerate(results):
        stored = store.message_at(result.physical_offset)
        assert (stored.topic, stored.body) == ("订单", f"сообщение {number} 你好 🚀".encode())
        assert (stored.queue_id, stored.queue_offset) == (number % 2, number // 2)
        assert stored.store_timestamp == result.store_timestamp == world.clock.now
        assert stored.offset_msg_id == result.offset_msg_id


def test_a_put_does_not_change_the_record(world: Any, new_record: NewRecord) -> None:
    record = new_record(1, queue_offset=77, physical_offset=88, body_crc=99)
    world.store.put(record)
    world.store.put(record)
    assert (record.queue_offset, record.physical_offset, record.store_timestamp, record.body_crc) == (77, 88, 0, 99)


def test_messages_are_noted_only_where_a_journal_is_kept(world: Any, new_record: NewRecord) -> None:
    for note_messages, noted in ((True, ["message.stored", "message.dispatched"]), (False, [])):
        kinds: list[str] = []
        store = MessageStore(
            f"{world.directory}/{note_messages}",
            files=world.files,
            clock=world.clock,
            config=world.config,
            note=lambda kind, kinds=kinds, **values: kinds.append(kind),
            note_messages=note_messages,
        )
        store.load()
        store.start()
        store.put(new_record(1))
        store.dispatch()
        assert kinds == noted
        store.dispatcher.on_problem(7, "damage")
        assert kinds == [*noted, "store.problem"]
        store.shutdown()


def test_a_unit_needs_eight_bytes_more_than_its_size(world: Any, new_record: NewRecord) -> None:
    store, empty = world.store, len(record_format.encode(Record("t", b"")))
    store.put(Record("t", bytes(4096 - 8 - empty)))  # exactly as much as fits
    assert store.max_physical_offset == 4088
    store.put(Record("t", b"x"))
    assert units_of(store)[1] == (4088, 8, record_format.MAGIC_BLANK)
    store.put(Record("t", bytes(4096 - 7 - empty - (empty + 1))))  # one byte too many: the next file
    assert [unit[0] for unit in units_of(store)] == [0, 4088, 4096, 4096 + empty + 1, 8192]
    assert store.commit_log.read(4096 + empty + 1, 8) == record_format.blank(4096 - empty - 1)


def test_the_next_file_is_made_ahead_and_taken_away_on_a_clean_stop(world: Any, new_record: NewRecord) -> None:
    world.store.put(new_record(1))
    directory = f"{world.directory}/commitlog"
    assert world.files.list(directory) == ["00000000000000000000", "00000000000000004096"]
    while world.store.max_physical_offset < 4096:
        world.store.put(new_record(1))
    assert [int(name) for name in world.files.list(directory)] == [0, 4096, 8192]
    world.store.shutdown()
    assert [int(name) for name in world.files.list(directory)] == [0, 4096]


@pytest.mark.parametrize(
    "record, status, reason",
    [
        (Record("", b""), "MESSAGE_ILLEGAL", "the topic is empty"),
        (Record("t" * 128, b""), "MESSAGE_ILLEGAL", "topic of 128 bytes, at most 127 are allowed"),
        (Record("订" * 43, b""), "MESSAGE_ILLEGAL", "topic of 129 bytes, at most 127 are allowed"),
        (Record("%RETRY%" + "g" * 249, b""), "MESSAGE_ILLEGAL", "topic of 256 bytes, at most 255 are allowed"),
        (Record("a/b", b""), "MESSAGE_ILLEGAL", "topic 'a/b' cannot be the name of a directory"),
        (Record("..", b""), "MESSAGE_ILLEGAL", "topic '..' cannot be the name of a directory"),
        (Record("t", bytes(1001)), "MESSAGE_ILLEGAL", "body of 1001 bytes, at most 1000 are allowed"),
        (Record("t", b"", properties=bytes(32_768)), "PROPERTIES_SIZE_EXCEEDED", "of 32768 bytes, at most 32767"),
        (Record("t", b"", sys_flag=INNER_BATCH), "MESSAGE_ILLEGAL", "an inner batch needs a topic with a batch"),
        (
            Record("t", b"", properties=b"INNER_NUM\x013\x02"),
            "MESSAGE_ILLEGAL",
            "the property INNER_NUM belongs to inner",
        ),
        (Record("t", b"", properties=bytes(4096)), "MESSAGE_ILLEGAL", "do not fit into files of 4096"),
    ],
)
def test_what_is_refused_leaves_no_trace(new_world: Any, record: Record, status: str, reason: str) -> None:
    store = new_world(max_message_size=1000).start()
    for result in (store.put(record), store.put_batch([Record(record.topic, b"ok"), record])):
        assert result.status == status
        assert reason in result.reason
        assert (result.physical_offset, result.queue_offset, result.offset_msg_id, result.is_ok) == (-1, -1, "", False)
    assert store.max_physical_offset == 0
    assert not store.queues.next_offsets


def test_the_longest_topics_are_stored(world: Any) -> None:
    store = world.store
    retry = "%RETRY%" + "g" * 248
    assert store.put(Record("t" * 127, b"")).is_ok
    assert store.put(Record(retry, b"")).is_ok
    world.settle()
    assert [store.get(topic, 0, 0).records()[0].magic for topic in ("t" * 127, retry)] == [
        record_format.MAGIC_V1,
        record_format.MAGIC_V2,
    ]


def test_hosts_of_both_kinds(world: Any) -> None:
    for number, born in enumerate(["10.1.2.3", "2001:db8::1"]):
        for store_host in ["192.168.0.7", "::1"]:
            world.store.put(Record("t", b"x", number, born_host=(born, 1), store_host=(store_host, 10911)))
    world.settle()
    records = [record for queue_id in (0, 1) for record in world.store.get("t", queue_id, 0).records()]
    assert [(record.born_host[0], record.store_host[0]) for record in records] == [
        ("10.1.2.3", "192.168.0.7"),
        ("10.1.2.3", "0:0:0:0:0:0:0:1"),
        ("2001:db8:0:0:0:0:0:1", "192.168.0.7"),
        ("2001:db8:0:0:0:0:0:1", "0:0:0:0:0:0:0:1"),
    ]
    assert [record.sys_flag for record in records] == [0, 0x20, 0x10, 0x30]


def test_a_batch_stands_together_in_one_file(world: Any, new_record: NewRecord) -> None:
    store = world.store
    while store.max_physical_offset < 3500:
        store.put(new_record(0, queue_id=1))
    result = store.put_batch([new_record(number) for number in range(5)])
    assert result.physical_offset == 4096  # no room for all five in the first file
    assert (result.message_count, result.queue_offset) == (5, 0)
    assert len(result.offset_msg_id.split(",")) == 5
    world.settle()
    records = store.get("订单", 0, 0).records()
    assert [record.queue_offset for record in records] == [0, 1, 2, 3, 4]
    assert [record.physical_offset for record in records] == list(result.unit_offsets)
    assert result.end_offset == store.max_physical_offset
    assert store.put(new_record(9)).queue_offset == 5


@pytest.mark.parametrize(
    "records, reason",
    [
        ([], "the batch is empty"),
        ([Record("a", b""), Record("b", b"")], "one queue of one topic"),
        ([Record("a", b""), Record("a", b"", 1)], "one queue of one topic"),
        ([Record("a", b"", sys_flag=TRANSACTION_PREPARED)], "transaction"),
        ([Record("a", b"", properties=b"DELAY\x013\x02")], "delayed"),
        ([Record("a", bytes(900))] * 5, "do not fit into files of 4096"),
    ],
)
def test_batches_that_are_refused(world: Any, records: list[Record], reason: str) -> None:
    result = world.store.put_batch(records)
    assert result.status == "MESSAGE_ILLEGAL" and reason in result.reason
    assert world.store.max_physical_offset == 0


def test_prepared_and_rolled_back_messages_have_no_place_in_a_queue(world: Any, new_record: NewRecord) -> None:
    store = world.store
    kinds = [0, TRANSACTION_PREPARED, TRANSACTION_COMMIT, TRANSACTION_ROLLBACK, 0]
    results = [store.put(new_record(number, sys_flag=kind)) for number, kind in enumerate(kinds)]
    assert [result.queue_offset for result in results] == [0, 0, 1, 0, 2]
    world.settle()
    assert [record.sys_flag for record in store.get("订单", 0, 0).records()] == [0, TRANSACTION_COMMIT, 0]
    assert store.query("订单", "k1").records[0].sys_flag == TRANSACTION_PREPARED  # indexed all the same
    assert not store.query("订单", "k3").records  # but a rollback is not


def test_a_store_that_takes_no_messages_says_why(new_world: Any, new_record: NewRecord) -> None:
    world = new_world()
    store = world.store
    assert "new, not running" in store.put(new_record(1)).reason
    store = world.start()
    store.admission.set_disk_full(True)
    assert store.put(new_record(1)).status == "SERVICE_NOT_AVAILABLE"
    store.admission.set_disk_full(False)
    assert store.put(new_record(1)).is_ok
    store.shutdown()
    result = store.put(new_record(1))
    assert result.status == "SERVICE_NOT_AVAILABLE" and "closed" in result.reason
    slave = world.start(broker_role="SLAVE")
    assert "slave" in slave.put_batch([new_record(1)]).reason


def test_no_new_file_can_be_made(world: Any, new_record: NewRecord, monkeypatch: pytest.MonkeyPatch) -> None:
    store = world.store
    store.put(new_record(1))
    before = units_of(store)

    def full(*args: Any, **kwargs: Any) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(world.files, "map", full)
    results = [store.put(new_record(1)) for _ in range(60)]
    refused = [result for result in results if not result.is_ok]
    assert refused[0].status == "CREATE_MAPPED_FILE_FAILED"
    assert {result.status for result in refused[1:]} == {"SERVICE_NOT_AVAILABLE"}  # until a file could be made
    assert "No space left" in refused[0].reason
    monkeypatch.undo()
    world.clock.advance(1_000)
    assert store.put(new_record(1)).is_ok
    assert units_of(store)[: len(before)] == before
    assert [unit[2] == record_format.MAGIC_BLANK for unit in units_of(store)].count(True) == 2


def test_settings_that_mean_nothing() -> None:
    for settings in (
        {"flush_disk_type": "SOMETIMES"},
        {"broker_role": "KING"},
        {"message_delay_level": "1s 5x"},
        {"mapped_file_size_commit_log": 0},
        {"sharp_edges": ("no_such_edge",)},
    ):
        with pytest.raises(UsageError):
            StoreConfig(**settings)  # type: ignore[arg-type]
    assert StoreConfig(mapped_file_size_consume_queue=1001).mapped_file_size_consume_queue == 1020


def test_what_a_store_on_its_own_cannot_take(tmp_path: Path) -> None:
    directory = str(tmp_path / "store")
    for settings, words in (
        ({"mapped_file_size": 1}, "no setting 'mapped_file_size'"),
        ({"mapped_file_size_commit_log": "1MB"}, "is a whole number, not '1MB'"),
        ({"message_index_enable": "false"}, "is True or False"),
    ):
        with pytest.raises(UsageError, match=words):
            MessageStore.open(directory, **settings)
    assert not (tmp_path / "store").exists()
    with MessageStore.open(directory, mapped_file_size_commit_log=65536, flush_interval_commit_log="1s") as store:
        wrong: tuple[Any, ...] = ("text", None, b"bytes")
        for message in wrong:
            with pytest.raises(UsageError, match="is not a message"):
                store.put(message)
        queue_ids: tuple[Any, ...] = (-1, "0")
        for queue_id in queue_ids:
            with pytest.raises(UsageError, match="is not a queue"):
                store.put(Message("orders", "заказ".encode()), queue_id=queue_id)
        assert store.max_physical_offset == 0 and store.config.flush_interval_commit_log == 1_000
