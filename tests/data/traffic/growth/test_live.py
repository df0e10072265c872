"""Live stores: processes of their own that follow the notebook, die when they are told to, and never outlive it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from mqlab.data import traffic
from mqlab.data.arrow import read_table
from mqlab.data.traffic import GrowingBrokers
from mqlab.errors import UsageError

SMALL = {"messages": 2_000, "commit_log_bytes": 1 << 18, "consume_queue_bytes": 2_000}


@pytest.fixture
def live(tmp_path: Path) -> Iterator[GrowingBrokers]:
    with traffic.live(tmp_path / "live", seed=7, start="9h", **SMALL) as broker:
        yield broker


def stored(live: GrowingBrokers) -> dict[str, int]:
    return {row["broker_name"]: row["messages"] for row in live.table().rows}


def readable(live: GrowingBrokers) -> dict[str, int]:
    return {name: read_table(store, ["topic"]).num_rows for name, store in live.stores.items()}


def test_time_passes_when_it_is_told_to(live: GrowingBrokers) -> None:
    assert live.now == "09:00:00"
    before = stored(live)
    assert before == readable(live)
    assert stored(live) == before
    assert live.advance("10min").now == "09:10:00"
    assert all(stored(live)[name] > count for name, count in before.items())


def test_one_broker_is_killed_and_the_other_goes_on(live: GrowingBrokers, tmp_path: Path) -> None:
    before = readable(live)
    (killed, process) = "broker-b", live._processes["broker-b"]
    live.kill(killed)
    assert process.returncode == -signal.SIGKILL
    live.advance("1h")
    assert readable(live)[killed] == before[killed]
    assert readable(live)["broker-a"] > before["broker-a"]
    assert "broker-b killed" in repr(live)
    with pytest.raises(UsageError, match=r"killed[\s\S]*resume"):
        live.delete_oldest(killed)
    live.resume(killed)
    with traffic.live(tmp_path / "never-killed", seed=7, start="10h", **SMALL) as other:
        assert readable(other) == readable(live)


def test_late_rolled_and_deleted(live: GrowingBrokers) -> None:
    before = stored(live)
    live.late("broker-b", "40min").advance("39min")
    assert stored(live)["broker-b"] == before["broker-b"] < before["broker-b"] + 1
    assert "broker-b cut off" in repr(live)
    live.advance("1min")
    assert stored(live)["broker-b"] > before["broker-b"]
    live.roll().delete_oldest()
    assert {row["log_start"] for row in live.table().rows} == {1 << 18}
    assert {row["log_end"] > 1 << 18 for row in live.table().rows} == {True}


def test_what_has_no_meaning_is_refused(live: GrowingBrokers, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"no broker 'broker-c'[\s\S]*broker-a, broker-b"):
        live.kill("broker-c")
    with pytest.raises(UsageError, match="speed is 0"):
        live.run(0)
    with pytest.raises(UsageError, match="not empty"), traffic.live(live.directory):
        pass


def test_a_day_that_goes_on_by_itself_is_paused_and_resumed(tmp_path: Path) -> None:
    with traffic.live(tmp_path / "live", seed=7, speed=10_000, **SMALL) as live:
        while sum(readable(live).values()) < 100:
            time.sleep(0.05)
        live.pause()
        paused = stored(live)
        assert stored(live) == paused == readable(live)
        assert "waits" in repr(live)
        live.resume()
        assert "grows" in repr(live)
        live.run(100_000)  # what is left of the day
        while sum(readable(live).values()) < SMALL["messages"]:
            time.sleep(0.05)
        processes = list(live._processes.values())
    assert [process.returncode for process in processes] == [0, 0]
    assert not any((store / "abort").exists() for store in live.stores.values())


KERNEL = """
import os, sys
from mqlab.data import traffic
broker = traffic.live(sys.argv[1], messages=600, speed=300)
live = broker.__enter__()
assert all(os.getsid(process.pid) != os.getsid(0) for process in live._processes.values())
print(*(process.pid for process in live._processes.values()), flush=True)
os._exit(1)
"""


def test_brokers_end_when_the_kernel_dies_and_an_interrupt_is_not_for_them(tmp_path: Path) -> None:
    """Their output is this pipe's, too: it ends when the last of them has ended."""
    kernel = subprocess.run(
        [sys.executable, "-c", KERNEL, str(tmp_path / "live")],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    )
    assert kernel.returncode == 1, kernel.stderr
    assert len(kernel.stdout.split()) == 2
    assert not list((tmp_path / "live").glob("*/abort"))
