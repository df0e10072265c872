"""Messages, queues and compressed bodies as a program holds them."""

import zlib

import lz4.frame
import pytest
import zstandard
from hypothesis import given
from hypothesis import strategies as st

from mqlab.errors import CorruptionError, UsageError
from mqlab.rocketmq.wire import message, properties, property_names, record
from mqlab.rocketmq.wire.compression import decompressed_body
from mqlab.rocketmq.wire.message import Message, MessageExt, MessageQueue, decode_messages
from mqlab.rocketmq.wire.record import Record

BODY = "заказ 订单 😀 ".encode() * 400
COMPRESSED = {
    0x301: zlib.compress(BODY),
    0x001: zlib.compress(BODY),
    0x101: lz4.frame.compress(BODY),
    0x201: zstandard.ZstdCompressor().compress(BODY),
}


def test_queues_sort_by_utf16_units():
    queues = [MessageQueue("！", "b", 0), MessageQueue("😀", "b", 0)]
    queues += [MessageQueue("a", "b", 11), MessageQueue("a", "b", 2)]
    assert sorted(queues) == [queues[3], queues[2], queues[1], queues[0]]
    assert not queues[0] < queues[0]
    assert {queues[0]: 1}[MessageQueue("！", "b", 0)] == 1


def test_views_on_the_properties():
    sent = Message("orders", b"", "paid", ["k1", "k2"], properties={"region": "eu"}, delay_time_level=3)
    assert (sent.tags, sent.keys, sent.delay_time_level, sent.wait_store_msg_ok) == ("paid", "k1 k2", 3, True)
    assert sent.properties == {"region": "eu", "TAGS": "paid", "KEYS": "k1 k2", "DELAY": "3", "WAIT": "true"}
    sent.tags, sent.keys, sent.delay_time_level, sent.wait_store_msg_ok = "订单", "k", 0, False
    assert sent.properties == {"region": "eu", "TAGS": "订单", "KEYS": "k", "DELAY": "0", "WAIT": "false"}
    assert "tags='订单'" in repr(sent)
    bare = Message("orders", memoryview(b"x"))
    assert (bare.tags, bare.keys, bare.delay_time_level, bare.transaction_id, bare.body) == (None, None, 0, None, b"x")


@pytest.mark.parametrize(("text", "level"), [("-1", -1), ("18", 18), ("+3", 3), ("３", 3)])
def test_a_delay_level_is_read_as_java_reads_an_integer(text, level):
    sent = Message("t", b"")
    sent.properties["DELAY"] = text
    assert sent.delay_time_level == level


@pytest.mark.parametrize("text", ["", "x", "--5", "1.5", "2147483648"])
def test_a_delay_level_that_is_not_an_integer_is_refused(text):
    sent = Message("t", b"")
    sent.properties["DELAY"] = text
    with pytest.raises(UsageError, match="DELAY is not a delay level"):
        print(sent.delay_time_level)


@pytest.mark.parametrize("name", sorted(property_names.SYSTEM_NAMES))
def test_a_name_of_the_system_is_no_users_property(name):
    with pytest.raises(UsageError, match="is used by system"):
        Message("t", b"", properties={name: "true"})


@pytest.mark.parametrize("wrong", ["a\x02b", "paid\x02x\x01y"])
def test_a_byte_that_separates_properties_is_refused_in_tags_and_keys(wrong):
    for make in (
        lambda: Message("t", b"", tags=wrong),
        lambda: Message("t", b"", keys=wrong),
        lambda: Message("t", b"", keys=["k", wrong]),
        lambda: setattr(Message("t", b""), "tags", wrong),
        lambda: setattr(Message("t", b""), "keys", wrong),
    ):
        with pytest.raises(UsageError, match="separate properties"):
            make()


def test_properties_given_are_not_changed():
    given_properties = {"region": "a"}
    Message("t", b"", "b", properties=given_properties)
    assert given_properties == {"region": "a"}


def test_numbers_and_truth_values_travel_as_javas_text():
    own = Message("t", b"", properties={"amount": 5, "price": 1.5, "vip": True, "город": "北京 🏙"}).properties
    assert {name: own[name] for name in ("amount", "price", "vip", "город")} == {
        "amount": "5",
        "price": "1.5",
        "vip": "true",
        "город": "北京 🏙",
    }


