"""One job for every kind of master, run as a program: prints what it found as one line of JSON.

python -m tests.data.spark.cluster_job KIND HOW_MUCH STORES WORK
KIND: local-cluster | standalone | connect | connect-standalone     HOW_MUCH: batch | all
"""

from __future__ import annotations

import contextlib
import json
import sys
from typing import TYPE_CHECKING, Any

from mqlab.data.spark import session
from mqlab.data.spark.standalone import ConnectServer, StandaloneCluster
from tests.data.spark.short_lived import PLANS_AS_THEY_ARE

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql import SparkSession

QUICK = {
    "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1",
    "spark.executor.extraJavaOptions": "-XX:TieredStopAtLevel=1",
    "spark.executor.memory": "512m",
    "spark.sql.shuffle.partitions": "2",
    **PLANS_AS_THEY_ARE,
}


@contextlib.contextmanager
def started(kind: str) -> Iterator[SparkSession]:
    """The session of one kind of master; whatever was started for it ends with the block."""
    with contextlib.ExitStack() as running:
        if kind == "local-cluster":
            spark = session("local-cluster[2,1,1024]", **QUICK)
        elif kind == "standalone":
            spark = session(running.enter_context(StandaloneCluster(1)).master, **QUICK)
        else:
            on = running.enter_context(StandaloneCluster(2, cores=1)).master if "-" in kind else "local[2]"
            url = running.enter_context(ConnectServer(on, **QUICK)).url
            spark = session(url)
            assert session(url) is spark
        running.callback(spark.stop)
        yield spark


def where(batches: Iterator[Any]) -> Iterator[Any]:
    """From which file an executor has mqlab, and in which process."""
    import os

    import pandas

    import mqlab

    for _ in batches:
        yield pandas.DataFrame({"file": [mqlab.__file__], "process": [os.getpid()]})


def batch(spark: SparkSession, stores: str) -> dict[str, Any]:
    """Messages of each queue, counted by the executors, and where these have mqlab."""
    log = spark.read.format("rocketmq").option("splitMB", 1).load(stores)
    counts = log.groupBy("broker_name", "topic", "queue_id").count().collect()
    placed = spark.range(2).repartition(2).mapInPandas(where, "file string, process long").collect()
    return {
        "counts": sorted([list(row) for row in counts]),
        "mqlab": sorted({row["file"] for row in placed}),
        "remote": type(spark).__module__.startswith("pyspark.sql.connect."),
    }


def other_sources_and_a_stream(spark: SparkSession, stores: str, work: str) -> dict[str, Any]:
    """What the other data sources read, and what a stream writes."""
    units = spark.read.format("rocketmq-queues").load(stores).groupBy("broker_name").count().collect()
    offsets = spark.read.format("rocketmq-config").load(stores).count()
    stream = spark.readStream.format("rocketmq").option("maxBytesPerTrigger", "256k").load(stores)
    writer = stream.writeStream.option("checkpointLocation", f"{work}/checkpoint").trigger(availableNow=True)
    writer.format("parquet").start(f"{work}/out").awaitTermination()
    written = spark.read.parquet(f"{work}/out")
    return {
        "units": {row[0]: row[1] for row in units},
        "offsets": offsets,
        "streamed": written.select("broker_name", "physical_offset").distinct().count(),
        "rows": written.count(),
    }


def main(kind: str, how_much: str, stores: str, work: str) -> None:
    with started(kind) as spark:
        found = batch(spark, stores)
        if how_much == "all":
            found |= other_sources_and_a_stream(spark, stores, work)
    print(json.dumps(found))


if __name__ == "__main__":
    main(*sys.argv[1:])
