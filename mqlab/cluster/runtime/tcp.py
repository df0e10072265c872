"""Links to any address over TCP, for peers that are not trusted: slow, silent, malformed and many.

Mirrors: NettyRemotingServer and NettyRemotingClient with their settings (serverChannelMaxIdleTimeSeconds,
writeBufferHighWaterMark), and the sockets of the replication link.

    data arrives        on_data, on the loop            what is sent meanwhile, or in one round, leaves in one write
    nothing for 120 s   closed                          more than max_unsent_bytes wait for a peer: closed
    too many links      the new one is closed           an accepted link is not read while its peer takes no answers

Only the accepted end stops reading. If both ends did, two that write much at the same time would wait for each other
for ever. A peer that does wrong is closed, alone. ``Peers`` is shared by all nodes of a process.
Left out: proxies between a client and a broker.
"""

from __future__ import annotations

import asyncio
import errno
import logging
import os
import socket
import ssl
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from mqlab.cluster.runtime.address import Address, address_of
from mqlab.cluster.runtime.recorder import Recorder
from mqlab.errors import UsageError
from mqlab.rocketmq.ports import Connection, OnClosed, OnData

log = logging.getLogger("mqlab.network")

CONNECT_TIMEOUT_SECONDS = 3.0  # Netty's connectTimeoutMillis
GOODBYE_SECONDS = 3.0  # how long a closed connection may take to deliver what was sent before
BACKLOG = 1_024
READ_BYTES = 256 << 10  # at most, of one connection at a time
PAUSE_ABOVE_BYTES = 1 << 20  # unsent answers above which the requests of the peer are not read any more


@dataclass(frozen=True, slots=True)
class PeerLimits:
    """What one peer may cost. ``idle_seconds`` 0: never closed for silence."""

    max_connections: int = 8_192
    max_unsent_bytes: int = 64 << 20
    idle_seconds: float = 120.0


_held: dict[Address, socket.socket] = {}


def hold(where: Address) -> Address:
    """Listen at an address, port 0 for any, until a server of this process takes it over. UsageError as socket_for."""
    listening = socket_for(where.host, where.port)
    held = Address(where.host, listening.getsockname()[1])
    _held[held] = listening
    return held


def let_go(where: Address) -> None:
    """Close the socket of an address that is held and was not taken over."""
    if (held := _held.pop(where, None)) is not None:
        held.close()


def socket_for(host: str, port: int) -> socket.socket:
    """A socket that listens, or the one that is held. UsageError when the address is in use or not of this machine."""
    if (held := _held.pop(Address(host, port), None)) is not None:
        return held
    try:
        resolved = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
        family, _, _, _, where = resolved[0]
        return socket.create_server(where[:2], family=family, backlog=BACKLOG)
    except OSError as error:
        raise cannot_listen(Address(host, port), error) from error


def cannot_listen(where: Address, error: OSError) -> UsageError:
    """The error for an address that is in use or not of this machine."""
    reason = error.strerror if isinstance(error, socket.gaierror) else os.strerror(error.errno or 0)
    return UsageError(
        f"cannot listen at {where}: {reason}",
        hint="is another broker running? give another port, or port 0 for any free one",
    )


