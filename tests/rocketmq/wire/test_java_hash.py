"""Java's hashes and orders, by the vectors of the fact sheet and by plain definitions."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mqlab.rocketmq.wire import java_hash


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("", 0),
        ("a", 97),
        ("TagA", 2598919),
        ("TagB", 2598920),
        ("TagA||TagB", 1789476431),
        ("TopicTest", -1902610879),
        ("你好", 652829),
        ("订单", 1129459),
        ("😀", 1772899),
        ("🚀Ünïcode", -2040677305),
        ("polygenelubricants", -2147483648),
        ("订单#🚀", -710218637),
        ("TagA|TagB", -1051832611),
        ("AaAa", 2031744),
        ("AaBB", 2031744),
        ("*", 42),
    ],
)
def test_string_hash(text, value):
    assert java_hash.string_hash(text) == value
    assert java_hash.tags_code(text) == value


@pytest.mark.parametrize(
    ("key", "value", "slot"),
    [
        ("TopicTest#key-1", 204089217, 4089217),
        ("TopicTest#C0A80007000100000000000000010000", 443455791, 3455791),
        ("TopicTest#k1", 2746024, 2746024),
        ("TopicTest#k2", 2746025, 2746025),
        ("订单#🚀", 710218637, 218637),
        ("polygenelubricants", 0, 0),
    ],
)
def test_index_key_hash(key, value, slot):
    assert java_hash.index_key_hash(key) == value
    assert value % 5_000_000 == slot


@given(st.text(max_size=200))
def test_string_hash_by_definition(text):
    data = text.encode("utf-16-be")
    value = 0
    for high, low in zip(data[::2], data[1::2], strict=True):
        value = (value * 31 + (high << 8 | low)) % 2**32
    assert java_hash.string_hash(text) % 2**32 == value
    assert -(2**31) <= java_hash.string_hash(text) < 2**31
    assert 0 <= java_hash.index_key_hash(text) < 2**31


def test_lone_surrogates_hash_as_java_does():
    assert java_hash.string_hash("\ud83d") == 0xD83D


def test_order_of_a_client_message_and_of_the_stored_one():
    client = ["TAGS", "KEYS", "WAIT", "UNIQ_KEY", "color"]
    assert java_hash.hash_map_order(client) == ["color", "KEYS", "UNIQ_KEY", "WAIT", "TAGS"]
    stored = [*java_hash.hash_map_order(client), "MSG_REGION", "TRACE_ON"]
    assert java_hash.hash_map_order([*java_hash.hash_map_order(stored, 128), "CLUSTER"], 128) == [
        "MSG_REGION",
        "UNIQ_KEY",
        "CLUSTER",
        "TAGS",
        "color",
        "KEYS",
        "WAIT",
        "TRACE_ON",
    ]


def test_a_full_map_doubles():
    names = [chr(97 + i) for i in range(13)]  # 13 of 16 is more than three quarters: 32 buckets
    assert java_hash.hash_map_order(reversed(names)) == names
    assert java_hash.hash_map_order(["p", "@"], 16) == ["p", "@"]  # 112 and 64 share bucket 0 of 16
    assert java_hash.hash_map_order(["p", "@"], 128) == ["@", "p"]


def test_names_given_twice_keep_their_first_place():
    assert java_hash.hash_map_order(["p", "@", "p"]) == ["p", "@"]


@given(st.lists(st.text("p@AaB", max_size=4)), st.lists(st.text("p@AaB", max_size=4)), st.sampled_from([1, 16, 128]))
def test_a_second_pass_through_a_map_of_the_same_size_changes_nothing(first, more, capacity):
    """RocketMQ's broker puts the properties through two maps: one is enough, even where keys share a bucket."""
    twice = java_hash.hash_map_order([*java_hash.hash_map_order(first, capacity), *more], capacity)
    assert java_hash.hash_map_order([*first, *more], capacity) == twice


@given(st.lists(st.text(max_size=5)))
def test_utf16_key_orders_by_unit(texts):
    def units(text):
        data = text.encode("utf-16-be")
        return [high << 8 | low for high, low in zip(data[::2], data[1::2], strict=True)]

    assert sorted(texts, key=java_hash.utf16_key) == sorted(texts, key=units)


def test_crc32():
    assert java_hash.crc32(b"Hello RocketMQ") == 0x69C865ED
    assert java_hash.crc32(b"hi") == 0x58932AAC
    assert java_hash.crc32(b"") == 0
    assert java_hash.crc32(memoryview("привет 你好 😀".encode())) < 2**31
