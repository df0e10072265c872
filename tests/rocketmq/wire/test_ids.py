"""Hosts and message ids."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mqlab.errors import CorruptionError, UsageError
from mqlab.rocketmq.wire.host import decode_host, encode_host, host_of
from mqlab.rocketmq.wire.ids import UniqueIdMaker, offset_msg_id, parse_offset_msg_id


def test_offset_ids_of_the_fact_sheet():
    assert offset_msg_id(("192.168.0.7", 10911), 1048576) == "C0A8000700002A9F0000000000100000"
    six = "20010DB800000000000000000000000700002A9F0000000000100000"
    assert offset_msg_id(("2001:db8::7", 10911), 1048576) == six
    assert parse_offset_msg_id(six) == (("2001:db8:0:0:0:0:0:7", 10911), 1048576)


@given(st.ip_addresses().map(str), st.integers(0, 65535), st.integers(-(2**63), 2**63 - 1))
def test_offset_ids_round_trip(address, port, physical_offset):
    text = offset_msg_id((address, port), physical_offset)
    host, found = parse_offset_msg_id(text)
    assert found == physical_offset
    assert encode_host(host) == encode_host((address, port))
    assert parse_offset_msg_id(text.lower()) == (host, found)


@given(st.text(max_size=60) | st.text("0123456789abcdefABCDEF \n", max_size=60))
def test_other_texts_are_refused(text):
    try:
        host, physical_offset = parse_offset_msg_id(text)
    except CorruptionError as error:
        assert error.expected == "32 or 56 hex digits"
    else:
        assert offset_msg_id(host, physical_offset) == text.upper()


@pytest.mark.parametrize("host", [("localhost", 1), ("1.2.3", 1), ("1.2.3.4", 2**31), ("", 0)])
def test_what_is_not_a_host_is_named(host):
    with pytest.raises(UsageError, match="not a host"):
        encode_host(host)


def test_a_host_of_a_wrong_length():
    with pytest.raises(CorruptionError):
        decode_host(b"1234567")


@pytest.mark.parametrize("text", ["10.0.0.1", ":1", "10.0.0.1:x", "10.0.0.1:"])
def test_what_is_not_an_address_is_named(text):
    with pytest.raises(UsageError, match="not an address"):
        host_of(text)


def test_unique_id_of_the_fact_sheet():
    assert UniqueIdMaker("192.168.0.7", 4021, 0x30946E09, counter=10).next(1700000000456) == (
        "C0A800070FB530946E0947B761C8000A"
    )
    assert len(UniqueIdMaker("fd00::2", 4021, 7).next(0)) == 56


def test_unique_ids_over_a_month_border_and_a_full_counter():
    maker = UniqueIdMaker("10.0.0.5", 70000, -1, counter=65535)
    new_year_ms = 1735689600000
    assert maker.next(new_year_ms - 1).endswith(f"{31 * 86_400_000 - 1:08X}FFFF")
    assert maker.next(new_year_ms).endswith("000000000000")
    assert maker.next(new_year_ms - 1).endswith(f"{31 * 86_400_000 - 1:08X}0001")


def test_unique_ids_differ():
    maker = UniqueIdMaker("10.0.0.5", 1, 1)
    assert len({maker.next(5) for _ in range(65536)}) == 65536
    with pytest.raises(UsageError):
        UniqueIdMaker("host", 1, 1)
