"""The process that grows one store: it follows orders on its standard input, and ends when that ends.

    python -m mqlab.data.traffic.growth.process PLAN DIRECTORY

    {"do": "to", "moment_ms": …}          append up to a moment                             ─▶ one line for each order:
    {"do": "run", "at_ms": …, "clock_s": …, "speed": 300}    from now on by itself             {"end": …, "start": …,
    {"do": "stop"}                        not by itself any more                                "units": …, "now_ms": …}
    {"do": "cut off", "for_ms": …}        nobody sees what is stored, for a while              or {"refused": "why"}
    {"do": "delete oldest"}               the first log file goes
    {"do": "die"}                         half of the next unit, then kill -9                 ─▶ nothing: it is dead

A kernel that dies closes the pipe, and the process with it; Ctrl-C in the kernel does not reach it.
"""

from __future__ import annotations

import json
import os
import select
import signal
import sys
import time
from pathlib import Path
from typing import Any

from mqlab.data.traffic.growth.growing_store import GrowingStore
from mqlab.data.traffic.growth.plans import GrowthPlan
from mqlab.errors import MqlabError

TICK_S = 0.05


class Growth:
    """A store, and the clock by which it grows by itself."""

    def __init__(self, store: GrowingStore) -> None:
        self.store = store
        self._at_ms, self._clock_s, self._speed = 0, 0.0, 0.0

    @property
    def runs(self) -> bool:
        return self._speed > 0

    def tick(self) -> None:
        """Append what was stored up to now, by the clock."""
        if self.runs:
            passed_ms = (time.monotonic() - self._clock_s) * 1000 * self._speed
            self.store.up_to(self._at_ms + int(passed_ms))

    def follow(self, order: dict[str, Any]) -> None:
        """Carry out one order."""
        what = order["do"]
        if what == "to":
            self.store.up_to(order["moment_ms"])
        elif what == "run":
            self._at_ms, self._clock_s, self._speed = order["at_ms"], order["clock_s"], order["speed"]
        elif what == "stop":
            self._speed = 0.0
        elif what == "cut off":
            self.store.cut_off(order["for_ms"])
        elif what == "delete oldest":
            self.store.delete_oldest()
        elif what == "die":
            self.store.half_unit()
            os.kill(os.getpid(), signal.SIGKILL)

    def state(self) -> dict[str, Any]:
        """What the giver of an order gets as its answer."""
        store = self.store
        return {
            "start": store.log_start,
            "end": store.log_end,
            "units": store.done,
            "now_ms": store.now_ms,
            "next_file_ms": store.next_file_ms(),
        }


def main(plan: str, directory: str) -> None:
    """Follow orders until there will be no more; then leave the store as a stopped broker does."""
    store = GrowingStore(GrowthPlan.load(Path(plan)), Path(directory))
    growth = Growth(store)
    print(json.dumps(growth.state()), flush=True)
    orders = sys.stdin.buffer
    while True:
        ready, _, _ = select.select([orders], [], [], TICK_S if growth.runs else None)
        if not ready:
            growth.tick()
            continue
        line = orders.readline()
        if not line:
            break
        try:
            growth.follow(json.loads(line))
            answer = growth.state()
        except MqlabError as error:
            answer = {"refused": error.text, "hint": error.hint}
        print(json.dumps(answer), flush=True)
    store.close()


if __name__ == "__main__":
    main(*sys.argv[1:])
