"""A broker about itself: its state in numbers, its counters and its settings.

Mirrors: AdminBrokerProcessor, BrokerStats; what mqadmin's clusterList, brokerStatus and statsAll show.

    GET_BROKER_RUNTIME_INFO    name -> text                    msgPutTotalTodayNow, scheduleMessageOffset_3 …
    VIEW_BROKER_STATS_DATA     a counter over three windows    {"statsMinute": {"sum", "tps", "avgpt"}, "statsHour": …}
    GET_BROKER_CONFIG          every setting, one name=value per line
    UPDATE_BROKER_CONFIG       changes the settings that it names while the broker runs

Left out: thread pool queues (shown as empty, with RocketMQ's capacities), the transient store pool.
"""

from __future__ import annotations

import dataclasses

from mqlab.errors import UsageError
from mqlab.rocketmq.broker.state import BrokerState
from mqlab.rocketmq.remoting.endpoint import Channel, Reply
from mqlab.rocketmq.remoting.requests import Answer, Refused, body, text_or_null
from mqlab.rocketmq.remoting.settings import changes_to, lines_of, parsed_lines, refuse_black_listed, typed
from mqlab.rocketmq.wire import names
from mqlab.rocketmq.wire.body import camel_case
from mqlab.rocketmq.wire.codes import ResponseCode
from mqlab.rocketmq.wire.command import RemotingCommand
from mqlab.rocketmq.wire.java_json import to_json
from mqlab.rocketmq.wire.java_numbers import parse_int

VERSION_TEXT = "V5_3_3"
READ_LIVE = (
    "access_message_in_memory_max_ratio",
    "max_transfer_bytes_on_message_in_memory",
    "max_transfer_count_on_message_in_memory",
    "max_transfer_bytes_on_message_in_disk",
    "max_transfer_count_on_message_in_disk",
    "in_sync_replicas",
    "slave_timeout",
)
"""Settings of the store that are used from the next get or put on."""
NEVER_UPDATED = ("brokerConfigPath", "rocketmqHome", "configBlackList")
"""Settings that no request may change, even if configBlackList does not have them."""
CAPACITY_OF_POOLS = {"send": 10_000, "pull": 100_000, "litePull": 100_000, "query": 20_000, "ack": 100_000}
END_TRANSACTION_CAPACITY = 100_000
NO_TRANSIENT_POOL = (1 << 31) - 1  # what RocketMQ shows when that pool is off


