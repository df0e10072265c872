"""The commit-log unit: the fact sheet's bytes, one layout behind every reader and writer, and damage of every kind."""

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mqlab.errors import CorruptionError, UsageError
from mqlab.rocketmq.wire import properties, record
from mqlab.rocketmq.wire.host import encode_host
from mqlab.rocketmq.wire.record import MAGIC_V1, MAGIC_V2, Record

HELLO = Record(
    topic="TopicTest",
    body=b"Hello RocketMQ",
    queue_id=3,
    flag=7,
    born_timestamp=1700000000123,
    born_host=("10.1.2.3", 54321),
    store_timestamp=1700000000456,
    store_host=("192.168.0.7", 10911),
    properties=properties.encode({"KEYS": "k1 k2", "TAGS": "TagA", "UNIQ_KEY": "7F00000100002A139A55000000000000"}),
    queue_offset=42,
    physical_offset=1048576,
)
V1 = bytes.fromhex(
    "000000b1 daa320a7 69c865ed 00000003 00000007 000000000000002a 0000000000100000 00000000"
    "0000018bcfe5687b 0a010203 0000d431 0000018bcfe569c8 c0a80007 00002a9f 00000000 0000000000000000"
    "0000000e 48656c6c6f20526f636b65744d51 09 546f70696354657374"
    "003f 4b455953016b31206b32 02 544147530154616741 02"
    "554e49515f4b4559013746303030303031303030303241313339413535303030303030303030303030 02"
)
SMALLEST = bytes.fromhex(
    "00000064daa320a700000000000000000000000000000000000000000000000000000000000000000000018bcfe5687b"
    "0a0102030000d4310000018bcfe569c8c0a8000700002a9f0000000000000000000000000000000009546f706963546573740000"
)


def changed(original, **changes):
    fields = {name: getattr(original, name) for name in Record.__dataclass_fields__ if not name.startswith("_")}
    return Record(**{**fields, **changes})


def test_version_1():
    assert len(V1) == 177
    assert record.encode(HELLO) == V1
    found = record.decode(V1, check_crc=True)
    assert found == changed(HELLO, body_crc=0x69C865ED, magic=MAGIC_V1, total_size=177)
    assert found.offset_msg_id == "C0A8000700002A9F0000000000100000"
    assert found.property_map == {"KEYS": "k1 k2", "TAGS": "TagA", "UNIQ_KEY": "7F00000100002A139A55000000000000"}


def test_version_2_differs_in_three_places():
    second = record.encode(changed(HELLO, magic=MAGIC_V2))
    assert second == bytes.fromhex("000000b2daa320ab") + V1[8:102] + b"\x00" + V1[102:]
    assert record.decode(second).topic == "TopicTest"


def test_long_topics_become_version_2():
    assert record.decode(record.encode(changed(HELLO, topic="t" * 127))).magic == MAGIC_V1
    assert record.decode(record.encode(changed(HELLO, topic="t" * 128))).magic == MAGIC_V2
    with pytest.raises(UsageError, match="topic_length does not fit"):
        record.encode(changed(HELLO, topic="题" * 100))  # 100 characters stay V1, 300 bytes do not fit


def test_ipv6_hosts():
    six = record.encode(changed(HELLO, born_host=("2001:db8::1", 54321), store_host=("2001:db8::7", 10911)))
    assert len(six) == 201
    assert six.hex().startswith("000000c9daa320a7")
    assert six[36:40].hex() == "00000030"
    assert six[48:68].hex() == "20010db80000000000000000000000010000d431"
    assert six[76:96].hex() == "20010db800000000000000000000000700002a9f"
    assert record.decode(six).offset_msg_id == "20010DB800000000000000000000000700002A9F0000000000100000"
    assert record.encode(record.decode(six)) == six


def test_host_bits_follow_the_hosts():
    assert record.encode(changed(HELLO, sys_flag=0x30)) == V1
    mixed = record.decode(record.encode(changed(HELLO, sys_flag=0x301, store_host=("::1", 1))))
    assert (mixed.sys_flag, mixed.born_host, mixed.store_host) == (0x321, ("10.1.2.3", 54321), ("0:0:0:0:0:0:0:1", 1))


