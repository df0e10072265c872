"""Brokers of a day that grows are killed while they write; in the end their stores are those of a day without kills."""

from __future__ import annotations

import random
import time
from pathlib import Path

from mqlab.data import traffic
from mqlab.data.arrow import read_table

SMALL = {"messages": 20_000, "commit_log_bytes": 1 << 18, "consume_queue_bytes": 2_000}
START, END = "9h", "13h"
SECOND_MS, HOUR_MS = 1_000, 3_600_000


def _stored(live: traffic.GrowingBrokers) -> dict[str, list[object]]:
    """Broker name -> ids of what it has stored, in the log's order."""
    return {name: read_table(store, ["msg_id"]).column(0).to_pylist() for name, store in live.stores.items()}


def live_killed(directory: Path, times: int, seed: int) -> tuple[int, bool]:
    """Kill one broker after the other while the day runs.

    Returns how many messages are stored at the end, and whether they are those of an undisturbed day.
    """
    rng = random.Random(seed)
    with traffic.live(directory / "cut", seed=7, start=START, **SMALL) as live:
        end_ms = live.now_ms + 4 * HOUR_MS
        step_ms = 4 * HOUR_MS // (times + 1)
        for _ in range(times):
            name = rng.choice(sorted(live.stores))
            live.run(600)  # ten minutes of the day in a second
            time.sleep(rng.uniform(0.0, 0.05))
            live.kill(name)
            live.pause()
            live.advance(rng.randrange(SECOND_MS, max(2 * SECOND_MS, step_ms - 60 * SECOND_MS)))
            live.resume(name)
            live.pause()
        live.advance(max(0, end_ms - live.now_ms))
        found, now_ms = _stored(live), live.now_ms
    with traffic.live(directory / "whole", seed=7, start=START, **SMALL) as live:
        live.advance(now_ms - live.now_ms)
        wanted = _stored(live)
    return sum(map(len, found.values())), found == wanted
