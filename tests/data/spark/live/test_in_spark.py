"""A cluster read by a real Spark session, in a batch and as a stream."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from pyspark.errors import StreamingQueryException

from mqlab import Message
from mqlab.cluster.connected import Cluster

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

pytestmark = pytest.mark.spark

# Spark gives the Python process of a stream ten seconds to start, and no setting changes it: on a busy machine a query
# may end before its first batch. Started again it goes on from its checkpoint.
NOT_IN_TEN_SECONDS = "Python worker failed to connect back"
ATTEMPTS = 20


def test_a_batch_and_a_stream_that_goes_on(
    spark: SparkSession, cluster: Cluster, address: str, make_topic: Callable[[str], str], tmp_path: Path
) -> None:
    """Limited batches; a second query goes on from the checkpoint; a queue that is added later is read as well."""
    topic = make_topic("streamed")
    out, checkpoint = str(tmp_path / "out"), str(tmp_path / "checkpoint")
    producer = cluster.producer("streamed")

    def send(first: int, count: int) -> None:
        for number in range(first, first + count):
            producer.send(Message(topic, b"%d" % number, tags="paid", keys=f"k{number}"))

    def run(**options: str) -> list[int]:
        reader = spark.readStream.format("rocketmq").option("nameServer", address).option("subscribe", topic)
        stream = reader.option("maxOffsetsPerTrigger", 8).options(**options).load().select("keys", "body", "queue_id")
        writer = stream.writeStream.option("checkpointLocation", checkpoint).trigger(availableNow=True)
        rows: list[int] = []
        for _ in range(ATTEMPTS):
            query = writer.start(out)
            try:
                query.awaitTermination()
            except StreamingQueryException as error:
                if NOT_IN_TEN_SECONDS not in str(error):
                    raise
            rows += [progress["numInputRows"] for progress in query.recentProgress if progress["numInputRows"]]
            if query.exception() is None:
                return rows
        raise AssertionError(f"Python did not start within ten seconds, {ATTEMPTS} times")

    send(0, 20)
    batch = spark.read.format("rocketmq").option("nameServer", address).option("subscribe", topic).load()
    assert batch.where("tags = 'paid'").count() == 20
    first = run()
    assert sum(first) == 20
    assert max(first) <= 8
    cluster.operator.update_topic(topic, read_queue_nums=3, write_queue_nums=3)
    while len(producer.fetch_publish_message_queues(topic)) < 6:
        producer.client.call(lambda: producer.client.cluster.update_route(topic))
    send(20, 12)
    assert sum(run()) == 12
    found: DataFrame = spark.read.parquet(out)
    assert Counter(row["keys"] for row in found.collect()) == Counter(f"k{number}" for number in range(32))
    cluster.operator.delete_topic(topic)
    make_topic(topic)
    with pytest.raises(StreamingQueryException, match="ends at 0, it had been read up to 7"):
        run()
