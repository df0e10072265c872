"""The check sum in a unit's last property."""

from hypothesis import given
from hypothesis import strategies as st

from mqlab.rocketmq.wire import property_crc, record
from mqlab.rocketmq.wire.record import Record

SEALED = bytes.fromhex(
    "00000084daa320a758932aac000000000000000000000000000000000000000000000000000000000000018bcfe5687b"
    "0a0102030000d4310000018bcfe569c8c0a8000700002a9f000000000000000000000000000000026869095 46f706963546573740"
    "01e5441475301546167 41025f5f4352433332230134393336323232363730 02".replace(" ", "")
)


def unit_with(properties):
    unit = Record(
        "TopicTest",
        b"hi",
        born_timestamp=1700000000123,
        born_host=("10.1.2.3", 54321),
        store_timestamp=1700000000456,
        store_host=("192.168.0.7", 10911),
        properties=properties,
    )
    return bytearray(record.encode(unit))


def test_the_unit_of_the_fact_sheet():
    unit = unit_with(property_crc.with_room(b"TAGS\x01TagA"))
    property_crc.seal(unit)
    assert unit == SEALED
    assert property_crc.is_right(SEALED) is True
    assert record.decode(SEALED).property_map["__CRC32#"] == "4936222670"
    assert record.field_map(SEALED)[-1].note == "__CRC32# is right"


def test_every_flipped_byte_is_noticed():
    for position in range(len(SEALED) - property_crc.SIZE):
        damaged = bytearray(SEALED)
        damaged[position] ^= 0x10
        assert property_crc.is_right(damaged) is False


def test_units_without_it():
    assert property_crc.is_right(unit_with(b"TAGS\x01TagA\x02")) is None
    assert property_crc.is_right(b"") is None


@given(st.binary(max_size=30), st.integers(0, 200), st.integers(0, 255))
def test_any_properties(properties, position, value):
    unit = unit_with(property_crc.with_room(properties))
    property_crc.seal(unit)
    assert property_crc.is_right(unit) is True
    if position < len(unit) and unit[position] != value:
        unit[position] = value
        assert property_crc.is_right(unit) is not True
        assert property_crc.is_right(memoryview(unit)) is not True
