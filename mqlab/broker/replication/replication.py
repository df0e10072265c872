"""All of one broker's replication in one hand: its server, a slave's client and copying, and the answer about them.

Mirrors: the HAService of DefaultMessageStore and BrokerController's slave half; GET_BROKER_HA_STATUS 907. Lab 02.

    master                              slave
    HaServer ◀────── log ────────────── HaClient              port listenPort + 1
    Remoting ◀────── tables ─────────── SlaveSynchronize      the normal port
    both addresses come with the name server's answer to the slave's registration

Left out: controller mode, acting masters.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from mqlab.broker.replication.ha_client import HaClient
from mqlab.broker.replication.ha_server import HaServer
from mqlab.broker.replication.slave_connection import SlaveConnection
from mqlab.broker.replication.slave_synchronize import SlaveSynchronize
from mqlab.remoting.endpoint import Channel, Reply
from mqlab.remoting.requests import Answer
from mqlab.wire.command import RemotingCommand
from mqlab.wire.java_json import to_json

if TYPE_CHECKING:
    from mqlab.broker.broker import Broker

HA_ADDRESS_MIN_LENGTH = 6


class Replication:
    """A broker's replication. ``client`` and ``synchronize`` are used by slaves only."""

    def __init__(self, broker: Broker) -> None:
        self._broker = broker
        self.server = HaServer(broker.ports, broker.store, broker.ha_address)
        self.client = HaClient(broker.ports, broker.store)
        self.synchronize = SlaveSynchronize(broker)
        self.messages_dispatched = 0  # what a slave counts in place of puts

    def start(self) -> None:
        """Take slaves' links; as a slave, look for the master."""
        self.server.start()
        if self._broker.is_slave:
            configured = self._broker.store.config.ha_master_address
            if len(configured) >= HA_ADDRESS_MIN_LENGTH:
                self.client.set_master_address(configured)
            self.client.start()
            self.synchronize.start()

    def stop(self) -> None:
        """Close all links."""
        self.synchronize.stop()
        self.client.stop()
        self.server.stop()

    def registered(self, ha_address: str | None, master_address: str | None) -> None:
        """A name server's answer to a slave. A missing replication address changes nothing, a missing master does.

        Mirrors handleRegisterBrokerResult.
        """
        if not self._broker.is_slave:
            return
        is_fixed = len(self._broker.store.config.ha_master_address) >= HA_ADDRESS_MIN_LENGTH
        if ha_address and not is_fixed:
            self.client.set_master_address(ha_address)
        self.synchronize.master_address = master_address or None

    # 907 ---------------------------------------------------------------------------------------------------------

    def get_broker_ha_status(self, channel: Channel, request: RemotingCommand, reply: Reply) -> Answer:
        """GET_BROKER_HA_STATUS. Mirrors HARuntimeInfo."""
        return request.reply(body=to_json(self._status()))

    def _status(self) -> dict[str, Any]:
        server, now_ms = self.server, self._broker.now_ms()
        if self._broker.is_slave:
            return _status_value(master=False, end=0, in_sync=0, connections=[], client=self._client_info(now_ms))
        slaves = server.connections
        return _status_value(
            master=True,
            end=self._broker.store.max_physical_offset,
            in_sync=sum(server.in_sync(slave) for slave in slaves),
            connections=[self._connection_info(slave, now_ms) for slave in slaves],
            client=_client_value(),
        )

    def _connection_info(self, slave: SlaveConnection, now_ms: int) -> dict[str, Any]:
        return {
            "addr": slave.address,
            "diff": self._broker.store.max_physical_offset - slave.ack_offset,
            "inSync": self.server.in_sync(slave),
            "slaveAckOffset": slave.ack_offset,
            "transferFromWhere": slave.next_offset,
            "transferredByteInSecond": slave.speed.in_last_second(now_ms),
        }

    def _client_info(self, now_ms: int) -> dict[str, Any]:
        client = self.client
        address = {"masterAddr": client.master_address} if client.master_address else {}
        return address | _client_value(
            client.last_read_ms, client.last_write_ms, self._broker.store.max_physical_offset,
            client.speed.in_last_second(now_ms), self._broker.store.checkpoint.master_flushed_offset,
        )  # fmt: skip

    def __repr__(self) -> str:
        return f"<Replication {self.client!r}>" if self._broker.is_slave else f"<Replication {self.server!r}>"


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
