"""POP's names, handles and bodies against the answers of the Java classes of 5.3.3."""

from __future__ import annotations

import json
from typing import Any

import pytest

from mqlab.rocketmq.wire.pop import (
    Ack,
    BatchAck,
    CheckPoint,
    Handle,
    bits_in,
    kind_of_topic,
    normal_topic,
    pop_retry_topic,
)
from mqlab.rocketmq.wire.recall_handle import RecallHandle, decode_recall_handle
from tests.rocketmq.broker.replayed import recorded

VECTORS = recorded("pop_vectors")
POINT = CheckPoint("orders", "g", 2, 12, 1_700_000_000_123, 60_000, 3, (0, 1, 3), "broker-a")


@pytest.mark.parametrize("vector", VECTORS["extraInfo"], ids=lambda vector: vector["topic"])
def test_names_and_handles(vector: dict[str, Any]) -> None:
    topic = vector["topic"]
    handle = Handle(12, 1_700_000_000_123, 60_000, 3, kind_of_topic(topic), "broker-a", 2, 15)
    assert handle.text == vector["extraInfo8"] and Handle.parse(vector["extraInfo8"]) == handle
    assert Handle.parse(vector["extraInfo7"]).queue_id == 2
    assert (pop_retry_topic(topic, "g"), pop_retry_topic(topic, "g", v2=True)) == (vector["retryV1"], vector["retryV2"])
    assert normal_topic(topic) == vector["parseNormalTopic"]
    if not vector["parseNormalTopicOfGroupG"].startswith("throws"):
        assert normal_topic(topic, "g") == vector["parseNormalTopicOfGroupG"]


@pytest.mark.parametrize(
    ("topic", "without_group", "of_group_g"),
    [
        ("a+b", "a+b", "a+b"),
        ("%RETRY%g_", "%RETRY%g_", ""),
        ("%RETRY%g+", "%RETRY%g+", ""),
        ("%RETRY%g+a+b", "%RETRY%g+a+b", "a+b"),
        ("%RETRY%g++a", "%RETRY%g++a", "+a"),
        ("%RETRY%g+a+", "a", "a+"),
        ("%RETRY%+a", "a", ""),
        ("%RETRY%gg_orders", "%RETRY%gg_orders", "_orders"),
        ("%RETRY%gg+orders", "orders", "+orders"),
        ("%RETRY%g_a+b", "b", "a+b"),
        ("%RETRY%x_orders", "%RETRY%x_orders", "orders"),
        ("%retry%g_orders", "%retry%g_orders", "%retry%g_orders"),
    ],
)
def test_odd_names_of_retry_topics_as_key_builder_reads_them(topic: str, without_group: str, of_group_g: str) -> None:
    assert (normal_topic(topic), normal_topic(topic, "g")) == (without_group, of_group_g)


def test_check_points() -> None:
    assert POINT.encode().decode() == VECTORS["checkPoint"] and CheckPoint.decode(POINT.encode()) == POINT
    assert CheckPoint.decode(VECTORS["checkPointPutAgain"].encode()).encode().decode() == VECTORS["checkPointPutAgain"]
    assert {offset: POINT.index_of(int(offset)) for offset in VECTORS["indexOfAck"]} == VECTORS["indexOfAck"]
    bare = CheckPoint.decode(VECTORS["checkPointWithoutDiff"].encode())
    assert {offset: bare.index_of(int(offset)) for offset in VECTORS["indexOfAckWithoutDiff"]} == VECTORS[
        "indexOfAckWithoutDiff"
    ]
    long_names = {"startOffset": 12, "popTime": 5, "invisibleTime": 7, "queueId": 2, "topic": "orders", "cid": "g"}
    assert CheckPoint.decode(json.dumps(long_names).encode()).revive_time == 12


def test_acks() -> None:
    ack = Ack("orders", "g", 2, 12, 1_700_000_000_123, "broker-a", 13)
    several = Ack("orders", "g", 2, 12, 1_700_000_000_123, "broker-a", -1, (12, 15))
    assert ack.encode().decode() == VECTORS["ack"] and Ack.decode(ack.encode()) == ack
    assert several.encode().decode() == VECTORS["batchAck"] and Ack.decode(several.encode()) == several
    assert ack.merge_key == several.merge_key == POINT.merge_key


@pytest.mark.parametrize("vector", VECTORS["batchAckRequest"], ids=lambda vector: str(vector["bits"]))
def test_batch_ack_requests(vector: dict[str, Any]) -> None:
    entry = BatchAck("g", "orders", "0", 12, 2, 3, 1_700_000_000_123, 60_000, tuple(vector["bits"]))
    assert BatchAck.from_value(json.loads(vector["body"])["acks"][0]) == entry
    assert bits_in(json.loads(vector["body"])["acks"][0]["b"]) == tuple(vector["bits"])


def test_recall_handles() -> None:
    text = VECTORS["recallHandle"]
    assert decode_recall_handle(text) == RecallHandle("orders", "broker-a", "1700000000001", "7F000001")
    assert decode_recall_handle(text).encode() == text


@pytest.mark.parametrize("text", ["", "0 1 2", "a b c d e f g h"])
def test_a_handle_that_cannot_be_read(text: str) -> None:
    with pytest.raises(ValueError, match=r"getBrokerName|For input string"):
        Handle.parse(text)
