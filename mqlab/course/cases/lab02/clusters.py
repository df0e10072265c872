"""Days of lab 02 with more than one broker, and the names that all of them share."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from mqlab.course.kit.days import Day

TOPIC, SHOP = "orders", "shop"


@dataclass(frozen=True, slots=True)
class ClusterDay(Day):
    """A day in a Lab with so many brokers: broker-a, broker-b, …"""

    brokers: int = 1

    @property
    def settings(self) -> dict[str, Any]:
        """The settings of the day's Lab."""
        return {"broker": dict(self.broker), "client": dict(self.client), "brokers": self.brokers}
