"""The front over HTTP/2: a gRPC server on the event loop of the brokers.

Mirrors: GrpcServer, ContextInitPipeline, AuthenticationPipeline.

    GrpcService(front, loop, users).start("127.0.0.1:8081", tls=…) ─▶ the port

Metadata says who calls (x-mq-client-id, x-mq-language) and proves it (authorization, x-mq-date-time).
"""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import math
from collections.abc import AsyncIterator, Callable, Mapping
from typing import Any

import grpc

from mqlab.cluster.grpc.clients import Caller
from mqlab.cluster.grpc.codes import Code, StatusError
from mqlab.cluster.grpc.front import NOT_IMPLEMENTED, RECEIVE, TELEMETRY, GrpcFront, refused
from mqlab.cluster.grpc.messages import CLASSES
from mqlab.cluster.grpc.receiving import Received
from mqlab.errors import UsageError
from mqlab.rocketmq.promises import Promise
from mqlab.rocketmq.remoting.access import DISABLED, KnownUsers

PREFIX = "/apache.rocketmq.v2.MessagingService/"
LARGEST_REQUEST = 130 << 20
IDLE_MS = 120_000
END_SECONDS = 0.5
CLIENT_ERRORS = range(40_000, 50_000)


class GrpcService(grpc.GenericRpcHandler):  # type: ignore[misc]
    """The server. ``users``: whom it lets in, None: all. ``fails``: whether a call of an RPC fails, for tests."""

    def __init__(self, front: GrpcFront, loop: asyncio.AbstractEventLoop, users: KnownUsers | None = None) -> None:
        self.front = front
        self.fails: Callable[[str], bool] = lambda rpc: False
        self._loop = loop
        self._users = users
        self._server: Any = None
        self._handlers = {PREFIX + name: self._unary(name) for name in front.rpcs}
        self._handlers[PREFIX + RECEIVE] = grpc.unary_stream_rpc_method_handler(
            self._receive, CLASSES["ReceiveMessageRequest"].FromString, _serialized
        )
        self._handlers[PREFIX + TELEMETRY] = grpc.stream_stream_rpc_method_handler(
            self._telemetry, CLASSES["TelemetryCommand"].FromString, _serialized
        )
        for name in NOT_IMPLEMENTED:
            self._handlers[PREFIX + name] = grpc.unary_unary_rpc_method_handler(self._not_implemented(name))

    def service(self, details: Any) -> Any:
        """The handler of a method; grpc calls it."""
        return self._handlers.get(details.method)

    def start(self, address: str, tls: tuple[bytes, bytes] | None = None) -> None:
        """Listen, from the loop's own thread. ``tls``: certificate and key (PEM). UsageError for a taken port."""
        options = [
            ("grpc.max_receive_message_length", LARGEST_REQUEST),
            ("grpc.max_send_message_length", LARGEST_REQUEST),
            ("grpc.max_connection_idle_ms", IDLE_MS),
            ("grpc.so_reuseport", 0),
        ]
        asyncio.set_event_loop(self._loop)
        self._server = grpc.aio.server(handlers=[self], options=options)
        try:
            if tls is None:
                self._server.add_insecure_port(address)
            else:
                credentials = grpc.ssl_server_credentials([(tls[1], tls[0])])
                self._server.add_secure_port(address, credentials)
        except RuntimeError as error:
            raise UsageError(f"cannot listen at {address}: the port is taken, or the address is not here") from error
        self._loop.create_task(self._server.start())

    def stop(self) -> Any:
        """End all calls; a task that is done when no client is connected."""
        self.front.close()
        server, self._server = self._server, None
        return None if server is None else self._loop.create_task(server.stop(END_SECONDS))

    def _unary(self, rpc: str) -> Any:
        async def call(request: Any, context: Any) -> Any:
            try:
                caller = self._caller(context, rpc)
            except StatusError as refusal:
                return refused(rpc, refusal)
            return await _settled(self.front.answer(rpc, request, caller))

        return grpc.unary_unary_rpc_method_handler(call, CLASSES[f"{rpc}Request"].FromString, _serialized)

    def _not_implemented(self, rpc: str) -> Any:
        async def call(request: Any, context: Any) -> None:
            await context.abort(grpc.StatusCode.UNIMPLEMENTED, f"Method {PREFIX[1:]}{rpc} is unimplemented")

        return call

    async def _receive(self, request: Any, context: Any) -> AsyncIterator[Any]:
        try:
            caller = self._caller(context, RECEIVE)
        except StatusError as refusal:
            yield refused(RECEIVE, refusal)
            return
        promise, sent = self.front.receive(request, caller), False
        try:
            received: Received = await _settled(promise)
            for response in received.responses():
                yield response
            sent = True
        finally:
            if not sent:  # the client has hung up: what comes, or has come, is for another client
                promise.then(self.front.give_back)

    async def _telemetry(self, requests: AsyncIterator[Any], context: Any) -> AsyncIterator[Any]:
        commands: asyncio.Queue[Any] = asyncio.Queue()
        try:
            caller = self._caller(context, TELEMETRY)
        except StatusError as refusal:
            await self._abort(context, refusal)
            return
        send = commands.put_nowait
        reading = self._loop.create_task(self._read(requests, caller, commands))
        try:
            while (command := await commands.get()) is not None:
                if isinstance(command, StatusError):
                    await self._abort(context, command)
                yield command
        finally:
            reading.cancel()
            self.front.telemetry.closed(caller, send)

    async def _read(self, requests: AsyncIterator[Any], caller: Caller, commands: asyncio.Queue[Any]) -> None:
        """Take what the client says on its stream; None ends the stream, a StatusError ends it with an error."""
        try:
            async for command in requests:
                self.front.telemetry.take(command, caller, commands.put_nowait)
        except StatusError as refusal:
            commands.put_nowait(refusal)
        else:
            commands.put_nowait(None)

    async def _abort(self, context: Any, refusal: StatusError) -> None:
        is_clients = refusal.code in CLIENT_ERRORS
        code = grpc.StatusCode.INVALID_ARGUMENT if is_clients else grpc.StatusCode.INTERNAL
        await context.abort(code, refusal.text)

    def _caller(self, context: Any, rpc: str) -> Caller:
        """The caller's name. StatusError for one who may not call, and for a call that was to fail."""
        metadata = {name: value for name, value in context.invocation_metadata() if isinstance(value, str)}
        if self._users is not None:
            problem = problem_of(metadata, self._users)
            if problem is not None:
                raise StatusError(Code.UNAUTHORIZED, problem)
        if self.fails(rpc):
            raise StatusError(Code.INTERNAL_SERVER_ERROR, f"{rpc} was told to fail")
        left = context.time_remaining()
        return Caller(
            metadata.get("x-mq-client-id", ""),
            metadata.get("x-mq-language", ""),
            _peer(context.peer()),
            None if left is None else math.floor(left * 1_000),
        )


