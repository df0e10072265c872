"""Bytes in, whole commands out: cuts a stream into frames without ever touching a socket.

Mirrors: NettyDecoder (LengthFieldBasedFrameDecoder). Every link of a Lab and every TCP connection has one.

    reader.feed(any piece of the stream)
    reader.next_command() -> RemotingCommand | None        None: a frame is not whole yet

    length < 4, length over the limit, header longer than the frame, unknown type, header that does not parse:
    CorruptionError, and the connection is to be closed, as RocketMQ does

Left out: TLS and HAProxy prefixes.
"""

from __future__ import annotations

import struct

from mqlab.errors import CorruptionError
from mqlab.rocketmq.wire.command import MAX_FRAME, RemotingCommand, decode_at
from mqlab.rocketmq.wire.layout import Buffer

_LENGTH = struct.Struct(">i")


class FrameReader:
    """An incremental reader of frames. It cannot be used after a CorruptionError.

    >>> from mqlab.rocketmq.wire.command import encode, request
    >>> frame = encode(request(105, topic="orders")); reader = FrameReader()
    >>> reader.feed(frame[:9]); reader.next_command() is None
    True
    >>> reader.feed(frame[9:]); reader.next_command().ext_fields
    {'topic': 'orders'}
    """

    __slots__ = ("_begin", "_stream", "left")

    def __init__(self) -> None:
        self._stream: bytes | bytearray = b""  # a piece is read where it is; only a frame over several pieces is copied
        self._begin = 0  # of the next frame in it
        self.left = 0  # how many bytes from there on

    def feed(self, data: Buffer) -> None:
        """Take the next piece of the stream."""
        if not self.left:
            self._stream = data if type(data) is bytes else bytes(data)
        else:
            if type(self._stream) is not bytearray:
                self._stream = bytearray(self._stream)
            del self._stream[: self._begin]
            self._stream += data
        self._begin = 0
        self.left += len(data)

    def next_command(self) -> RemotingCommand | None:
        """The next whole command, or None. Raises CorruptionError for bytes that can never become one."""
        # 1. The length decides how many bytes to wait for; a wrong one can never be corrected by more bytes.
        if self.left < _LENGTH.size:
            return None
        stream, begin = self._stream, self._begin
        (length,) = _LENGTH.unpack_from(stream, begin)
        if not 4 <= length <= MAX_FRAME - 4:
            raise CorruptionError(
                "a frame's length field cannot be",
                offset=0,
                expected=f"4 .. {MAX_FRAME - 4}",
                found=length,
                hint="is this a RocketMQ connection?",
            )
        size = _LENGTH.size + length
        if self.left < size:
            return None
        # 2. A piece that is read to its end is not kept.
        self.left -= size
        self._begin = begin + size
        if not self.left:
            self._stream = b""
        return decode_at(stream, begin, begin + size)