class TcpConnection(asyncio.BufferedProtocol):
    """One end of a TCP connection; see mqlab.rocketmq.ports.Connection. What is sent before it is open waits."""

    def __init__(
        self,
        peers: Peers,
        on_accept: Callable[[Connection], None] | None,
        on_data: OnData,
        on_closed: OnClosed,
        remote_address: str = "",
        node: str = "",
    ) -> None:
        self.local_address = ""
        self.remote_address = remote_address
        self.is_open = True
        self._peers = peers
        self._node = node
        self._number = 0  # in the recording, if there is one
        self._on_accept, self._on_data, self._on_closed = on_accept, on_data, on_closed
        self._transport: asyncio.Transport | None = None
        self._waiting: list[bytes] = []  # sent in this round of the loop
        self._waiting_bytes = 0
        self._write_is_due = False
        self._is_paused = False
        self._heard_at = 0.0
        self._idle: asyncio.TimerHandle | None = None

    def send(self, data: bytes) -> None:
        """Send bytes, in order. Does nothing when the connection is closed."""
        if not self.is_open:
            return
        self._waiting.append(data)
        self._waiting_bytes += len(data)
        if self._transport is None or self._write_is_due:
            return
        self._write_is_due = True
        if self._peers.due is None:
            self._peers.loop.call_soon(self._write)
        else:
            self._peers.due.append(self)

    def close(self) -> None:
        """Close from this side; what was sent before still leaves, unless the peer does not take it in time."""
        if not self.is_open:
            return
        self._write()
        self.is_open = False
        self._end()

    def lose(self, reason: str) -> None:
        """Close a connection whose peer does wrong, and inform the node."""
        if self.is_open:
            self.is_open = False
            self._peers.closed_for[reason] += 1
            say = log.info if reason == "idle" else log.warning
            say("closed the connection of %s: %s", self.remote_address, reason)
            self.abort()
            self._on_closed(self, reason)

    def abort(self) -> None:
        """Close at once; what was not sent yet is lost."""
        if self._transport is not None:
            self._transport.abort()

    @property
    def unsent_bytes(self) -> int:
        """How many bytes wait here because the peer, or the network, does not take them."""
        written = 0 if self._transport is None else self._transport.get_write_buffer_size()
        return written + self._waiting_bytes

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """The connection is open, unless there are too many or it was closed meanwhile."""
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        transport.set_write_buffer_limits(high=PAUSE_ABOVE_BYTES)
        self.local_address = _shown(transport.get_extra_info("sockname"))
        peers = self._peers
        if self._on_accept is not None:
            self.remote_address = _shown(transport.get_extra_info("peername"))
            if len(peers.connections) >= peers.limits.max_connections:
                self.is_open = False
                peers.closed_for["too many connections"] += 1
                log.warning("closed the connection of %s: too many connections", self.remote_address)
                transport.abort()
                return
        if not self.is_open:  # closed before it was open
            transport.abort()
            return
        peers.connections.add(self)
        if peers.recorder is not None:
            self._number = peers.recorder.next_connection()
        self._heard_at = peers.loop.time()
        self._watch_silence()
        if self._on_accept is not None:
            self._on_accept(self)
        self._write()

    def get_buffer(self, sizehint: int) -> memoryview:
        """Where the loop writes what it reads next."""
        return self._peers.read_into

    def buffer_updated(self, nbytes: int) -> None:
        """So many bytes were read into the buffer."""
        data = bytes(self._peers.read_into[:nbytes])
        self._heard_at = self._peers.loop.time()
        self._peers.received_bytes += len(data)
        if self._peers.recorder is not None:
            self._peers.recorder.add(self._number, self.remote_address, self._node, data)
        if not self.is_open:
            return
        # What this piece makes nodes send leaves when it was read, not a round later. A broker that registers a topic
        # has sent that before its answer: connections write in the order in which they began to send.
        due: list[TcpConnection] = []
        self._peers.due = due
        try:
            self._on_data(self, data)
        finally:
            self._peers.due = None
            for connection in due:
                connection._write()

    def pause_writing(self) -> None:
        if self._on_accept is not None and self._transport is not None and not self._is_paused:
            self._is_paused = True
            self._transport.pause_reading()

    def resume_writing(self) -> None:
        if self._transport is not None and self._is_paused:
            self._is_paused = False
            self._transport.resume_reading()

    def connection_lost(self, error: Exception | None) -> None:
        """The connection was closed by either side; the node is informed if it was not this one."""
        self._peers.connections.discard(self)
        self._waiting.clear()
        if self._idle is not None:
            self._idle.cancel()
        if self.is_open:
            self.is_open = False
            self._on_closed(self, "closed by peer" if error is None else "reset")

    def _write(self) -> None:
        self._write_is_due = False
        transport = self._transport
        if transport is None or not self._waiting or transport.is_closing():
            return
        peers = self._peers
        peers.sent_bytes += self._waiting_bytes
        self._heard_at = peers.loop.time()
        data = self._waiting[0] if len(self._waiting) == 1 else b"".join(self._waiting)
        if peers.recorder is not None:
            peers.recorder.add(self._number, self._node, self.remote_address, data)
        transport.write(data)
        self._waiting.clear()
        self._waiting_bytes = 0
        if transport.get_write_buffer_size() > peers.limits.max_unsent_bytes:
            self.lose("does not take its answers")

    def _watch_silence(self) -> None:
        """Close after ``idle_seconds`` without a byte in either direction. One timer, armed again when it was early."""
        allowed = self._peers.limits.idle_seconds
        if not allowed or not self.is_open:
            return
        left = self._heard_at + allowed - self._peers.loop.time()
        if left <= 0:
            self.lose("idle")
        else:
            self._idle = self._peers.loop.call_later(left, self._watch_silence)

    def _end(self) -> None:
        transport = self._transport
        if transport is not None:
            transport.close()
            if transport.get_write_buffer_size():
                self._peers.loop.call_later(GOODBYE_SECONDS, transport.abort)

    def refused(self, reason: str) -> None:
        """The connection could not be opened."""
        if self.is_open:
            self.is_open = False
            self._on_closed(self, reason)

    def __repr__(self) -> str:
        return f"<{self.local_address} -> {self.remote_address} {'open' if self.is_open else 'closed'}>"