class RuntimeInfo:
    """Handlers of the requests about the broker itself."""

    def __init__(self, state: BrokerState) -> None:
        self._state = state

    def get_broker_runtime_info(self, channel: Channel, request: RemotingCommand, reply: Reply) -> Answer:
        """GET_BROKER_RUNTIME_INFO."""
        return request.reply(body=to_json({"table": {name: str(value) for name, value in self._table().items()}}))

    def _table(self) -> dict[str, object]:
        state = self._state
        store = state.store
        disk_used = state.ports.files.used_ratio(store.directory)
        disk_bytes, disk_free = state.ports.files.disk_space(store.directory)
        put = state.stats.puts_of_day.look(state.now_ms())
        got = state.stats.gets_of_day.look(state.now_ms())
        earliest = store.message_at(store.min_physical_offset)
        no_timer = {"timerReadBehind": 0, "timerOffsetBehind": 0, "timerCongestNum": 0}
        table: dict[str, object] = {
            "brokerActive": "false" if state.identity.is_slave else "true",
            "brokerVersion": "479",
            "brokerVersionDesc": VERSION_TEXT,
            "bootTimestamp": state.started_ms,
            "runtime": _since(state.now_ms() - state.started_ms),
            **state.store_stats.table(),
            "msgPutTotalYesterdayMorning": put.yesterday,
            "msgPutTotalTodayMorning": put.today,
            "msgPutTotalTodayNow": put.now,
            "msgGetTotalYesterdayMorning": got.yesterday,
            "msgGetTotalTodayMorning": got.today,
            "msgGetTotalTodayNow": got.now,
            "commitLogMinOffset": store.min_physical_offset,
            "commitLogMaxOffset": store.max_physical_offset,
            "dispatchBehindBytes": store.dispatch_behind_bytes,
            "remainHowManyDataToFlush": human_bytes(store.max_physical_offset - store.flushed_offset),
            "remainTransientStoreBufferNumbs": NO_TRANSIENT_POOL,
            "commitLogDirCapacity": f"Total : {human_bytes(disk_bytes)}, Free : {human_bytes(disk_free)}.",
            "commitLogDiskRatio": disk_used,
            "commitLogDiskRatio_commitlog": disk_used,
            "consumeQueueDiskRatio": disk_used,
            "dispatchMaxBuffer": 0,
            "earliestMessageTimeStamp": -1 if earliest is None else earliest.store_timestamp,
            "startAcceptSendRequestTimeStamp": state.config.start_accept_send_request_time_stamp,
            "pageCacheLockTimeMills": 0,
            **(no_timer if state.timer is None else state.timer.status()),
            "timerEnqueueTps": 0.0,
            "timerDequeueTps": 0.0,
        }
        if state.identity.is_slave:  # a slave does not put: it counts the messages that it has copied
            table["putMessageTimesTotal"] = max(state.store_stats.dispatched, 1)
        # There are no thread pools here: tools see empty queues.
        for pool, capacity in CAPACITY_OF_POOLS.items():
            table[f"{pool}ThreadPoolQueueSize"] = 0
            table[f"{pool}ThreadPoolQueueCapacity"] = capacity
            table[f"{pool}ThreadPoolQueueHeadWaitTimeMills"] = 0
        table["EndTransactionQueueSize"] = 0
        table["EndTransactionThreadPoolQueueCapacity"] = END_TRANSACTION_CAPACITY
        if store.failures:  # a row that RocketMQ does not have, and no row while all parts work
            table["failedParts"] = str(store.failures)
        for level, reached in state.delay_offset_table.items():
            table[f"scheduleMessageOffset_{level}"] = f"{reached},{store.max_offset(names.SCHEDULE_TOPIC, level - 1)}"
        return table

    def view_broker_stats_data(self, channel: Channel, request: RemotingCommand, reply: Reply) -> Answer:
        """VIEW_BROKER_STATS_DATA."""
        name, key = text_or_null(request, "statsName"), text_or_null(request, "statsKey")
        windows = self._state.stats.snapshots(name, key)
        if windows is None:
            raise Refused(ResponseCode.SYSTEM_ERROR, f"The stats <{name}> <{key}> not exist")
        return request.reply(
            body=to_json({window: dataclasses.asdict(snapshot) for window, snapshot in windows.items()})
        )

    def get_broker_config(self, channel: Channel, request: RemotingCommand, reply: Reply) -> Answer:
        """GET_BROKER_CONFIG."""
        ha_port = parse_int(self._state.identity.ha_address.rpartition(":")[2])  # also where none was set
        store = dataclasses.replace(self._state.store.config, ha_listen_port=ha_port)
        settings = lines_of(self._state.config) + lines_of(store)
        lines = [f"brokerIP1={self._state.identity.ip}", *settings]
        if self._state.told_name_servers:
            lines.append(f"namesrvAddr={';'.join(self._state.told_name_servers)}")
        version = to_json(self._state.topics.data_version.to_value()).decode("utf-8")
        return request.reply(body="\n".join(sorted(lines)).encode("utf-8"), version=version)

    def update_broker_config(self, channel: Channel, request: RemotingCommand, reply: Reply) -> Answer:
        """UPDATE_BROKER_CONFIG: all named settings, or none if one is wrong; NO_PERMISSION for the black list."""
        values = parsed_lines(body(request))
        # 1. Check everything before anything is changed.
        refuse_black_listed(values, NEVER_UPDATED, self._state.config.config_black_list)
        of_store = {
            name: typed(name, values.pop(camel_case(name)), 0) for name in READ_LIVE if camel_case(name) in values
        }
        changes = changes_to(self._state.config, values)
        try:
            self._state.change_config(dataclasses.replace(self._state.config, **changes))
            self._state.change_store_config(**of_store)
        except UsageError as error:
            raise Refused(ResponseCode.SYSTEM_ERROR, str(error)) from error
        return request.reply()


def human_bytes(count: int) -> str:
    """Bytes as RocketMQ shows them. Mirrors MixAll.humanReadableByteCount.

    >>> human_bytes(1023), human_bytes(1536), human_bytes(252 << 30)
    ('1023 B', '1.5 KiB', '252.0 GiB')
    """
    if count < 1024:
        return f"{count} B"
    power = (count.bit_length() - 1) // 10
    return f"{count / 1024**power:.1f} {'KMGTPE'[power - 1]}iB"


def _since(ms: int) -> str:
    """A running time as RocketMQ shows it.

    >>> _since(90_061_000)
    '[ 1 days, 1 hours, 1 minutes, 1 seconds ]'
    """
    minutes, seconds = divmod(ms // 1_000, 60)
    hours, minutes = divmod(minutes, 60)
    days, hours = divmod(hours, 24)
    return f"[ {days:,} days, {hours} hours, {minutes} minutes, {seconds} seconds ]"
