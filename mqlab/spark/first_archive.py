"""Makes the archive of Spark's classes before the first session needs it: `python -m mqlab.spark.first_archive`.

`make env` runs it. Without it the first session starts in twice the time and writes the archive when it ends.

    a session of its own ── queries as in the labs, on a store of a few messages ── its JVM ends and writes the archive

Left out: a second archive for a second Java; its first session makes it (mqlab.spark.shared_classes).
"""

from __future__ import annotations

import os
import subprocess
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mqlab.spark import shared_classes
from mqlab.spark.java import find_java

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

MESSAGES = 20
SHORT_LIVED = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
JUST_NOW = shared_classes.WRITTEN_AFTER_S + 1


def run_queries(spark: SparkSession, folder: Path) -> None:
    """What the labs ask of Spark: a batch, a join, a window, files, and a stream with a watermark."""
    from pyspark.sql import Window, functions

    orders = spark.range(MESSAGES).selectExpr("concat('order-', id) AS keys", "'paid' AS tags", "X'' AS body")
    orders.write.format("rocketmq").option("topic", "orders").mode("append").save(str(folder / "store"))
    log = spark.read.format("rocketmq").load(str(folder / "store"))
    counts = log.groupBy("topic", "tags").agg(functions.count("*").alias("messages"))
    newest = functions.row_number().over(Window.partitionBy("queue_id").orderBy(functions.desc("queue_offset")))
    log.withColumn("place", newest).join(counts, ["topic", "tags"]).orderBy("keys").toArrow()
    log.write.parquet(str(folder / "messages"))
    spark.read.parquet(str(folder / "messages")).where("keys LIKE 'order-1%'").collect()
    stream = spark.readStream.format("rocketmq").load(str(folder / "store"))
    timely = stream.withWatermark("store_timestamp", "1 minute")
    counted = timely.groupBy(functions.window("store_timestamp", "1 minute"), "topic").count()
    writer = counted.writeStream.outputMode("update").format("memory").queryName("counted")
    writer = writer.option("checkpointLocation", str(folder / "checkpoint"))
    writer.trigger(availableNow=True).start().awaitTermination()


def make(directory: Path) -> Path | None:
    """The archive of this Java and these jars in a folder, made unless it is there.

    None where the JVM wrote none: switched off, or no room on the disk. Raises JavaMissing and SparkFailed.
    """
    key = shared_classes.archive_key(find_java().java, shared_classes.jars_of_pyspark())
    archive = shared_classes.promote(directory, key)
    if archive.exists():
        return archive
    _run_a_jvm_to_its_end()
    for part in directory.glob(f"{key}.{os.getpid()}.part"):  # of the JVM that has ended
        os.utime(part, (part.stat().st_atime, part.stat().st_mtime - JUST_NOW))
    return archive if shared_classes.promote(directory, key).exists() else None


def _run_a_jvm_to_its_end() -> None:
    from pyspark import SparkContext

    from mqlab.spark.session import JVM_OPTIONS, session

    with tempfile.TemporaryDirectory(prefix="mqlab-archive-") as folder:
        settings: dict[str, Any] = {JVM_OPTIONS: SHORT_LIVED}
        spark = session("local[2]", **settings)
        run_queries(spark, Path(folder))
        jvm: subprocess.Popen[bytes] = SparkContext._gateway.proc  # type: ignore[union-attr]
        spark.stop()
        assert jvm.stdin is not None
        jvm.stdin.close()  # the JVM ends when nobody can ask it anything more
        jvm.wait(shared_classes.DUMP_SECONDS)


if __name__ == "__main__":
    made = make(shared_classes.folder_of_archives())
    print(f"Spark's classes are in {made}" if made else "no archive of Spark's classes was written")
