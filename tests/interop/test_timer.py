"""Timed messages of one side, delivered by the other: after a clean stop, a kill, with each of the files lost."""

from __future__ import annotations

import os
import shutil
import signal
import time
from collections import Counter
from pathlib import Path

import pytest

import mqlab
from mqlab import Message
from mqlab.lab.inspector import StoreInspector
from mqlab.rocketmq.machine.files import RealFiles
from mqlab.rocketmq.store.config import StoreConfig
from tests.interop.clusters import real_cluster
from tests.interop.java_store import JavaStore
from tests.rocketmq.broker.world import World

pytestmark = pytest.mark.interop

SIZES = StoreConfig(mapped_file_size_commit_log=67_108_864)
ENDS = ["clean", "killed", "timerwheel", "timerlog", "timercheck"]
EXPECTED = {
    "clean": {"done": 1, "a": 1, "b": 1},
    "killed": {"done": 1, "a": 1, "b": 1},
    "timerwheel": {"done": 1, "a": 1, "b": 1},
    "timerlog": {"done": 1},
    "timercheck": {"done": 3, "a": 2, "b": 2},
}


def _lose(store: Path, end: str) -> None:
    for name in {"timerwheel": ["timerwheel"], "timerlog": ["timerlog"], "timercheck": ["config/timercheck"]}.get(
        end, []
    ):
        path = store / name
        shutil.rmtree(path) if path.is_dir() else path.unlink()


def _seen(store: Path) -> dict[str, int]:
    """How often each body is in its topic."""
    return dict(
        Counter(message.body.decode() for message in StoreInspector(str(store)).messages() if message.topic == "tm")
    )


def _now_ms() -> int:
    return int(time.time() * 1000)


@pytest.mark.parametrize("end", ENDS)
def test_the_real_broker_delivers_what_waits_in_a_store_of_mqlab(
    tmp_path: Path, java_store: JavaStore, end: str
) -> None:
    start_ms = _now_ms() - 10_000
    world = World(
        tmp_path / "mqlab", store=SIZES, start_ms=start_ms, files=RealFiles(), broker_cluster_name="LabCluster"
    )
    client = world.client()
    client.put("tm", b"done", TIMER_DELAY_SEC="2")
    for body in (b"a", b"b"):
        client.put("tm", body, TIMER_DELIVER_MS=str(start_ms + 50_000))
    world.run_for(8_000)
    store = tmp_path / "real" / "store"
    if end == "killed":
        shutil.copytree(Path(world.directory) / "broker-a", store)
        world.broker.shutdown()
    else:
        world.broker.shutdown()
        shutil.copytree(Path(world.directory) / "broker-a", store)
    _lose(store, end)
    (tmp_path / "real").rename(tmp_path / "kept")
    with _on_store(tmp_path, java_store.classpath):
        time.sleep(max(0, start_ms + 50_000 + 8_000 - _now_ms()) / 1000)
    assert _seen(tmp_path / "real" / "store") == EXPECTED[end]


def _on_store(tmp_path: Path, classpath: str) -> object:
    """A real broker on the kept store."""
    (tmp_path / "real").mkdir()
    shutil.copytree(tmp_path / "kept" / "store", tmp_path / "real" / "store")
    return real_cluster(tmp_path / "real", classpath, "timerWheelEnable=true", "brokerClusterName=LabCluster")


@pytest.mark.parametrize("end", ENDS)
def test_mqlab_delivers_what_waits_in_a_store_of_the_real_broker(
    tmp_path: Path, java_store: JavaStore, end: str
) -> None:
    with real_cluster(tmp_path / "real", java_store.classpath, "timerWheelEnable=true") as where:
        lab = mqlab.connect(where.name_server)
        producer = lab.producer("shop")
        result = producer.send(Message("tm", b"done", delay="2s"))
        assert result.recall_handle is not None
        due_ms = _now_ms() + 90_000
        for body in (b"a", b"b"):
            producer.send(Message("tm", body, deliver_at=due_ms))
        time.sleep(8)
        lab.close()
        if end != "clean":
            os.kill(where.pid, signal.SIGKILL)
            time.sleep(1)
    store = tmp_path / "mqlab" / "broker-a"
    shutil.copytree(tmp_path / "real" / "store", store)
    _lose(store, end)
    world = World(tmp_path / "mqlab", store=SIZES, start_ms=_now_ms(), files=RealFiles())
    world.run_for(120_000)
    seen = dict(Counter(record.body.decode() for queue in range(8) for record in world.messages("tm", queue)))
    world.broker.shutdown()
    assert seen == EXPECTED[end]
