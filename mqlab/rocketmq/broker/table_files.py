"""Which table of a broker is kept in which file of the directory ``config``, and how often it is written.

Mirrors: the scheduled persist tasks of BrokerController and the file names of BrokerPathConfigHelper.

    file                      table                  written
    topics.json               topics                 at every change
    subscriptionGroup.json    groups                 at every change
    consumerOffset.json       offset_table           every 5 s after a change (flush_consumer_offset_interval)
    delayOffset.json          delay_offset_table     every 10 s after a change (flush_delay_offset_interval)
    consumerFilter.json       filters                every 10 s after a change
    messageRequestMode.json   request_modes          at every change
    consumerOrderInfo.json    order_infos            every 10 s after a change, once an orderly pop has come
    transactionMetrics        transaction_metrics    every 3 s after a change (transaction_metric_flush_interval)
    users.json                users                  at every change, in a broker that has users
"""

from __future__ import annotations

from functools import partial
from typing import Any, Protocol

from mqlab.rocketmq.broker.state import BrokerState
from mqlab.rocketmq.broker.tables.config_saver import ConfigSaver
from mqlab.rocketmq.broker.tables.offsets import OFFSETS_FILE
from mqlab.rocketmq.store.config_files import ConfigFile
from mqlab.rocketmq.store.message_store import MessageStore

FILTER_PERSIST_MS = 10_000
ORDER_INFO_PERSIST_MS = 10_000


class KeptTable(Protocol):
    """A table that can be written as text and read back."""

    def encode(self) -> str: ...

    def decode(self, text: str) -> None: ...


def table_savers(state: BrokerState, store_directory: str) -> tuple[ConfigSaver, ...]:
    """A saver per table with a file, each of them subscribed to the changes of its table."""
    files, clock, config, note = state.ports.files, state.ports.clock, state.config, state.ports.note

    def saver(
        name: str, table: KeptTable, period_ms: int | None, kind: str = "broker.persist", **options: Any
    ) -> ConfigSaver:
        file = ConfigFile(files, f"{store_directory}/config/{name}", clock=clock, note=note)
        return ConfigSaver(
            clock,
            file,
            table.encode,
            table.decode,
            state.store.failures,
            period_ms=period_ms,
            kind=kind,
            note=note,
            **options,
        )

    # 1. A saver per file. Offsets point into the log, so their files wait until the log is safe.
    topics = saver("topics.json", state.topics, None)
    groups = saver("subscriptionGroup.json", state.groups, None)
    is_safe = partial(log_is_safe, state.store)
    every_ms = config.flush_consumer_offset_interval
    offsets = saver(
        OFFSETS_FILE,
        state.offset_table,
        every_ms,
        "offset.persist",
        saved_kind="offset.persisted",
        ready=is_safe,
    )
    every_ms = config.flush_delay_offset_interval
    delay_offsets = saver("delayOffset.json", state.delay_offset_table, every_ms, ready=is_safe)
    filters = saver("consumerFilter.json", state.filters, FILTER_PERSIST_MS)
    modes = saver("messageRequestMode.json", state.request_modes, None, save_at_stop=False)
    orders = saver(
        "consumerOrderInfo.json", state.order_infos, ORDER_INFO_PERSIST_MS, ready=lambda: state.order_infos.is_used
    )
    metrics = saver("transactionMetrics", state.transaction_metrics, config.transaction_metric_flush_interval)

    # 2. Each saver is called when its table changes.
    state.topics.changed.subscribe(lambda changed_topics: topics.changed())
    for changed, kept in (
        (state.groups.changed, groups),
        (state.offset_table.changed, offsets),
        (state.delay_offset_table.changed, delay_offsets),
        (state.filters.changed, filters),
        (state.transaction_metrics.changed, metrics),
        (state.request_modes.changed, modes),
        (state.order_infos.changed, orders),
    ):
        changed.subscribe(kept.changed)
    savers = (topics, groups, offsets, delay_offsets, filters, metrics, modes, orders)
    if state.users is None:
        return savers
    users = saver("users.json", state.users, None)
    state.users.changed.subscribe(users.changed)
    return (*savers, users)


def log_is_safe(store: MessageStore) -> bool:
    """Whether a file of offsets may be written: under SYNC_FLUSH only after the log.

    What an offset has passed over must have its copies on the disk: a retry copy, a delivered delayed message and a
    half message that is stored again are acknowledged without a flush.
    """
    return not store.config.is_sync_flush or store.flusher.sync_log()