def test_smallest_unit():
    small = Record(
        "TopicTest",
        b"",
        born_timestamp=1700000000123,
        born_host=("10.1.2.3", 54321),
        store_timestamp=1700000000456,
        store_host=("192.168.0.7", 10911),
    )
    assert record.encode(small) == SMALLEST
    assert record.decode(SMALLEST, check_crc=True).body_crc == 0


@pytest.mark.parametrize(
    ("change", "named"),
    [
        ({"queue_id": 2**31}, "queue_id"),
        ({"queue_offset": 2**63}, "queue_offset"),
        ({"properties": b"x" * 32_768}, "properties_length"),
        ({"born_timestamp": 1.5}, "born_timestamp"),
        ({"topic": "t" * 32_768}, "topic_length"),
        ({"body_crc": 2**32}, "body_crc"),
        ({"store_host": ("broker-a", 10911)}, "not a host"),
    ],
)
def test_what_does_not_fit_is_named(change, named):
    with pytest.raises(UsageError, match=named):
        record.encode(changed(HELLO, **change))


def test_blank():
    assert record.blank(129).hex() == "00000081cbd43194"
    assert record.check(record.blank(129) + bytes(121)) == ("BLANK", 129, "")
    assert record.check(record.blank(129) + bytes(120)).kind == "INVALID"  # longer than what is left: no BLANK
    assert record.check(record.blank(8)).kind == "BLANK"
    with pytest.raises(CorruptionError, match="found BLANK"):
        record.decode(record.blank(8))


def test_limit_and_offset():
    log = bytes(5) + V1 + SMALLEST
    assert record.check(log, 5) == ("UNIT", 177, "")
    assert record.check(log, 182) == ("UNIT", 100, "")
    assert record.check(log, 5, 181).kind == "INVALID"
    assert record.decode(memoryview(log), 5, limit=182).topic == "TopicTest"
    with pytest.raises(CorruptionError) as caught:
        record.decode(log, 5, limit=181)
    assert (caught.value.offset, caught.value.expected, caught.value.found) == (5, "at most 176", 177)
    for offset in (-1, len(log), len(log) + 9):
        assert record.check(log, offset).kind == "INVALID"
    assert record.check(log, 182, 10_000) == ("UNIT", 100, "")


def test_the_body_check_sum():
    bad = bytearray(V1)
    bad[90] ^= 1
    assert record.check(bad).kind == "INVALID"
    assert record.check(bad, check_crc=False) == ("UNIT", 177, "")
    assert record.decode(bad).body != HELLO.body
    with pytest.raises(CorruptionError, match="check sum"):
        record.decode(bad, check_crc=True)


def test_a_negative_length_is_an_empty_body_to_rocketmq():
    bad = bytearray(SMALLEST)
    bad[84] ^= 0x80
    assert record.check(bad) == ("UNIT", 100, "")
    bad = bytearray(SMALLEST)
    bad[98] ^= 0x80
    assert record.check(bad) == ("UNIT", 100, "")
    bad = bytearray(SMALLEST)
    bad[88] ^= 0x80
    assert record.check(bad).kind == "INVALID"


def test_a_pull_body_ends_silently_at_what_cannot_be_decoded():
    assert [r.topic for r in record.decode_all(V1 + SMALLEST)] == ["TopicTest", "TopicTest"]
    bad = bytearray(V1)
    bad[5] ^= 1
    assert len(record.decode_all(V1 + bad + SMALLEST)) == 1
    assert record.decode_all(b"") == []


texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=30)
i32 = st.integers(-(2**31), 2**31 - 1)
i64 = st.integers(-(2**63), 2**63 - 1)
hosts = st.tuples(st.ip_addresses().map(str), st.integers(0, 65535))
records = st.builds(
    Record,
    topic=texts,
    body=st.binary(max_size=60),
    queue_id=i32,
    flag=i32,
    sys_flag=i32,
    born_timestamp=i64,
    born_host=hosts,
    store_timestamp=i64,
    store_host=hosts,
    reconsume_times=i32,
    prepared_transaction_offset=i64,
    properties=st.dictionaries(texts, texts, max_size=4).map(properties.encode),
    queue_offset=i64,
    physical_offset=i64,
    magic=st.sampled_from([None, MAGIC_V2]),
)


