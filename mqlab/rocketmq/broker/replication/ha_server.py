"""Where slaves connect: accepts their links, wakes them when the log grows, and counts which of them have what.

Mirrors: DefaultHAService and its AcceptSocketService.

    haListenPort (listenPort + 1) ◀── slave ── SlaveConnection   acknowledged 4 038 734
                                  ◀── slave ── SlaveConnection   acknowledged 3 939 334
    copies_at(4 000 000) = 1 + 1                                 what puts of a SYNC_MASTER wait for

A slave has a server too, so slaves can be chained. Two links count as two copies, even if they come from one slave.

Left out: the limit for slaves that are far behind (isSlaveOK has no caller in 5.x).
"""

from __future__ import annotations

from mqlab.rocketmq.broker.replication.slave_connection import SlaveConnection
from mqlab.rocketmq.ports import Connection, Ports
from mqlab.rocketmq.store.message_store import MessageStore


class HaServer:
    """The listener of one broker. ``connections`` are in the order in which they were accepted."""

    def __init__(self, ports: Ports, store: MessageStore, address: str) -> None:
        self.ports = ports
        self.store = store
        self.address = address
        self.is_running = False
        self._connections: dict[Connection, SlaveConnection] = {}

    @property
    def connections(self) -> list[SlaveConnection]:
        return list(self._connections.values())

    def start(self) -> None:
        """Listen, and serve the puts that wait for copies."""
        self.is_running = True
        self.store.replica_waits.copies_at = self.copies_at
        self.store.replica_waits.on_wait = self._wake_all
        self.ports.network.listen(self.address, self._accepted, self._on_data, self.lost)

    def stop(self) -> None:
        """Close every link."""
        self.is_running = False
        for connection in self.connections:
            connection.close("closed here")

    def copies_at(self, end_offset: int) -> int:
        """How many logs reach this offset, including the own one."""
        return 1 + sum(1 for slave in self._connections.values() if slave.ack_offset >= end_offset)

    def in_sync(self, connection: SlaveConnection) -> bool:
        """Whether a slave is near enough to the end to count as in sync. Mirrors isInSyncSlave."""
        gap = self.store.max_physical_offset - connection.ack_offset
        return gap < self.store.config.ha_max_gap_not_in_sync

    def _accepted(self, connection: Connection) -> None:
        if not self.is_running:
            connection.close()
            return
        self._connections[connection] = SlaveConnection(self.ports, self.store, connection, self.lost)
        self.store.on_append = self._appended
        self.ports.note("ha.connected", slave=connection.remote_address)

    def _on_data(self, connection: Connection, data: bytes) -> None:
        slave = self._connections.get(connection)
        if slave is None:
            return
        slave.received(data)
        # A put that waits for copies may be complete now.
        self.store.replica_waits.look()

    def lost(self, connection: Connection, reason: str) -> None:
        """A link has ended."""
        slave = self._connections.pop(connection, None)
        if slave is None:
            return
        slave.ended()
        self.ports.note("ha.lost", peer=connection.remote_address, reason=reason)
        # Without slaves an append needs no notice.
        if not self._connections:
            self.store.on_append = None

    def _appended(self) -> None:
        for slave in self._connections.values():
            slave.appended()

    def _wake_all(self) -> None:
        for slave in self._connections.values():
            slave.wake()

    def __repr__(self) -> str:
        return f"<HaServer {self.address}: {len(self._connections)} slaves>"
