"""A streaming job is killed, again and again if long, while the stores grow: every message is in the sink, once.

this process    puts, and reads the job's lines: one for each batch it is done with
the job         python + JVM in a process group of its own; dies by SIGKILL in the middle of whatever it does
at the end      one more run to the end, then rows in the stores = rows in the sink = distinct rows in the sink
"""

from __future__ import annotations

import json
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from mqlab.data.arrow.reading import read_table
from mqlab.rocketmq.store import MessageStore
from mqlab.rocketmq.wire.message import Message
from tests.data.spark.short_lived import PLANS_AS_THEY_ARE

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

JOB = """
import json, sys
from pyspark.sql.streaming.listener import StreamingQueryListener
from mqlab.data.spark import session

class Lines(StreamingQueryListener):
    def onQueryStarted(self, event): pass
    def onQueryIdle(self, event): pass
    def onQueryTerminated(self, event): pass
    def onQueryProgress(self, event): print("batch", event.progress.batchId, flush=True)

stores, out, checkpoint, tmp, plans = sys.argv[1:]
java = f"-XX:TieredStopAtLevel=1 -XX:+UseSerialGC -Djava.io.tmpdir={tmp}"
spark = session("local[2]", **{"spark.driver.extraJavaOptions": java, "spark.local.dir": tmp}, **json.loads(plans))
spark.streams.addListener(Lines())
log = spark.readStream.format("rocketmq").option("maxBytesPerTrigger", "24k").option("splitMB", 1).load(stores)
log.writeStream.option("checkpointLocation", checkpoint).format("parquet").start(out).awaitTermination()
"""


@contextmanager
def job(stores: Path, out: Path, checkpoint: Path) -> Iterator[subprocess.Popen[str]]:
    """The job as a process group, killed at the end; what it leaves behind goes with its folder of temporary files.

    That has a short path: Spark's sockets are in it.
    """
    tmp = tempfile.mkdtemp(prefix="once-")
    with open(out.with_name("job.log"), "ab") as log:
        started = subprocess.Popen(
            [sys.executable, "-c", JOB, str(stores), str(out), str(checkpoint), tmp, json.dumps(PLANS_AS_THEY_ARE)],
            stdout=subprocess.PIPE,
            stderr=log,
            text=True,
            start_new_session=True,
            env={**os.environ, "TMPDIR": tmp},
        )
    try:
        yield started
    finally:
        os.killpg(started.pid, signal.SIGKILL)
        started.communicate()
        shutil.rmtree(tmp, ignore_errors=True)


class Shop:
    """Puts into the stores of several brokers; every message has a key of its own."""

    def __init__(self, stores: list[MessageStore], seed: int) -> None:
        self._stores, self._rng = stores, random.Random(seed)
        self.count = 0

    def sell(self, count: int) -> None:
        for _ in range(count):
            body = self._rng.choice(["paid", "оплачен", "已付款", "🚚"]).encode() * self._rng.randrange(60)
            self._rng.choice(self._stores).put(Message("orders", body, keys=f"order-{self.count}"))
            self.count += 1


def killed_again_and_again(spark: SparkSession, folder: Path, *, kills: int, brokers: int, seed: int) -> None:
    stores, out, checkpoint = folder / "stores", folder / "out", folder / "checkpoint"
    rng = random.Random(seed)
    with ExitStack() as opened:
        sizes = {"mapped_file_size_commit_log": 65_536}
        folders = [str(stores / f"broker-{number}") for number in range(brokers)]
        shop = Shop([opened.enter_context(MessageStore.open(path, **sizes)) for path in folders], seed)
        shop.sell(500)
        done = -1
        for _ in range(kills):
            with job(stores, out, checkpoint) as running:
                assert running.stdout is not None
                for _ in range(rng.randrange(1, 4)):
                    line = running.stdout.readline()
                    said = (folder / "job.log").read_text(errors="replace")
                    assert line.startswith("batch"), f"the job ended by itself: {line}\n{said[-6000:]}"
                    done = max(done, int(line.split()[1]))
                    shop.sell(rng.randrange(400))
        assert done >= kills - 1  # batches were done with in every life
        shop.sell(50)
        log = spark.readStream.format("rocketmq").load(str(stores))
        last = log.writeStream.option("checkpointLocation", str(checkpoint)).trigger(availableNow=True)
        last.format("parquet").start(str(out)).awaitTermination()
        wanted = sorted(read_table(stores, ["keys"]).column(0).to_pylist())
    found = sorted(row["keys"] for row in spark.read.parquet(str(out)).select("keys").collect())
    assert len(wanted) == shop.count
    assert found == wanted


def test_rows_in_are_rows_out_after_a_kill(spark: SparkSession, tmp_path: Path) -> None:
    killed_again_and_again(spark, tmp_path, kills=1, brokers=2, seed=7)


@pytest.mark.long
@pytest.mark.parametrize("seed", [1, 2, 3])
def test_rows_in_are_rows_out_after_many_kills(spark: SparkSession, tmp_path: Path, seed: int) -> None:
    killed_again_and_again(spark, tmp_path, kills=5, brokers=3, seed=seed)
