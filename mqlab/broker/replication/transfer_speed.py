"""How many bytes went over a replication link in the last whole second, and how many more may go in this one.

Mirrors: FlowMonitor. Shown by admin.ha_status.

    second   …  41      42       43 (now)
    bytes    …  32 768  1 217    600        speed 1 217      left in this second: limit - 600

Left out: the thread that samples each second; the numbers are made up when somebody looks.
"""

from __future__ import annotations

SECOND_MS = 1_000


class TransferSpeed:
    """Bytes of the second under way and of the one before."""

    def __init__(self) -> None:
        self._second = 0
        self._now_bytes = 0
        self._last_bytes = 0

    def add(self, size: int, now_ms: int) -> None:
        """So many bytes went over the link."""
        self._roll(now_ms)
        self._now_bytes += size

    def in_last_second(self, now_ms: int) -> int:
        """Bytes of the last whole second. Mirrors getTransferredByteInSecond.

        >>> speed = TransferSpeed(); speed.add(700, 1_500); speed.in_last_second(1_999), speed.in_last_second(2_000)
        (0, 700)
        """
        self._roll(now_ms)
        return self._last_bytes

    def left(self, limit: int, now_ms: int) -> int:
        """Bytes that may still go in this second. Mirrors canTransferMaxByteNum."""
        self._roll(now_ms)
        return max(0, limit - self._now_bytes)

    def _roll(self, now_ms: int) -> None:
        second = now_ms // SECOND_MS
        if second != self._second:
            self._last_bytes = self._now_bytes if second == self._second + 1 else 0
            self._now_bytes = 0
            self._second = second
