"""When what a node sends leaves: with the piece of the stream that it answers, or once a round of the loop."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from typing import Any
from unittest.mock import MagicMock

import pytest

from mqlab.cluster.runtime.tcp import Peers, TcpConnection

Opened = Callable[[Callable[..., Any]], TcpConnection]


@pytest.fixture
def loop() -> Iterator[asyncio.AbstractEventLoop]:
    made = asyncio.new_event_loop()
    yield made
    made.close()


@pytest.fixture
def left() -> list[bytes]:
    """What was written to any connection, in order."""
    return []


@pytest.fixture
def opened(loop: asyncio.AbstractEventLoop, left: list[bytes]) -> Iterator[Opened]:
    """Opens a connection that calls a function with each piece it reads."""
    transport = MagicMock(spec=asyncio.Transport)
    transport.get_extra_info.return_value = ("127.0.0.1", 10911)
    transport.is_closing.return_value, transport.get_write_buffer_size.return_value = False, 0
    transport.write.side_effect = left.append
    peers, made = Peers(loop), list[TcpConnection]()

    def open_one(on_data: Callable[..., Any]) -> TcpConnection:
        made.append(TcpConnection(peers, None, on_data, lambda *_: None))
        made[-1].connection_made(transport)
        return made[-1]

    yield open_one
    for connection in made:
        connection.connection_lost(None)


def read(connection: TcpConnection, data: bytes) -> None:
    """Let the loop have read a piece of the stream."""
    connection.get_buffer(-1)[: len(data)] = data
    connection.buffer_updated(len(data))


def test_answers_leave_in_one_write_when_their_piece_was_read_and_other_frames_a_round_later(
    loop: asyncio.AbstractEventLoop, opened: Opened, left: list[bytes]
) -> None:
    connection = opened(lambda peer, data: [peer.send(data[:1]), peer.send(data[1:])])
    read(connection, b"ab")
    assert left == [b"ab"]
    connection.send(b"c")
    connection.send(b"d")
    assert left == [b"ab"]
    loop.call_soon(loop.stop)
    loop.run_forever()
    assert left == [b"ab", b"cd"]


def test_what_was_sent_before_an_answer_leaves_before_it(opened: Opened, left: list[bytes]) -> None:
    """A topic that was made is with the name server before its maker hears of it."""
    to_name_server = opened(lambda *_: None)
    of_client = opened(lambda peer, data: [to_name_server.send(b"register"), peer.send(b"made")])
    read(of_client, b"m")
    assert left == [b"register", b"made"]
