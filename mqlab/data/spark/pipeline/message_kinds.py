"""Units of the log as messages: what each is, the topic that its sender named, and the group that sent it back.

Mirrors: the names of TopicValidator and MixAll; MessageConst's RETRY_TOPIC, REAL_TOPIC, ORIGIN_MESSAGE_ID.

    topic                      kind     user_topic
    orders                     normal   orders
    %RETRY%billing             retry    RETRY_TOPIC                    consumer_group billing
    %DLQ%billing               dead     RETRY_TOPIC                    consumer_group billing
    SCHEDULE_TOPIC_XXXX        as REAL_TOPIC says, parked              its message, or RETRY_TOPIC for a retry's
    rmq_sys_wheel_timer        the same; POP's check points and acks are system
    RMQ_SYS_TRANS_HALF_TOPIC   half     REAL_TOPIC
    RMQ_SYS_TRACE_TOPIC        trace    null; its keys (all ids in it) are left out        ... and op, system

Thousands of units have few different topics, so each name is examined once, and columns are made by Arrow.
Left out: which half messages were committed; those are stored again in their topic, as normal messages.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import pyarrow
import pyarrow.compute
from pyspark.sql import DataFrame

from mqlab.data.spark.pipeline.log_units import PLAIN
from mqlab.data.spark.pipeline.schemas import MESSAGES, checked, needs
from mqlab.data.spark.small_tables import arrow_schema
from mqlab.rocketmq.wire import names
from mqlab.rocketmq.wire import property_names as p

NORMAL, RETRY, DEAD, HALF, OP, TRACE, SYSTEM = "normal", "retry", "dead", "half", "op", "trace", "system"
PARKED_IN = (names.SCHEDULE_TOPIC, names.TIMER_TOPIC)
OF_ANOTHER_TOPIC = (*PARKED_IN, names.HALF_TOPIC)  # stored there, and meant for the topic in a property


def messages(raw: DataFrame) -> DataFrame:
    """Units (``log_units.PLAIN`` and ``properties``, or more columns of the source) -> MESSAGES; of a stream too."""
    needs(raw, [*PLAIN, "properties"], "messages")
    rows = raw.select(*PLAIN, "properties").mapInArrow(_messages_of_batches, MESSAGES)
    return checked(rows, MESSAGES, "messages")


def _messages_of_batches(batches: Iterator[pyarrow.RecordBatch]) -> Iterator[pyarrow.RecordBatch]:
    schema = arrow_schema(MESSAGES)
    for batch in batches:
        property_of = functools.partial(_of_maps, batch.column("properties"))
        yield messages_in({name: batch.column(name) for name in PLAIN}, property_of, schema)


def _of_maps(maps: pyarrow.MapArray, name: str) -> pyarrow.Array:
    return pyarrow.compute.map_lookup(maps, pyarrow.scalar(name), "last")


def messages_in(
    columns: Mapping[str, pyarrow.Array], property_of: Callable[[str], pyarrow.Array], schema: pyarrow.Schema
) -> pyarrow.RecordBatch:
    """Columns PLAIN of some units, and a function that gives a property of all of them -> MESSAGES.

    ``schema`` is MESSAGES as Arrow has it.
    """
    either = pyarrow.compute.if_else
    nothing = pyarrow.nulls(len(columns["topic"]), pyarrow.string())
    # 1. A parked or half message belongs to the topic in its properties, which few units have.
    stored_in = ByTopic(columns["topic"])
    elsewhere = stored_in.flags(lambda topic: topic in OF_ANOTHER_TOPIC)
    is_any = elsewhere.true_count > 0
    meant = ByTopic(either(elsewhere, property_of(p.REAL_TOPIC), columns["topic"]) if is_any else columns["topic"])
    is_half = stored_in.flags(lambda topic: topic == names.HALF_TOPIC)
    kind = either(is_half, HALF, meant.texts(kind_of))
    # 2. A retry or a dead letter names the topic of its original, and its topic names the group.
    given_back = pyarrow.compute.is_in(kind, pyarrow.array([RETRY, DEAD]))
    sent = pyarrow.compute.is_in(kind, pyarrow.array([NORMAL, HALF]))
    is_any = given_back.true_count > 0
    original_topic = property_of(p.RETRY_TOPIC) if is_any else nothing
    arrays = {
        **columns,
        "kind": kind,
        "user_topic": either(given_back, original_topic, either(sent, meant.topics, None)),
        "consumer_group": either(given_back, meant.texts(names.group_of), None) if is_any else nothing,
        "parked": stored_in.flags(lambda topic: topic in PARKED_IN),
        "origin_msg_id": either(given_back, property_of(p.ORIGIN_MESSAGE_ID), None) if is_any else nothing,
        "keys": either(pyarrow.compute.equal(kind, TRACE), "", columns["keys"].fill_null("")),
        "size": columns["total_size"],
    }
    return pyarrow.RecordBatch.from_arrays([arrays[field.name].cast(field.type) for field in schema], schema=schema)


class ByTopic:
    """Columns that depend on a column of topics alone: each different topic is asked about once."""

    def __init__(self, topics: pyarrow.Array) -> None:
        self.topics = topics
        coded = topics.dictionary_encode()
        self._different = coded.dictionary.to_pylist()
        self._which = coded.indices

    def texts(self, text_of: Callable[[str], str | None]) -> pyarrow.Array:
        """The text for each topic; that of '' where the topic is null."""
        return self._taken([text_of(topic) for topic in self._different], text_of(""), pyarrow.string())

    def flags(self, is_so: Callable[[str], bool]) -> pyarrow.BooleanArray:
        """Whether something is so for each topic; false where the topic is null."""
        return self._taken([is_so(topic) for topic in self._different], False, pyarrow.bool_())

    def _taken(self, values: list[Any], without: Any, kind: pyarrow.DataType) -> pyarrow.Array:
        which = self._which.fill_null(len(values))
        return pyarrow.array([*values, without], kind).take(which)


def kind_of(topic: str) -> str:
    """The kind of the messages that are meant for a topic, by the topic's name; '' is a topic that is not known.

    >>> kind_of("orders"), kind_of("%RETRY%billing"), kind_of("RMQ_SYS_TRACE_TOPIC"), kind_of("")
    ('normal', 'retry', 'trace', 'system')
    """
    if names.group_of(topic) is not None:
        return RETRY if topic.startswith(names.RETRY_PREFIX) else DEAD
    if topic in (names.TRACE_TOPIC, names.OP_HALF_TOPIC):
        return TRACE if topic == names.TRACE_TOPIC else OP
    return SYSTEM if not topic or names.is_system_topic(topic) else NORMAL
