"""A cluster that runs somewhere else, and the clients of this program in it.

Mirrors: what a Java program does with DefaultMQProducer, DefaultMQPushConsumer and DefaultMQAdminExt.

    cluster = mqlab.connect("10.0.0.7:9876;10.0.0.8:9876")
    consumer = cluster.push_consumer("billing"); consumer.subscribe("orders", "paid"); consumer.on_messages(listener)
    consumer.start(); …; cluster.close()

Verbs and settings are a Lab's. Time is real, listeners run on real threads, each client has connections of its own.
A client's id is ip@pid#nanoseconds, as Java's; a broadcasting consumer's is ip@DEFAULT, because its offsets are kept
under that name.
"""

from __future__ import annotations

import itertools
import os
import socket
import ssl
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mqlab.cluster.runtime import EventLoop
from mqlab.cluster.runtime.address import address_of
from mqlab.errors import MqlabError, RemotingError, UsageError
from mqlab.rocketmq.machine.files import RealFiles

if TYPE_CHECKING:
    from mqlab.cluster.connected.guarded_admin import GuardedAdmin
    from mqlab.rocketmq.admin import Admin
    from mqlab.rocketmq.client import (
        LitePullConsumer,
        Producer,
        PullConsumer,
        PushConsumer,
        SimpleConsumer,
        TransactionProducer,
    )
    from mqlab.rocketmq.ports import Access, Ports

DEFAULT_INSTANCE = "DEFAULT"
ENVIRONMENT = ("MQLAB_ACCESS_KEY", "MQLAB_SECRET_KEY")


def connect(
    name_servers: str | Sequence[str],
    *,
    tls: ssl.SSLContext | None = None,
    record: str | Path | None = None,
    access_key: str | None = None,
    secret_key: str | None = None,
) -> Cluster:
    """Connect to a cluster by the addresses of its name servers: "host:9876", "a:9876;b:9876" or a list.

    Raises RemotingError when none of them answers, UsageError for something that is not an address.
    ``tls``: a context of the ssl module for a cluster that encrypts. ``record``: a file for every frame that passes,
    see Recording. ``access_key`` and ``secret_key``: name and password in a cluster that has users; every request is
    signed with them. Close the cluster, or use it as a context manager.
    """
    if (access_key is None) != (secret_key is None):
        raise UsageError("a user has a name and a password", hint='connect(…, access_key="shop", secret_key="…")')
    access = None
    if access_key is not None and secret_key is not None:
        from mqlab.rocketmq.remoting.access import Credentials, NodeAccess

        access = NodeAccess(Credentials(access_key, secret_key))
    wanted = name_servers.split(";") if isinstance(name_servers, str) else list(name_servers)
    addresses = [str(address_of(address)) for address in wanted if address.strip()]
    if not addresses:
        raise UsageError("no address of a name server", hint='mqlab.connect("127.0.0.1:9876")')
    cluster = Cluster(addresses, tls, record, access)
    try:
        cluster.must_answer()
    except BaseException:
        cluster.close()
        raise
    return cluster


def connect_from_environment(name_servers: str) -> Cluster:
    """Connect as the user that the environment names: MQLAB_ACCESS_KEY and MQLAB_SECRET_KEY, both or neither."""
    name, password = (os.environ.get(variable) or None for variable in ENVIRONMENT)
    if (name is None) != (password is None):
        raise UsageError(f"only one of {' and '.join(ENVIRONMENT)} is set", hint="set both, or neither")
    return connect(name_servers, access_key=name, secret_key=password)


