"""The master's end of one slave's link: takes reports, sends blocks and heartbeats.

Mirrors: DefaultHAConnection with its ReadSocketService and WriteSocketService.

    waiting ──report r >= 0──▶ sending from f ──lost, or 20 s without a word──▶ gone
              f = r, but for r = 0: where the master's last file begins

    data there       a block of at most 32 768 bytes of one file, then the next, as fast as the link takes them
    nothing there    looked for again every 100 ms, at once when a put waits for its copies
    nothing sent     for more than 5 s: a heartbeat with the offset of the next block

Nothing is compared here: a slave may ask for any offset, also one that lies behind the end or before the oldest file.
Then it gets heartbeats only. RocketMQ polls every 100 ms; here an append arms the next of those moments.
Left out: the socket's send buffer.
"""

from __future__ import annotations

from collections.abc import Callable

from mqlab.broker.replication.transfer_speed import SECOND_MS, TransferSpeed
from mqlab.ports import Connection, Deadline, Ports, next_on_grid
from mqlab.store.message_store import MessageStore
from mqlab.wire.ha import HaBlock, ReportReader

IDLE_WAIT_MS = 100
NOT_YET = -1


class SlaveConnection:
    """One accepted link. Offsets are physical: ``ack_offset`` what the slave has written, ``next_offset`` what it gets
    next (-1: nothing was asked for yet)."""

    def __init__(
        self, ports: Ports, store: MessageStore, connection: Connection, on_closed: Callable[[Connection, str], None]
    ) -> None:
        self._ports = ports
        self._store = store
        self._config = store.config
        self._connection = connection
        self._on_closed = on_closed  # called with the reason when the link is closed from this side
        self._reader = ReportReader()
        self._transfer: Deadline | None = None
        self._transfer_due_ms = 0
        self._heartbeat: Deadline | None = None
        self._housekeeping: Deadline | None = None
        self.address = connection.remote_address
        self.speed = TransferSpeed()
        self.request_offset = NOT_YET
        self.ack_offset = NOT_YET
        self.next_offset = NOT_YET
        now_ms = self._ports.clock.now_ms()
        self._idle_since_ms = self._last_read_ms = self._last_write_ms = now_ms
        self._arm_housekeeping()

    @property
    def is_sending(self) -> bool:
        return self.next_offset != NOT_YET

    # what the slave says -----------------------------------------------------------------------------------------

    def received(self, data: bytes) -> None:
        """Bytes of reports: the newest counts; the first one that is not negative says where to begin."""
        report = self._reader.feed(data)
        self._last_read_ms = self._ports.clock.now_ms()
        if report is None:
            return
        self.ack_offset = report.physical_offset
        if self.request_offset < 0:
            self.request_offset = report.physical_offset
        if not self.is_sending:
            if self.request_offset >= 0:
                self._begin()
        else:
            self._ports.note("ha.acknowledged", slave=self.address, physical_offset=self.ack_offset)

    def _begin(self) -> None:
        asked = self.request_offset
        self.next_offset = asked if asked else self._start_of_last_file()
        self._ports.note("ha.requested", slave=self.address, physical_offset=asked, sends_from=self.next_offset)
        self._arm_heartbeat()
        self.wake()

    def _start_of_last_file(self) -> int:
        """Where a slave with an empty log begins: the older files are not copied."""
        end = self._store.max_physical_offset
        return max(0, end - end % self._config.mapped_file_size_commit_log)

    # what the master sends ---------------------------------------------------------------------------------------

    def wake(self) -> None:
        """Look for data now."""
        if self.is_sending:
            self._arm_transfer(self._ports.clock.now_ms())

    def appended(self) -> None:
        """The log has grown: it is noticed at the next of the moments at which RocketMQ looks."""
        if self.is_sending and self._transfer is None:
            self._arm_transfer(next_on_grid(self._ports.clock.now_ms(), IDLE_WAIT_MS, self._idle_since_ms))

    def _arm_transfer(self, due_ms: int) -> None:
        if self._transfer is not None:
            if self._transfer_due_ms <= due_ms:
                return
            self._transfer.cancel()
        self._transfer_due_ms = due_ms
        self._transfer = self._ports.clock.call_at(due_ms, self._send_block, "ha.transfer")

    def _send_block(self) -> None:
        self._transfer = None
        now_ms = self._ports.clock.now_ms()
        size = self._config.ha_transfer_batch_size
        if self._config.ha_flow_control_enable:
            size = min(size, self.speed.left(self._config.max_ha_transfer_byte_in_second, now_ms))
            if not size:
                return self._arm_transfer(now_ms - now_ms % SECOND_MS + SECOND_MS)
        block = HaBlock(self.next_offset, self._store.commit_log.block_from(self.next_offset, size))
        if block.is_heartbeat:  # nothing there: no block
            self._idle_since_ms = now_ms
            return None
        self._send(block)
        self.next_offset += len(block.data)
        self._ports.note(
            "ha.block_sent", slave=self.address, physical_offset=block.physical_offset, size=len(block.data)
        )
        if self.next_offset < self._store.max_physical_offset:
            return self._arm_transfer(now_ms)
        self._idle_since_ms = now_ms
        return None

    def _send(self, block: HaBlock) -> None:
        now_ms = self._last_write_ms = self._ports.clock.now_ms()
        self.speed.add(len(block.data), now_ms)
        self._connection.send(block.encode())

    # timers ------------------------------------------------------------------------------------------------------

    def _arm_heartbeat(self) -> None:
        due_ms = self._last_write_ms + self._config.ha_send_heartbeat_interval + 1
        self._heartbeat = self._ports.clock.call_at(due_ms, self._send_heartbeat, "ha.heartbeat")

    def _send_heartbeat(self) -> None:
        if self._ports.clock.now_ms() - self._last_write_ms > self._config.ha_send_heartbeat_interval:
            self._send(HaBlock(self.next_offset))
        self._arm_heartbeat()

    def _arm_housekeeping(self) -> None:
        due_ms = self._last_read_ms + self._config.ha_housekeeping_interval + 1
        self._housekeeping = self._ports.clock.call_at(due_ms, self._check_alive, "ha.housekeeping")

    def _check_alive(self) -> None:
        if self._ports.clock.now_ms() - self._last_read_ms > self._config.ha_housekeeping_interval:
            self.close("nothing heard")
        else:
            self._arm_housekeeping()

    # ends --------------------------------------------------------------------------------------------------------

    def close(self, reason: str) -> None:
        """Close the link from this side."""
        self._connection.close()
        self._on_closed(self._connection, reason)

    def ended(self) -> None:
        """The link is gone: disarm everything."""
        for deadline in (self._transfer, self._heartbeat, self._housekeeping):
            if deadline is not None:
                deadline.cancel()

    def __repr__(self) -> str:
        return f"<SlaveConnection {self.address}: acknowledged {self.ack_offset}, next {self.next_offset}>"
