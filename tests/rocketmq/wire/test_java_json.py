"""JSON as fastjson writes and reads it."""

import hashlib
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mqlab.rocketmq.wire import java_json

OFFSETS = {
    "dataVersion": {"counter": 0, "stateVersion": 0, "timestamp": 1700000000000},
    "groupTopicMap": {"g1": ["TopicTest", "%RETRY%g1"]},
    "offsetTable": {"%RETRY%g1@g1": {0: 2}, "TopicTest@g1": {0: 5, 3: 7}},
}


def test_consumer_offset_json_to_the_byte():
    text = java_json.pretty(OFFSETS)
    assert len(text) == 220
    assert hashlib.sha256(text.encode()).hexdigest() == (
        "6b2e64c4386d54d69fbd255a91f945458f9fd9f42f7321ea996b92a90a76f209"
    )
    assert java_json.loads(text) == OFFSETS


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("{0:5,3:7}", {0: 5, 3: 7}),
        ('{"0":5}', {"0": 5}),
        ("{-1:{},5:[]}", {-1: {}, 5: []}),
        ('{{"a":1}:2,{"b":{0:1}}:3}', {'{"a":1}': 2, '{"b":{"0":1}}': 3}),
        ('{ {\n\t"a":1\n} : 2 }', {'{"a":1}': 2}),
        ('[{0:"订单"},{1:"😀"}, null, true, -1.5e3]', [{0: "订单"}, {1: "😀"}, None, True, -1500.0]),
        (' {"a" : {0 :\t1} }\r\n', {"a": {0: 1}}),
        ('{0:"\\u0001\\n}"}', {0: "\x01\n}"}),
    ],
)
def test_what_python_refuses(text, value):
    assert java_json.loads(text) == value
    assert java_json.loads(text.encode()) == value


@pytest.mark.parametrize(
    "text",
    [
        "",
        " ",
        "{",
        "{0",
        "{0:",
        "{0:1",
        "{0:1,",
        "{0 1}",
        "{a-b:1}",
        "{0:1}}",
        "{0:1}x",
        "[1 2",
        "[{0:1} 2]",
        "{[1:2}",
        "{:1}",
        "{0:'x}",
        "{" * 5000,
        "[" * 5000 + "{0:1}",
        "{{" * 300,
        '{0:"x}',
        "{-:1}",
        "{" + "9" * 5000 + ":1}",
    ],
)
def test_what_is_no_json_at_all(text):
    with pytest.raises(ValueError):
        java_json.loads(text)


def test_errors_say_where():
    with pytest.raises(ValueError, match="position 3"):
        java_json.loads("{0 1}")


values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=5) | st.integers(), inner, max_size=4),
    max_leaves=12,
)


def without_nones(value):
    if isinstance(value, dict):
        return {key: without_nones(item) for key, item in value.items() if item is not None}
    return [without_nones(item) for item in value] if isinstance(value, list) else value


@given(values)
def test_what_pretty_writes_is_read(value):
    text = java_json.pretty(value)
    assert java_json.loads(text) == without_nones(value)
    assert java_json.loads(text.encode("utf-8")) == without_nones(value)


@given(values)
def test_compact_texts_are_standard_json(value):
    assert java_json.loads(java_json.to_json(value)) == json.loads(json.dumps(value))
    assert b": " not in java_json.to_json({"a": 1})


@given(values, st.data())
def test_damaged_texts(value, data):
    text = java_json.pretty(value)
    cut = data.draw(st.integers(0, len(text)))
    for damaged in (text[:cut], text[:cut] + data.draw(st.text('{}[]:,"0a \\', max_size=3)) + text[cut + 1 :]):
        try:
            java_json.loads(damaged)
        except ValueError:
            pass


@given(st.binary(max_size=40) | st.text('{}[]:,"01-\\ a', max_size=40))
def test_any_text(text):
    try:
        java_json.loads(text)
    except ValueError:
        pass