def problem_of(metadata: Mapping[str, str], users: KnownUsers) -> str | None:
    """Why a call is refused, in RocketMQ's words; None when it is signed by one of the users.

    Mirrors DefaultAuthenticationContextBuilder and DefaultAuthenticationHandler. The signature is of the date alone.
    """
    header, date = metadata.get("authorization", ""), metadata.get("x-mq-date-time", "")
    if header and not date:
        return "datetime is null."
    _, _, rest = header.partition(" ")
    parts = dict(part.strip().partition("=")[::2] for part in rest.split(",") if "=" in part)
    name = parts.get("Credential", "").partition("/")[0]
    if not name:
        return "username cannot be null."
    user = users.find(name)
    if user is None:
        return f"User:{name} is not found."
    if user.status == DISABLED:
        return f"User:{name} is disabled."
    right = hmac.new(user.password.encode(), date.encode(), hashlib.sha1).hexdigest()
    if not hmac.compare_digest(right, parts.get("Signature", "").lower()):
        return "check signature failed."
    return None


def _serialized(message: Any) -> bytes:
    return bytes(message.SerializeToString())


def _peer(text: str) -> str:
    """The address of a peer, which grpc writes as ipv4:127.0.0.1:50122 or ipv6:%5B::1%5D:50122."""
    return text.partition(":")[2].replace("%5B", "[").replace("%5D", "]")


async def _settled(promise: Promise[Any]) -> Any:
    """What a promise of the front becomes."""
    if promise.done:
        return promise.result()
    waiting: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def settle(_: object) -> None:
        if not waiting.done():
            waiting.set_result(None)

    promise.then(settle, settle)
    await waiting
    return promise.result()
