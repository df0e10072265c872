"""What a broker reports about its replication: a master about its slaves, a slave about its link.

Mirrors: HARuntimeInfo and DefaultHAService.getRuntimeInfo; GET_BROKER_HA_STATUS.
"""

from __future__ import annotations

from typing import Any

from mqlab.rocketmq.broker.replication.ha_client import HaClient
from mqlab.rocketmq.broker.replication.ha_server import HaServer
from mqlab.rocketmq.broker.replication.slave_connection import SlaveConnection
from mqlab.rocketmq.broker.state import BrokerState
from mqlab.rocketmq.remoting.endpoint import Channel, Reply
from mqlab.rocketmq.remoting.requests import Answer
from mqlab.rocketmq.wire.command import RemotingCommand
from mqlab.rocketmq.wire.java_json import to_json


class HaStatusHandler:
    """Handler of GET_BROKER_HA_STATUS."""

    def __init__(self, state: BrokerState, server: HaServer, client: HaClient) -> None:
        self._state = state
        self._server = server
        self._client = client

    def get_broker_ha_status(self, channel: Channel, request: RemotingCommand, reply: Reply) -> Answer:
        """GET_BROKER_HA_STATUS. Mirrors HARuntimeInfo."""
        return request.reply(body=to_json(self._status()))

    def _status(self) -> dict[str, Any]:
        server, now_ms = self._server, self._state.now_ms()
        if self._state.identity.is_slave:
            return _status_value(master=False, end=0, in_sync=0, connections=[], client=self._client_info(now_ms))
        slaves = server.connections
        return _status_value(
            master=True,
            end=self._state.store.max_physical_offset,
            in_sync=sum(server.in_sync(slave) for slave in slaves),
            connections=[self._connection_info(slave, now_ms) for slave in slaves],
            client=_client_value(),
        )

    def _connection_info(self, slave: SlaveConnection, now_ms: int) -> dict[str, Any]:
        return {
            "addr": slave.address,
            "diff": self._state.store.max_physical_offset - slave.ack_offset,
            "inSync": self._server.in_sync(slave),
            "slaveAckOffset": slave.ack_offset,
            "transferFromWhere": slave.next_offset,
            "transferredByteInSecond": slave.speed.in_last_second(now_ms),
        }

    def _client_info(self, now_ms: int) -> dict[str, Any]:
        client = self._client
        address = {"masterAddr": client.master_address} if client.master_address else {}
        return address | _client_value(
            client.last_read_ms,
            client.last_write_ms,
            self._state.store.max_physical_offset,
            client.speed.in_last_second(now_ms),
            self._state.store.checkpoint.master_flushed_offset,
        )


def _client_value(
    last_read_ms: int = 0, last_write_ms: int = 0, end: int = 0, speed: int = 0, master_flushed: int = 0
) -> dict[str, Any]:
    return {
        "lastReadTimestamp": last_read_ms,
        "lastWriteTimestamp": last_write_ms,
        "masterFlushOffset": master_flushed,
        "maxOffset": end,
        "transferredByteInSecond": speed,
    }


def _status_value(
    *, master: bool, end: int, in_sync: int, connections: list[dict[str, Any]], client: dict[str, Any]
) -> dict[str, Any]:
    return {
        "haClientRuntimeInfo": client,
        "haConnectionInfo": connections,
        "inSyncSlaveNums": in_sync,
        "master": master,
        "masterCommitLogMaxOffset": end,
    }
