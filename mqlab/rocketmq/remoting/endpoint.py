"""One node's end of the remoting protocol: sends requests, matches answers, calls handlers.

Mirrors: NettyRemotingAbstract, NettyRemotingClient and NettyRemotingServer in one.

    client.invoke(address, command) ─▶ Promise            pending[opaque] = promise + deadline
        └ frame ─▶ channel.reader ─▶ handlers[code](channel, command, reply)
    promise resolves ◀─ frame ◀─ reply(answer)            now or later (a held pull)

Either side may send requests: a broker invokes its client over the channel that the client opened.

Left out: a pool of threads per request code (a node has one mailbox), and closing a channel after a timed-out call.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping

from mqlab.errors import CorruptionError, RemotingError
from mqlab.rocketmq.ports import NOT_OPENED, Access, Connection, Deadline, Ports
from mqlab.rocketmq.promises import Promise
from mqlab.rocketmq.wire import command as wire_command
from mqlab.rocketmq.wire.codes import RequestCode, ResponseCode, request_name, response_name
from mqlab.rocketmq.wire.command import RemotingCommand
from mqlab.rocketmq.wire.framing import FrameReader

Reply = Callable[[RemotingCommand], None]
ChannelClosed = Callable[["Channel"], None]

ONEWAY_FLAG = 2  # RemotingCommand.RPC_ONEWAY
# Requests of one channel that may wait for their answers at a time; RocketMQ's bound is the queue of each thread pool.
MOST_UNANSWERED = 16_384


class Channel:
    """One open connection of a node: its peer, and the requests over it that are not answered yet.

    Compared and hashed by identity. Mirrors Netty's Channel plus the part of ResponseFuture tables that belongs to it.
    """

    __slots__ = ("_connection", "_pending", "_reader", "_remoting", "_signer", "_unanswered", "_unknown")

    def __init__(self, remoting: Remoting, connection: Connection, signer: Access | None = None) -> None:
        self._remoting = remoting
        self._signer = signer
        self._connection = connection
        self._reader = FrameReader()
        self._pending: dict[int, tuple[Promise[RemotingCommand], Deadline]] = {}
        self._unanswered = 0
        self._unknown: Collection[int] = ()  # codes that are not answered here

    @property
    def remote_address(self) -> str:
        return self._connection.remote_address

    @property
    def local_address(self) -> str:
        return self._connection.local_address

    @property
    def is_open(self) -> bool:
        return self._connection.is_open

    def invoke(self, command: RemotingCommand, timeout_ms: int = 3_000) -> Promise[RemotingCommand]:
        """Send a request; the promise gets the answer whatever its code, or a RemotingError (closed, timeout)."""
        promise: Promise[RemotingCommand] = Promise()
        if not self._connection.is_open:
            promise.reject(self._lost(command))
            return promise
        # The answer comes with the same opaque; whichever is first, answer or deadline, removes the other.
        opaque = command.opaque = self._remoting.next_opaque()
        if self._signer is not None:
            self._signer.sign(command)

        def expired() -> None:
            self._pending.pop(opaque, None)
            promise.reject(
                RemotingError(
                    f"{request_name(command.code)} to {self.remote_address} got no answer within {timeout_ms} ms",
                    code="timeout",
                )
            )

        deadline = self._remoting.ports.clock.call_later(timeout_ms, expired, "remoting.timeout")
        self._pending[opaque] = (promise, deadline)
        self._connection.send(wire_command.encode(command))
        return promise

    def send_oneway(self, command: RemotingCommand) -> None:
        """Send a request that is not answered; it is lost silently when the channel is closed."""
        command.flag |= ONEWAY_FLAG
        command.opaque = self._remoting.next_opaque()
        if self._signer is not None:
            self._signer.sign(command)
        self._connection.send(wire_command.encode(command))

    def close(self) -> None:
        """Close from this side; pending requests fail, and the owner is called as if the peer had closed."""
        if self._connection.is_open:
            self._connection.close()
            self._remoting.lose(self._connection, "closed here")

    def _lost(self, command: RemotingCommand) -> RemotingError:
        return RemotingError(
            f"{request_name(command.code)}: the channel to {self.remote_address} is closed", code="closed"
        )

    def __repr__(self) -> str:
        state = "open" if self.is_open else "closed"
        return f"<Channel {self.local_address} -> {self.remote_address} {state}, {len(self._pending)} pending>"


Handler = Callable[[Channel, RemotingCommand, Reply], None]


_NO_REFUSALS = frozenset(
    (
        ResponseCode.SUCCESS,
        ResponseCode.FLUSH_DISK_TIMEOUT,
        ResponseCode.SLAVE_NOT_AVAILABLE,
        ResponseCode.FLUSH_SLAVE_TIMEOUT,
        ResponseCode.PULL_NOT_FOUND,
        ResponseCode.PULL_RETRY_IMMEDIATELY,
        ResponseCode.PULL_OFFSET_MOVED,
        ResponseCode.QUERY_NOT_FOUND,
        ResponseCode.NO_MESSAGE,
        ResponseCode.POLLING_FULL,
        ResponseCode.POLLING_TIMEOUT,
    )
)  # what was stored, or is not there yet


class Remoting:
    """One node's endpoint: a handler per request code, a channel per connection, one per address it asks.

    An unknown code is answered with 3, a handler's exception with 1 and its text, a request of a channel that has too
    many unanswered ones with 2, a request that ``ports.access`` refuses with 16; a broken frame closes its channel.
    """

    def __init__(
        self, ports: Ports, handlers: Mapping[int, Handler], *, on_channel_closed: ChannelClosed | None = None
    ) -> None:
        self.ports = ports
        self._access = ports.access
        self._handlers = handlers
        self._on_channel_closed = on_channel_closed
        self._channels: dict[Connection, Channel] = {}
        self._by_address: dict[str, Channel] = {}
        self._opaque = 0

    def listen(self, address: str, *, without: Collection[int] = ()) -> None:
        """Accept connections at ``"ip:port"``; the codes ``without`` are unknown there."""

        def accepted(connection: Connection) -> None:
            self.join(connection)._unknown = without

        self.ports.network.listen(address, accepted, self._on_data, self.lose)

    def invoke(self, address: str, command: RemotingCommand, timeout_ms: int = 3_000) -> Promise[RemotingCommand]:
        """Ask the node at an address, over the one channel to it (opened if need be); see Channel.invoke."""
        return self.channel_to(address).invoke(command, timeout_ms)

    def invoke_oneway(self, address: str, command: RemotingCommand) -> None:
        """Send a request that is not answered to the node at an address."""
        self.channel_to(address).send_oneway(command)

    def channel_to(self, address: str) -> Channel:
        """The open channel to an address, made when there is none."""
        channel = self._by_address.get(address)
        if channel is None or not channel._connection.is_open:
            connection = self.ports.network.connect(address, self._on_data, self.lose)
            channel = self._channels[connection] = self._by_address[address] = Channel(self, connection, self._access)
        return channel

    def next_opaque(self) -> int:
        """The next correlation number, from 1 on, because some clients treat 0 as missing."""
        self._opaque = self._opaque % 0x7FFFFFFF + 1
        return self._opaque

    def close(self) -> None:
        """Close every channel; requests under way fail with ``closed``."""
        for channel in list(self._channels.values()):
            channel.close()

    def join(self, connection: Connection) -> Channel:
        """The channel of a client in this process: its connection is handed the frames for it. ``lose`` ends it."""
        channel = self._channels[connection] = Channel(self, connection)
        return channel

    def ask(self, channel: Channel, command: RemotingCommand) -> Promise[RemotingCommand]:
        """Answer a request of such a client; who it is was asked elsewhere."""
        answered: Promise[RemotingCommand] = Promise()
        try:
            self._handlers[command.code](channel, command, answered.resolve)
        except Exception as error:
            self._failed(command, error, answered.resolve)
        return answered

    def _on_data(self, connection: Connection, data: bytes) -> None:
        if connection not in self._channels:
            return
        channel = self._channels[connection]
        reader = channel._reader
        reader.feed(data)
        while reader.left:  # a piece of the stream holds part of a frame, one frame, or several
            try:
                command = reader.next_command()
            except CorruptionError as error:
                self.ports.note("channel.broken", remote=channel.remote_address, error=str(error))
                channel.close()
                return
            if command is None:
                return
            self.ports.annotate(command)
            if command.flag & 1:
                self.answered(channel, command)
            else:
                self._asked(channel, command)

    def answered(self, channel: Channel, answer: RemotingCommand) -> None:
        """The peer of a channel has answered a request."""
        waiting = channel._pending.pop(answer.opaque, None)
        if waiting is not None:  # else: the answer came after its time-out
            promise, deadline = waiting
            deadline.cancel()
            promise.resolve(answer)

    def _asked(self, channel: Channel, command: RemotingCommand) -> None:
        oneway = bool(command.flag & ONEWAY_FLAG)
        waits = not oneway

        def reply(answer: RemotingCommand) -> None:
            nonlocal waits
            if waits:  # else the answer is not read
                waits = False
                channel._unanswered -= 1
            if answer.code not in _NO_REFUSALS and self.ports.refused is not None and _is_refusal(command, answer):
                self.ports.refused(
                    f"{request_name(command.code)} of {channel.remote_address}: {response_name(answer.code)} "
                    f"{answer.remark or ''}".rstrip()
                )
            if not oneway:
                channel._connection.send(wire_command.encode(answer))

        channel._unanswered += waits
        if channel._unanswered > MOST_UNANSWERED:
            reply(command.reply(ResponseCode.SYSTEM_BUSY, "[OVERLOAD]system busy, start flow control for a while"))
            return
        if self._access is not None and (problem := self._access.problem_of(command)) is not None:
            reply(command.reply(ResponseCode.NO_PERMISSION, problem))
            return
        handler = self._handlers.get(command.code) if command.code not in channel._unknown else None
        if handler is None:
            reply(command.reply(ResponseCode.REQUEST_CODE_NOT_SUPPORTED, f" request type {command.code} not supported"))
            return
        try:
            handler(channel, command, reply)
        except Exception as error:
            self._failed(command, error, reply)

    def _failed(self, command: RemotingCommand, error: Exception, reply: Reply) -> None:
        """A handler raised this: a node answers all the same, and the journal keeps the traceback."""
        import traceback  # here: most nodes never need it

        self.ports.note("handler.failed", code=command.code, error=traceback.format_exc())
        reply(command.reply(ResponseCode.SYSTEM_ERROR, f"{type(error).__name__}: {error}"))

    def lose(self, connection: Connection, reason: str) -> None:
        """A connection was closed: fail the requests that wait on it, and call the owner."""
        channel = self._channels.pop(connection, None)
        if channel is None:
            return
        if self._by_address.get(connection.remote_address) is channel:
            del self._by_address[connection.remote_address]
        # Removed first: a promise's callback may send again, over a new channel to the same address.
        pending, channel._pending = channel._pending, {}
        code = "connect" if reason in NOT_OPENED else "closed"
        for promise, deadline in pending.values():
            deadline.cancel()
            promise.reject(RemotingError(f"connection to {connection.remote_address}: {reason}", code=code))
        if self._on_channel_closed is not None:
            self._on_channel_closed(channel)

    def __repr__(self) -> str:
        return f"<Remoting of {self.ports.node}: {len(self._channels)} channels>"


def _is_refusal(command: RemotingCommand, answer: RemotingCommand) -> bool:
    """Whether an answer without success is a refusal. Clients ask for the route of a topic before the topic is made."""
    return command.code != RequestCode.GET_ROUTEINFO_BY_TOPIC or answer.code != ResponseCode.TOPIC_NOT_EXIST
