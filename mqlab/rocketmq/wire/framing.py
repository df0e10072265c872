"""Bytes in, whole commands out: cuts a stream into frames without ever touching a socket.

Mirrors: NettyDecoder (LengthFieldBasedFrameDecoder). Every link of a Lab and every TCP connection has one.

    reader.feed(any piece of the stream)
    reader.next_command() -> RemotingCommand | None        None: a frame is not whole yet

    length < 4, length over the limit, header longer than the frame, unknown type, header that does not parse:
    CorruptionError, and the connection is to be closed, as RocketMQ does

Left out: TLS and HAProxy prefixes.
"""

from __future__ import annotations

from mqlab.errors import CorruptionError
from mqlab.rocketmq.wire.command import MAX_FRAME, RemotingCommand, decode
from mqlab.rocketmq.wire.layout import Buffer


class FrameReader:
    """An incremental reader of frames. It cannot be used after a CorruptionError.

    >>> from mqlab.rocketmq.wire.command import encode, request
    >>> frame = encode(request(105, topic="orders")); reader = FrameReader()
    >>> reader.feed(frame[:9]); reader.next_command() is None
    True
    >>> reader.feed(frame[9:]); reader.next_command().ext_fields
    {'topic': 'orders'}
    """

    __slots__ = ("_whole", "rest")

    def __init__(self) -> None:
        self.rest = bytearray()  # what came after the last whole frame
        self._whole: bytes | None = None  # exactly one frame came in one piece: no need to copy it

    def feed(self, data: Buffer) -> None:
        """Take the next piece of the stream."""
        if not self.rest and self._whole is None and type(data) is bytes:
            size = len(data)
            if size >= 8 and int.from_bytes(data[:4], "big") == size - 4 and size <= MAX_FRAME:
                self._whole = data
                return
        if self._whole is not None:
            self.rest += self._whole
            self._whole = None
        self.rest += data

    def take(self, data: Buffer) -> RemotingCommand | None:
        """``feed`` and the first ``next_command`` in one step: most pieces of a stream are one whole frame."""
        if not self.rest and self._whole is None and type(data) is bytes:
            size = len(data)
            if 8 <= size <= MAX_FRAME and int.from_bytes(data[:4], "big") == size - 4:
                return decode(data)
        self.feed(data)
        return self.next_command()

    def next_command(self) -> RemotingCommand | None:
        """The next whole command, or None. Raises CorruptionError for bytes that can never become one."""
        if self._whole is not None:
            frame, self._whole = self._whole, None
            return decode(frame)
        # 1. The length decides how many bytes to wait for; a wrong one can never be corrected by more bytes.
        buffer = self.rest
        if len(buffer) < 4:
            return None
        length = int.from_bytes(buffer[:4], "big", signed=True)
        if not 4 <= length <= MAX_FRAME - 4:
            raise CorruptionError(
                "a frame's length field cannot be",
                offset=0,
                expected=f"4 .. {MAX_FRAME - 4}",
                found=length,
                hint="is this a RocketMQ connection?",
            )
        if len(buffer) < 4 + length:
            return None
        # 2. Copied out, because the buffer is cut under it.
        frame = bytes(buffer[: 4 + length])
        del buffer[: 4 + length]
        return decode(frame)
