"""The slave's end of the replication link: asks for what follows its own log, appends it, and reports how far it is.

Mirrors: DefaultHAClient.

    READY       connects at its next 5 s tick once the master's address is known        ─▶ TRANSFER
    TRANSFER    the link is closed, or a block does not fit                             ─▶ READY, connects after 5 s
                nothing was received for 20 s                                           ─▶ READY, connects at once

    header of a block       closes the link if its offset is not the end of the own log, unless that log is empty
    complete block          is appended, and the new end is reported at once
    nothing sent for 5 s    the end is reported again

A slave never truncates its log: if it does not fit to the master's, the slave stays apart until an operator deletes it.

Left out: the states of controller mode (handshake, truncation by epochs).
"""

from __future__ import annotations

from mqlab.errors import CorruptionError
from mqlab.rocketmq.broker.replication.transfer_speed import TransferSpeed
from mqlab.rocketmq.ports import Connection, Deadline, Ports, next_on_grid
from mqlab.rocketmq.store.message_store import MessageStore
from mqlab.rocketmq.wire.ha import BlockReader, HaReport

RECONNECT_MS = 5_000


class HaClient:
    """One slave's link to its master. ``master_address`` is the master's replication port, None while unknown."""

    def __init__(self, ports: Ports, store: MessageStore) -> None:
        self._ports = ports
        self._store = store
        self._connection: Connection | None = None
        self._reader = BlockReader()
        self._retry: Deadline | None = None
        self._heartbeat: Deadline | None = None
        self._housekeeping: Deadline | None = None
        self._ready_since_ms = 0
        self.master_address: str | None = None
        self.is_running = False
        self.speed = TransferSpeed()
        self.reported_offset = 0
        self.last_read_ms = 0
        self.last_write_ms = 0

    @property
    def state(self) -> str:
        """READY (no link), TRANSFER or SHUTDOWN, as in HAConnectionState."""
        if not self.is_running:
            return "SHUTDOWN"
        return "TRANSFER" if self._connection is not None else "READY"

    def start(self) -> None:
        """Connect as soon as the address of the master is known."""
        self.is_running = True
        self._ready_since_ms = self._ports.clock.now_ms()
        if self.master_address is not None:
            self._arm_connect(self._ready_since_ms)

    def stop(self) -> None:
        """Close the link and do not connect again."""
        self.is_running = False
        if self._retry is not None:
            self._retry.cancel()
            self._retry = None
        self._close()

    def set_master_address(self, address: str) -> None:
        """Use this address for the next link; an open link stays until it ends."""
        if address == self.master_address:
            return
        self.master_address = address
        self._ports.note("ha.master_known", address=address)
        if self.is_running and self._connection is None and self._retry is None:
            now_ms = self._ports.clock.now_ms()
            self._arm_connect(next_on_grid(now_ms, RECONNECT_MS, self._ready_since_ms))

    def _arm_connect(self, due_ms: int) -> None:
        self._retry = self._ports.clock.call_at(due_ms, self._connect, "ha.connect")

    def _connect(self) -> None:
        self._retry = None
        assert self.master_address is not None
        self._reader = BlockReader()
        self._connection = self._ports.network.connect(self.master_address, self._on_data, self._closed)
        self.last_read_ms = self._ports.clock.now_ms()
        # The first report tells the master where to begin.
        self._report(self._store.max_physical_offset)
        self._arm_heartbeat()
        self._arm_housekeeping()

    def _on_data(self, connection: Connection, data: bytes) -> None:
        if connection is not self._connection:
            return
        self.last_read_ms = self._ports.clock.now_ms()
        self.speed.add(len(data), self.last_read_ms)
        self._reader.feed(data)
        try:
            while self._connection is not None and self._take_block():
                pass
        except CorruptionError as error:
            self._ports.note("channel.broken", remote=connection.remote_address, error=str(error))
            self._end("out of step")

    def _take_block(self) -> bool:
        """Process one block of the received bytes; False if there is no complete one, or the link was closed."""
        header = self._reader.header
        if header is None:
            return False
        # 1. The block must begin where this log ends; heartbeats are checked as well.
        offset, own_end = header[0], self._store.max_physical_offset
        if own_end not in (0, offset):
            self._ports.note("ha.diverged", own_offset=own_end, physical_offset=offset)
            self._end("the logs differ")
            return False
        # 2. Append it and report the new end at once, because puts at the master may wait for it.
        block = self._reader.take()
        if block is None:
            return False
        if not block.is_heartbeat:
            kind = "ha.block_appended" if self._store.append_block(offset, block.data) else "ha.block_refused"
            self._ports.note(kind, physical_offset=offset, size=len(block.data))
            if self._store.max_physical_offset > self.reported_offset:
                self._report(self._store.max_physical_offset)
        return True

    def _report(self, physical_offset: int) -> None:
        assert self._connection is not None
        self.reported_offset = physical_offset
        self.last_write_ms = self._ports.clock.now_ms()
        self._connection.send(HaReport(physical_offset).encode())

    def _arm_heartbeat(self) -> None:
        due_ms = self.last_write_ms + self._store.config.ha_send_heartbeat_interval + 1
        self._heartbeat = self._ports.clock.call_at(due_ms, self._send_heartbeat, "ha.heartbeat")

    def _send_heartbeat(self) -> None:
        if self._ports.clock.now_ms() - self.last_write_ms > self._store.config.ha_send_heartbeat_interval:
            self._report(self.reported_offset)
        self._arm_heartbeat()

    def _arm_housekeeping(self) -> None:
        due_ms = self.last_read_ms + self._store.config.ha_housekeeping_interval + 1
        self._housekeeping = self._ports.clock.call_at(due_ms, self._check_alive, "ha.housekeeping")

    def _check_alive(self) -> None:
        if self._ports.clock.now_ms() - self.last_read_ms > self._store.config.ha_housekeeping_interval:
            self._end("nothing heard", again_ms=0)
        else:
            self._arm_housekeeping()

    def _closed(self, connection: Connection, reason: str) -> None:
        if connection is self._connection:
            self._end(reason)

    def _end(self, reason: str, again_ms: int = RECONNECT_MS) -> None:
        """The link has ended: back to READY, and connect again after ``again_ms``."""
        self._ports.note("ha.lost", peer=self.master_address, reason=reason)
        self._close()
        self._ready_since_ms = self._ports.clock.now_ms()
        if self.is_running:
            self._arm_connect(self._ready_since_ms + again_ms)

    def _close(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.close()
        for deadline in (self._heartbeat, self._housekeeping):
            if deadline is not None:
                deadline.cancel()
        self._heartbeat = self._housekeeping = None

    def __repr__(self) -> str:
        return f"<HaClient of {self.master_address} {self.state}: {self.reported_offset} reported>"
