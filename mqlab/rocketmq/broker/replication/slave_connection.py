"""The master's end of one slave's link: receives reports, sends blocks and heartbeats.

Mirrors: DefaultHAConnection with its ReadSocketService and WriteSocketService.

    waiting for a report ── report r >= 0 ─▶ sending from r (from the start of the last file if r = 0)
    sending              ── link closed, or no report for 20 s ─▶ ended

    data in the log          a block of at most 32 768 bytes of one file, then the next as soon as possible
    no data                  looked for every 100 ms, and at once when a put waits for its copies
    nothing sent for 5 s     a heartbeat with the offset of the next block

The master compares nothing: a slave may ask for any offset, also one after the end of the log or before its first
file. It gets only heartbeats then. RocketMQ polls every 100 ms; here an append arms the next of those moments.

Left out: the socket's send buffer.
"""

from __future__ import annotations

from collections.abc import Callable

from mqlab.rocketmq.broker.replication.transfer_speed import SECOND_MS, TransferSpeed
from mqlab.rocketmq.ports import Connection, Deadline, Ports, next_on_grid
from mqlab.rocketmq.store.message_store import MessageStore
from mqlab.rocketmq.wire.ha import HaBlock, ReportReader

IDLE_WAIT_MS = 100
NOT_YET = -1


class SlaveConnection:
    """One accepted link. ``ack_offset``: the end of the slave's log, ``next_offset``: where the next block begins.

    Both are physical offsets, and -1 until the slave has sent a report.
    """

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

    def received(self, data: bytes) -> None:
        """Process reports: the newest counts, and the first one that is not negative is where sending begins."""
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
        self.next_offset = self.request_offset if self.request_offset else self._start_of_last_file()
        self._ports.note(
            "ha.requested", slave=self.address, physical_offset=self.request_offset, sends_from=self.next_offset
        )
        self._arm_heartbeat()
        self.wake()

    def _start_of_last_file(self) -> int:
        """Where a slave with an empty log begins: the older files are not copied."""
        end = self._store.max_physical_offset
        return max(0, end - end % self._config.mapped_file_size_commit_log)

    def wake(self) -> None:
        """Look for data now."""
        if self.is_sending:
            self._arm_transfer(self._ports.clock.now_ms())

    def appended(self) -> None:
        """The log has grown: look for data at the next moment at which RocketMQ would look."""
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
        if not self._connection.is_open:  # it was closed before what had failed was tried again
            return None
        now_ms = self._ports.clock.now_ms()
        # 1. How much may be sent now?
        size = self._config.ha_transfer_batch_size
        if self._config.ha_flow_control_enable:
            size = min(size, self.speed.left(self._config.max_ha_transfer_byte_in_second, now_ms))
            if not size:
                return self._arm_transfer(now_ms - now_ms % SECOND_MS + SECOND_MS)
        # 2. Send what the log has, at most to the end of one file.
        block = HaBlock(self.next_offset, self._store.commit_log.block_from(self.next_offset, size))
        if block.is_heartbeat:  # no data: a block without data would be a heartbeat
            self._idle_since_ms = now_ms
            return None
        self._send(block)
        self.next_offset += len(block.data)
        self._ports.note(
            "ha.block_sent", slave=self.address, physical_offset=block.physical_offset, size=len(block.data)
        )
        # 3. More data: the next block follows in a step of its own.
        if self.next_offset < self._store.max_physical_offset:
            return self._arm_transfer(now_ms)
        self._idle_since_ms = now_ms
        return None

    def _send(self, block: HaBlock) -> None:
        now_ms = self._last_write_ms = self._ports.clock.now_ms()
        self.speed.add(len(block.data), now_ms)
        self._connection.send(block.encode())

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

    def close(self, reason: str) -> None:
        """Close the link from this side."""
        self._connection.close()
        self._on_closed(self._connection, reason)

    def ended(self) -> None:
        """Disarm the timers of a link that has ended."""
        for deadline in (self._transfer, self._heartbeat, self._housekeeping):
            if deadline is not None:
                deadline.cancel()

    def __repr__(self) -> str:
        return f"<SlaveConnection {self.address}: acknowledged {self.ack_offset}, next {self.next_offset}>"
