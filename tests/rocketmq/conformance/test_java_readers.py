"""Java's readers, imitated: JSON as fastjson reads it, numbers, property files, and the tables that files hold."""

from __future__ import annotations

import base64
import re
from collections.abc import Callable
from typing import Any

import pytest

from mqlab.errors import CorruptionError
from mqlab.rocketmq.broker.tables.offsets import ConsumerOffsetTable
from mqlab.rocketmq.broker.tables.topics import TopicConfig
from mqlab.rocketmq.wire import java_json, java_numbers, java_properties

Vectors = Callable[[str], Any]

OTHER_HERE = {
    "": "an empty text is an error, no caller can use null",
    " ": "likewise",
    "{1 :1}": "fastjson reads it where the map's keys are numbers, and only there",
}


def by_name(value: Any) -> Any:
    """With keys as Java's JSONObject has them, all of them texts."""
    if isinstance(value, dict):
        return {str(key): by_name(each) for key, each in value.items()}
    return [by_name(each) for each in value] if isinstance(value, list) else value


def test_json(vectors: Vectors) -> None:
    cases = vectors("java-readers")["json"]
    assert len(cases) > 130
    for case in cases:
        if case["text"] in OTHER_HERE:
            continue
        if "error" in case:
            with pytest.raises(ValueError):
                print(case["text"], java_json.loads(case["text"]))
        else:
            assert by_name(java_json.loads(case["text"])) == case["value"], case["text"]


def test_numbers(vectors: Vectors) -> None:
    for case in vectors("java-readers")["numbers"]:
        for kind, parse in (("int", java_numbers.parse_int), ("long", java_numbers.parse_long)):
            if case[kind] is None:
                with pytest.raises(ValueError, match="For input string"):
                    print(case["text"], parse(case["text"]))
            else:
                assert parse(case["text"]) == case[kind], case["text"]


def test_property_files(vectors: Vectors) -> None:
    cases = vectors("java-readers")["properties"]
    assert len(cases) > 80
    for case in cases:
        data = base64.b64decode(case["bytes"])
        if "error" in case:
            with pytest.raises(ValueError, match="line 1: Malformed"):
                java_properties.loads(data)
        else:
            assert java_properties.loads(data) == case["value"], data


def test_offset_tables(vectors: Vectors) -> None:
    """A null table is refused at once, where RocketMQ fails at its first use."""
    unlike = {
        '{"offsetTable":{"o@g":{0:1e30}}}': "the low 64 bits of a number that is far too large",
        '{"offsetTable":{5:{0:5}}}': "a number as the name of a text",
        '{"OffsetTable":{"a@b":{0:1}}}': "other spellings of a name",
        '{"offset_table":{"a@b":{0:1}}}': "other spellings of a name",
        '{"offsettable":{"a@b":{0:1}}}': "other spellings of a name",
        '{"offsetTable":{null:{0:5}}}': "null as a name",
        "": "an empty file is no file",
    }
    for case in vectors("java-readers")["offsets"]:
        text = case["text"]
        if text in unlike:
            continue
        table = ConsumerOffsetTable(lambda: 7)
        if "error" in case or text == '{"offsetTable":null}':
            with pytest.raises(CorruptionError):
                print(text, table.decode(text) or table.offset_table)
        else:
            table.decode(text)
            assert by_name(table.offset_table) == (case["value"] or {}), text


def test_topics(vectors: Vectors) -> None:
    unlike = (
        "ReadQueueNums",
        "read_queue_nums",
        '"topicFilterType"',
        "{null:{}}",
        "null table",
        '"order":"yes"',
        "3000000000",
    )
    for case in vectors("java-readers")["topics"]:
        text = case["text"]
        if any(each in text for each in unlike) or text.startswith(('{"topicConfigTable":null', "null", "[]", "{}")):
            continue
        found = java_json.table(java_json.loads(text), "topicConfigTable") if "error" not in case else None
        if found is None:
            with pytest.raises((CorruptionError, ValueError)):
                table = java_json.table(java_json.loads(text), "topicConfigTable")
                print(text, [TopicConfig.from_value(topic) for topic in table.values()])
            continue
        topic = TopicConfig.from_value(found["t"] | {"topicName": "t"})
        shown = re.findall(r"(readQueueNums|writeQueueNums|order)=(\w+)", case["value"]["t"])
        assert shown == [
            ("readQueueNums", str(topic.read_queue_nums)),
            ("writeQueueNums", str(topic.write_queue_nums)),
            ("order", str(topic.order).lower()),
        ], text
