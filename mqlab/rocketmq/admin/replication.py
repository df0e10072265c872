"""The progress of slaves: the state of each link of a master, and of a slave's own link.

Mirrors: mqadmin haStatus; request 907, HARuntimeInfo.

    a master     addr  slave_ack_offset  diff  in_sync  transferred_byte_in_second  transfer_from_where  per link
    a slave      master_addr  max_offset  last_read_timestamp  last_write_timestamp  …                      one row

A slave is healthy when diff is small and its dispatch_behind_bytes (broker status) and the ends of its queues follow.
Left out: the state sets of controller mode (getSyncStateSet).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any

from mqlab.rocketmq.admin.requests import AdminNode
from mqlab.rocketmq.answers import Shown
from mqlab.rocketmq.wire.body import camel_case
from mqlab.rocketmq.wire.codes import RequestCode
from mqlab.rocketmq.wire.java_json import to_long
from mqlab.rocketmq.wire.names import MASTER_ID


@dataclass(frozen=True, slots=True)
class SlaveLink:
    """One link of a master. Offsets are physical; -1: nothing reported yet. Mirrors HAConnectionRuntimeInfo."""

    addr: str
    slave_ack_offset: int
    diff: int
    in_sync: bool
    transferred_byte_in_second: int
    transfer_from_where: int


@dataclass(frozen=True, slots=True)
class MasterLink:
    """A slave's own link; times are ms since the epoch. Mirrors HAClientRuntimeInfo."""

    master_addr: str | None
    max_offset: int
    last_read_timestamp: int
    last_write_timestamp: int
    transferred_byte_in_second: int
    master_flush_offset: int


@dataclass(frozen=True, slots=True)
class HaStatus(Shown):
    """The replication status of one broker process. Mirrors HARuntimeInfo."""

    broker: str
    broker_id: int
    master: bool
    master_commit_log_max_offset: int
    in_sync_slave_nums: int
    ha_connection_info: tuple[SlaveLink, ...]
    ha_client_runtime_info: MasterLink

    def shown_rows(self) -> Sequence[SlaveLink | MasterLink]:
        return self.ha_connection_info if self.master else (self.ha_client_runtime_info,)

    def shown_title(self) -> str:
        return f"replication of {self.broker}" + ("" if self.master else f", slave {self.broker_id}")

    def shown_notes(self) -> Sequence[str]:
        if not self.master:
            return ()
        return (f"log end {self.master_commit_log_max_offset}, {self.in_sync_slave_nums} slaves in sync",)


def ha_status(admin: AdminNode, broker: str, broker_id: int = MASTER_ID) -> HaStatus:
    """The replication status of the master of a broker name, or of one of its slaves by id. Mirrors haStatus."""
    status = admin.ask_value(admin.address_of(broker, broker_id), RequestCode.GET_BROKER_HA_STATUS)
    return HaStatus(
        broker,
        broker_id,
        bool(status.get("master")),
        to_long(status.get("masterCommitLogMaxOffset") or 0),
        to_long(status.get("inSyncSlaveNums") or 0),
        tuple(SlaveLink(**_fields(SlaveLink, link)) for link in status.get("haConnectionInfo") or ()),
        MasterLink(**_fields(MasterLink, status.get("haClientRuntimeInfo") or {})),
    )


def _fields(kind: type, status: Mapping[str, Any]) -> dict[str, Any]:
    """The values of a dataclass's fields by their Java names; what is missing is 0, a missing address None."""
    return {
        field.name: status.get(camel_case(field.name), None if field.name == "master_addr" else 0)
        for field in fields(kind)
    }