@pytest.mark.parametrize("wrong", [{"a": None}, {"a": ""}, {"a": "  "}, {"": "x"}, {5: "x"}, {None: "x"}, {"a": ["x"]}])
def test_a_property_that_would_vanish_is_refused(wrong):
    with pytest.raises(UsageError, match="cannot be sent"):
        Message("t", b"", properties=wrong)


@pytest.mark.parametrize("wrong", [{"a\x01b": "x"}, {"a\x02": "x"}, {"a": "x\x02y"}])
def test_separators_in_a_property_are_refused(wrong):
    with pytest.raises(UsageError, match="separate properties"):
        Message("t", b"", properties=wrong)


@pytest.mark.parametrize(
    ("wrong", "word"),
    [({"tags": 5}, "tags is a text"), ({"keys": 5}, "keys are a text"), ({"keys": ["a", 7]}, "keys are a text")],
)
def test_tags_and_keys_are_text(wrong, word):
    with pytest.raises(UsageError, match=word):
        Message("t", b"", **wrong)


def test_a_body_is_bytes():
    with pytest.raises(UsageError, match="not str"):
        Message("t", "text")


def stored(body, sys_flag=0, **values):
    unit = Record(
        "orders",
        body,
        3,
        sys_flag=sys_flag,
        properties=properties.encode({"UNIQ_KEY": "7F", "TAGS": "标签"}),
        queue_offset=5,
        physical_offset=1048576,
        store_host=("192.168.0.7", 10911),
        **values,
    )
    return record.decode(record.encode(unit))


def test_a_stored_message():
    found = MessageExt.from_record(stored(b"hi", reconsume_times=2, flag=9), "broker-a")
    assert (found.msg_id, found.offset_msg_id) == ("7F", "C0A8000700002A9F0000000000100000")
    assert found.message_queue == MessageQueue("orders", "broker-a", 3)
    assert (found.tags, found.body, found.reconsume_times, found.flag) == ("标签", b"hi", 2, 9)
    assert (found.queue_offset, found.physical_offset, found.store_size) == (5, 1048576, stored(b"hi").total_size)
    assert found.body_crc == stored(b"hi").body_crc
    del found.properties["UNIQ_KEY"]
    assert found.msg_id == found.offset_msg_id


@pytest.mark.parametrize("sys_flag", COMPRESSED)
def test_compressed_bodies(sys_flag):
    assert MessageExt.from_record(stored(COMPRESSED[sys_flag], sys_flag)).body == BODY


@pytest.mark.parametrize("sys_flag", COMPRESSED)
def test_cut_compressed_bodies(sys_flag):
    whole = COMPRESSED[sys_flag]
    for length in range(len(whole)):
        with pytest.raises(CorruptionError):
            decompressed_body(whole[:length], sys_flag)


@given(st.sampled_from(sorted(COMPRESSED)), st.data())
def test_damaged_compressed_bodies(sys_flag, data):
    damaged = bytearray(COMPRESSED[sys_flag])
    damaged[data.draw(st.integers(0, len(damaged) - 1))] ^= data.draw(st.integers(1, 255))
    try:
        decompressed_body(bytes(damaged), sys_flag)
    except CorruptionError as error:
        assert error.found is not None


def test_an_unknown_compression():
    with pytest.raises(CorruptionError, match="0x700"):
        decompressed_body(b"x", 0x701)


def test_a_body_that_does_not_decompress_ends_the_answer():
    units = [stored(b"one"), stored(b"no zlib", 0x301), stored(b"three")]
    data = b"".join(map(record.encode, units))
    assert [m.body for m in decode_messages(data, "broker-a")] == [b"one"]
    assert decode_messages(record.encode(units[0]))[0].broker_name == ""


def test_send_results_name_their_status():
    result = message.SendResult("SEND_OK", "7F", "C0", MessageQueue("t", "b", 0), 5)
    assert (result.transaction_id, result.region_id) == (None, "DefaultRegion")
