"""Every setting of the store, with RocketMQ's defaults, in one frozen object.

Mirrors: org.apache.rocketmq.store.config.MessageStoreConfig; names are its own in snake_case. Every lab that makes
its segments small passes some of these.

    sizes       mapped_file_size_commit_log, mapped_file_size_consume_queue, max_hash_slot_num, max_index_num
    limits      max_message_size, max_filter_message_size, max_transfer_..._on_message_in_{memory,disk}
    replicas    broker_role, in_sync_replicas, slave_timeout, ha_...
    flushing    flush_disk_type, flush_interval_commit_log, flush_commit_log_least_pages, ...
    timer       timer_wheel_enable, timer_precision_ms, timer_roll_window_slot, timer_max_delay_sec, ...
    retention   file_reserved_time (hours), delete_when, disk_max_used_space_ratio, ...
    sharp_edges mqlab's own: which of RocketMQ's sharp edges to keep (docs/differences.md)

Left out: DLedger, controller, RocksDB, tiered store, transient pool, warm-up.
"""

from __future__ import annotations

from dataclasses import dataclass

from mqlab.browser import IN_BROWSER
from mqlab.errors import UsageError
from mqlab.rocketmq.wire.units import CQ_UNIT_SIZE

SHARP_EDGES = (
    "normal_recovery_off_by_one",  # after a clean stop, the first unit that was not dispatched is lost
    "stale_tail_kept",  # bytes after the end of a recovered log are not zeroed
    "pre_blank_counts",  # a queue file of nothing but pre-blank units swallows everything below 2 GiB
    "queue_cut_keeps_first_unit",  # cutting an all-zero queue file leaves one unit (0, 0, 0)
    "index_beyond_end_kept",  # index entries of cut messages stay, and block the indexing of new ones
    "lock_after_recovery",  # a second process changes the files before it is refused
    "names_not_synced",  # new files are not secured by syncing their directory
    "checkpoint_ahead_of_queues",  # the checkpoint claims queue entries that are not on the disk yet
    "queue_gap_not_noticed",  # crash recovery starts late although a queue misses entries of older files
    "stale_queue_units_counted",  # units after a queue's end that an earlier cut left on the disk count again
    "torn_properties_accepted",  # a unit whose topic or properties end in unwritten zeros counts as whole
    "misfits_by_own_evidence",  # recovery drops or appends a unit with an odd queue offset without looking at the next
    "flush_error_ignored",  # a failed flush counts as done
)
_POSITIVE = (
    "mapped_file_size_commit_log",
    "mapped_file_size_consume_queue",
    "max_hash_slot_num",
    "slave_timeout",
    "ha_transfer_batch_size",
    "ha_send_heartbeat_interval",
    "ha_housekeeping_interval",
    "max_ha_transfer_byte_in_second",
    "timer_flush_interval_ms",
)
_TIMER_PRECISIONS = (100, 200, 500, 1_000)
_UNIT_MS = {"s": 1_000, "m": 60_000, "h": 3_600_000, "d": 86_400_000}


