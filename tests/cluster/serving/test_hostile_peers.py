"""Peers that do wrong cost only their own connection: a good client beside them is served."""

from __future__ import annotations

import random
import socket
import struct
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from mqlab.cluster.runtime import PeerLimits
from mqlab.cluster.serving import Server
from mqlab.rocketmq.wire.codes import RequestCode, ResponseCode
from mqlab.rocketmq.wire.command import RemotingCommand, decode, encode, request
from tests.cluster.serving.served import server_in

LIMITS = PeerLimits(max_connections=40, max_unsent_bytes=1 << 20)
PATIENCE = 60.0  # seconds
IDLE_SECONDS = 1.0


@pytest.fixture(scope="module")
def strict(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with server_in(tmp_path_factory.mktemp("strict"), limits=LIMITS) as server:
        server.wait_until_registered()
        yield server


def port_of(server: Server) -> int:
    return server.plan.brokers[0].config.listen_port


class Peer:
    """A socket of a stranger."""

    def __init__(self, server: Server) -> None:
        self.socket = socket.create_connection(("127.0.0.1", port_of(server)), timeout=PATIENCE)

    def send(self, data: bytes) -> None:
        try:
            self.socket.sendall(data)
        except OSError:  # closed by the server: that is what some tests wait for
            return

    def ask(self, command: RemotingCommand) -> RemotingCommand:
        command.opaque = 7
        self.send(encode(command))
        return self.answer()

    def answer(self) -> RemotingCommand:
        length = self.take(4)
        return decode(length + self.take(struct.unpack(">i", length)[0]))

    def take(self, count: int) -> bytes:
        data = b""
        while len(data) < count:
            piece = self.socket.recv(count - len(data))
            if not piece:
                raise EOFError("the server closed the connection")
            data += piece
        return data

    def is_closed(self) -> bool:
        """Whether the server closes the connection, sooner or later."""
        try:
            while self.socket.recv(1 << 16):
                pass
        except TimeoutError:
            return False
        except OSError:
            return True
        return True


def must_be_served(server: Server) -> None:
    """A new client gets its answer, as soon as the server has seen that those before it have left."""
    end = time.monotonic() + PATIENCE
    while True:
        peer = Peer(server)
        try:
            assert peer.ask(request(RequestCode.GET_BROKER_RUNTIME_INFO)).code == ResponseCode.SUCCESS
        except (EOFError, OSError):  # one connection too many
            assert time.monotonic() < end, "nobody is served"
            time.sleep(0.02)
        else:
            return
        finally:
            peer.socket.close()


GOOD = encode(request(RequestCode.GET_MAX_OFFSET, topic="TBW102", queueId=0))


@pytest.mark.parametrize(
    "data",
    [
        b"GET / HTTP/1.1\r\nHost: x\r\n\r\n",
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + bytes(200),
        struct.pack(">i", -1) + bytes(16),
        struct.pack(">i", (1 << 31) - 1) + bytes(16),
        struct.pack(">ii", 20, 0x01FFFFFF) + bytes(16),
        struct.pack(">ii", 20, 16) + b"{not json at all",
        struct.pack(">ii", 20, 0x05000010) + bytes(16),
    ],
    ids=["HTTP", "TLS", "negative", "huge", "header too long", "no JSON", "unknown type"],
)
def test_a_malformed_frame_closes_its_own_connection(strict: Server, data: bytes) -> None:
    good, bad = Peer(strict), Peer(strict)
    bad.send(data)
    assert bad.is_closed()
    assert good.ask(request(RequestCode.GET_MAX_OFFSET, topic="TBW102", queueId=0)).code == ResponseCode.SUCCESS


def test_random_bytes_and_flipped_bits_stall_nobody(strict: Server) -> None:
    rng = random.Random(7)
    for number in range(300):
        peer = Peer(strict)
        if number % 3 == 0:
            peer.send(rng.randbytes(rng.randrange(1, 200)))
        elif number % 3 == 1:
            peer.send(GOOD[: rng.randrange(len(GOOD))])  # and then nothing
        else:
            flipped = bytearray(GOOD)
            flipped[rng.randrange(len(GOOD))] ^= 1 << rng.randrange(8)
            peer.send(bytes(flipped))
        peer.socket.close()
    must_be_served(strict)
    assert strict.loop.failures == 0


def test_a_request_that_comes_byte_by_byte_is_answered(strict: Server) -> None:
    peer = Peer(strict)
    for byte in GOOD:
        peer.send(bytes([byte]))
    assert peer.answer().code == ResponseCode.SUCCESS


def test_a_peer_that_is_silent_is_closed_after_the_idle_time(tmp_path: Path) -> None:
    with server_in(tmp_path, limits=PeerLimits(idle_seconds=IDLE_SECONDS)) as impatient:
        began = time.monotonic()
        assert Peer(impatient).is_closed()
        assert time.monotonic() - began >= IDLE_SECONDS * 0.9
        assert impatient.on_loop(lambda: impatient.loop.peers.closed_for["idle"]) >= 1


def test_a_peer_that_reads_no_answers_is_bounded_and_stalls_nobody(strict: Server) -> None:
    # The answer to this request is 2 KB: 20,000 of them are more than the system's buffers and the limit together.
    slow = Peer(strict)
    slow.socket.settimeout(0.2)
    asked = encode(request(RequestCode.GET_BROKER_RUNTIME_INFO))
    for _ in range(200):
        try:
            slow.socket.sendall(asked * 100)
        except OSError:  # the server has stopped to read, or has closed the connection
            break
    unsent = strict.on_loop(lambda: max((each.unsent_bytes for each in strict.loop.peers.connections), default=0))
    assert unsent <= LIMITS.max_unsent_bytes + (1 << 20)
    must_be_served(strict)
    slow.socket.close()


def test_one_connection_too_many_is_closed_and_the_others_stay(strict: Server) -> None:
    crowd = [Peer(strict) for _ in range(LIMITS.max_connections + 5)]
    assert any(peer.is_closed() for peer in crowd[-5:])
    for peer in crowd:
        peer.socket.close()
    must_be_served(strict)