class Cluster:
    """The clients of this program in one cluster; ``connect`` makes it. ``clients`` are those that were made."""

    def __init__(
        self,
        name_servers: Sequence[str],
        tls: ssl.SSLContext | None = None,
        record: str | Path | None = None,
        access: Access | None = None,
    ) -> None:
        self.name_servers = list(name_servers)
        self.clients: list[Any] = []
        self._tls = tls
        self._access = access
        self._ip = _own_address(self.name_servers[0])
        self._numbers = itertools.count(1)
        self._admin: GuardedAdmin | None = None
        self._operator: Admin | None = None
        self._is_open = True
        self._loop = EventLoop()
        if record is not None:
            self._loop.record(record)
        self._loop.start()

    def producer(self, group: str, *, name: str | None = None, **settings: Any) -> Producer:
        """A started producer of a group; settings have DefaultMQProducer's names in snake_case."""
        from mqlab.rocketmq.client import Producer

        producer: Producer = self._client(Producer, group, name, settings)
        producer.start()
        return producer

    def transaction_producer(
        self, group: str, listener: Any, *, name: str | None = None, **settings: Any
    ) -> TransactionProducer:
        """A started producer of half messages; the listener executes and checks the local transaction."""
        from mqlab.rocketmq.client import TransactionProducer

        def make(ports: Ports, group: str, servers: list[str], **settings: Any) -> TransactionProducer:
            return TransactionProducer(ports, group, servers, listener, **settings)

        producer: TransactionProducer = self._client(make, group, name, settings)
        producer.start()
        return producer

    def push_consumer(self, group: str, *, name: str | None = None, **settings: Any) -> PushConsumer:
        """A push consumer of a group, not started; settings have DefaultMQPushConsumer's names in snake_case."""
        from mqlab.rocketmq.client import PushConsumer

        consumer: PushConsumer = self._client(PushConsumer, group, name, _offsets_at_home(settings))
        return consumer

    def pull_consumer(self, group: str, *, name: str | None = None, **settings: Any) -> PullConsumer:
        """A started consumer that pulls on request, one request at a time. Mirrors DefaultMQPullConsumer."""
        from mqlab.rocketmq.client import PullConsumer

        consumer: PullConsumer = self._client(PullConsumer, group, name, _offsets_at_home(settings))
        consumer.start()
        return consumer

    def lite_pull_consumer(self, group: str, *, name: str | None = None, **settings: Any) -> LitePullConsumer:
        """A consumer to poll, not started. Mirrors DefaultLitePullConsumer."""
        from mqlab.rocketmq.client import LitePullConsumer

        consumer: LitePullConsumer = self._client(LitePullConsumer, group, name, _offsets_at_home(settings))
        return consumer

    def simple_consumer(self, group: str, *, name: str | None = None, **settings: Any) -> SimpleConsumer:
        """A consumer that receives on lease and acknowledges each message, not started. Mirrors SimpleConsumer."""
        from mqlab.rocketmq.client import SimpleConsumer

        consumer: SimpleConsumer = self._client(SimpleConsumer, group, name, _offsets_at_home(settings))
        return consumer

    @property
    def admin(self) -> GuardedAdmin:
        """The operator's tool with mqadmin's verbs; what changes the cluster needs ``confirm=True``."""
        from mqlab.cluster.connected.guarded_admin import GuardedAdmin

        if self._admin is None:
            self._admin = GuardedAdmin(self._ports("admin"), self.name_servers)
        return self._admin

    @property
    def operator(self) -> Admin:
        """The same tool without the second word, for programs that ask a person themselves (the console)."""
        from mqlab.rocketmq.admin import Admin

        if self._operator is None:
            self._operator = Admin(self._ports("operator"), self.name_servers)
        return self._operator

    @property
    def now_ms(self) -> int:
        """The time of this program's clients: ms since the epoch."""
        return self._loop.clock.now_ms()

    def close(self) -> None:
        """Shut all clients down, the newest first: consumers commit their offsets and leave. Harmless when closed."""
        if not self._is_open:
            return
        self._is_open = False
        for client in reversed(self.clients):
            try:
                client.shutdown()
            except MqlabError as error:  # the cluster may be gone; the others are shut down all the same
                client.ports.note("shutdown.failed", error=str(error))
        self._loop.stop()  # closes the connections of the tools

    def __enter__(self) -> Cluster:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def must_answer(self) -> None:
        """RemotingError unless a name server answers."""
        try:
            self.admin.cluster_info()
        except RemotingError as error:
            raise RemotingError(
                f"no name server answers at {', '.join(self.name_servers)}: {error.text}",
                code=error.code,
                hint="is the name written as your network knows it?"
                if "unknown host" in error.text
                else "is it running there? `mqlab serve` starts one at 127.0.0.1:9876",
            ) from error

    def _client(self, make: Callable[..., Any], group: str, name: str | None, settings: dict[str, Any]) -> Any:
        if not self._is_open:
            raise UsageError("this cluster is closed", hint="mqlab.connect(...) opens another connection")
        is_broadcasting = settings.get("message_model") == "BROADCASTING"
        unique = f"{os.getpid()}#{time.monotonic_ns()}"
        settings = {"instance_name": DEFAULT_INSTANCE if is_broadcasting else unique, **settings}
        client = make(self._ports(name or f"{group}-{next(self._numbers)}"), group, self.name_servers, **settings)
        self.clients.append(client)
        return client

    def _ports(self, node: str) -> Ports:
        return self._loop.ports(node, self._ip, RealFiles(), client_tls=self._tls, access=self._access)

    def __repr__(self) -> str:
        state = "" if self._is_open else ", closed"
        return f"<Cluster {';'.join(self.name_servers)}: {len(self.clients)} clients{state}>"


def _offsets_at_home(settings: dict[str, Any]) -> dict[str, Any]:
    """The settings; a broadcasting consumer's offsets are in ~/.rocketmq_offsets, as a Java client's are."""
    return {"local_offset_store_dir": str(Path.home() / ".rocketmq_offsets"), **settings}


def _own_address(name_server: str) -> str:
    """This machine's address as the name server sees it. Nothing is sent: a UDP socket only picks a route."""
    where = address_of(name_server)
    try:
        family, _, _, _, target = socket.getaddrinfo(where.host, where.port, type=socket.SOCK_DGRAM)[0]
        with socket.socket(family, socket.SOCK_DGRAM) as probe:
            probe.connect(target)
            return str(probe.getsockname()[0])
    except OSError:
        return "127.0.0.1"
