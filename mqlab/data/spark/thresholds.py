"""The numbers from which on the rules find something suspicious, as a table that can be changed and given to a run.

Mirrors: the alarm rules that a team keeps next to RocketMQ Dashboard's alarm page.

    mqlab spark run STORES --out OUT --thresholds limits.json        {"slow_times": 3, "slow_ms": 50}

A file names only what is changed. Left out: thresholds of single groups.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import Any

from mqlab.errors import UsageError


def _limit(default: float, meaning: str) -> Any:
    return field(default=default, metadata={"meaning": meaning})


@dataclass(frozen=True, slots=True)
class Thresholds:
    """Each rule finds what is at or above its numbers.

    >>> Thresholds.of({"slow_times": 3}).slow_times, Thresholds().slow_times
    (3, 5.0)
    """

    fewest: float = _limit(3, "messages lost or delivered again, or failed calls, before a rule speaks of them")
    failed_share: float = _limit(0.5, "failing listener: share of a stretch's calls that failed")
    slow_times: float = _limit(5.0, "slow listener: times as long as usual on that day")
    slow_ms: float = _limit(100, "slow listener: ms that a call takes on average")
    skew: float = _limit(2.0, "hot queue: times its share of the topic")
    enough: float = _limit(100, "hot queue, burst: messages of the queue or stretch")
    key_share: float = _limit(0.05, "hot key: share of a window's messages")
    key_times_its_day: float = _limit(3.0, "hot key: times its share of the day")
    enough_of_a_key: float = _limit(25, "hot key: messages with it in the window")
    burst_times: float = _limit(3.0, "burst: times the median of the stretches around")

    @classmethod
    def of(cls, changed: Mapping[str, Any]) -> Thresholds:
        """The built-in thresholds with these changed. UsageError for an unknown name and what is not a number."""
        known = [field.name for field in fields(cls)]
        for name, value in changed.items():
            if name not in known:
                raise UsageError(f"unknown threshold {name!r}", hint=f"there are: {', '.join(known)}")
            if isinstance(value, bool) or not isinstance(value, int | float) or value < 0:
                raise UsageError(f"threshold {name} is {value!r}: expected a number of 0 or more")
        return cls(**changed)

    @classmethod
    def from_file(cls, path: Path) -> Thresholds:
        """The thresholds of a JSON file. Raises UsageError for a file without a JSON object, and as ``of`` does."""
        try:
            changed = json.loads(path.read_text("utf-8"))
        except ValueError as error:
            raise UsageError(f"cannot read {path}: {error}", hint='give an object: {"slow_times": 3}') from error
        if not isinstance(changed, dict):
            raise UsageError(f"{path} holds no JSON object", hint='give an object: {"slow_times": 3}')
        return cls.of(changed)

    def rows(self) -> list[tuple[str, float, float, str]]:
        """The table: name, value, built-in value, meaning."""
        return [
            (field.name, getattr(self, field.name), float(str(field.default)), field.metadata["meaning"])
            for field in fields(self)
        ]

    def as_dict(self) -> dict[str, float]:
        """Names and values, as the manifest of a run keeps them."""
        return asdict(self)
