"""The nodes of a plan on one event loop: built, started, watched, and ended cleanly.

Mirrors: NamesrvStartup and BrokerStartup with their shutdown hooks.

    server = Server(plan); server.start(); server.wait_until_registered(); …; server.close()      in the background
    server.run(ready=write_port_file)                                                            on the main thread

    SIGTERM, SIGINT    brokers unregister, tables and store are saved, connections are closed; a second one ends at once
    SIGKILL            what was acknowledged under SYNC_FLUSH, or written before, is there after the next start

An error of one handler ends no other one: it is logged, counted and answered with SYSTEM_ERROR.
"""

from __future__ import annotations

import logging
import signal
import ssl
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from mqlab.cluster.runtime import EventLoop, PeerLimits
from mqlab.cluster.runtime.address import Address
from mqlab.cluster.serving.front import start_front
from mqlab.cluster.serving.plan import BrokerPlan, ServingPlan, numeric
from mqlab.cluster.serving.users import of_one_broker
from mqlab.errors import LimitReached, MqlabError
from mqlab.rocketmq.broker import Broker
from mqlab.rocketmq.broker.plug_in import NOTHING_PLUGGED_IN, PlugIn
from mqlab.rocketmq.broker.request_table import NOT_AT_THE_SECOND_PORT
from mqlab.rocketmq.machine.files import RealFiles
from mqlab.rocketmq.nameserver import NameServer
from mqlab.rocketmq.promises import Promise
from mqlab.rocketmq.remoting.access import NodeAccess
from mqlab.rocketmq.store.reading.store_reader import StoreReader

if TYPE_CHECKING:
    from mqlab.cluster.grpc.service import GrpcService

log = logging.getLogger("mqlab.server")

REGISTRATION_SECONDS = 10.0
LOOK_SECONDS = 0.05
STATUS_SECONDS = 60.0


@dataclass(frozen=True, slots=True)
class Tls:
    """The contexts of encrypted connections: for those that come in, and for those to name servers and masters."""

    server: ssl.SSLContext
    client: ssl.SSLContext
    pem: tuple[bytes, bytes] | None = None  # certificate and key, for the gRPC front, which has contexts of its own


