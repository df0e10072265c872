"""A driver's program on one of several hosts, by the name of its case: prints what it found as the last line, in JSON.

python -m tests.data.spark.hosts.job CASE MASTER [WHERE ...]
"""

from __future__ import annotations

import hashlib
import json
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mqlab.data.spark import register, session

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyspark.sql import DataFrame, SparkSession

BEGUN = "the tasks have begun"
SETTINGS = {
    "spark.executor.memory": "512m",
    "spark.driver.memory": "512m",
    "spark.sql.shuffle.partitions": "4",
    "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1",
    "spark.executor.extraJavaOptions": "-XX:TieredStopAtLevel=1",
}
COLUMNS = ["broker_name", "topic", "queue_id", "queue_offset", "msg_id", "body"]


def digest(frame: DataFrame) -> dict[str, Any]:
    """The rows of a frame as a number and a hash, which any order of the rows gives."""
    rows = sorted(repr(tuple(row)) for row in frame.select(*COLUMNS).collect())
    return {"rows": len(rows), "sha256": hashlib.sha256("\n".join(rows).encode()).hexdigest()}


def announced(frame: DataFrame, folder: str) -> DataFrame:
    """The frame, whose tasks wait a little and leave a file each when they begin."""

    def wait(batches: Any) -> Any:
        import os
        import uuid

        Path(folder).mkdir(exist_ok=True)
        Path(folder, f"{os.environ['SPARK_LOCAL_IP']}-{uuid.uuid4().hex}").touch()
        time.sleep(1)
        yield from batches

    return frame.mapInPandas(wait, frame.schema)


def batch(spark: SparkSession, stores: str) -> dict[str, Any]:
    """All messages of stores that every host sees."""
    return digest(spark.read.format("rocketmq").option("splitMB", 1).load(stores))


def slow_batch(spark: SparkSession, stores: str, folder: str) -> dict[str, Any]:
    """The same with tasks that take long enough for a host to be killed."""
    return digest(announced(spark.read.format("rocketmq").option("splitMB", 1).load(stores), folder))


def stream(spark: SparkSession, stores: str, folder: str, wait: str = "") -> dict[str, Any]:
    """A stream of small batches into Parquet, with its checkpoint beside."""
    frame = spark.readStream.format("rocketmq").option("maxOffsetsPerTrigger", 40).load(stores)
    if wait:
        frame = announced(frame, f"{folder}/begun")
    writer = frame.writeStream.option("checkpointLocation", f"{folder}/checkpoint").trigger(availableNow=True)
    writer.format("parquet").start(f"{folder}/out").awaitTermination()
    return digest(spark.read.parquet(f"{folder}/out"))


def asked(spark: SparkSession, name_server: str) -> dict[str, Any]:
    """Messages that brokers of other hosts answer with."""
    options = {"nameServer": name_server, "subscribe": "orders"}
    return digest(spark.read.format("rocketmq").options(**options).load())


def asked_in_a_stream(spark: SparkSession, name_server: str, folder: str) -> dict[str, Any]:
    """The same as a stream."""
    options = {"nameServer": name_server, "subscribe": "orders", "startingOffsets": "earliest"}
    writer = spark.readStream.format("rocketmq").options(**options).load().writeStream
    writer = writer.option("checkpointLocation", f"{folder}/checkpoint").trigger(availableNow=True)
    writer.format("parquet").start(f"{folder}/out").awaitTermination()
    return digest(spark.read.parquet(f"{folder}/out"))


def sent(spark: SparkSession, name_server: str) -> dict[str, Any]:
    """Rows sent from the workers to brokers of other hosts, and read again."""
    rows = spark.range(200).selectExpr("cast(concat('order-', id) as binary) as body").repartition(4)
    options = {"nameServer": name_server, "topic": "orders"}
    rows.write.format("rocketmq").options(**options).mode("append").save()
    found = spark.read.format("rocketmq").options(nameServer=name_server, subscribe="orders").load()
    bodies = sorted(bytes(row["body"]).decode() for row in found.select("body").collect())
    return {"rows": len(bodies), "distinct": len(set(bodies))}


def pipeline(spark: SparkSession, stores: str, out: str) -> dict[str, Any]:
    """The tables of a day."""
    from mqlab.data.spark.pipeline import run

    run([stores], Path(out), spark=spark)
    tables = {}
    for table in ("messages", "deliveries", "life"):
        frame = spark.read.parquet(f"{out}/{table}")
        rows = sorted(repr(tuple(row)) for row in frame.select(*sorted(frame.columns)).collect())
        tables[table] = hashlib.sha256("\n".join(rows).encode()).hexdigest()
    return tables


def not_shipped(spark: SparkSession, stores: str) -> dict[str, Any]:
    """A session made without mqlab: executors have what is installed on their hosts."""
    return batch(register(spark), stores)


CASES: dict[str, Callable[..., dict[str, Any]]] = {
    case.__name__: case for case in (batch, slow_batch, stream, asked, asked_in_a_stream, sent, pipeline, not_shipped)
}


def started(case: str, master: str) -> SparkSession:
    """The session of a case: mqlab's, or one made without mqlab."""
    if case != "not_shipped":
        return session(master, **SETTINGS)
    from pyspark.sql import SparkSession

    builder = SparkSession.builder.master(master)
    for name, value in SETTINGS.items():
        builder = builder.config(name, value)
    return builder.getOrCreate()


def main(case: str, master: str, *where: str) -> None:
    spark = started(case, master)
    print(BEGUN, flush=True)
    found = CASES[case](spark, *where)
    print(json.dumps(found))
    spark.stop()


if __name__ == "__main__":
    main(*sys.argv[1:])
