"""Getting: every status with its next offset, the limits of one get, filters, lookups by time and by id."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import pytest

from mqlab.errors import CorruptionError, UsageError
from mqlab.rocketmq.store import MessageStore
from mqlab.rocketmq.wire.record import Record

NewRecord = Callable[..., Record]


def fill(world: Any, count: int, new_record: NewRecord, **fields: Any) -> MessageStore:
    store: MessageStore = world.store
    for number in range(count):
        assert store.put(new_record(number, **fields)).is_ok
        world.clock.advance(10)
    world.settle()
    return store


def outline(result: Any) -> tuple[str, int, int]:
    return result.status, result.next_begin_offset, len(result.units)


def test_the_status_at_each_end_of_a_queue(world: Any, new_record: NewRecord) -> None:
    store = fill(world, 5, new_record)
    assert outline(store.get("nobody", 0, 0)) == ("NO_MESSAGE_IN_QUEUE", 0, 0)
    assert outline(store.get("订单", 7, 3)) == ("NO_MESSAGE_IN_QUEUE", 0, 0)
    assert outline(store.get("订单", 0, 0)) == ("FOUND", 5, 5)
    assert outline(store.get("订单", 0, 3)) == ("FOUND", 5, 2)
    assert outline(store.get("订单", 0, 5)) == ("OFFSET_OVERFLOW_ONE", 5, 0)
    assert outline(store.get("订单", 0, 6)) == ("OFFSET_OVERFLOW_BADLY", 5, 0)
    assert outline(store.get("订单", 0, -1)) == ("OFFSET_TOO_SMALL", 0, 0)
    assert "nobody" not in store.topics()  # asking makes no queue


def test_a_message_is_there_after_dispatch_and_not_before(world: Any, new_record: NewRecord) -> None:
    store = world.store
    store.put(new_record(1))
    assert store.dispatch_behind_bytes == store.max_physical_offset
    assert outline(store.get("订单", 0, 0)) == ("NO_MESSAGE_IN_QUEUE", 0, 0)
    assert store.dispatch(max_units=1) == 1
    assert store.dispatch_behind_bytes == 0
    assert outline(store.get("订单", 0, 0)) == ("FOUND", 1, 1)


def test_one_get_never_crosses_a_file_of_the_queue(world: Any, new_record: NewRecord) -> None:
    store = fill(world, 25, new_record)  # files of ten units
    assert [outline(store.get("订单", 0, offset))[1:] for offset in (0, 5, 10, 20)] == [
        (10, 10),
        (10, 5),
        (20, 10),
        (25, 5),
    ]


def test_the_first_message_is_taken_whatever_its_size(world: Any, new_record: NewRecord) -> None:
    store = fill(world, 3, new_record, body=bytes(3000))
    assert outline(store.get("订单", 0, 0, max_bytes=10)) == ("FOUND", 1, 1)
    assert outline(store.get("订单", 0, 0, max_nums=0)) == ("FOUND", 1, 1)
    assert outline(store.get("订单", 0, 0, max_nums=2)) == ("FOUND", 2, 2)


WIDE = {"mapped_file_size_commit_log": 1 << 20, "mapped_file_size_consume_queue": 20_000}


@pytest.mark.parametrize(
    "settings, memory, max_nums, taken",
    [
        ({}, None, 100, 32),
        ({"max_transfer_count_on_message_in_memory": 5}, None, 100, 5),
        ({"max_transfer_count_on_message_in_memory": 64}, None, 100, 64),
        (
            {"max_transfer_count_on_message_in_memory": 64, "max_transfer_bytes_on_message_in_memory": 10_000},
            None,
            100,
            8,
        ),
        ({}, 0, 32, 8),
        ({"max_transfer_count_on_message_in_disk": 3}, 0, 32, 3),
        ({"max_transfer_bytes_on_message_in_disk": 3_000}, 0, 32, 2),
        ({"access_message_in_memory_max_ratio": 0}, None, 32, 8),
    ],
)
def test_batches_as_full_as_those_of_a_real_broker(
    new_world: Any, settings: dict[str, int], memory: int | None, max_nums: int, taken: int
) -> None:
    world = new_world(**WIDE, **settings)
    store = world.start()
    store.reader.memory_bytes = memory
    for _ in range(100):
        assert store.put(Record("t", bytes(1125))).size == 1217
    world.settle()
    result = store.get("t", 0, 0, max_nums)
    assert len(result) == taken
    assert result.suggest_pulling_from_slave == (memory == 0 or "access_message_in_memory_max_ratio" in settings)


def test_the_limits_are_those_of_where_the_next_message_lies(new_world: Any) -> None:
    world = new_world(**WIDE)
    store = world.start()
    ends = [store.put(Record("t", bytes(1000))).end_offset for _ in range(60)]
    world.settle()
    store.reader.memory_bytes = ends[-1] - ends[4]  # five cold messages, then warm ones
    assert len(store.get("t", 0, 0)) == 32
    store.reader.memory_bytes = ends[-1] - ends[20]
    assert len(store.get("t", 0, 0)) == 8
    assert store.is_resident(ends[20]) and not store.is_resident(ends[19])


def test_a_slave_keeps_the_offset_it_was_asked_for(new_world: Any, new_record: NewRecord) -> None:
    world = new_world()
    world.start()
    fill(world, 5, new_record).shutdown()
    slave = world.start(broker_role="SLAVE")
    assert [outline(slave.get("订单", 0, at)) for at in (-1, 5, 9)] == [
        ("OFFSET_TOO_SMALL", -1, 0),
        ("OFFSET_OVERFLOW_ONE", 5, 0),
        ("OFFSET_OVERFLOW_BADLY", 9, 0),
    ]
    slave.shutdown()
    slave = world.start(broker_role="SLAVE", offset_check_in_slave=True)
    assert [outline(slave.get("订单", 0, at))[1] for at in (-1, 9)] == [0, 5]


def test_tags_are_compared_by_hash(world: Any) -> None:
    for number, tag in enumerate(["Aa", "BB", "标签", None, "Б"]):
        properties = b"" if tag is None else f"TAGS\x01{tag}\x02".encode()
        world.store.put(Record("t", str(number).encode(), properties=properties))
    world.settle()
    got = {
        expression: [record.body for record in world.store.get("t", 0, 0, sub_expression=expression).records()]
        for expression in ("*", "Aa", "标签 || Б", "none")
    }
    assert got == {"*": [b"0", b"1", b"2", b"3", b"4"], "Aa": [b"0", b"1"], "标签 || Б": [b"2", b"4"], "none": []}
    assert outline(world.store.get("t", 0, 0, sub_expression="none")) == ("NO_MATCHED_MESSAGE", 5, 0)


class Expensive:
    """A filter on a property, as SQL makes them."""

    needs_properties = True

    def matches_code(self, tags_code: int) -> bool:
        return True

    def matches_properties(self, properties: Mapping[str, str]) -> bool:
        return int(properties.get("amount", "0")) > 10


def test_a_filter_on_properties(world: Any) -> None:
    for amount in (5, 50, 7, 70):
        world.store.put(Record("t", b"", properties=f"amount\x01{amount}\x02".encode()))
    world.settle()
    result = world.store.get("t", 0, 0, message_filter=Expensive())
    assert [record.property_map["amount"] for record in result.records()] == ["50", "70"]
    assert result.filter_message_count == 2 and result.queue_offsets == [1, 3]


@pytest.mark.parametrize(
    "settings, max_nums, looked_at",
    [
        ({}, 32, 800),
        ({"max_filter_message_size": 2000}, 32, 100),
        ({"max_filter_message_size": 2001}, 32, 101),
        ({"max_filter_message_size": 2000}, 500, 500),
    ],
)
def test_at_most_so_many_units_are_looked_at(
    new_world: Any, settings: dict[str, int], max_nums: int, looked_at: int
) -> None:
    world = new_world(**WIDE, message_index_enable=False, **settings)
    store = world.start()
    for _ in range(950):
        store.put(Record("t", b""))
    world.settle()
    result = store.get("t", 0, 10, max_nums, sub_expression="none")
    assert outline(result) == ("NO_MATCHED_MESSAGE", 10 + looked_at, 0)


def test_messages_whose_log_file_is_gone(world: Any, new_record: NewRecord) -> None:
    store = fill(world, 60, new_record)
    first = store.commit_log.queue.mapped_files[1].start_offset
    gone = next(at for at in range(60) if store.consume_queue_unit("订单", 0, at).physical_offset >= first)
    store.commit_log.queue.delete_first()  # the queue was not corrected yet
    result = store.get("订单", 0, 0)
    assert outline(result) == ("MESSAGE_WAS_REMOVING", 10, 0)
    at = gone - gone % 10
    result = store.get("订单", 0, at)
    assert result.status == "FOUND" and result.queue_offsets[0] == gone


def test_a_queue_file_that_is_missing(world: Any, new_record: NewRecord) -> None:
    store = fill(world, 35, new_record)
    del store.queues.find("订单", 0).files.mapped_files[1]
    assert outline(store.get("订单", 0, 12)) == ("OFFSET_FOUND_NULL", 20, 0)


def test_a_queue_unit_that_points_at_no_message_is_passed_over(world: Any, new_record: NewRecord) -> None:
    store = fill(world, 5, new_record)
    mapped = store.queues.find("订单", 0).files.mapped_files[0]
    mapped.write_at(2 * 20, (17).to_bytes(8, "big"))
    result = store.get("订单", 0, 0)
    assert result.queue_offsets == [0, 1, 3, 4]
    assert ("store.problem", "get", 2) in [(kind, n.get("where"), n.get("queue_offset")) for kind, n in world.notes]


def test_a_damaged_body_is_never_handed_out_as_a_message(world: Any, new_record: NewRecord) -> None:
    store = fill(world, 3, new_record)
    at = store.consume_queue_unit("订单", 0, 1).physical_offset
    store.commit_log.queue.find(at).write_at(at + 90, b"\xff")
    with pytest.raises(CorruptionError, match="queue offset 1 is damaged"):
        store.get("订单", 0, 0).records()
    assert store.message_at(at) is None
    assert [record.queue_offset for record in store.get("订单", 0, 2).records()] == [2]


def test_lookup_by_offset_finds_whole_messages_only(world: Any, new_record: NewRecord) -> None:
    store = fill(world, 3, new_record)
    places = [store.consume_queue_unit("订单", 0, at).physical_offset for at in range(3)]
    for physical_offset in range(-5, store.max_physical_offset + 200):
        found = store.message_at(physical_offset)
        assert (found is not None) == (physical_offset in places)


def test_lookup_by_time(world: Any, new_record: NewRecord) -> None:
    store = fill(world, 25, new_record)  # one each 10 ms
    first = store.store_time_at("订单", 0, 0)
    assert first is not None
    for offset in (0, 9, 10, 24):
        assert store.store_time_at("订单", 0, offset) == first + 10 * offset
        for delta, lower, upper in ((0, offset, offset), (1, offset + 1, offset), (-1, offset, max(0, offset - 1))):
            at = first + 10 * offset + delta
            assert store.search_offset("订单", 0, at) == lower
            assert store.search_offset("订单", 0, at, boundary="upper") == upper
    assert store.search_offset("nobody", 0, first) == 0
    assert store.store_time_at("订单", 0, 25) is None
    with pytest.raises(UsageError):
        store.search_offset("订单", 0, first, boundary="middle")


def test_lookup_by_time_among_equal_times(world: Any) -> None:
    for pause in (0, 0, 0, 5, 0, 0, 7):
        world.store.put(Record("t", b""))
        world.clock.advance(pause)
    world.settle()
    times = [world.store.store_time_at("t", 0, at) for at in range(7)]
    assert [time - times[0] for time in times] == [0, 0, 0, 0, 5, 5, 5]
    asked = [(times[4] + delta, boundary) for boundary in ("lower", "upper") for delta in (-5, 0, 1)]
    assert [world.store.search_offset("t", 0, at, boundary=boundary) for at, boundary in asked] == [0, 4, 7, 3, 6, 6]


def test_lookup_by_key(world: Any, new_record: NewRecord) -> None:
    store = fill(world, 30, new_record)
    assert [record.property_map["KEYS"] for record in store.query("订单", "k7").records] == ["k7 common"]
    assert store.query("订单", "U000003").records[0].queue_offset == 3
    found = store.query("订单", "common", max_nums=10)
    assert found.physical_offsets == sorted(found.physical_offsets) and len(found) == 10
    assert found.index_last_update_phyoffset == store.consume_queue_unit("订单", 0, 29).physical_offset
    nothing = store.query("other", "k7")
    assert (nothing.records, nothing.index_last_update_phyoffset, nothing.index_last_update_timestamp) == ([], 0, 0)
    times = [store.store_time_at("订单", 0, at) for at in (0, 9)]
    early = store.query("订单", "common", begin_ms=0, end_ms=times[1]).records
    assert {record.queue_offset for record in early} >= {0, 9}


def test_what_is_told_of_an_arrival(world: Any, new_record: NewRecord) -> None:
    told: list[Any] = []
    world.store.on_arrival = lambda *values: told.append(values)
    world.store.put(new_record(0))
    world.store.put(new_record(1, queue_id=3))
    assert not told
    now = world.clock.now
    world.settle()
    assert [values[:5] for values in told] == [("订单", 0, 1, 2598919, now), ("订单", 3, 1, 1041, now)]
    assert dict(told[0][5]) == {"KEYS": "k0 common", "TAGS": "TagA", "UNIQ_KEY": "U000000"}


def test_deleting_a_topic(world: Any, new_record: NewRecord) -> None:
    store = fill(world, 5, new_record)
    store.put(new_record(1, topic="other"))
    world.settle()
    assert store.topics() == {"订单": [0], "other": [0]}
    assert store.delete_topic("订单") and not store.delete_topic("订单")
    assert store.topics() == {"other": [0]}
    assert not world.files.exists(f"{world.directory}/consumequeue/订单")
    assert store.put(new_record(9)).queue_offset == 0
    world.settle()
    assert [record.property_map["KEYS"] for record in store.get("订单", 0, 0).records()] == ["k9 common"]
