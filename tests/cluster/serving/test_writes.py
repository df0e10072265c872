"""When what a node sends leaves: with the piece of the stream that it answers, or once a round of the loop."""

from __future__ import annotations

import asyncio
from unittest.mock import MagicMock, call

from mqlab.cluster.runtime.tcp import Peers, TcpConnection


def test_answers_leave_in_one_write_when_their_piece_was_read_and_other_frames_a_round_later() -> None:
    loop = asyncio.new_event_loop()
    transport = MagicMock(spec=asyncio.Transport)
    transport.get_extra_info.return_value = ("127.0.0.1", 10911)
    transport.is_closing.return_value, transport.get_write_buffer_size.return_value = False, 0
    try:
        peers = Peers(loop)
        connection = TcpConnection(
            peers, None, lambda peer, data: [peer.send(data[:1]), peer.send(data[1:])], lambda *_: None
        )
        connection.connection_made(transport)
        connection.get_buffer(-1)[:2] = b"ab"
        connection.buffer_updated(2)
        assert transport.write.mock_calls == [call(b"ab")]
        connection.send(b"c")
        connection.send(b"d")
        assert transport.write.call_count == 1
        loop.call_soon(loop.stop)
        loop.run_forever()
        assert transport.write.mock_calls == [call(b"ab"), call(b"cd")]
    finally:
        connection.connection_lost(None)
        loop.close()


def test_what_was_sent_before_an_answer_leaves_before_it() -> None:
    """A topic that was made is with the name server before its maker hears of it."""
    loop = asyncio.new_event_loop()
    left: list[bytes] = []
    transport = MagicMock(spec=asyncio.Transport)
    transport.get_extra_info.return_value = ("127.0.0.1", 10911)
    transport.is_closing.return_value, transport.get_write_buffer_size.return_value = False, 0
    transport.write.side_effect = left.append
    try:
        peers = Peers(loop)
        to_name_server = TcpConnection(peers, None, lambda *_: None, lambda *_: None)
        of_client = TcpConnection(
            peers, None, lambda peer, data: [to_name_server.send(b"register"), peer.send(b"made")], lambda *_: None
        )
        for connection in (to_name_server, of_client):
            connection.connection_made(transport)
        of_client.get_buffer(-1)[:1] = b"m"
        of_client.buffer_updated(1)
        assert left == [b"register", b"made"]
    finally:
        for connection in (to_name_server, of_client):
            connection.connection_lost(None)
        loop.close()
