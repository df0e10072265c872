"""A store that needs no driver: real files, the wall clock, and timers that run when the store is used.

Mirrors: what a broker process does around DefaultMessageStore. Lab 01 opens a directory with it.

    put ──▶ append ──▶ (SYNC_FLUSH: flush) ──▶ dispatch ──▶ timers that are due by now

Left out: threads. Between two calls nothing happens; unsynced bytes are synced by the next call or by close.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

from mqlab.rocketmq.machine.files import RealFiles
from mqlab.rocketmq.machine.this_machine import PolledClock, physical_memory, utc_offset_ms
from mqlab.rocketmq.settings import split_settings
from mqlab.rocketmq.store.config import StoreConfig
from mqlab.rocketmq.store.message_store import MessageStore
from mqlab.rocketmq.wire.host import Host


def standalone_store(
    store_type: type[MessageStore],
    directory: str,
    memory: int | None,
    dispatch: bool,
    store_host: Host,
    settings: Mapping[str, Any],
) -> MessageStore:
    """What MessageStore.open returns: loaded, started, driving itself."""
    (config,) = split_settings(settings, StoreConfig(utc_offset_ms=utc_offset_ms()))
    clock = PolledClock()
    if memory is None:
        memory = int(physical_memory() * (config.access_message_in_memory_max_ratio / 100.0))
    store = store_type(
        directory,
        files=RealFiles(),
        clock=clock,
        config=config,
        store_host=store_host,
        memory_bytes=memory,
        auto_dispatch=False,
        process_id=os.getpid(),
    )
    store.load()
    store.start()
    store.dispatching.drive_by(clock.run_due, dispatch=dispatch)
    return store
