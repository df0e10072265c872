"""The schema of every step, and the check that a DataFrame has it.

Mirrors: the names of MessageExt, TraceContext and ConsumeStats.

    MESSAGES  TRACE  DELIVERIES  OFFSETS  READERS  LIFE    the big tables; those of the facts: next to their functions

Times are UTC timestamps, in the writer's milliseconds; columns ending in _ms are durations in ms.
Left out: nullability: a Parquet file does not keep it.
"""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import DataFrame
from pyspark.sql.types import (
    BooleanType,
    DataType,
    DoubleType,
    IntegerType,
    LongType,
    StringType,
    StructField,
    StructType,
    TimestampType,
)

from mqlab.errors import UsageError

TYPES: dict[str, DataType] = {
    "string": StringType(),
    "int": IntegerType(),
    "long": LongType(),
    "double": DoubleType(),
    "boolean": BooleanType(),
    "time": TimestampType(),
}


def table(text: str) -> StructType:
    """A schema from lines of ``type name[, name ...][: what it holds]``.

    >>> table("int queue_id: of its topic").fields[0].metadata
    {'comment': 'of its topic'}
    """
    fields = []
    for line in filter(None, map(str.strip, text.splitlines())):
        declared, _, comment = line.partition(":")
        kind, _, names = declared.partition(" ")
        metadata = {"comment": comment.strip()} if comment else {}
        fields += [StructField(name.strip(), TYPES[kind], True, metadata) for name in names.split(",")]
    return StructType(fields)


MESSAGES = table(
    """
    string broker_name, topic
    int queue_id
    long queue_offset, physical_offset
    string kind: normal, retry, dead, half, op, trace or system
    string user_topic: the topic its sender named; for a retry or a parked message not the topic in which it is stored
    string consumer_group: of a retry or a dead letter: the group that failed
    boolean parked: waits in SCHEDULE_TOPIC_XXXX or rmq_sys_wheel_timer; another unit appears when its time has come
    string msg_id
    string origin_msg_id: of a retry or a dead letter: the first known id of its original
    string keys: empty without any
    string tags
    time born_timestamp, store_timestamp
    int size: bytes of the unit in the log
    int body_length, reconsume_times
    """
)

TRACE = table(
    """
    string type: Pub, SubBefore, SubAfter, EndTransaction; null if even that cannot be parsed
    time time: by the clock of the client
    string group_name, topic, msg_id
    string keys: empty without any
    string request_id: joins the two Subs of one call of a listener
    int retry_times
    long cost_ms
    boolean success
    string status
    string client: the host the trace came from
    string broker_name, trace_msg_id
    long trace_physical_offset
    int position: number of the entry in its trace message
    int repeat: how many entries with the same text come before it
    string reason: why the entry cannot be parsed; null if it can
    string raw: its text, if it cannot be parsed; the mark between fields is shown as |
    """
)

DELIVERIES = table(
    """
    string consumer_group, msg_id, keys, request_id
    int retry_times
    string client
    time started
    time ended: null when no result was recorded
    long cost_ms
    boolean success: null when no result was recorded
    string status: SUCCESS, TIME_OUT, EXCEPTION, RETURNNULL, FAILED or NO_RESULT
    """
)

OFFSETS = table(
    """
    string broker_name, topic, consumer_group
    int queue_id
    long consumer_offset: the next one to read
    """
)

READERS = table(
    """
    string topic, consumer_group
    string known_by: offsets or trace
    boolean traced: the trace has deliveries of the group; otherwise only its offsets are known
    """
)

LIFE = table(
    """
    string topic
    string consumer_group: null where no group reads the topic
    string msg_id, keys, tags, broker_name
    int queue_id
    long queue_offset: of the first of its copies
    time born, stored
    int size
    int members: messages of one batch under one id and key; a trace cannot tell them apart
    int copies: how often its sender stored it; more than one after a lost answer
    boolean traced: its group's deliveries are in the trace; otherwise little is known about it
    string outcome: consumed, dead, pending, filtered, lost, untraced or waiting; see message_life.py
    int attempts: calls of a listener
    int calls_implied: calls without which the group's offsets could not be beyond it and beyond its retry copies
    int successes, failures, no_results
    int levels: different numbers of retries it was delivered with
    int retries_stored: copies in the retry topic
    int units_stored: all its units in the log, parked ones too
    time first_started, first_ended
    time consumed: end of the first success
    time last_started
    long busy_ms: all calls together
    long wait_ms: stored to first delivery
    long latency_ms: stored to consumed
    int again_resend: deliveries after the first because its sender stored it again
    int again_retry: ... because an earlier one failed
    int again_no_result: ... because an earlier one had no result
    int again_soon: ... although one had succeeded, within a minute (rebalance, or a commit lost)
    int again_late: ... although one had succeeded, later (the offset was set back)
    """
)


def checked(frame: DataFrame, schema: StructType, step: str) -> DataFrame:
    """The columns of the schema in its order, with its comments. Raises UsageError for one missing or of another type.

    Every step returns its result through this function, so its stated schema is true.
    """
    have = {field.name: field.dataType for field in frame.schema.fields}
    needs(frame, schema.fieldNames(), step)
    for field in schema.fields:
        if have[field.name] != field.dataType:
            raise UsageError(
                f"{step}: column {field.name} is {have[field.name].simpleString()}, "
                f"expected {field.dataType.simpleString()}"
            )
    return frame.select([frame[field.name].alias(field.name, metadata=field.metadata) for field in schema.fields])


def needs(frame: DataFrame, columns: Sequence[str], step: str) -> None:
    """Raise UsageError when a step is given a table without one of these columns."""
    missing = [name for name in columns if name not in frame.columns]
    if missing:
        raise UsageError(
            f"{step} needs {', '.join(missing)}", hint=f"the columns it was given: {', '.join(frame.columns)}"
        )
