"""Two ends of a served connection that both write much: neither waits for ever, and neither keeps too much."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

from mqlab.cluster.runtime.address import Address
from mqlab.cluster.runtime.tcp import PAUSE_ABOVE_BYTES, PeerLimits, Peers, TcpConnection, TcpNetwork, hold
from mqlab.rocketmq.ports import Connection

WRITTEN_BYTES = 32 << 20  # more than the system's buffers of both ends take
PIECE = b"x" * (1 << 16)
PATIENCE_SECONDS = 60.0


class End:
    """Counts what arrives."""

    def __init__(self) -> None:
        self.received_bytes = 0
        self.connection: Connection | None = None
        self.closed_for: str | None = None

    def accepted(self, connection: Connection) -> None:
        self.connection = connection

    def data(self, connection: Connection, data: bytes) -> None:
        self.received_bytes += len(data)

    def closed(self, connection: Connection, reason: str) -> None:
        self.closed_for = reason


def played(story: Callable[[Peers, End, End, TcpConnection], Awaitable[None]]) -> None:
    """Open one connection from a client end to a server end, and tell the story on its loop."""

    async def play() -> None:
        peers = Peers(asyncio.get_running_loop(), PeerLimits(max_unsent_bytes=2 * WRITTEN_BYTES))
        address = str(hold(Address("127.0.0.1", 0)))
        network = TcpNetwork(peers, "node")
        server, client = End(), End()
        network.listen(address, server.accepted, server.data, server.closed)
        await asyncio.sleep(0.05)
        opened = network.connect(address, client.data, client.closed)
        await until(lambda: server.connection is not None)
        try:
            await story(peers, server, client, opened)
        finally:
            for connection in list(peers.connections):
                connection.abort()
            await peers.close()

    asyncio.run(play())


async def until(happened: Callable[[], Any]) -> None:
    async with asyncio.timeout(PATIENCE_SECONDS):
        while not happened():
            await asyncio.sleep(0.01)


def write_all(connection: Connection) -> None:
    for _ in range(WRITTEN_BYTES // len(PIECE)):
        connection.send(PIECE)


def test_two_ends_that_both_write_more_than_the_buffers_take_do_not_wait_for_each_other() -> None:
    async def story(peers: Peers, server: End, client: End, opened: TcpConnection) -> None:
        assert server.connection is not None
        write_all(opened)
        write_all(server.connection)
        await until(lambda: server.received_bytes == client.received_bytes == WRITTEN_BYTES)

    played(story)


def test_a_server_does_not_read_on_while_its_peer_takes_no_answers() -> None:
    async def story(peers: Peers, server: End, client: End, opened: TcpConnection) -> None:
        accepted = server.connection
        assert isinstance(accepted, TcpConnection)
        assert opened._transport is not None
        # 1. The client reads nothing; the answers pile up above the mark.
        opened._transport.pause_reading()
        write_all(accepted)
        await until(lambda: accepted.unsent_bytes > PAUSE_ABOVE_BYTES)
        # 2. Its requests stay where they are, most of them with the client.
        write_all(opened)
        await asyncio.sleep(0.3)
        assert server.received_bytes == 0
        assert opened.unsent_bytes > 0
        # 3. It reads again, and everything arrives.
        opened._transport.resume_reading()
        await until(lambda: server.received_bytes == client.received_bytes == WRITTEN_BYTES)

    played(story)


def test_what_is_unsent_is_counted_and_an_aborted_connection_is_gone() -> None:
    async def story(peers: Peers, server: End, client: End, opened: TcpConnection) -> None:
        assert opened.unsent_bytes == 0
        opened.send(b"12345")
        assert opened.unsent_bytes == 5
        opened.abort()
        await until(lambda: not peers.connections)
        assert client.closed_for == "closed by peer"

    played(story)