class Peers:
    """All connections of a process, and what was counted about them. ``closed_for`` counts by reason."""

    def __init__(self, loop: asyncio.AbstractEventLoop, limits: PeerLimits | None = None) -> None:
        self.loop = loop
        self.limits = limits or PeerLimits()
        self.connections: set[TcpConnection] = set()
        self.closed_for: Counter[str] = Counter()
        self.recorder: Recorder | None = None
        self.read_into = memoryview(bytearray(READ_BYTES))  # asyncio's own buffers are mapped and unmapped at each read
        self.due: list[TcpConnection] | None = None  # while a piece is read: who has something to write, in order
        self.received_bytes = 0
        self.sent_bytes = 0
        self.listening: list[asyncio.Server] = []
        self._tasks: set[asyncio.Task[Any]] = set()

    def later(self, work: Any) -> None:
        """Run a coroutine, and keep it until it is done."""
        task = self.loop.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def close(self) -> None:
        """Stop listening and close every connection; what was sent before still leaves, for a moment."""
        for server in self.listening:
            server.close()
        for connection in list(self.connections):
            connection.close()
        for _ in range(100):
            if not self.connections:
                return
            await asyncio.sleep(0.01)
        for connection in list(self.connections):
            connection.abort()
        await asyncio.sleep(0)


class TcpNetwork:
    """The Network port of one node. ``bind`` is the host to listen at, when it is not the node's own address.

    ``server_tls`` and ``client_tls``: contexts of the ssl module, when connections are encrypted.
    """

    def __init__(
        self,
        peers: Peers,
        node: str,
        bind: str | None = None,
        *,
        server_tls: ssl.SSLContext | None = None,
        client_tls: ssl.SSLContext | None = None,
    ) -> None:
        self._peers = peers
        self._node = node
        self._bind = bind
        self._server_tls = server_tls
        self._client_tls = client_tls

    def listen(
        self, address: str, on_accept: Callable[[Connection], None], on_data: OnData, on_closed: OnClosed
    ) -> None:
        """Listen at the port of an address. UsageError when it is taken."""
        where = address_of(address)
        listening = socket_for(self._bind or where.host, where.port)

        def accepted() -> TcpConnection:
            return TcpConnection(self._peers, on_accept, on_data, on_closed, node=self._node)

        async def serve() -> None:
            server = await self._peers.loop.create_server(
                accepted, sock=listening, backlog=BACKLOG, ssl=self._server_tls
            )
            self._peers.listening.append(server)

        self._peers.later(serve())

    def connect(self, address: str, on_data: OnData, on_closed: OnClosed) -> TcpConnection:
        """Open a connection to an address; a failure is reported to ``on_closed``, later."""
        connection = TcpConnection(self._peers, None, on_data, on_closed, address, self._node)

        async def open_it() -> None:
            try:
                where = address_of(address)
                opening = self._peers.loop.create_connection(
                    lambda: connection,
                    where.host,
                    where.port,
                    ssl=self._client_tls,
                    server_hostname=where.host if self._client_tls else None,
                )
                await asyncio.wait_for(opening, CONNECT_TIMEOUT_SECONDS)
            except TimeoutError:
                connection.refused("timed out")
            except (OSError, UsageError) as error:
                log.debug("cannot connect to %s: %s", address, error)
                connection.refused(_why(error))

        self._peers.later(open_it())
        return connection


def _why(error: Exception) -> str:
    """The reason in a word, one of NOT_OPENED."""
    if isinstance(error, socket.gaierror):
        return "unknown host"
    no_way = isinstance(error, OSError) and error.errno in (errno.ENETUNREACH, errno.EHOSTUNREACH)
    return "unreachable" if no_way else "refused"


def _shown(where: Any) -> str:
    return str(Address(where[0].partition("%")[0], where[1])) if where else "unknown:0"
