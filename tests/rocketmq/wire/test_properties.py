"""The text form of properties, by the vectors of the fact sheet and by any bytes at all."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mqlab.rocketmq.wire import properties


@pytest.mark.parametrize(
    ("text", "decoded"),
    [
        ("a=b", {"a": "b"}),
        ("a=;", {}),
        ("=b;", {}),
        ("a=b=c;", {"a": "b\x01c"}),
        ("ab;c=d;", {"c": "d"}),
        ("a=b;;c=d", {"a": "b", "c": "d"}),
        ("a=b;a=c;", {"a": "c"}),
        ("", {}),
        ("==;", {}),
        ("a==;", {"a": "\x01"}),
    ],
)
def test_decode(text, decoded):
    text = text.replace("=", "\x01").replace(";", "\x02")
    assert properties.decode(text) == decoded
    assert properties.decode(text.encode()) == decoded
    assert properties.decode(memoryview(text.encode())) == decoded


def test_encode_keeps_order_and_ends_each_property():
    assert properties.encode({"颜色": "红", "TAGS": "标签"}).hex() == ("e9a29ce889b201e7baa2025441475301e6a087e7adbe02")
    assert properties.encode({"b": "", "a": "x"}) == b"b\x01\x02a\x01x\x02"
    assert properties.encode({}) == b""


names = st.text(st.characters(exclude_characters="\x01\x02", exclude_categories=["Cs"]), min_size=1)


@given(st.dictionaries(names, names))
def test_what_is_written_is_read(given_properties):
    encoded = properties.encode(given_properties)
    assert properties.decode(encoded) == given_properties
    assert list(properties.decode(encoded)) == list(given_properties)
    assert properties.decode(encoded.removesuffix(b"\x02")) == given_properties


@given(st.binary())
def test_any_bytes_decode(data):
    properties.decode(data)


def test_bad_utf8_and_lone_surrogates_are_replaced():
    assert properties.decode(b"a\x01\xff\x02") == {"a": "�"}
    assert properties.encode({"a": "\ud83d"}) == b"a\x01?\x02"


@given(st.lists(st.sampled_from([b"KEYS", b"EYS", b"TAGS", b"\x01", b"\x02", b"a b", b"\xe5\x9f", b"\xff", b""])))
def test_one_value_is_what_it_is_among_all(pieces):
    data = b"".join(pieces)
    assert properties.value_of(data, b"KEYS") == properties.decode(data).get("KEYS")
