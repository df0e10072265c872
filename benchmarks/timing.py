"""Runs something several times and keeps the best time; a table of rates and of ratios to its first row."""

from __future__ import annotations

import gc
import time
from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True)
class Rate:
    """So many messages a second by one contender in one discipline; ``note`` says what is special about it."""

    discipline: str
    contender: str
    per_second: float
    note: str = ""


CLOCKS = {"wall": time.perf_counter, "cpu": time.process_time}  # cpu: for a machine that others use too


def best_rate(count: int, prepare: Callable[[], Callable[[], object]], repeat: int, clock: str) -> float:
    """Messages a second of the fastest run; ``prepare`` makes a fresh run and is not measured."""
    now = CLOCKS[clock]
    best = 0.0
    for _ in range(repeat):
        run = prepare()
        gc.collect()
        gc.disable()
        started = now()
        run()
        spent = now() - started
        gc.enable()
        best = max(best, count / spent)
    return best


def table(rates: list[Rate], reference: str, other: str) -> str:
    """A text table: per discipline, each contender's rate and its ratio to two contenders of the same discipline."""
    lines = [f"{'':<44}{'msg/s':>12}  ratio to: {reference}, {other}"]
    for discipline in dict.fromkeys(rate.discipline for rate in rates):
        lines += ["", discipline]
        rows = [rate for rate in rates if rate.discipline == discipline]
        known = {rate.contender: rate.per_second for rate in rows}
        for rate in rows:
            ratios = [f"{rate.per_second / known[name]:.2f}" if name in known else "-" for name in (reference, other)]
            lines.append(f"  {rate.contender:<42}{rate.per_second:>12,.0f}{ratios[0]:>8}{ratios[1]:>8}  {rate.note}")
    return "\n".join(lines)
