"""The small parts of a store as tables: bounds of the queues, lag of the groups, and the files under config/.

Mirrors: what mqadmin's topicStatus and consumerProgress answer, and TopicConfigManager, SubscriptionGroupManager,
ConsumerOffsetManager, ScheduleMessageService, ConsumerFilterManager. Lab 10 joins them with the log.

    bounds    one row per queue            min and max offset, places of its messages in the log
    lag       one row per group and queue  how far the group has read, how far the queue goes, the difference
    topics    one row per topic            topics.json
    groups    one row per group            subscriptionGroup.json
    offsets   one row per group and queue  consumerOffset.json
    delays    one row per delay level      delayOffset.json
    filters   one row per topic and group  consumerFilter.json

A file that is not there has no rows; one that cannot be read is an error with its path, unless its .bak can.
Left out: what only a running broker knows: members, held pulls, offsets not yet written (5 s by default).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow

from mqlab.data.arrow.columns import TIME, Column
from mqlab.data.arrow.property_columns import PAIRS
from mqlab.data.arrow.stores import StoreFolder, StorePath, find_stores
from mqlab.errors import CorruptionError, UsageError
from mqlab.rocketmq.store.reading.queue_reader import QueueReader
from mqlab.rocketmq.store.reading.store_reader import StoreReader
from mqlab.rocketmq.wire import java_json

Row = dict[str, Any]

_TEXT, _I32, _I64, _FLAG = pyarrow.string(), pyarrow.int32(), pyarrow.int64(), pyarrow.bool_()
_BROKER = Column("broker_name", _TEXT, "which store, where several are read")
_TOPIC = Column("topic", _TEXT, "the topic")
_QUEUE = Column("queue_id", _I32, "queue in the topic")
_GROUP = Column("group", _TEXT, "the consumer group")
_ATTRIBUTES = Column("attributes", PAIRS, "further settings by name")


@dataclass(frozen=True, slots=True)
class StoreTable:
    """A table that is made row by row from one store."""

    name: str
    columns: tuple[Column, ...]
    rows: Callable[[StoreReader], Iterator[Row]]

    @property
    def schema(self) -> pyarrow.Schema:
        return pyarrow.schema([(column.name, column.type) for column in self.columns])

    def read(self, store: StoreFolder) -> pyarrow.RecordBatch:
        """All rows of one store. Raises CorruptionError."""
        try:
            rows = [{"broker_name": store.broker_name, **row} for row in self.rows(StoreReader(store.directory))]
            return pyarrow.RecordBatch.from_pylist(rows, self.schema)
        except (AttributeError, TypeError, ValueError, OverflowError) as error:  # so are pyarrow's errors
            raise CorruptionError(
                f"a value of another kind than the table {self.name} has: {error}",
                where=store.directory,
                hint="look at the files under config/",
            ) from error


def read_store_table(paths: StorePath | Sequence[StorePath], name: str) -> pyarrow.Table:
    """One of TABLES for whole stores. Raises UsageError that lists the tables for an unknown name."""
    table = table_named(name)
    return pyarrow.Table.from_batches([table.read(store) for store in find_stores(paths)], table.schema)


def table_named(name: str) -> StoreTable:
    """The table of that name. Raises UsageError that lists the tables for an unknown name."""
    if name not in TABLES:
        raise UsageError(f"there is no table {name!r}", hint=f"tables are {', '.join(TABLES)}")
    return TABLES[name]


def _bounds(inspector: StoreReader) -> Iterator[Row]:
    for queue in inspector.queues():
        low, high = queue.min_offset, queue.max_offset
        first, last = (queue.unit(low), queue.unit(high - 1)) if low < high else (None, None)
        yield {
            "topic": queue.topic,
            "queue_id": queue.queue_id,
            "min_offset": low,
            "max_offset": high,
            "min_physical_offset": None if first is None else first.physical_offset,
            "max_physical_offset": None if last is None else last.physical_offset + last.size,
        }


def _lag(inspector: StoreReader) -> Iterator[Row]:
    queues: dict[tuple[str, int], QueueReader] = {(q.topic, q.queue_id): q for q in inspector.queues()}
    for row in _offsets(inspector):
        queue = queues.get((row["topic"], row["queue_id"]))
        # A group may have offsets of a queue that was deleted, or never had a message.
        low, high = (queue.min_offset, queue.max_offset) if queue else (0, 0)
        yield {**row, "min_offset": low, "broker_offset": high, "lag": high - row["consumer_offset"]}


def _offsets(inspector: StoreReader) -> Iterator[Row]:
    for key, queues in _objects(inspector, "consumerOffset.json", "offsetTable"):
        topic, _, group = key.partition("@")
        for queue_id, offset in _numbers(inspector, "consumerOffset.json", queues):
            yield {"group": group, "topic": topic, "queue_id": queue_id, "consumer_offset": offset}


def _delays(inspector: StoreReader) -> Iterator[Row]:
    table = _config(inspector, "delayOffset.json").get("offsetTable") or {}
    for level, offset in _numbers(inspector, "delayOffset.json", table):
        yield {"delay_level": level, "queue_id": level - 1, "delivered_offset": offset}


def _filters(inspector: StoreReader) -> Iterator[Row]:
    for topic, of_topic in _objects(inspector, "consumerFilter.json", "filterDataByTopic"):
        for group, data in (of_topic.get("groupFilterData") or {}).items():
            # The file has milliseconds, the columns have microseconds; 0 means that the group is still alive.
            born, dead = data.get("bornTime") or 0, data.get("deadTime") or 0
            yield {
                "group": group,
                "topic": topic,
                "expression_type": data.get("expressionType"),
                "expression": data.get("expression"),
                "born_time": born * 1000,
                "dead_time": dead * 1000 or None,
            }


def _named(file: str, table: str, key: str, fields: Mapping[str, str]) -> Callable[[StoreReader], Iterator[Row]]:
    """Rows of a file that holds objects by name; ``fields``: column -> the name in the file."""

    def rows(inspector: StoreReader) -> Iterator[Row]:
        for name, value in _objects(inspector, file, table):
            attributes = [(str(k), str(v)) for k, v in (value.get("attributes") or {}).items()]
            settings = {column: value.get(field) for column, field in fields.items()}
            yield {key: name, "attributes": attributes, **settings}

    return rows


def _config(inspector: StoreReader, file: str) -> dict[str, Any]:
    value = inspector.config(file)
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise CorruptionError("not a configuration", where=_path(inspector, file), expected="an object", found=value)
    return value


def _objects(inspector: StoreReader, file: str, table: str) -> Iterator[tuple[str, dict[Any, Any]]]:
    """The objects by name that a file holds in one of its tables. Raises CorruptionError for anything else."""
    entries = _config(inspector, file).get(table) or {}
    if not isinstance(entries, dict) or not all(isinstance(value, dict) for value in entries.values()):
        raise CorruptionError(
            f"the table {table} is damaged", where=_path(inspector, file), expected="objects by name", found=entries
        )
    yield from ((str(name), value) for name, value in entries.items())


def _numbers(inspector: StoreReader, file: str, table: Any) -> Iterator[tuple[int, int]]:
    try:
        yield from sorted((java_json.to_int(key), java_json.to_long(value)) for key, value in table.items())
    except (AttributeError, TypeError, ValueError) as error:
        raise CorruptionError(
            "an offset table holds something other than numbers",
            where=_path(inspector, file),
            expected="{0:5,1:7}",
            found=table,
        ) from error


def _path(inspector: StoreReader, file: str) -> str:
    return f"{inspector.directory}/config/{file}"


_TOPIC_FIELDS = {
    "perm": (_I32, "perm", "bits: 4 read, 2 write, 1 inherited"),
    "read_queue_nums": (_I32, "readQueueNums", "queues that consumers read"),
    "write_queue_nums": (_I32, "writeQueueNums", "queues that producers write"),
    "topic_sys_flag": (_I32, "topicSysFlag", "bits of the broker's own"),
    "order": (_FLAG, "order", "an ordered topic"),
    "topic_filter_type": (_TEXT, "topicFilterType", "SINGLE_TAG or MULTI_TAG"),
}
_GROUP_FIELDS = {
    "consume_enable": (_FLAG, "consumeEnable", "may read at all"),
    "consume_broadcast_enable": (_FLAG, "consumeBroadcastEnable", "may read as broadcast"),
    "consume_message_orderly": (_FLAG, "consumeMessageOrderly", "reads orderly"),
    "consume_from_min_enable": (_FLAG, "consumeFromMinEnable", "may begin at the oldest message"),
    "retry_queue_nums": (_I32, "retryQueueNums", "queues of its retry topic"),
    "retry_max_times": (_I32, "retryMaxTimes", "deliveries again before the dead letter queue"),
    "broker_id": (_I32, "brokerId", "which broker it reads from"),
    "which_broker_when_consume_slowly": (_I32, "whichBrokerWhenConsumeSlowly", "where it reads when far behind"),
    "notify_consumer_ids_changed_enable": (_FLAG, "notifyConsumerIdsChangedEnable", "is notified of new members"),
    "consume_timeout_minute": (_I32, "consumeTimeoutMinute", "how long a message may be held, in minutes"),
    "group_sys_flag": (_I32, "groupSysFlag", "bits of the broker's own"),
}


def _fields_of(table: Mapping[str, tuple[pyarrow.DataType, str, str]]) -> tuple[tuple[Column, ...], dict[str, str]]:
    columns = tuple(Column(name, kind, meaning) for name, (kind, _, meaning) in table.items())
    return columns, {name: field for name, (_, field, _) in table.items()}


def _all_tables() -> dict[str, StoreTable]:
    topic_columns, topic_fields = _fields_of(_TOPIC_FIELDS)
    group_columns, group_fields = _fields_of(_GROUP_FIELDS)
    # 1. The columns of each table.
    low = Column("min_offset", _I64, "first queue offset whose message the log still has")
    consumed = Column("consumer_offset", _I64, "next queue offset the group will read")
    bounds = (
        low,
        Column("max_offset", _I64, "next queue offset to be written"),
        Column("min_physical_offset", _I64, "place of the first of them in the log; null for an empty queue"),
        Column("max_physical_offset", _I64, "end of the last of them in the log; null for an empty queue"),
    )
    lag = (
        consumed,
        low,
        Column("broker_offset", _I64, "next queue offset to be written"),
        Column("lag", _I64, "messages between the two"),
    )
    delays = (
        Column("delay_level", _I32, "1 is the shortest"),
        Column("queue_id", _I32, "its queue of SCHEDULE_TOPIC_XXXX"),
        Column("delivered_offset", _I64, "next queue offset to be delivered"),
    )
    filters = (
        Column("expression_type", _TEXT, "SQL92"),
        Column("expression", _TEXT, "what is subscribed to"),
        Column("born_time", TIME, "first subscribed"),
        Column("dead_time", TIME, "last member gone; null while alive"),
    )
    # 2. The tables, each with the function that makes its rows.
    topics = _named("topics.json", "topicConfigTable", "topic", topic_fields)
    groups = _named("subscriptionGroup.json", "subscriptionGroupTable", "group", group_fields)
    tables = (
        StoreTable("bounds", (_BROKER, _TOPIC, _QUEUE, *bounds), _bounds),
        StoreTable("lag", (_BROKER, _GROUP, _TOPIC, _QUEUE, *lag), _lag),
        StoreTable("topics", (_BROKER, _TOPIC, *topic_columns, _ATTRIBUTES), topics),
        StoreTable("groups", (_BROKER, _GROUP, *group_columns, _ATTRIBUTES), groups),
        StoreTable("offsets", (_BROKER, _GROUP, _TOPIC, _QUEUE, consumed), _offsets),
        StoreTable("delays", (_BROKER, *delays), _delays),
        StoreTable("filters", (_BROKER, _GROUP, _TOPIC, *filters), _filters),
    )
    return {table.name: table for table in tables}


TABLES = _all_tables()
