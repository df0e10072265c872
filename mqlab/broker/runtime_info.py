"""A broker about itself: its numbers, its counters, its settings.

Mirrors: AdminBrokerProcessor (25 26 28 315), BrokerStats; what mqadmin's clusterList, brokerStatus and statsAll show.

    28    name -> text                         msgPutTotalTodayNow, dispatchBehindBytes, scheduleMessageOffset_3 …
    315   one counter over three windows       {"statsMinute": {"sum", "tps", "avgpt"}, "statsHour": …, "statsDay": …}
    26    every setting, name=value a line     25 changes those it names, while the broker runs

Left out: thread pool queues (there are none; shown as 0), what only the machine knows (disk capacity).
"""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any

from mqlab.errors import UsageError
from mqlab.remoting.endpoint import Channel, Reply
from mqlab.remoting.requests import Answer, Refused, body, text
from mqlab.wire import names
from mqlab.wire.codes import ResponseCode
from mqlab.wire.command import RemotingCommand
from mqlab.wire.java_json import to_json

if TYPE_CHECKING:
    from mqlab.broker.broker import Broker

VERSION_TEXT = "V5_3_3"
READ_LIVE = (
    "access_message_in_memory_max_ratio", "max_transfer_bytes_on_message_in_memory",
    "max_transfer_count_on_message_in_memory", "max_transfer_bytes_on_message_in_disk",
    "max_transfer_count_on_message_in_disk", "in_sync_replicas", "slave_timeout",
)  # fmt: skip
"""Settings of the store that count from the next get or put on."""
POOLS = ("send", "pull", "litePull", "query", "ack")


class RuntimeInfo:
    """Handlers of the requests about the broker itself."""

    def __init__(self, broker: Broker) -> None:
        self._broker = broker

    def get_broker_runtime_info(self, channel: Channel, request: RemotingCommand, reply: Reply) -> Answer:
        """GET_BROKER_RUNTIME_INFO."""
        return request.reply(body=to_json({"table": {name: str(value) for name, value in self._table().items()}}))

    def _table(self) -> dict[str, object]:
        broker = self._broker
        store = broker.store
        put = broker.stats.puts_of_day.look(broker.now_ms())
        got = broker.stats.gets_of_day.look(broker.now_ms())
        earliest = store.message_at(store.min_physical_offset)
        table: dict[str, object] = {
            "brokerActive": "false" if broker.is_slave else "true",
            "brokerVersion": "479",
            "brokerVersionDesc": VERSION_TEXT,
            "bootTimestamp": broker.started_ms,
            "runtime": f"[ {(broker.now_ms() - broker.started_ms) // 1000} seconds ]",
            **broker.store_stats.table(),
            "msgPutTotalYesterdayMorning": put.yesterday,
            "msgPutTotalTodayMorning": put.today,
            "msgPutTotalTodayNow": put.now,
            "msgGetTotalYesterdayMorning": got.yesterday,
            "msgGetTotalTodayMorning": got.today,
            "msgGetTotalTodayNow": got.now,
            "commitLogMinOffset": store.min_physical_offset,
            "commitLogMaxOffset": store.max_physical_offset,
            "dispatchBehindBytes": store.dispatch_behind_bytes,
            "remainHowManyDataToFlush": f"{store.max_physical_offset - store.flushed_offset} B",
            "commitLogDiskRatio": broker.ports.files.used_ratio(store.directory),
            "earliestMessageTimeStamp": -1 if earliest is None else earliest.store_timestamp,
            "startAcceptSendRequestTimeStamp": broker.config.start_accept_send_request_time_stamp,
            "pageCacheLockTimeMills": 0,
            "timerReadBehind": 0,
            "timerOffsetBehind": 0,
            "timerCongestNum": 0,
            "timerEnqueueTps": 0.0,
            "timerDequeueTps": 0.0,
        }
        if broker.is_slave:  # puts nothing itself: what it dispatched counts
            table["putMessageTimesTotal"] = max(broker.replication.messages_dispatched, 1)
        for pool in POOLS:
            table[f"{pool}ThreadPoolQueueSize"] = 0
            table[f"{pool}ThreadPoolQueueHeadWaitTimeMills"] = 0
        for level, reached in broker.delay_offset_table.items():
            table[f"scheduleMessageOffset_{level}"] = f"{reached},{store.max_offset(names.SCHEDULE_TOPIC, level - 1)}"
        return table

    def view_broker_stats_data(self, channel: Channel, request: RemotingCommand, reply: Reply) -> Answer:
        """VIEW_BROKER_STATS_DATA."""
        name, key = text(request, "statsName"), text(request, "statsKey")
        found = self._broker.stats.snapshots(name, key)
        if found is None:
            raise Refused(ResponseCode.SYSTEM_ERROR, f"The stats <{name}> <{key}> not exist")
        return request.reply(body=to_json({window: dataclasses.asdict(snapshot) for window, snapshot in found.items()}))

    # -- settings

    def get_broker_config(self, channel: Channel, request: RemotingCommand, reply: Reply) -> Answer:
        """GET_BROKER_CONFIG."""
        lines = [f"brokerIP1={self._broker.ip}"]
        for settings in (self._broker.config, self._broker.store.config):
            for field in dataclasses.fields(settings):
                lines.append(f"{_camel(field.name)}={_as_text(getattr(settings, field.name))}")
        version = to_json(self._broker.topics.data_version.to_value()).decode("utf-8")
        return request.reply(body="\n".join(sorted(lines)).encode("utf-8"), version=version)

    def update_broker_config(self, channel: Channel, request: RemotingCommand, reply: Reply) -> Answer:
        """UPDATE_BROKER_CONFIG: all the named settings, or none when one is wrong."""
        changes: dict[str, Any] = {}
        of_store: dict[str, int] = {}
        known = {_camel(field.name): field.name for field in dataclasses.fields(self._broker.config)}
        live = {_camel(name): name for name in READ_LIVE}
        for line in body(request).decode("utf-8", "replace").splitlines():
            name, equals, value = line.partition("=")
            if equals and name.strip() in live:
                of_store[live[name.strip()]] = int(_typed(name, value.strip(), 0))
                continue
            if not equals or name.strip() not in known:
                raise Refused(ResponseCode.SYSTEM_ERROR, f"no setting of a running broker: {line.strip()!r}")
            field = known[name.strip()]
            changes[field] = _typed(name, value.strip(), getattr(self._broker.config, field))
        try:
            self._broker.update_config(dataclasses.replace(self._broker.config, **changes))
            self._broker.update_store_config(**of_store)
        except UsageError as error:
            raise Refused(ResponseCode.SYSTEM_ERROR, str(error)) from error
        return request.reply()


def _camel(name: str) -> str:
    """A setting's name in Java's spelling.

    >>> _camel("transaction_check_max"), _camel("file_reserved_time")
    ('transactionCheckMax', 'fileReservedTime')
    """
    first, *rest = name.split("_")
    return first + "".join(word.capitalize() for word in rest)


def _as_text(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _typed(name: str, value: str, current: object) -> Any:
    if isinstance(current, bool):
        if value.lower() not in ("true", "false"):
            raise Refused(ResponseCode.SYSTEM_ERROR, f"{name} is true or false, not {value!r}")
        return value.lower() == "true"
    if isinstance(current, int):
        if not value.removeprefix("-").isdecimal():
            raise Refused(ResponseCode.SYSTEM_ERROR, f"{name} is a whole number, not {value!r}")
        return int(value)
    return value
