"""`mqlab serve` beside a real RocketMQ, as the same Java client sees them: messages a second, and processor time.

    sync, batch, async, consume   the kinds of BenchDoor, in this order; mqlab and RocketMQ run one after another
    µs of server                  processor time of the broker's process per message, whatever else the machine does

Needs a JDK (17 or newer) and Maven. With --profile the time of mqlab's server is told by function instead.
"""

from __future__ import annotations

import argparse
import json
import os
import pstats
import subprocess
import sys
import tempfile
from collections import Counter
from contextlib import AbstractContextManager
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tests.interop.clusters import Where
    from tests.interop.java_store import JavaStore

KINDS = ("sync", "batch", "async", "consume")
GOALS = {"sync": 1.0, "batch": 0.8, "async": 0.8, "consume": 1.0}


def main(arguments: list[str]) -> None:
    """Measure and print a table."""
    from tests.interop.clusters import mqlab_cluster, real_cluster
    from tests.interop.java_store import JavaStore, what_is_missing

    parser = argparse.ArgumentParser(prog="benchmarks served", description=__doc__.partition("\n")[0])
    parser.add_argument("--seconds", type=float, default=10.0, help="how long each kind of send is measured")
    parser.add_argument("--profile", metavar="KIND", choices=KINDS, help="where the time of mqlab's server goes")
    wanted = parser.parse_args(arguments)
    missing = what_is_missing()
    if missing:
        print(f"  left out: the client {missing}", file=sys.stderr)
        return
    with tempfile.TemporaryDirectory() as folder:
        work = Path(folder)
        java = JavaStore(work)

        def run(name: str, cluster: AbstractContextManager[Where], kinds: tuple[str, ...]) -> dict[str, list[float]]:
            print(f"  {name}", file=sys.stderr, flush=True)
            with cluster as where:
                return _measured(java, work / f"{name}.json", where, wanted.seconds, kinds)

        if wanted.profile:
            profile = work / "profile"
            kinds = ("batch", "consume") if wanted.profile == "consume" else (wanted.profile,)
            run("mqlab", mqlab_cluster(work / "mqlab", profile=profile), kinds)
            _print_profile(pstats.Stats(str(profile)))
            return
        ours = run("mqlab", mqlab_cluster(work / "mqlab"), KINDS)
        real = run("RocketMQ", real_cluster(work / "real", java.classpath), KINDS)
    print_beside(ours, real, GOALS)


def print_beside(ours: dict[str, list[float]], real: dict[str, list[float]], goals: dict[str, float]) -> None:
    """Print a row per kind; of each server: messages a second, and microseconds of processor time per message."""
    print(f"{'':<10}{'mqlab/s':>12}{'RocketMQ/s':>12}{'ratio':>8}{'goal':>6}   µs of server: mqlab, RocketMQ")
    for kind, (rate, cost) in ours.items():
        real_rate, real_cost = real[kind]
        ratio = rate / real_rate
        print(
            f"{kind:<10}{rate:>12,.0f}{real_rate:>12,.0f}{ratio:>8.2f}{goals.get(kind, '-'):>6}"
            f"{cost:>17.0f}{real_cost:>10.0f}"
        )


def _measured(
    java: JavaStore, answer: Path, where: Where, seconds: float, kinds: tuple[str, ...]
) -> dict[str, list[float]]:
    """Per kind: messages a second, and the broker's microseconds of processor time per message."""
    command = java.command("BenchDoor", where.name_server, answer, seconds, "bench", *kinds)
    costs: dict[str, float] = {}
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    ) as client:
        for kind in kinds:
            (before, sent), (after, done) = (_mark(client, kind, where.pid) for _ in range(2))
            costs[kind] = 1e6 * (after - before) / max(1, sent if kind == "consume" else done - sent)
    rates = json.loads(answer.read_text("utf-8"))
    return {kind: [rates[kind], costs[kind]] for kind in kinds}


def _print_profile(stats: pstats.Stats) -> None:
    """The dearest functions, and the share of each folder of mqlab; a function in C belongs to who calls it."""
    stats.sort_stats("tottime").print_stats(30)
    shares: Counter[str] = Counter()
    for (file, _, _), (_, _, own, _, callers) in stats.stats.items():  # type: ignore[attr-defined]
        if file != "~":
            shares[_part(file)] += own
        for (caller, _, _), (_, _, own_from_there, _) in callers.items() if file == "~" else ():
            shares[_part(caller)] += own_from_there
    whole = sum(shares.values())
    for part, spent in shares.most_common():
        print(f"{spent / whole:>6.0%}  {part}")


def _part(file: str) -> str:
    """The folder below mqlab, or the library."""
    _, found, below = file.rpartition("/mqlab/")
    if found:
        return below.partition("/")[0]
    return "asyncio" if "/asyncio/" in file else "other Python"


def _mark(client: subprocess.Popen[str], kind: str, pid: int) -> tuple[float, int]:
    """Wait until the client is at a mark: the broker's processor time in seconds, and how many messages were sent."""
    assert client.stdin is not None and client.stdout is not None
    while True:
        line = client.stdout.readline()
        if not line:
            raise RuntimeError(f"the client ended before {kind} was measured")
        word, _, count = line.strip().partition(" ")
        if word == kind and count.isdecimal():
            break
    spent = processor_seconds(pid)
    client.stdin.write("\n")
    client.stdin.flush()
    return spent, int(count)


def processor_seconds(pid: int) -> float:
    """Processor time that a process has used."""
    ticks = Path(f"/proc/{pid}/stat").read_text("ascii").rpartition(") ")[2].split()[11:13]
    return sum(map(int, ticks)) / os.sysconf("SC_CLK_TCK")