@dataclass(frozen=True, slots=True)
class StoreConfig:
    """Settings of a MessageStore. Sizes in bytes, intervals in ms, ratios in percent, ages in hours, as in RocketMQ.

    Wrong values raise UsageError. In a browser, which has no sparse files, the commit log's files are 64 times smaller
    by default, those of the index 100 times. Mirrors MessageStoreConfig.
    """

    mapped_file_size_commit_log: int = 1 << 24 if IN_BROWSER else 1 << 30
    mapped_file_size_consume_queue: int = 300_000 * CQ_UNIT_SIZE
    max_hash_slot_num: int = 50_000 if IN_BROWSER else 5_000_000
    max_index_num: int = 200_000 if IN_BROWSER else 20_000_000
    max_msgs_num_batch: int = 64
    message_index_enable: bool = True
    message_index_safe: bool = False

    broker_role: str = "ASYNC_MASTER"
    offset_check_in_slave: bool = False
    in_sync_replicas: int = 1  # copies a put of a SYNC_MASTER waits for, the master's own included
    slave_timeout: int = 3_000
    ha_listen_port: int = 0  # 0: the broker's listen_port + 1
    ha_master_address: str = ""  # a slave's master, "ip:port", instead of the one that the name server names
    ha_transfer_batch_size: int = 32_768
    ha_send_heartbeat_interval: int = 5_000
    ha_housekeeping_interval: int = 20_000
    ha_max_gap_not_in_sync: int = 268_435_456
    ha_flow_control_enable: bool = False
    max_ha_transfer_byte_in_second: int = 104_857_600

    flush_disk_type: str = "ASYNC_FLUSH"
    flush_interval_commit_log: int = 500
    flush_commit_log_least_pages: int = 4
    flush_commit_log_thorough_interval: int = 10_000
    sync_flush_timeout: int = 5_000
    flush_interval_consume_queue: int = 1_000
    flush_consume_queue_least_pages: int = 2
    flush_consume_queue_thorough_interval: int = 60_000

    max_message_size: int = 4 * 1024 * 1024
    message_delay_level: str = "1s 5s 10s 30s 1m 2m 3m 4m 5m 6m 7m 8m 9m 10m 20m 30m 1h 2h"
    read_un_committed: bool = False

    timer_wheel_enable: bool = True
    timer_precision_ms: int = 1_000  # 100, 200, 500 or 1000
    timer_roll_window_slot: int = 172_800  # slots after which a message is put into the timer topic again
    timer_max_delay_sec: int = 259_200
    mapped_file_size_timer_log: int = 104_857_600
    timer_flush_interval_ms: int = 1_000
    timer_congest_num_each_slot: int = (1 << 31) - 1
    timer_enable_retry_until_success: bool = False
    timer_skip_unknown_error: bool = False
    timer_stop_enqueue: bool = False
    timer_stop_dequeue: bool = False

    max_filter_message_size: int = 16_000
    access_message_in_memory_max_ratio: int = 40
    max_transfer_bytes_on_message_in_memory: int = 262_144
    max_transfer_count_on_message_in_memory: int = 32
    max_transfer_bytes_on_message_in_disk: int = 65_536
    max_transfer_count_on_message_in_disk: int = 8

    check_crc_on_recover: bool = True
    recover_with_numpy: bool = True

    file_reserved_time: int = 72
    delete_when: str = "04"
    clean_resource_interval: int = 10_000
    delete_file_batch_max: int = 10
    disk_max_used_space_ratio: int = 75
    disk_space_clean_forcibly_ratio: int = 85
    disk_space_warning_level_ratio: int = 90
    clean_file_forcibly_enable: bool = True
    utc_offset_ms: int = 0  # of the local time that delete_when and the names of index files are in; 0 is UTC

    sharp_edges: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        _one_of("flush_disk_type", self.flush_disk_type, ("ASYNC_FLUSH", "SYNC_FLUSH"))
        _one_of("broker_role", self.broker_role, ("ASYNC_MASTER", "SYNC_MASTER", "SLAVE"))
        for edge in self.sharp_edges:
            _one_of("sharp_edges", edge, SHARP_EDGES)
        for name in _POSITIVE:
            if getattr(self, name) < 1:
                raise UsageError(f"{name} must be positive, not {getattr(self, name)}")
        rounded = -(-self.mapped_file_size_consume_queue // CQ_UNIT_SIZE) * CQ_UNIT_SIZE
        object.__setattr__(self, "mapped_file_size_consume_queue", rounded)
        parse_delay_levels(self.message_delay_level)

    @property
    def is_sync_flush(self) -> bool:
        return self.flush_disk_type == "SYNC_FLUSH"

    @property
    def timer_precision(self) -> int:
        """The precision that the wheel uses, ms: the setting, rounded down to one that RocketMQ knows."""
        return max((known for known in _TIMER_PRECISIONS if known <= self.timer_precision_ms), default=100)

    @property
    def is_slave(self) -> bool:
        return self.broker_role == "SLAVE"


def parse_delay_levels(text: str) -> tuple[int, ...]:
    """The delays of ``message_delay_level`` in ms, level 1 first. Mirrors ScheduleMessageService.parseDelayLevel.

    >>> parse_delay_levels("1s 5m 2h")
    (1000, 300000, 7200000)
    """
    delays = []
    for level, piece in enumerate(text.split(), 1):
        number, unit = piece[:-1], piece[-1:]
        if unit not in _UNIT_MS or not number.isdigit():
            raise UsageError(
                f"message_delay_level {text!r}: level {level} is {piece!r}",
                hint='write a whole number and one of s, m, h, d for each level, such as "1s 5s 10s"',
            )
        delays.append(int(number) * _UNIT_MS[unit])
    if not delays:
        raise UsageError(f"message_delay_level {text!r} has no level", hint='one at least, such as "1s 5s 10s"')
    return tuple(delays)


def _one_of(setting: str, value: str, allowed: tuple[str, ...]) -> None:
    if value not in allowed:
        raise UsageError(f"{setting}={value!r} is unknown", hint=f"one of: {', '.join(allowed)}")
