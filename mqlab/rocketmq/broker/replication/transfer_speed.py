"""How many bytes went over a replication link in the last full second, and how many may still be sent in this one.

Mirrors: FlowMonitor. admin.ha_status shows it.

    second   …  41      42       43 (now)
    bytes    …  32 768  1 217    600        speed: 1 217      left in this second: limit - 600

Left out: the thread that samples every second; here the numbers are calculated when they are read.
"""

from __future__ import annotations

SECOND_MS = 1_000


class TransferSpeed:
    """The bytes of this second and of the one before."""

    def __init__(self) -> None:
        self._second = 0
        self._now_bytes = 0
        self._last_bytes = 0

    def add(self, size: int, now_ms: int) -> None:
        """Count bytes that went over the link."""
        self._roll(now_ms)
        self._now_bytes += size

    def in_last_second(self, now_ms: int) -> int:
        """The bytes of the last full second. Mirrors getTransferredByteInSecond.

        >>> speed = TransferSpeed(); speed.add(700, 1_500); speed.in_last_second(1_999), speed.in_last_second(2_000)
        (0, 700)
        """
        self._roll(now_ms)
        return self._last_bytes

    def left(self, limit: int, now_ms: int) -> int:
        """The bytes that may still be sent in this second. Mirrors canTransferMaxByteNum."""
        self._roll(now_ms)
        return max(0, limit - self._now_bytes)

    def _roll(self, now_ms: int) -> None:
        second = now_ms // SECOND_MS
        if second != self._second:
            self._last_bytes = self._now_bytes if second == self._second + 1 else 0
            self._now_bytes = 0
            self._second = second
