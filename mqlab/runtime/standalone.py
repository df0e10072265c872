"""A store that drives itself: real files, the wall clock, and timers that go off when the store is used.

Mirrors: what a broker process does around DefaultMessageStore. Lab 01 opens a directory with it.

    put ──▶ append ──▶ (SYNC_FLUSH: flush) ──▶ dispatch ──▶ timers that are due by now

Left out: threads. Between two calls nothing happens; what is still unsynced is synced by the next call or by close.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping
from heapq import heappop, heappush
from typing import Any

from mqlab.runtime.files import RealFiles
from mqlab.runtime.settings import split_settings
from mqlab.store.config import StoreConfig
from mqlab.store.message_store import MessageStore
from mqlab.wire.host import Host


class DueCall:
    """A deadline of a PolledClock."""

    __slots__ = ("action", "due_ms", "kind")

    def __init__(self, due_ms: int, action: Callable[[], None] | None, kind: str) -> None:
        self.due_ms = due_ms
        self.action = action
        self.kind = kind

    def cancel(self) -> None:
        self.action = None

    def __repr__(self) -> str:
        return f"<DueCall {self.kind} at {self.due_ms}{'' if self.action else ' cancelled'}>"


class PolledClock:
    """The wall clock; deadlines run when ``run_due`` is called and not by themselves."""

    def __init__(self) -> None:
        self._heap: list[tuple[int, int, DueCall]] = []
        self._armed = 0

    def now_ms(self) -> int:
        return time.time_ns() // 1_000_000

    def call_at(self, due_ms: int, action: Callable[[], None], kind: str) -> DueCall:
        call = DueCall(due_ms, action, kind)
        self._armed += 1
        heappush(self._heap, (due_ms, self._armed, call))
        return call

    def call_later(self, delay_ms: int, action: Callable[[], None], kind: str) -> DueCall:
        return self.call_at(self.now_ms() + delay_ms, action, kind)

    def run_due(self, now_ms: int) -> None:
        """Run every deadline that is due by now, in order."""
        heap = self._heap
        while heap and heap[0][0] <= now_ms:
            action = heappop(heap)[2].action
            if action is not None:
                action()

    def __repr__(self) -> str:
        return f"<PolledClock {len(self._heap)} deadlines>"


def physical_memory() -> int:
    """Bytes of RAM of this machine. Mirrors StoreUtil.TOTAL_PHYSICAL_MEMORY_SIZE."""
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")


def standalone_store(
    made: type[MessageStore], directory: str, memory: int | None, dispatch: bool, store_host: Host,
    settings: Mapping[str, Any],
) -> MessageStore:  # fmt: skip
    """What MessageStore.open returns: loaded, started, driving itself."""
    (config,) = split_settings(settings, StoreConfig(utc_offset_ms=time.localtime().tm_gmtoff * 1000))
    clock = PolledClock()
    if memory is None:
        memory = int(physical_memory() * (config.access_message_in_memory_max_ratio / 100.0))
    store = made(
        directory, files=RealFiles(), clock=clock, config=config, store_host=store_host, memory_bytes=memory,
        auto_dispatch=False, process_id=os.getpid(),
    )  # fmt: skip
    store.load()
    store.start()
    store.drive_by(clock.run_due, dispatch=dispatch)
    return store
