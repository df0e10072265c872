"""Rows sent to a cluster, by a batch and by a stream, each at least once.

Mirrors: rocketmq-spark's RocketMQSink, on DefaultMQProducer.

    frame.write.format("rocketmq").option("nameServer", "host:9876").option("topic", "orders").mode("append").save()

    driver   columns and topic are looked at before anything is sent
    task     its own producer ── SEND_MESSAGE_V2, many at once ──> SEND_OK for each row

    nameServer, accessKey, secretKey    as for reading (mqlab.data.spark.live.options)
    topic            for all rows; without it, the column topic
    producerGroup    default mqlab-spark
    requireSendOk    true (default): FLUSH_DISK_TIMEOUT, SLAVE_NOT_AVAILABLE and so on fail the task; false: they count
                     as stored, as in a program that does not look at send_status

What a failed task has sent stays sent: nothing can be taken back. Spark does the task again, and its messages come
again with the same unique keys; so does the batch of a stream that is killed before its end is in the checkpoint.
Left out: transactions, and waiting for space (a full broker refuses, and the task fails).
"""

from __future__ import annotations

import time
import uuid
from collections import deque
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pyspark import TaskContext
from pyspark.sql.datasource import DataSourceStreamWriter, DataSourceWriter, WriterCommitMessage
from pyspark.sql.types import Row, StructType

from mqlab.data.spark.live.link import ClusterLink, connected
from mqlab.data.spark.live.options import ACCESS, NAME_SERVER, Servers, group_of, servers_of
from mqlab.data.spark.live.rows_to_messages import MessageMaker, check_columns
from mqlab.data.spark.option_values import known_options, switch_of
from mqlab.errors import ClientError, RemotingError, UsageError
from mqlab.rocketmq.client.sending.queue_selection import select_by_hash
from mqlab.rocketmq.client.statuses import SEND_OK
from mqlab.rocketmq.wire.message import Message, MessageQueue, SendResult

if TYPE_CHECKING:
    from mqlab.rocketmq.client import Producer
    from mqlab.rocketmq.client.instance.pending import Pending

WRITING = (NAME_SERVER, "topic", "producerGroup", "requireSendOk", *ACCESS)
OF_SPARK = "checkpointlocation"  # a stream's own option, which comes with the others
GROUP = "mqlab-spark"
MOST_UNDER_WAY = 64
MORE_ATTEMPTS, PAUSE_SECONDS = 2, 0.5
OF_A_STREAM = ("sql.streaming.queryId", "streaming.sql.batchId")


@dataclass(frozen=True, slots=True)
class SinkOptions:
    """The options of one write."""

    servers: Servers
    topic: str | None
    group: str
    require_send_ok: bool


def parse_sink(raw_options: Mapping[str, str]) -> SinkOptions:
    """Options as Spark passes them, names in any case. Raises UsageError that names the option and its values.

    >>> parse_sink({"nameServer": "127.0.0.1:9876", "TOPIC": "orders"}).topic
    'orders'
    """
    of_the_sink = {name: value for name, value in raw_options.items() if name.lower() != OF_SPARK}
    options = known_options(of_the_sink, WRITING)
    topic = options.get("topic", "").strip() or None
    return SinkOptions(
        servers_of(options), topic, group_of(options, "producerGroup", GROUP), switch_of(options, "requireSendOk")
    )


class LiveWriter(DataSourceWriter):
    """Checked on the driver, sends in the tasks; picklable."""

    def __init__(self, options: SinkOptions, schema: StructType, overwrite: bool) -> None:
        checked(options, schema, overwrite)
        self.options = options
        self.names = schema.fieldNames()
        self.write_id = uuid.uuid4().hex  # made once on the driver: a task that is done again has the same

    def write(self, iterator: Iterator[Row]) -> WriterCommitMessage:
        """Send the rows of one task. Raises UsageError for a row, ClientError or BrokerError for a send that failed."""
        return sent(self.options, self.names, self.write_id, iterator)


