"""Consume queue units and the parts of an index file, by the fact sheet's bytes."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mqlab.errors import CorruptionError
from mqlab.rocketmq.wire import units
from mqlab.rocketmq.wire.java_hash import index_key_hash, tags_code


@pytest.mark.parametrize(
    ("tags", "code"),
    [
        ("TagA", "000000000027a807"),
        ("TopicTest", "ffffffff8e987641"),
        ("订单", "0000000000113bf3"),
        (None, "0000000000000000"),
    ],
)
def test_queue_units(tags, code):
    unit = units.encode_cq(1048576, 177, tags_code(tags))
    assert unit.hex() == "0000000000100000000000b1" + code
    assert units.decode_cq(bytes(7) + unit, 7) == (1048576, 177, tags_code(tags))


def test_a_unit_of_the_schedule_topic_holds_the_deliver_time():
    assert units.encode_cq(519, 165, 1700000000456 + 10_000).hex() == "0000000000000207000000a50000018bcfe590d8"


def test_the_preblank_unit():
    assert units.PREBLANK.hex() == "00000000000000007fffffff0000000000000000"
    assert units.decode_cq(units.PREBLANK) == (0, units.PREBLANK_SIZE, 0)


@pytest.mark.parametrize("length", range(20))
def test_a_cut_unit(length):
    with pytest.raises(CorruptionError) as caught:
        units.decode_cq(memoryview(bytes(5 + length)), 5)
    assert (caught.value.offset, caught.value.expected, caught.value.found) == (5, "20 bytes", length)
    assert len(units.cq_field_map(bytes(length))) == sum(length >= end for end in (8, 12, 20))


@given(st.binary(min_size=20, max_size=20))
def test_any_20_bytes_are_a_unit(data):
    assert units.encode_cq(*units.decode_cq(data)) == data
    fields = units.cq_field_map(data)
    assert tuple(field.value for field in fields) == units.decode_cq(data)
    assert b"".join(field.raw for field in fields) == data


INDEX = bytes.fromhex(
    "0000018bcfe569c8 0000018bcfe57198 0000000000000000 0000000000000166 00000002 00000005"
    + "00000000" * 4
    + "00000004 00000002"
    + "00000000" * 4
    + "00" * 20
    + "0029e6a8 0000000000000000 00000000 00000000"
    + "0029e6a9 0000000000000000 00000000 00000000"
    + "0029e6a8 00000000000000b3 00000001 00000001"
    + "0029e6a8 0000000000000166 00000002 00000003"
    + "00" * 60
)


def test_the_parts_of_an_index_file():
    assert len(INDEX) == units.INDEX_HEADER_SIZE + 10 * units.INDEX_SLOT_SIZE + 8 * units.INDEX_ENTRY_SIZE
    assert units.INDEX_HEADER.unpack_from(INDEX) == (1700000000456, 1700000002456, 0, 358, 2, 5)
    header = {field.name: field.value for field in units.index_header_field_map(INDEX)}
    assert header == {
        "begin_timestamp": 1700000000456,
        "end_timestamp": 1700000002456,
        "begin_physical_offset": 0,
        "end_physical_offset": 358,
        "hash_slot_count": 2,
        "index_count": 5,
    }
    slot = index_key_hash("TopicTest#k1") % 10
    assert slot == 4
    assert units.index_slot_field_map(INDEX, 40 + 4 * slot)[0].value == 4
    chain, number = [], 4
    while number:
        at = 40 + 10 * units.INDEX_SLOT_SIZE + number * units.INDEX_ENTRY_SIZE
        key_hash, physical_offset, seconds, number = units.INDEX_ENTRY.unpack_from(INDEX, at)
        assert key_hash == index_key_hash("TopicTest#k1")
        assert [field.value for field in units.index_entry_field_map(INDEX, at)] == [
            key_hash,
            physical_offset,
            seconds,
            number,
        ]
        chain.append((physical_offset, seconds))
    assert chain == [(358, 2), (179, 1), (0, 0)]
