"""Ten million messages: ten times the work of one million, in bounded memory; whole at the end."""

from __future__ import annotations

import resource
import shutil
import sys
import time
from pathlib import Path

import pytest

from mqlab.data.traffic import TrafficSummary, write
from mqlab.lab.inspector import StoreInspector

pytestmark = pytest.mark.long

MEBIBYTE = 1 << 20


def made(directory: Path, messages: int) -> tuple[TrafficSummary, float]:
    started = time.process_time()
    summary = write(directory, messages=messages, brokers=3, seed=7)
    return summary, time.process_time() - started


def most_memory() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)


def test_a_day_of_ten_million_costs_ten_times_a_day_of_one(tmp_path: Path) -> None:
    _, small = made(tmp_path / "small", 1_000_000)
    before = most_memory()
    summary, large = made(tmp_path / "large", 10_000_000)
    assert 6 < large / small < 15
    assert most_memory() - before < 200 * MEBIBYTE
    assert sum(summary.topics.values()) == 10_000_000
    for broker in summary.brokers:
        store = StoreInspector(summary.stores[broker.name])
        assert store.problems(deep=False) == []
        assert store.max_physical_offset == broker.log_bytes
        assert sum(queue.max_offset for queue in store.queues()) == broker.messages
    shutil.rmtree(tmp_path / "large")
