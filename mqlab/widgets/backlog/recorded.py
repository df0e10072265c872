"""The runs that a page of the backlog tank has without a kernel. They are kept in a file: to play them takes seconds.

    recorded.json     a line for each of RECORDED, as the page gets it

``python -m mqlab.widgets.backlog.recorded`` writes the file again; the same simulation gives the same bytes.
"""

from __future__ import annotations

import functools
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from mqlab.widgets.backlog.limits import limits, per_call, waiting_seconds
from mqlab.widgets.backlog.runs import TankRun, TankSettings, play_tank

RECORDED: Mapping[str, TankSettings] = {
    "2 instances": TankSettings(instances=2),
    "a database of 8 slots": TankSettings(slots=8),
    "8 slots, 3 instances": TankSettings(slots=8, instances=3),
    "200 ms of each call compute, 20 threads": TankSettings(compute_ms=200, wait_ms=800, threads=20),
    "6 instances of 2 threads, 4 queues": TankSettings(instances=6, threads=2),
    "5 threads, up to 8 messages a call": TankSettings(threads=5, batch=8),
    "the same, each queue pulled once a second": TankSettings(threads=5, batch=8, pull_interval_ms=1_000),
}
FILE = Path(__file__).with_name("recorded.json")


def shown(run: TankRun) -> dict[str, Any]:
    """A run as the page gets it: lists of numbers instead of many equal names."""
    waiting = waiting_seconds(run)
    return {
        "settings": run.settings.as_json(),
        "seconds": [list(row.values())[1:] for row in run.seconds],
        "limits": [list(row.values()) for row in limits(run)],
        "behind": [waiting[0], waiting[-1] + 1] if waiting else None,
        "left": run.left,
        "per_call": per_call(run),
    }  # fmt: skip


def shown_with(settings: TankSettings) -> dict[str, Any]:
    """The run with these settings as the page gets it: read from the file, or played if it is not there."""
    return _kept().get(settings) or shown(play_tank(settings))


@functools.cache
def _kept() -> dict[TankSettings, dict[str, Any]]:
    runs = [json.loads(line) for line in FILE.read_text("utf-8").splitlines()]
    return {TankSettings(**{**run["settings"], "traffic": tuple(run["settings"]["traffic"])}): run for run in runs}


if __name__ == "__main__":
    lines = [json.dumps(shown(play_tank(settings)), separators=(",", ":")) + "\n" for settings in RECORDED.values()]
    FILE.write_text("".join(lines), "utf-8")