@given(records)
def test_every_reader_agrees(original):
    unit = record.encode(original)
    found = record.decode(unit, check_crc=True)
    assert record.encode(found) == unit
    assert record.check(unit) == ("UNIT", len(unit), "")
    for name in ("topic", "body", "queue_id", "flag", "queue_offset", "physical_offset", "properties"):
        assert getattr(found, name) == getattr(original, name)
    assert encode_host(found.born_host) == encode_host(original.born_host)
    fields = {field.name: field for field in record.field_map(unit)}
    assert list(fields) == [spec.name for spec in record.LAYOUT]
    for name, field in fields.items():
        if not name.endswith("_length"):
            assert field.value == getattr(found, name)
    assert b"".join(field.raw for field in fields.values()) == unit
    assert [field.offset for field in fields.values()] == [
        sum(field.size for field in list(fields.values())[:i]) for i in range(len(fields))
    ]


def test_the_layout_table_is_the_documented_one():
    fields = record.field_map(V1)
    documented = [0, 4, 8, 12, 16, 20, 28, 36, 40, 48, 56, 64, 72, 76, 84, 88, 102, 103, 112, 114]
    assert [field.offset for field in fields] == documented
    assert fields[1].note == "V1"
    assert record.field_map(record.blank(10))[1].note == "BLANK"
    assert len(record.field_map(record.blank(10) + bytes(90))) == 2


@pytest.mark.parametrize("unit", [V1, SMALLEST, record.encode(changed(HELLO, born_host=("::1", 5), magic=MAGIC_V2))])
def test_cut_at_every_byte(unit):
    for length in range(len(unit)):
        for cut in (unit[:length], memoryview(unit)[:length]):
            with pytest.raises(CorruptionError) as caught:
                record.decode(cut)
            assert caught.value.offset is not None and caught.value.found is not None
            assert record.check(cut).kind == "INVALID"
            record.field_map(cut)
        assert record.check(unit, 0, length).kind == "INVALID"


@pytest.mark.parametrize("unit", [V1, SMALLEST, record.encode(changed(HELLO, born_host=("::1", 5), magic=MAGIC_V2))])
def test_every_bit_flipped(unit):
    checked = {"total_size", "magic", "body_crc", "sys_flag", "body"}
    checked |= {"body_length", "topic_length", "properties_length"}
    for field in record.field_map(unit):
        for bit in range(field.size * 8):
            bad = bytearray(unit)
            bad[field.offset + bit // 8] ^= 1 << bit % 8
            verdict = record.check(bad)
            if field.name not in checked:
                assert verdict.kind == "UNIT"
            elif field.name in ("total_size", "magic", "body"):
                assert verdict.kind == "INVALID"
            elif field.name == "body_crc":  # an empty body is not summed
                assert verdict.kind == ("UNIT" if unit is SMALLEST else "INVALID")
            record.field_map(bad)
            try:
                record.decode(bad, check_crc=True)
            except CorruptionError as error:
                assert verdict.kind == "INVALID"
                assert error.offset is not None and error.expected is not None and error.found is not None
            else:
                assert verdict.kind == "UNIT"


@given(st.binary(max_size=300), st.integers(-5, 300), st.none() | st.integers(0, 400))
def test_any_bytes(data, offset, limit):
    record.check(data, offset, limit)
    record.field_map(data, max(offset, 0), limit=limit)
    record.decode_all(data)
    try:
        record.decode(data, offset, limit=limit)
    except CorruptionError as error:
        assert error.found is not None


@given(st.binary(max_size=200), i32, st.sampled_from([MAGIC_V1, MAGIC_V2]))
def test_any_bytes_after_a_good_start(data, size, magic):
    unit = struct.pack(">ii", size, magic) + data
    record.check(unit)
    record.check(struct.pack(">ii", len(unit), magic) + data)
    record.decode_all(unit)
