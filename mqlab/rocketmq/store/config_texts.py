"""The exact text of the files under ``config/``, down to the order of the keys in Java's maps.

Mirrors: encode(true) of TopicConfigManager, SubscriptionGroupManager, ConsumerOffsetManager, ConsumerFilterManager,
ScheduleMessageService (DelayOffsetSerializeWrapper). Lab 00 reads consumerOffset.json.

    file                    maps in it (key)                               buckets when empty
    topics.json             topicConfigTable (topic)                       2048
    subscriptionGroup.json  subscriptionGroupTable (group)                 2048      forbiddenTable (group)   8
    consumerOffset.json     offsetTable (topic@group)                      1024      its queues              64
    delayOffset.json        offsetTable (level)                              64
    consumerFilter.json     filterDataByTopic (topic)                       512      its groups              16

Object members are in alphabetical order, maps in bucket order. The order has no meaning, but with it
a broker's file that is read and written again has the same bytes.
Left out: the message-request-mode and topic-queue-mapping files, which no part of mqlab writes.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from mqlab.errors import CorruptionError
from mqlab.rocketmq.wire import java_json
from mqlab.rocketmq.wire.java_hash import hash_map_order

# file -> path of a map in it ("*" is any key of the map above) -> its buckets when empty
JAVA_MAPS: dict[str, dict[tuple[str, ...], int]] = {
    "topics.json": {("topicConfigTable",): 2048, ("topicConfigTable", "*", "attributes"): 16},
    "subscriptionGroup.json": {
        ("subscriptionGroupTable",): 2048,
        ("subscriptionGroupTable", "*", "attributes"): 16,
        ("forbiddenTable",): 8,
        ("forbiddenTable", "*"): 16,
    },
    "consumerOffset.json": {("groupTopicMap",): 128, ("offsetTable",): 1024, ("offsetTable", "*"): 64},
    "delayOffset.json": {("offsetTable",): 64},
    "consumerFilter.json": {("filterDataByTopic",): 512, ("filterDataByTopic", "*", "groupFilterData"): 16},
}
_TOPIC_SET_BUCKETS = 8


def encode(file_name: str, value: Mapping[str, Any]) -> str:
    """The text a broker writes for ``value`` (plain dicts, lists, strings and numbers; integer keys as ints).

    Maps may come in any order. For consumerOffset.json the redundant ``groupTopicMap`` is made from ``offsetTable``.

    >>> print(encode("delayOffset.json", {"offsetTable": {2: 20, 1: 10}}))
    {
        "offsetTable":{1:10,2:20
        }
    }
    """
    if file_name == "consumerOffset.json":
        value = {**value, "groupTopicMap": group_topic_map(value.get("offsetTable", {}))}
    return java_json.pretty(_in_java_order(value, JAVA_MAPS.get(file_name, {}), ()))


def decode(file_name: str, text: str) -> dict[str, Any]:
    """The plain values in a file's text; queue ids and delay levels are ints, quoted or not. Raises CorruptionError.

    >>> decode("consumerOffset.json", '{"offsetTable":{"orders@billing":{0:5,"1":7}}}')
    {'offsetTable': {'orders@billing': {0: 5, 1: 7}}}
    """
    try:
        value = java_json.loads(text)
    except ValueError as error:
        raise CorruptionError(
            "not a configuration file",
            where=file_name,
            expected="JSON",
            found=str(error),
            hint="repair the file, or remove it to start from the defaults",
        ) from error
    if not isinstance(value, dict):
        raise CorruptionError("not a configuration file", where=file_name, expected="an object", found=value)
    # JSON keys may be quoted: without this, queue 0 and queue "0" would be two queues.
    table = value.get("offsetTable")
    try:
        if file_name == "consumerOffset.json" and table is not None:
            value = {**value, "offsetTable": {key: _numbers(queues) for key, queues in table.items()}}
        elif file_name == "delayOffset.json" and table is not None:
            value = {**value, "offsetTable": _numbers(table)}
    except (AttributeError, TypeError, ValueError) as error:
        raise CorruptionError(
            "an offset table holds something other than numbers",
            where=file_name,
            expected="{0:5,1:7}",
            found=table,
            hint="repair the file, or remove it to start without offsets",
        ) from error
    return value


def group_topic_map(keys: Iterable[str]) -> dict[str, list[str]]:
    """What ConsumerOffsetManager.getGroupTopicMap makes of its keys: group -> topics; three-part keys are left out.

    >>> group_topic_map(["TopicTest@g1", "%RETRY%g1@g1", "tags@g2@broadcast"])
    {'g1': ['TopicTest', '%RETRY%g1']}
    """
    topics: dict[str, list[str]] = {}
    for key in _ordered(keys, JAVA_MAPS["consumerOffset.json"][("offsetTable",)]):
        parts = key.split("@")
        if len(parts) == 2:
            topics.setdefault(parts[1], []).append(parts[0])
    return {group: _ordered(names, _TOPIC_SET_BUCKETS) for group, names in topics.items()}


def _in_java_order(value: Any, maps: dict[tuple[str, ...], int], path: tuple[str, ...]) -> Any:
    if not isinstance(value, Mapping):
        return value
    buckets = next((size for known, size in maps.items() if _fits(path, known)), None)
    names = _ordered(value, buckets) if buckets is not None else sorted(value)
    return {name: _in_java_order(value[name], maps, (*path, str(name))) for name in names}


def _fits(path: tuple[str, ...], known: tuple[str, ...]) -> bool:
    return len(path) == len(known) and all(k in ("*", p) for p, k in zip(path, known, strict=True))


def _ordered(names: Iterable[Any], buckets: int) -> list[Any]:
    """Keys of a Java map with so many buckets; numbers hash to themselves."""
    listed = list(names)
    if not all(isinstance(name, int) for name in listed):
        return hash_map_order(listed, buckets)
    while len(listed) > buckets * 3 // 4:
        buckets *= 2
    return sorted(listed, key=lambda number: (number ^ (number & 0xFFFFFFFF) >> 16) & (buckets - 1))


def _numbers(table: Mapping[Any, Any]) -> dict[int, int]:
    return {java_json.to_int(key): java_json.to_long(offset) for key, offset in table.items()}