class LiveStreamWriter(DataSourceStreamWriter):
    """The same for each batch of a stream."""

    def __init__(self, options: SinkOptions, schema: StructType, overwrite: bool) -> None:
        checked(options, schema, overwrite)
        self.options = options
        self.names = schema.fieldNames()

    def write(self, iterator: Iterator[Row]) -> WriterCommitMessage:
        """Send the rows of one task of one batch. The checkpoint names query and batch, also after a restart."""
        return sent(self.options, self.names, write_of_a_stream(), iterator)


def write_of_a_stream() -> str:
    """The name of the batch that a task belongs to, the same when it is done again after a restart."""
    context = TaskContext.get()
    assert context is not None
    return " ".join(str(context.getLocalProperty(name)) for name in OF_A_STREAM)


def checked(options: SinkOptions, schema: StructType, overwrite: bool) -> None:
    """Raise UsageError for what cannot be sent, RemotingError for a cluster that does not answer."""
    if overwrite:
        raise UsageError("messages of a cluster cannot be overwritten", hint='write with .mode("append")')
    check_columns(schema, topic_is_given=options.topic is not None)
    with ClusterLink(options.servers) as link:
        if options.topic is not None:
            link.bounds([options.topic])


def sent(options: SinkOptions, names: list[str], write: str, rows: Iterator[Row]) -> WriterCommitMessage:
    """Send the rows of one task."""
    context = TaskContext.get()
    maker = MessageMaker(names, options.topic, write, context.partitionId() if context is not None else 0)
    with connected(options.servers) as cluster:
        outbox = Outbox(cluster.producer(options.group), options.require_send_ok)
        for row in rows:
            outbox.add(*maker.make(row))
        outbox.send_all()
        return WriterCommitMessage()


class Outbox:
    """Messages of one task on their way, many at once; of one queue that was chosen only one, so that order is kept.

    One request holds one message: RocketMQ gives all messages of a batch the unique key of the batch.
    """

    def __init__(self, producer: Producer, require_send_ok: bool) -> None:
        self._producer = producer
        self._require_send_ok = require_send_ok
        self._under_way: deque[Pending[SendResult]] = deque()
        self._by_queue: dict[MessageQueue, tuple[Message, Pending[SendResult]]] = {}
        self._queues: dict[str, list[MessageQueue]] = {}

    def add(self, message: Message, sharding_key: str | None) -> None:
        """Begin to send a message; waits for older ones when many are under way. Raises what became of those."""
        if sharding_key is None:
            if len(self._under_way) >= MOST_UNDER_WAY:
                self._must_be_stored(self._under_way.popleft().result())
            self._under_way.append(self._producer.send_async(message))
            return
        queue = self._queue_of(message, sharding_key)
        if queue in self._by_queue:
            self._finish(queue)
        self._by_queue[queue] = message, self._producer.send_async(message, queue)

    def send_all(self) -> None:
        """Wait until all are stored."""
        while self._under_way:
            self._must_be_stored(self._under_way.popleft().result())
        for queue in list(self._by_queue):
            self._finish(queue)

    def _queue_of(self, message: Message, sharding_key: str) -> MessageQueue:
        """The same queue for the same key. Queues are asked for once a task, so that they do not change within it."""
        topic = message.topic
        if topic not in self._queues:
            self._queues[topic] = self._producer.fetch_publish_message_queues(topic)
        return select_by_hash(self._queues[topic], message, sharding_key)

    def _finish(self, queue: MessageQueue) -> None:
        """Wait for the message on its way to a queue that was chosen, and send it again if there was no answer."""
        message, pending = self._by_queue.pop(queue)
        try:
            answer = pending.result()
        except RemotingError:
            answer = self._sent_again(message, queue)
        self._must_be_stored(answer)

    def _sent_again(self, message: Message, queue: MessageQueue) -> SendResult:
        for attempt in range(1, MORE_ATTEMPTS + 1):
            time.sleep(PAUSE_SECONDS * attempt)
            try:
                return self._producer.send(message, queue)
            except RemotingError:
                if attempt == MORE_ATTEMPTS:
                    raise
        raise AssertionError("unreachable")

    def _must_be_stored(self, answer: SendResult) -> None:
        if answer.send_status != SEND_OK and self._require_send_ok:
            raise ClientError(
                f"{answer.message_queue!r} has stored a message, but answered {answer.send_status}",
                hint='option("requireSendOk", "false") takes that for sent',
            )
