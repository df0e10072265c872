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
