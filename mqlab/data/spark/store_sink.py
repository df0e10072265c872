"""Rows appended to a store directory that no broker has open, by a batch and by a stream.

    frame.write.format("rocketmq").option("topic", "orders").mode("append").save("run/broker-a")

    task     rows ─▶ messages ─▶ one Arrow file next to the store
    commit   the files in the order of their partitions ─▶ MessageStore.put ─▶ dispatched, synced and closed

    topic     for all rows; without it, the column topic
    queues    how many queues a topic has here (default 4): rows go to them in turn, or by the hash of a sharding key

A store has one writer, so the rows are appended by the driver when all tasks are done: a batch that fails before has
appended nothing. A death while it appends leaves the first messages in the store, and whoever writes the batch again
appends them again: at least once. A stream's batch that is done again has the same unique keys. Driver and workers
must see the same disk. Left out: the topics' configuration, which a broker needs before it serves them
(docs/serving.md), and delayed messages, which a broker moves to queues of their own.
"""

from __future__ import annotations

import shutil
import uuid
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import pyarrow
from pyspark import TaskContext
from pyspark.sql.datasource import DataSourceStreamWriter, DataSourceWriter, WriterCommitMessage
from pyspark.sql.types import Row, StructType

from mqlab.data.arrow.stores import local_path
from mqlab.data.spark.live.rows_to_messages import MessageMaker, check_columns
from mqlab.data.spark.live.sink import OF_SPARK, write_of_a_stream
from mqlab.data.spark.option_values import known_options, number_of
from mqlab.errors import StoreError, UsageError
from mqlab.rocketmq.client.sending.queue_selection import select_by_hash
from mqlab.rocketmq.store import MessageStore
from mqlab.rocketmq.store.put_result import PUT_OK
from mqlab.rocketmq.wire import properties as properties_text
from mqlab.rocketmq.wire.message import Message, MessageQueue

WRITING = ("path", "topic", "queues")
QUEUES, MOST_QUEUES = 4, 65_535
SAME_DISK = 'driver and workers must see the same disk, or send to a running cluster: option("nameServer", "host:9876")'
ROWS_A_BATCH = 5_000
SCHEMA = pyarrow.schema(
    [
        ("topic", pyarrow.string()),
        ("body", pyarrow.binary()),
        ("flag", pyarrow.int32()),
        ("properties", pyarrow.string()),
        ("sharding_key", pyarrow.string()),
    ]
)


@dataclass(frozen=True, slots=True)
class StoreSinkOptions:
    """The options of one write."""

    path: str
    topic: str | None
    queues: int


def parse_store_sink(raw_options: Mapping[str, str]) -> StoreSinkOptions:
    """Options as Spark passes them, names in any case. Raises UsageError that names the option and its values.

    >>> parse_store_sink({"path": "/tmp/broker-a", "TOPIC": "orders"}).queues
    4
    """
    options = known_options({name: value for name, value in raw_options.items() if name.lower() != OF_SPARK}, WRITING)
    if not options.get("path", "").strip():
        raise UsageError(
            "no place to write to", hint='.save("run/broker-a") for a store, option("nameServer", …) for a cluster'
        )
    queues = number_of(options, "queues")
    queues = QUEUES if queues is None else queues
    if not 1 <= queues <= MOST_QUEUES:
        raise UsageError(f"option queues is {queues}: expected 1 to {MOST_QUEUES}")
    return StoreSinkOptions(local_path(options["path"]), options.get("topic", "").strip() or None, queues)


@dataclass(frozen=True, slots=True)
class Written(WriterCommitMessage):
    """The file of one task."""

    partition: int
    file: str


class StoreWriter(DataSourceWriter):
    """Checked on the driver, writes files in the tasks, appends on the driver; picklable."""

    def __init__(self, options: StoreSinkOptions, schema: StructType, overwrite: bool) -> None:
        checked(options, schema, overwrite)
        self.options = options
        self.names = schema.fieldNames()
        self.write_id = uuid.uuid4().hex  # made once on the driver: a task that is done again has the same
        # Made here and not by the tasks: one that still runs when the write is given up must not make it again.
        Path(self._folder).mkdir(parents=True)

    def write(self, iterator: Iterator[Row]) -> Written:
        """Make the messages of one task. Raises UsageError for a row that cannot be one."""
        return written(self.options, self.names, self.write_id, self._folder, iterator)

    def commit(self, messages: list[WriterCommitMessage | None]) -> None:
        """Append what the tasks have made. Raises StoreError when the store is in use or full."""
        appended(self.options, messages)
        shutil.rmtree(self._folder, ignore_errors=True)

    def abort(self, messages: list[WriterCommitMessage | None]) -> None:
        """Forget what the tasks have made."""
        shutil.rmtree(self._folder, ignore_errors=True)

    @property
    def _folder(self) -> str:
        return f"{self.options.path}.rows-{self.write_id}"


