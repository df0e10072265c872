"""A cluster whose stores grow while you read them: a written day, played again by processes of its own.

    with traffic.live("live", seed=7, start="9h") as broker:        it is nine o'clock: the night is in the logs already
        broker.advance("10min")                                     ten minutes of the day, at once
        broker.kill("broker-b"), broker.resume("broker-b")          kill -9 in the middle of a message; recovery
        broker.late("broker-b", "40min")                            nobody sees what it stores, until 40 minutes later
        broker.roll(), broker.delete_oldest()                       the next log file; retention
    with traffic.live("live", seed=7, speed=300) as broker: ...     a day in five minutes; pause() and resume()

Which bytes are in a store at a moment of the day depends on the seed alone. A broker that was dead or cut off stores
what was sent to it meanwhile once it is back, under the times at which it was sent.
Left out: key indexes, and clients: these brokers accept no sends.
"""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from mqlab.data.traffic.growth.plans import plan_of
from mqlab.data.traffic.writing.run import TrafficSummary, write
from mqlab.durations import milliseconds
from mqlab.errors import UsageError
from mqlab.lab.views.table import Table

MESSAGES, BROKERS = 20_000, 2
SIZES = {"commit_log_bytes": 1 << 20, "consume_queue_bytes": 20_000}
DAY, PLANS = "day", "plans"


class GrowingBrokers:
    """Brokers whose stores grow in ``directory``; ``live`` makes one. A verb without a name concerns all of them."""

    def __init__(self, directory: Path, day: TrafficSummary, plans: dict[str, Path], start_ms: int) -> None:
        self.directory, self.day = directory, day
        self._plans = plans
        self._processes: dict[str, subprocess.Popen[bytes]] = {}
        self._states: dict[str, dict[str, Any]] = {}
        self._until_ms: dict[str, int] = {}
        self._at_ms, self._clock_s, self._speed = start_ms, 0.0, 0.0
        self._speed_before = 0.0  # that of a paused day
        for name in plans:
            self._start(name)
        self._to(start_ms)

    @property
    def now_ms(self) -> int:
        """The moment of the day, in ms since the epoch."""
        passed_s = time.monotonic() - self._clock_s if self._speed else 0.0
        return self._at_ms + int(passed_s * 1000 * self._speed)

    @property
    def now(self) -> str:
        """The time of the day in UTC, such as 09:10:00."""
        return clock_text(self.now_ms)

    def advance(self, duration: str | int) -> GrowingBrokers:
        """Let the day go on by a duration ("10min", or ms), at once: when this returns, the bytes are there."""
        self._to(self.now_ms + milliseconds(duration))
        return self

    def run(self, speed: float) -> GrowingBrokers:
        """From now on the day goes on by itself, so many times faster than a real one."""
        if speed <= 0:
            raise UsageError(f"speed is {speed}: expected a number above 0", hint="300 plays a day in five minutes")
        self._at_ms, self._clock_s, self._speed = self.now_ms, time.monotonic(), speed
        for name in self._processes:
            self._run(name)
        return self

    def pause(self) -> GrowingBrokers:
        """The day stops; ``resume`` or ``run`` lets it go on, ``advance`` moves it."""
        now_ms, self._speed_before, self._speed = self.now_ms, self._speed or self._speed_before, 0.0
        for name in self._processes:
            self._order(name, do="stop")
        return self._to(now_ms)

    def kill(self, name: str | None = None) -> GrowingBrokers:
        """``kill -9`` in the middle of a message: the first half of it is in the log, and no process continues."""
        for broker in self._named(name):
            process = self._processes.pop(broker, None)
            if process is not None:
                self._tell(process, do="die")
                process.wait()
                _close(process)
        return self

    def resume(self, name: str | None = None) -> GrowingBrokers:
        """Start what was killed: it recovers its store as a broker does, and goes on. A paused day goes on, too."""
        for broker in self._named(name):
            if broker not in self._processes:
                self._start(broker)
                self._order(broker, do="to", moment_ms=self.now_ms)
                if self._speed:
                    self._run(broker)
        if name is None and self._speed_before and not self._speed:
            self.run(self._speed_before)
        return self

    def late(self, name: str, duration: str | int) -> GrowingBrokers:
        """Cut a broker off: what it stores from now on is not seen until a duration has passed."""
        (broker,) = self._named(name)
        self._order(broker, do="to", moment_ms=self.now_ms)
        self._order(broker, do="cut off", for_ms=milliseconds(duration))
        self._until_ms[broker] = self.now_ms + milliseconds(duration)
        return self

    def roll(self, name: str | None = None) -> GrowingBrokers:
        """Let the day go on until the broker (without a name: each of them) has begun its next log file."""
        moments = [self._order(broker, do="to", moment_ms=self.now_ms)["next_file_ms"] for broker in self._named(name)]
        if None in moments:
            raise UsageError("the day ends in this log file: there is no next one", hint="give live() more messages")
        return self._to(max(moments))

    def delete_oldest(self, name: str | None = None) -> GrowingBrokers:
        """Delete the oldest file of the log, as retention does. Raises UsageError when there is one file only."""
        for broker in self._named(name):
            self._order(broker, do="delete oldest")
        return self

    @property
    def stores(self) -> dict[str, Path]:
        """Broker name -> store directory."""
        return {name: self.directory / name for name in self._plans}

    def table(self) -> Table:
        """One row per broker: what it does, where its log begins and ends, and how many messages it has stored."""
        if not self._speed:
            self._to(self._at_ms)
        return Table(
            {
                "broker_name": name,
                "state": self._doing(name),
                "log_start": state["start"],
                "log_end": state["end"],
                "messages": state["units"],
            }
            for name, state in self._states.items()
        )

    def __repr__(self) -> str:
        states = ", ".join(f"{name} {self._doing(name)}" for name in self._plans)
        return f"<live {self.directory}: {self.now}, {states}>"

    def _named(self, name: str | None) -> list[str]:
        if name is not None and name not in self._plans:
            raise UsageError(f"there is no broker {name!r}", hint=f"brokers are {', '.join(self._plans)}")
        return list(self._plans) if name is None else [name]

    def _doing(self, name: str) -> str:
        if name not in self._processes:
            return "killed"
        if self.now_ms < self._until_ms.get(name, 0):
            return "cut off"
        return "grows" if self._speed else "waits"

    def _to(self, moment_ms: int) -> GrowingBrokers:
        self._at_ms, self._clock_s = moment_ms, time.monotonic()
        for name in self._processes:
            self._order(name, do="to", moment_ms=moment_ms)
            if self._speed:
                self._run(name)
        return self

    def _run(self, name: str) -> None:
        self._order(name, do="run", at_ms=self._at_ms, clock_s=self._clock_s, speed=self._speed)

    def _start(self, name: str) -> None:
        command = [
            sys.executable,
            "-m",
            "mqlab.data.traffic.growth.process",
            str(self._plans[name]),
            str(self.stores[name]),
        ]
        # A session of its own: Ctrl-C in the notebook's kernel must not reach the broker.
        process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            start_new_session=True,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)},
        )
        self._processes[name] = process
        self._states[name] = self._answer(name)

    def _order(self, name: str, **order: Any) -> dict[str, Any]:
        """Give an order and wait until it is carried out. Raises UsageError when the broker is dead or refuses."""
        if name not in self._processes:
            raise UsageError(f"{name} was killed", hint=f'resume("{name}") starts it again')
        self._tell(self._processes[name], **order)
        state = self._answer(name)
        if "refused" in state:
            raise UsageError(state["refused"], hint=state["hint"])
        self._states[name] = state
        return state

    def _tell(self, process: subprocess.Popen[bytes], **order: Any) -> None:
        assert process.stdin is not None
        process.stdin.write(json.dumps(order).encode() + b"\n")
        process.stdin.flush()

    def _answer(self, name: str) -> dict[str, Any]:
        stdout = self._processes[name].stdout
        assert stdout is not None
        line = stdout.readline()
        if not line:
            raise UsageError(
                f"the process that grows {name} has ended on its own", hint="begin again in a new directory"
            )
        answer: dict[str, Any] = json.loads(line)
        return answer

    def close(self) -> None:
        """End the processes; the stores stay as brokers leave them that were stopped in good order."""
        while self._processes:
            _, process = self._processes.popitem()
            _close(process)
            process.wait()