class Server:
    """A name server and brokers in this process, built when it starts. A failed start leaves nothing open.

    ``can_advance``: its clock can be set forward. ``plug_in``: makes what is plugged into each broker.
    """

    def __init__(
        self,
        plan: ServingPlan,
        *,
        limits: PeerLimits | None = None,
        tls: Tls | None = None,
        can_advance: bool = False,
        plug_in: Callable[[], PlugIn] = lambda: NOTHING_PLUGGED_IN,
    ) -> None:
        self.plan = plan
        self.loop = EventLoop(limits=limits, not_before_ms=_after_last_message(plan), can_advance=can_advance)
        self.name_server: NameServer | None = None
        self.brokers: list[Broker] = []
        self.grpc: GrpcService | None = None
        self._tls = tls
        self._plug_in = plug_in
        self._outside = self.loop.ports("server", "127.0.0.1", RealFiles()).workers  # of callers from other threads
        self._files: list[RealFiles] = []
        self._is_ending = False
        self._not_ready: Exception | None = None

    def start(self) -> None:
        """Start everything, with the loop on a thread of its own."""
        self.loop.start()
        try:
            self.on_loop(self._start_nodes)
        except BaseException:
            self.close()
            raise

    def run(self, ready: Callable[[], None], *, status: bool = False) -> None:
        """Start everything on this thread and serve until SIGTERM or SIGINT.

        ``ready``: called once all listen; an error of it ends the server and is raised here.
        """
        asyncio_loop = self.loop.loop
        try:
            self._start_nodes()
            for number in (signal.SIGTERM, signal.SIGINT):
                asyncio_loop.add_signal_handler(number, self._signalled, number)
            self._when_registered(ready, asyncio_loop.time() + REGISTRATION_SECONDS)
            if status:
                asyncio_loop.call_later(STATUS_SECONDS, self._log_status, 0, 0)
        except BaseException:
            self._end_nodes()
            asyncio_loop.call_soon(asyncio_loop.stop)
            raise
        finally:
            self.loop.run_until_stopped()
            self._release_files()
        if self._not_ready is not None:
            raise self._not_ready

    def _start_nodes(self) -> None:
        try:
            # 1. The name server first: brokers register as soon as they run.
            if self.plan.name_server is not None:
                self._start_name_server(self.plan.name_server)
            # 2. The brokers. Each recovers its store before it listens.
            for broker_plan in self.plan.brokers:
                self._start_broker(broker_plan)
            # 3. The front of 5.x clients.
            if self.plan.grpc is not None:
                self.plan.let_go()
                pem = None if self._tls is None else self._tls.pem
                self.grpc = start_front(self.plan, self.loop, self._ports("grpc", "127.0.0.1", None), self.brokers, pem)
        finally:
            self.plan.let_go()

    def _start_name_server(self, where: Address) -> None:
        self.name_server = NameServer(self._ports("namesrv", numeric(where.host), where.host), _named(self.plan))
        self.name_server.start()
        log.info("the name server listens at %s", where)

    def _start_broker(self, plan: BrokerPlan) -> None:
        plan.directory.mkdir(parents=True, exist_ok=True)
        name = plan.config.broker_name
        access, users = of_one_broker(self.plan.access)
        broker = Broker(
            self._ports(name, plan.advertised, plan.bind, access),
            plan.config,
            store_directory=str(plan.directory),
            store_config=plan.store,
            name_servers=self.plan.name_servers,
            memory_bytes=plan.memory_bytes,
            users=users,
            plug_in=self._plug_in(),
        )
        broker.state.told_name_servers = self.plan.name_servers
        self.brokers.append(broker)  # before it starts: a start that fails is ended, too
        broker.start()
        broker.remoting.listen(plan.vip_address, without=NOT_AT_THE_SECOND_PORT)
        role = "slave" if broker.is_slave else plan.store.broker_role
        log.info("%s (%s) listens at %s, store in %s", name, role, plan.address, plan.directory)

    def _ports(self, node: str, ip: str, bind: str | None, access: NodeAccess | None = None) -> Any:
        files = RealFiles()
        self._files.append(files)
        tls = self._tls
        contexts = (None, None) if tls is None else (tls.server, tls.client)
        return self.loop.ports(
            node, ip, files, bind=bind, server_tls=contexts[0], client_tls=contexts[1], access=access
        )

    def addresses(self) -> dict[str, Any]:
        """Every address in use: "namesrv" (None without one), and for each broker its name and its three addresses."""
        plan = self.plan
        return {
            "namesrv": str(plan.name_server) if plan.name_server else ";".join(plan.name_servers) or None,
            **({"grpc": str(plan.grpc)} if plan.grpc else {}),
            "brokers": [
                {
                    "name": broker.config.broker_name,
                    "id": broker.config.broker_id,
                    "address": broker_plan.address,
                    "vip": broker_plan.vip_address,
                    "ha": broker.ha_address,
                    "store": str(broker_plan.directory),
                }
                for broker, broker_plan in zip(self.brokers, plan.brokers, strict=True)
            ],
        }

    @property
    def is_registered(self) -> bool:
        """Whether every broker was accepted by a name server, or has none to register at."""
        return all(broker.registration.registered or not self.plan.name_servers for broker in self.brokers)

    def wait_until_registered(self) -> None:
        """Wait until clients find every broker. LimitReached when no name server accepts a broker within 10 s."""
        import time

        end = time.monotonic() + REGISTRATION_SECONDS
        while not self.on_loop(lambda: self.is_registered):
            if time.monotonic() > end:
                raise LimitReached(f"no name server of {', '.join(self.plan.name_servers)} accepted the brokers")
            time.sleep(LOOK_SECONDS)

    def _when_registered(self, ready: Callable[[], None], end: float) -> None:
        if not self.is_registered and self.loop.loop.time() <= end:
            self.loop.loop.call_later(LOOK_SECONDS, self._when_registered, ready, end)
            return
        if not self.is_registered:
            servers = ", ".join(self.plan.name_servers)
            log.warning("no name server of %s has answered yet; the brokers keep trying", servers)
        try:
            ready()
        except Exception as error:  # in a callback of the loop nobody would see it; ``run`` raises it
            self._not_ready, self._is_ending = error, True
            self._end_nodes()
            self.loop.stop()

    def on_loop(self, action: Callable[[], Any]) -> Any:
        """Run an action between two steps of the nodes, from another thread, and return what it returns."""
        return self._outside.call(lambda: Promise.of(action()))

    def close(self) -> None:
        """End everything cleanly; for a server that was started in the background."""
        if not self._is_ending:
            self._is_ending = True
            self.on_loop(self._end_nodes)
            self.loop.stop()
            self._release_files()

    def kill(self) -> None:
        """End as SIGKILL would: no peer is notified, nothing is saved; for tests with a server in their own process."""
        self._is_ending = True
        if self.grpc is not None:
            self.on_loop(self.grpc.stop)
        self.loop.stop()
        self._release_files()

    def _signalled(self, number: int) -> None:
        if self._is_ending:
            log.warning("ending at once")
            raise SystemExit(1)
        self._is_ending = True
        log.info("%s: saving and ending", signal.Signals(number).name)
        self._end_nodes()
        self.loop.stop()

    def _end_nodes(self) -> None:
        if self.grpc is not None:
            self.grpc.stop()
        nodes: list[Broker | NameServer] = [*reversed(self.brokers)]
        if self.name_server is not None:
            nodes.append(self.name_server)
        for node in nodes:
            try:
                node.shutdown()
            except (MqlabError, OSError):  # the others are saved all the same
                log.exception("%r did not end cleanly", node)

    def _release_files(self) -> None:
        for files in self._files:
            files.process_ended()

    def _log_status(self, put_before: int, got_before: int) -> None:
        put = sum(broker.store_stats.puts.total for broker in self.brokers)
        got = sum(broker.store_stats.transferred.total for broker in self.brokers)
        log.info(
            "%d connections, %.1f messages stored and %.1f read a second, %d bytes of log",
            len(self.loop.peers.connections),
            (put - put_before) / STATUS_SECONDS,
            (got - got_before) / STATUS_SECONDS,
            sum(broker.store.max_physical_offset for broker in self.brokers),
        )
        self.loop.loop.call_later(STATUS_SECONDS, self._log_status, put, got)

    def __enter__(self) -> Server:
        self.start()
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<Server {self.name_server!r} {self.brokers!r}>"


def _named(plan: ServingPlan) -> Any:
    from dataclasses import replace

    assert plan.name_server is not None
    return replace(plan.name_server_config, listen_port=plan.name_server.port)


def _after_last_message(plan: ServingPlan) -> int:
    """A time after every stored message: store timestamps never go back, also if the machine's date did."""
    latest_ms = 0
    for broker in plan.brokers:
        if (broker.directory / "commitlog").is_dir():
            last_ms = StoreReader(broker.directory).last_store_timestamp()
            latest_ms = max(latest_ms, 0 if last_ms is None else last_ms + 1)
    return latest_ms