class StoreStreamWriter(DataSourceStreamWriter):
    """The same for each batch of a stream."""

    def __init__(self, options: StoreSinkOptions, schema: StructType, overwrite: bool) -> None:
        checked(options, schema, overwrite)
        self.options = options
        self.names = schema.fieldNames()
        self.folder = f"{options.path}.rows-{uuid.uuid4().hex}"

    def write(self, iterator: Iterator[Row]) -> Written:
        """Make the messages of one task of one batch."""
        Path(self.folder).mkdir(parents=True, exist_ok=True)
        return written(self.options, self.names, write_of_a_stream(), self.folder, iterator)

    def commit(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:
        """Append what the tasks of a batch have made."""
        appended(self.options, messages)
        _forget(messages)

    def abort(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:
        """Forget what the tasks of a batch have made."""
        _forget(messages)


def _forget(messages: list[WriterCommitMessage | None]) -> None:
    """Remove the files of tasks. Spark may commit with another writer than the tasks had, so they name their folder."""
    for folder in {Path(part.file).parent for part in messages if isinstance(part, Written)}:
        shutil.rmtree(folder, ignore_errors=True)


def checked(options: StoreSinkOptions, schema: StructType, overwrite: bool) -> None:
    """Raise UsageError for what cannot be written."""
    if overwrite:
        raise UsageError("messages of a store cannot be overwritten", hint='write with .mode("append"), or elsewhere')
    check_columns(schema, topic_is_given=options.topic is not None)
    if "delay_time_level" in schema.fieldNames():
        raise UsageError(
            "column delay_time_level: a store does not delay, its broker does",
            hint='send delayed messages to a running broker: option("nameServer", "host:9876")',
        )
    if Path(options.path).is_file():
        raise UsageError(f"{options.path} is a file: expected the directory of a store")


def written(options: StoreSinkOptions, names: list[str], write: str, folder: str, rows: Iterator[Row]) -> Written:
    """Write the messages of one task into a file of its own."""
    context = TaskContext.get()
    partition, attempt = (context.partitionId(), context.taskAttemptId()) if context is not None else (0, 0)
    maker = MessageMaker(names, options.topic, write, partition)
    file = Path(folder, f"{partition:06}-{attempt}.arrow")
    if not file.parent.is_dir():
        raise UsageError(f"the folder of this write is not here: {folder}", hint=SAME_DISK)
    with pyarrow.OSFile(str(file), "wb") as sink, pyarrow.ipc.new_file(sink, SCHEMA) as writer:
        for some in _in_batches(maker.make(row) for row in rows):
            writer.write_batch(pyarrow.RecordBatch.from_pylist(some, SCHEMA))
    return Written(partition, str(file))


def _in_batches(messages: Iterable[tuple[Message, str | None]]) -> Iterator[list[dict[str, object]]]:
    some: list[dict[str, object]] = []
    for message, sharding_key in messages:
        some.append(
            {
                "topic": message.topic,
                "body": message.body,
                "flag": message.flag,
                "sharding_key": sharding_key,
                "properties": properties_text.to_text(message.properties),
            }
        )
        if len(some) == ROWS_A_BATCH:
            yield some
            some = []
    if some:
        yield some


def appended(options: StoreSinkOptions, written: list[WriterCommitMessage | None]) -> int:
    """Append the messages of all tasks to the store; how many. Raises StoreError, UsageError for a file of a task that
    is not here."""
    parts = sorted((part for part in written if isinstance(part, Written)), key=lambda part: part.partition)
    if not parts:
        return 0
    count = 0
    with MessageStore.open(options.path) as store:
        for part in parts:
            for message, sharding_key in _messages_of(part):
                queues = [MessageQueue(message.topic, "", number) for number in range(options.queues)]
                queue = (
                    queues[count % len(queues)]
                    if sharding_key is None
                    else select_by_hash(queues, message, sharding_key)
                )
                result = store.put(message, queue_id=queue.queue_id)
                if result.status != PUT_OK:
                    answer = f"{result.status} {result.reason}".rstrip()
                    raise StoreError(f"{options.path} took {count} messages and then answered {answer}")
                count += 1
    return count


def _messages_of(part: Written) -> Iterator[tuple[Message, str | None]]:
    if not Path(part.file).is_file():
        raise UsageError(
            f"the file of partition {part.partition} is not here: {part.file}",
            hint=SAME_DISK,
        )
    with pyarrow.memory_map(part.file) as source:
        file = pyarrow.ipc.open_file(source)
        for number in range(file.num_record_batches):
            for row in file.get_batch(number).to_pylist():
                message = Message(row["topic"], row["body"], flag=row["flag"])
                message.properties = properties_text.decode(row["properties"])
                yield message, row["sharding_key"]
