"""The texts under config/ against those a broker wrote, byte for byte."""

from __future__ import annotations

import hashlib

import pytest

from mqlab.errors import CorruptionError
from mqlab.rocketmq.store import config_texts

NAMES = ["topics.json", "subscriptionGroup.json", "consumerOffset.json", "delayOffset.json", "consumerFilter.json"]


def test_consumer_offsets_of_the_fact_sheet():
    text = config_texts.encode(
        "consumerOffset.json",
        {
            "offsetTable": {"TopicTest@g1": {0: 5, 3: 7}, "%RETRY%g1@g1": {0: 2}},
            "dataVersion": {"timestamp": 1700000000000, "counter": 0, "stateVersion": 0},
        },
    )
    assert len(text) == 220
    digest = "6b2e64c4386d54d69fbd255a91f945458f9fd9f42f7321ea996b92a90a76f209"
    assert hashlib.sha256(text.encode()).hexdigest() == digest


def test_numbers_are_ordered_by_bucket_like_names():
    text = config_texts.encode("delayOffset.json", {"offsetTable": {65: 1, 2: 2, 64: 3, 1: 4}})
    assert text.splitlines()[1] == '\t"offsetTable":{64:3,65:1,1:4,2:2'


def test_members_nobody_here_knows_are_kept():
    value = {"dataVersion": {}, "future": {"b": 1, "a": [1, "二"]}, "topicConfigTable": {"订单 😀": {"perm": 6}}}
    assert config_texts.decode("topics.json", config_texts.encode("topics.json", value)) == value


@pytest.mark.parametrize(
    "text", ['{"offsetTable":{"a@b":{"x":1}}}', '{"offsetTable":{"a@b":7}}', '{"offsetTable":[1]}', '"offsets"', "[]"]
)
def test_other_things_than_offsets_are_refused(text):
    with pytest.raises(CorruptionError):
        config_texts.decode("consumerOffset.json", text)