def _close(process: subprocess.Popen[bytes]) -> None:
    for pipe in (process.stdin, process.stdout):
        if pipe is not None:
            with contextlib.suppress(BrokenPipeError):
                pipe.close()


def clock_text(moment_ms: int) -> str:
    """A moment as a time of its day in UTC.

    >>> clock_text(1_731_283_200_000 + 9 * 3_600_000 + 5_250)
    '09:00:05.250'
    """
    return datetime.fromtimestamp(moment_ms / 1000, UTC).strftime("%H:%M:%S.%f")[:-3].removesuffix(".000")


@contextlib.contextmanager
def live(
    directory: str | os.PathLike[str],
    *,
    seed: int = 7,
    speed: float | None = None,
    start: str | int = 0,
    messages: int = MESSAGES,
    brokers: int = BROKERS,
    **changes: Any,
) -> Iterator[GrowingBrokers]:
    """Stores that grow in ``directory``, which must be empty or new, until the end of the ``with``.

    ``start``: how much of the day is over when it begins ("9h"). ``speed``: the day continues by itself, so many times
    faster than a real one; without it only ``advance`` continues it. ``messages`` are those of the whole day at
    all brokers; ``changes`` are fields of TrafficModel. Raises UsageError for a directory that holds anything.
    """
    target = Path(directory)
    if target.exists() and any(target.iterdir()):
        raise UsageError(f"{target} is not empty", hint="give a new directory: live stores are not continued")
    target.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="mqlab-live-") as hidden:
        day = write(f"{hidden}/{DAY}", messages=messages, brokers=brokers, seed=seed, **{**SIZES, **changes})
        plans = {name: Path(hidden, PLANS, name) for name in day.stores}
        for name, store in day.stores.items():
            plan_of(store).save(plans[name])
        start_ms = day.asked.model.start_ms + milliseconds(start)
        cluster = GrowingBrokers(target, day, plans, start_ms)
        try:
            yield cluster.run(speed) if speed else cluster
        finally:
            cluster.close()
