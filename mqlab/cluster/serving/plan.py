"""What is to run in one process, and where: name server, brokers, ports, store directories.

Mirrors: the command lines and configuration files of mqnamesrv and mqbroker.

    a broker at port p uses    p    clients                       10911      10921      10931
                               p-2  clients that prefer "VIP"     10909      10919      10929
                               p+1  slaves (haListenPort)         10912      10922      10932

    DIR            the store of a single broker: DIR/commitlog, DIR/config …
    DIR/broker-b   with several brokers each has a directory of its own

Port 0 takes free ports. An address that others are told is never a wildcard.
"""

from __future__ import annotations

import random
import socket
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from mqlab.cluster.runtime.address import Address, address_of, is_loopback
from mqlab.cluster.runtime.tcp import hold, let_go
from mqlab.errors import UsageError
from mqlab.rocketmq.broker.config import BrokerConfig
from mqlab.rocketmq.nameserver.config import NameServerConfig
from mqlab.rocketmq.remoting.access import NodeAccess
from mqlab.rocketmq.store.config import StoreConfig

BROKER_PORT = 10911
PORT_STEP = 10
VIP_DISTANCE = 2
BROKER_PORTS = (-VIP_DISTANCE, 0, 1)
HIGHEST_PORT = 65_535
NOT_FOR_CONNECTIONS = range(20_000, 32_000)
"""Systems give connections a port of their own above it: Linux from 32,768 on, macOS from 49,152 on."""
WILDCARDS = ("0.0.0.0", "::")


@dataclass(frozen=True, slots=True)
class BrokerPlan:
    """One broker process: where it listens, what it tells others (``advertised``), its store and its settings."""

    bind: str
    advertised: str
    directory: Path
    config: BrokerConfig
    store: StoreConfig
    memory_bytes: int | None = None

    @property
    def address(self) -> str:
        """The address that clients are told."""
        return str(Address(self.advertised, self.config.listen_port))

    @property
    def vip_address(self) -> str:
        """The address of the second port for clients. Mirrors fastListen, MixAll.brokerVIPChannel."""
        return str(Address(self.advertised, self.config.listen_port - VIP_DISTANCE))


@dataclass(frozen=True, slots=True)
class ServingPlan:
    """All nodes of one process. The brokers register at ``name_servers`` and answer those whom ``access`` lets in."""

    name_server: Address | None
    name_servers: tuple[str, ...]
    brokers: tuple[BrokerPlan, ...]
    name_server_config: NameServerConfig = field(default_factory=NameServerConfig)
    access: NodeAccess | None = None
    grpc: Address | None = None  # where 5.x clients find the brokers
    grpc_as_in_5_3_3: bool = False

    def let_go(self) -> None:
        """Close what was held for these nodes and is not used: a broker without slaves listens at two ports."""
        held = [where for where in (self.name_server, self.grpc) if where is not None]
        for broker in self.brokers:
            held += [Address(broker.bind, broker.config.listen_port + distance) for distance in BROKER_PORTS]
        for where in held:
            let_go(where)

    def reachable_from_outside(self) -> list[str]:
        """The addresses at which other machines can connect."""
        bound = [where for where in (self.name_server, self.grpc) if where is not None]
        bound += [Address(broker.bind, broker.config.listen_port) for broker in self.brokers]
        return [str(address) for address in bound if not is_loopback(address.host)]


def own_address(bind: str, wanted: str | None) -> str:
    """What a broker tells clients: the wanted address (brokerIP1), else where it listens, never a wildcard.

    UsageError for a name: RocketMQ stores a broker's address as a number in each message.
    """
    if wanted:
        return numeric(wanted)
    if bind not in WILDCARDS:
        return numeric(bind)
    # The address of the network card that leads outside. Nothing is sent: a UDP socket only picks a route.
    with socket.socket(socket.AF_INET6 if bind == "::" else socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect(("2001:db8::1" if bind == "::" else "192.0.2.1", 9))
            return str(probe.getsockname()[0])
        except OSError:
            return "::1" if bind == "::" else "127.0.0.1"


def numeric(host: str) -> str:
    """The number of a host name. UsageError when the name is not known.

    >>> numeric("127.0.0.1"), numeric("::1")
    ('127.0.0.1', '::1')
    """
    try:
        return str(socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)[0][4][0])
    except OSError as error:
        raise UsageError(
            f"the host {host!r} is not known: {error}", hint="give an address of this machine, such as 127.0.0.1"
        ) from error


def free_port(host: str) -> int:
    """A free port of this machine, held until a server listens at it."""
    return _held_port(host, (0,), "name a port")


def free_broker_port(host: str) -> int:
    """A port p for a broker such that p - 2, p and p + 1 are free, and held until the broker listens at them."""
    return _held_port(host, BROKER_PORTS, "name a port with --broker HOST:PORT")


def _held_port(host: str, distances: Sequence[int], hint: str) -> int:
    for _ in range(1_000):
        port = random.choice(NOT_FOR_CONNECTIONS)
        taken = []
        try:
            for distance in distances:
                taken.append(hold(Address(host, port + distance)))
        except UsageError:
            for where in taken:
                let_go(where)
            continue
        return port
    raise UsageError(f"no free port at {host}", hint=hint)


def broker_addresses(first: str, count: int) -> list[Address]:
    """The addresses of ``count`` brokers: ``first`` and those ten ports further on each. Port 0: any free ones.

    >>> [str(each) for each in broker_addresses("127.0.0.1:10911", 3)]
    ['127.0.0.1:10911', '127.0.0.1:10921', '127.0.0.1:10931']
    """
    where = address_of(first)
    addresses: list[Address] = []
    for number in range(count):
        port = where.port + number * PORT_STEP if where.port else free_broker_port(where.host)
        if not VIP_DISTANCE < port < HIGHEST_PORT:
            raise UsageError(f"a broker cannot use port {port}", hint="it needs the ports p - 2, p and p + 1")
        addresses.append(Address(where.host, port))
    return addresses
