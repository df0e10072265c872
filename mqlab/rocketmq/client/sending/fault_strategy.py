"""Which brokers to leave alone for a while, judged by how long their answers took.

Mirrors: MQFaultStrategy and LatencyFaultToleranceImpl.

    answer took at least    50   100   550   1800   3000   5000   15000   ms; an error counts as 10 000
    broker is avoided for    0     0  2000   5000   6000  10000   30000   ms

Used only with the setting ``send_latency_fault_enable``. It bans brokers for a time, then goes round as always: it does
not look for the fastest queue. Another strategy (setting ``mq_fault_strategy``) has the same three methods.
A detector asks unreachable brokers again (``start_detector_enable``, off by default).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from mqlab.errors import UsageError

LATENCY_MAX_MS = (50, 100, 550, 1800, 3000, 5000, 15000)
NOT_AVAILABLE_DURATION_MS = (0, 0, 2000, 5000, 6000, 10000, 30000)
ISOLATION_LATENCY_MS = 10_000


class FaultStrategy(Protocol):
    """What the producer asks of it, and reports to it. Mirrors LatencyFaultTolerance as MQFaultStrategy uses it."""

    def is_available(self, broker_name: str, now_ms: int) -> bool: ...

    def is_reachable(self, broker_name: str) -> bool: ...

    def update(self, broker_name: str, latency_ms: int, now_ms: int, *, isolation: bool, reachable: bool) -> None: ...


@dataclass(slots=True)
class FaultItem:
    """What is known of one broker. Mirrors LatencyFaultToleranceImpl.FaultItem."""

    broker_name: str
    latency_ms: int = 0
    available_from_ms: int = 0
    reachable: bool = True
    check_from_ms: int = 0


class LatencyFaultStrategy:
    """RocketMQ's table: a slow or failing broker is avoided for a time that depends on its latency class."""

    def __init__(
        self,
        latency_max: Sequence[int] = LATENCY_MAX_MS,
        not_available_duration: Sequence[int] = NOT_AVAILABLE_DURATION_MS,
    ) -> None:
        if len(latency_max) != len(not_available_duration):
            raise UsageError(
                f"{len(latency_max)} latency classes but {len(not_available_duration)} durations: they belong together"
            )
        self.latency_max = tuple(latency_max)
        self.not_available_duration = tuple(not_available_duration)
        self.items: dict[str, FaultItem] = {}

    def duration_ms(self, latency_ms: int) -> int:
        """How long a broker with this latency is avoided.

        >>> strategy = LatencyFaultStrategy()
        >>> [strategy.duration_ms(latency) for latency in (549, 550, 1800, 15000)]
        [0, 2000, 5000, 30000]
        """
        for lowest_ms, duration in zip(reversed(self.latency_max), reversed(self.not_available_duration), strict=True):
            if latency_ms >= lowest_ms:
                return duration
        return 0

    def is_available(self, broker_name: str, now_ms: int) -> bool:
        """True when the broker is unknown or its penalty is over."""
        item = self.items.get(broker_name)
        return item is None or now_ms >= item.available_from_ms

    def is_reachable(self, broker_name: str) -> bool:
        """False after a broker answered with an error, until its next success."""
        item = self.items.get(broker_name)
        return item is None or item.reachable

    def update(self, broker_name: str, latency_ms: int, now_ms: int, *, isolation: bool, reachable: bool) -> None:
        """One answer came (or failed: ``isolation``). A new penalty only ever extends the end of the old one."""
        duration = self.duration_ms(ISOLATION_LATENCY_MS if isolation else latency_ms)
        item = self.items.setdefault(broker_name, FaultItem(broker_name))
        item.latency_ms = latency_ms
        item.available_from_ms = max(item.available_from_ms, now_ms + duration)
        item.reachable = reachable

    def __repr__(self) -> str:
        return f"<LatencyFaultStrategy {len(self.items)} brokers>"


def checked_strategy(chosen: Any) -> FaultStrategy:
    """The learner's own strategy. UsageError names the methods that it lacks."""
    missing = [name for name in ("is_available", "is_reachable", "update") if not callable(getattr(chosen, name, None))]
    if missing or isinstance(chosen, type):
        raise UsageError(
            f"{chosen!r} is not a fault strategy: "
            + (f"it lacks {', '.join(missing)}" if missing else "it is a class"),
            hint="give an object with is_available(broker_name, now_ms), is_reachable(broker_name) and "
            "update(broker_name, latency_ms, now_ms, *, isolation, reachable)",
        )
    strategy: FaultStrategy = chosen
    return strategy
