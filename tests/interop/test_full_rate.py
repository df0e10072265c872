"""`mqlab serve` under all that a Java client sends, with SYNC_FLUSH and a kill a minute: nothing lost or growing.

MQLAB_LOAD_SECONDS says for how long; half an hour unless it is set.
"""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import numpy
import pytest

import mqlab
from mqlab.data.arrow import Selection, read_batches
from tests.cluster.serving.footprint import assert_is_flat, footprint
from tests.cluster.serving.test_serve_command import ANYWHERE, serving
from tests.interop.java_store import JavaStore

pytestmark = pytest.mark.interop
SECONDS = int(os.environ.get("MQLAB_LOAD_SECONDS", "1800"))
LIFE_SECONDS = 60
SAMPLES = 6  # of a life
TOPIC = "full-rate"
SETTINGS = (
    "flushDiskType=SYNC_FLUSH",
    "mappedFileSizeCommitLog=67108864",
    "mappedFileSizeConsumeQueue=6000000",
    "maxHashSlotNum=1000000",
    "maxIndexNum=4000000",
)


@pytest.mark.long
def test_half_an_hour_at_full_rate_loses_nothing_and_stays_flat(tmp_path: Path, java_store: JavaStore) -> None:
    acknowledged, missing = tmp_path / "acknowledged", tmp_path / "missing"
    words = [word for line in SETTINGS for word in ("--set", line)]
    with serving(tmp_path, *ANYWHERE, *words) as (_, addresses):
        with mqlab.connect(addresses["namesrv"]) as cluster:
            cluster.admin.create_topic(TOPIC, read_queue_nums=4, write_queue_nums=4, confirm=True)
    where = ("--namesrv", addresses["namesrv"], "--broker", addresses["brokers"][0]["address"])
    command = java_store.command("RateDoor", addresses["namesrv"], TOPIC, SECONDS, acknowledged, missing, home=tmp_path)
    lives: list[list[tuple[float, int]]] = []
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as client:
        try:
            until = time.monotonic() + SECONDS
            while time.monotonic() < until:
                with serving(tmp_path, *where, *words) as (process, _):
                    lives.append(list(samples(process.pid)))
            with serving(tmp_path, *where, *words) as (process, _):
                assert client.wait(600) == 0
                process.terminate()
                assert process.wait(60) == 0
        finally:
            client.kill()
    sent = bits(acknowledged)
    print(f"{sent.sum():,} acknowledged, {len(lives)} kills, {lives}")
    assert sent.sum() > SECONDS * 1_000  # it was under load
    assert (sent & ~numbers_in(tmp_path / "store", sent.size)).sum() == 0
    assert bits(missing).sum() == 0
    settled = lives[len(lives) // 3 :]  # a recovery of many units at a time needs more memory than one of few
    ends = [life[-1] for life in settled]
    assert_is_flat([life[SAMPLES // 3] for life in settled] + ends, 1.1)
    assert_is_flat(ends, 1.1)


def samples(pid: int) -> Iterator[tuple[float, int]]:
    """The footprint over a life."""
    for _ in range(SAMPLES):
        time.sleep(LIFE_SECONDS / SAMPLES)
        yield footprint(pid)


def bits(file: Path) -> numpy.ndarray:
    """A bit per number, as java.util.BitSet writes them."""
    return numpy.unpackbits(numpy.fromfile(file, numpy.uint8), bitorder="little").astype(bool)


def numbers_in(store: Path, size: int) -> numpy.ndarray:
    """Which numbers a store has as keys of the topic."""
    found = numpy.zeros(size, bool)
    for batch in read_batches(store, ["keys"], Selection(topics=(TOPIC,))):
        numbers = batch.column("keys").cast("int64").to_numpy()
        found[numbers[numbers < size]] = True
    return found
